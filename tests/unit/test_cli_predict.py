"""slurm-score history import and slurm-score predict, as a user types them."""

import gzip
import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_score.cli import main
from slurm_score.cli.history_import import import_sacct
from slurm_score.model import Predicted
from slurm_score.predict.store import open_history
from slurm_score.run_times import LATE_S, SACCT
from slurm_score.snapshot import Snapshot, write_snapshot
from tests.unit.builders import DAY, NOW, make_cluster, make_job, make_policy
from tests.unit.test_run_times import Accounting, ended

SWF = "".join(f"{i} {100 * i} 0 50 4 -1 -1 4 60 -1 1 3 -1 -1 -1 -1 -1 -1\n" for i in range(1, 9))


def call(*words: object) -> tuple[int, str]:
    """Return the exit code of a command and what it printed."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of eight equal jobs."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(f"; MaxProcs: 4\n{SWF}".encode()))
    return path


def test_files_are_imported_once(tmp_path: Path, log: Path) -> None:
    """A second import of the same file adds nothing."""
    history = tmp_path / "h.sqlite"
    told = [call("history", "import", log, "--history", history) for _ in range(2)]
    assert [code for code, _ in told] == [0, 0]
    assert [f"{n} new runs" in text for n, (_, text) in zip((8, 0), told, strict=True)] == [True, True]
    assert told[1][1].endswith(f"{history}: 8 runs\n")


def test_accounting_is_imported_day_by_day_from_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interruption costs a day at most."""
    slurm = Accounting()
    slurm.runs = tuple(ended("ann", NOW - i * DAY // 2, 60.0) for i in range(6))
    with open_history(tmp_path / "h.sqlite") as store:
        for now in (NOW, NOW + 10):
            import_sacct(store, slurm, now, 2.5 * DAY, anonymise=False)
        assert store.count() == 5
    edges = [NOW - int(2.5 * DAY), NOW - int(1.5 * DAY), NOW - DAY // 2, NOW]
    assert slurm.asked == [*itertools.pairwise(edges), (NOW - int(LATE_S), NOW + 10)]
    assert capsys.readouterr().out.splitlines()[0].endswith(": 2 runs, 2 new")


def test_an_import_does_not_stop_at_what_the_reprioritizer_asked(tmp_path: Path) -> None:
    """It only knows the day before its first start; nor does it stop at an import that began later."""
    slurm = Accounting()
    with open_history(tmp_path / "h.sqlite") as store:
        store.add((), SACCT, NOW)
        for days in (1, 2):
            import_sacct(store, slurm, NOW, days * float(DAY), anonymise=False)
    assert slurm.asked == [(NOW - DAY, NOW), (NOW - 2 * DAY, NOW - DAY), (NOW - DAY, NOW)]


def test_a_file_that_is_no_sacct_is_refused(tmp_path: Path) -> None:
    """With what is missing and the command that writes one."""
    file = tmp_path / "jobs.txt"
    file.write_text("JobID|State\n")
    code, text = call("history", "import", file, "--history", tmp_path / "h.sqlite")
    assert code == 1
    assert "no field JobIDRaw, User, Submit, End, ElapsedRaw in its first line" in text
    assert "sacct -a -X -D -P -o JobIDRaw,User," in text


def test_history_of_a_job_is_still_what_was_decided_about_it(tmp_path: Path) -> None:
    """`history JOB_ID` with its options, before and after the id."""
    missing = tmp_path / "audit.sqlite"
    for words in (
        ["5", "--audit", missing],
        ["--json", "--audit", missing, "5"],
        ["decisions", "5", "--audit", missing],
    ):
        code, text = call("history", *words)
        assert (code, "no audit yet" in text) == (1, True)


def test_replay_tells_the_accuracy_of_every_predictor(log: Path) -> None:
    """Eight runs of 50 s, a request of 60 s; a run is known from the second after its end."""
    code, text = call("predict", "--replay", log, "--json")
    found = {row["predictor"]: row for row in json.loads(text)}
    assert code == 0
    assert {name: row["mae_s"] for name, row in found.items()} == {
        "user's request": 10.0,
        "Tsafrir": 2 * 10 / 8,
        "median of last 5": 10 / 8,
        "similar runs": (10 + 7 * 2) / 8,
    }
    assert call("predict", "--replay", log)[1].split("\n")[0].split() == [
        "NAME", "JOBS", "MAE_S", "MEDIAN_S", "MIN/MAX", "TOO_SHORT",
    ]  # fmt: skip


def test_predict_tells_a_pending_job_and_its_source(tmp_path: Path) -> None:
    """As the last cycle saw it."""
    path = tmp_path / "s.jsonl"
    jobs = (make_job(4), make_job(5), make_job(7))
    predicted = {
        4: Predicted(90.0, "last 3 of alice's 1-CPU jobs"),
        7: Predicted(90.0, "last 9 of alice's 1-CPU jobs", 40.0),
    }
    write_snapshot(
        path, Snapshot(policy=make_policy(), cluster=make_cluster(), jobs=jobs, predicted=predicted)
    )
    assert call("predict", "4", "--snapshot", path) == (0, "job 4: 00:01:30: last 3 of alice's 1-CPU jobs\n")
    assert call("predict", "7", "--snapshot", path) == (
        0,
        "job 7: 00:01:30: last 9 of alice's 1-CPU jobs; scored as 00:00:40\n",
    )
    assert call("predict", "5", "--snapshot", path) == (
        0,
        "job 5: no run is known yet; its time limit counts\n",
    )
    assert call("predict", "6", "--snapshot", path)[0] == 1
    assert call("predict", "--snapshot", path)[0] == 2
