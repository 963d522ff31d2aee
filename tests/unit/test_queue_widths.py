"""slurm_score/report/queue.py at 80, 120 and 200 columns, with ids and names that make tables go wrong."""

from dataclasses import replace
from pathlib import Path
from unicodedata import east_asian_width

import pytest

from slurm_score.contention import gpu_pressure
from slurm_score.model import Partition, Predicted
from slurm_score.report.fields import DEFAULT, LONG, NORMALISED, Format, format_of, parse_format, parse_names
from slurm_score.report.queue import Queue, columns_needed
from slurm_score.service.handlers import score_snapshot
from slurm_score.service.listing import list_columns
from slurm_score.snapshot import Snapshot
from tests.unit.builders import make_cluster, make_gpu_job, make_job, make_node, make_policy

EXPECTED = Path(__file__).parents[1] / "data" / "sscore"
"""The tables as they are to look, each looked at as a picture before it was put there."""

FAR = "gpu-h100-interactive-long"
JOBS = (
    make_job(41234, wait_s=7200, name="resnet"),
    make_gpu_job(
        123456789,
        "gpu:a100:4",
        label="123456789_[1-100%5]",
        tasks="1-100",
        user="maximiliane.von-hohenstein",
        account="institute-of-theoretical-physics",
        name="学習ジョブ第三回:再実行",
    ),
    make_job(123456900, label="123456900+0", het_job_id=123456900, user="zoë", partitions=("main", FAR)),
    make_job(123456901, label="123456900+1", het_job_id=123456900, user="zoë", partitions=("main", FAR)),
    make_job(99999, wait_s=46 * 3600, user="김철수", name="시뮬레이션", qos="high"),
    make_gpu_job(100000, "gpu:1", site_factor=None, name="a-name-without-end-that-goes-on-and-on"),
)  # fmt: skip
PREDICTED = {job.job_id: Predicted(3600.0, "time limit") for job in JOBS} | {
    41234: Predicted(90061.0, "23 runs of resnet by alice")
}
FITTED = {
    "default": format_of(DEFAULT),
    "norm": format_of(NORMALISED),
    "long": format_of(LONG, every=True),
}
FIXED = {
    "names": parse_names("job,name:10,user,score:.7,partition"),
    "sprio": parse_format("%.15i %9r %8u %12m|%.6s %.3S"),
}
WIDTHS = (80, 120, 200)


def table(shown: Format, width: int | None) -> tuple[str, list[str]]:
    """Return the table of the jobs, made by an older policy than the file's, and what had no room."""
    cluster = make_cluster()
    cluster = replace(
        cluster,
        partitions={**cluster.partitions, FAR: Partition(name=FAR, cpus=8)},
        nodes=(*cluster.nodes, make_node("h1", partitions=(FAR,))),
    )
    snapshot = Snapshot(
        policy=make_policy(),
        cluster=cluster,
        pressure=gpu_pressure(JOBS, cluster),
        jobs=JOBS,
        predicted=PREDICTED,
    )
    answer = list_columns(score_snapshot(snapshot), columns_needed(shown)) | {
        "policy_in_force": "0123456789ab"
    }
    return Queue(answer, shown).table(width)


def expected(name: str) -> str:
    """Return a table of the folder, with this release's hash of the policy."""
    return (EXPECTED / f"{name}.txt").read_text(encoding="utf-8").replace("abcdef012345", make_policy().hash)


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("width", WIDTHS)
def test_table_fits_the_terminal(name: str, width: int) -> None:
    """Column by column as in the file, what had no room named below; no line is wider than the terminal."""
    text, no_room = table(FITTED[name], width)
    assert text + "".join(f"({line})\n" for line in no_room) == expected(f"{name}-{width}")
    assert max(map(cells, text.splitlines())) <= width


@pytest.mark.parametrize("name", FITTED)
def test_a_pipe_is_told_everything(name: str) -> None:
    """No terminal, no width: nothing is cut and nothing left out."""
    text, no_room = table(FITTED[name], None)
    assert (text, no_room) == (expected(f"{name}-pipe"), [])


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("width", [20, *WIDTHS, None])
def test_a_format_that_was_asked_for_is_kept(name: str, width: int | None) -> None:
    """Whatever the terminal: every field is there, as wide as it was asked for."""
    assert table(FIXED[name], width) == (expected(name), [])


@pytest.mark.parametrize("shown", [*FITTED.values(), FIXED["sprio"]], ids=[*FITTED, "sprio"])
@pytest.mark.parametrize("width", [1, 40, 66, 79, 80, 81, 100, 120, 150, 200, 320, None])
def test_columns_are_aligned_at_every_width(shown: Format, width: int | None) -> None:
    """The last column is a number or a hash, so all rows end at the same cell; ids and numbers are whole."""
    lines = table(shown, width)[0].splitlines()
    assert len(set(map(cells, lines[1:]))) == 1
    rows = [line.split() for line in lines[1:]]
    assert [row[0] for row in rows] == ["99999", "123456789_[1-100%5]", "100000", "41234", "123456900+[0-1]"]
    normalised = ["0.5978", "0.2181", "0.1163", "0.1071", "0.0990"]
    scores = normalised if shown is FITTED["norm"] else ["956", "349", "186", "171", "158"]
    assert all(score in line for score, line in zip(scores, lines[1:], strict=True))


def cells(line: str) -> int:
    """Return how many cells a line takes, by Unicode's own table and not the one that the program asks."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in line)
