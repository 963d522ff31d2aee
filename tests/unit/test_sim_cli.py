"""slurm-score simulate, and the page that it writes."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_score.cli import main
from slurm_score.cli.simulate import EPILOG, policy_of
from slurm_score.errors import SimulationError
from slurm_score.sim.engine import Options
from slurm_score.sim.policies import named
from slurm_score.sim.report import changes
from tests.unit.sim_support import schedule, workload

SWF = """\
; MaxProcs: 4
11 0 -1 100 3 -1 -1 3 100 -1 1 1 -1 -1 -1 -1 -1 -1
12 1 -1 100 4 -1 -1 4 100 -1 1 1 -1 -1 -1 -1 -1 -1
10 1 -1 50 1 -1 -1 1 50 -1 1 <b> -1 -1 -1 -1 -1 -1
""".replace("<b>", "2")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a small log."""
    path = tmp_path / "small.swf"
    path.write_text(SWF)
    return path


def simulate(*args: object) -> Result:
    """Return what the command says."""
    return CliRunner().invoke(main, ["simulate", *map(str, args)], catch_exceptions=False)


def test_policies_stand_side_by_side(log: Path) -> None:
    """One row each, with slowdown and waits."""
    told = simulate(log, "--policy", "fcfs", "--policy", "sjf", "--backfill", "none")
    assert told.exit_code == 0
    lines = told.output.splitlines()
    assert lines[0] == "small: 3 jobs on 4 processors, backfill none by request, order batch"
    assert lines[1].split()[:4] == ["NAME", "SLOWDOWN", "WAIT", "P95"]
    assert [line.split()[0] for line in lines[2:4]] == ["fcfs", "sjf"]
    assert lines[2].split()[1] == f"{(1 + 1.99 + 4.98) / 3 + 0:.2f}"


def test_json_holds_the_figures(log: Path) -> None:
    """Times in s."""
    told = json.loads(simulate(log, "--json", "--starved-after", 0.01).output)
    assert (told["backfill"], told["order"], told["plan"], told["starved_after_s"]) == (
        "easy",
        "batch",
        "request",
        36,
    )
    (small,) = told["workloads"]
    assert (small["name"], small["procs"], small["remarks"]) == ("small", 4, [])
    (fcfs,) = small["policies"]
    assert (fcfs["policy"], fcfs["jobs"], fcfs["max_wait_s"], fcfs["makespan_s"]) == ("fcfs", 3, 99, 200)
    assert fcfs["starved"] == pytest.approx(1 / 3)
    assert [(row["name"], row["jobs"]) for row in fcfs["users"]] == [("1", 2), ("2", 1)]
    assert [(row["name"], row["max_wait_s"]) for row in fcfs["sizes"]] == [("1", 0), ("2-3", 0), ("4-7", 99)]
    assert (fcfs["qos"], fcfs["gpu_types"]) == ([], [])


def test_waits_are_written_in_the_order_of_the_input(log: Path, tmp_path: Path) -> None:
    """Job id and wait."""
    out = tmp_path / "waits.txt"
    assert simulate(log, "--waits", out).exit_code == 0
    assert out.read_text() == "11 0\n12 99\n10 0\n"


def test_several_files_and_an_invented_workload(log: Path) -> None:
    """A table for each."""
    told = json.loads(simulate(log, log, "--synthetic", 3, "--json").output)
    assert [work["name"] for work in told["workloads"]] == ["small", "small", "synthetic-3"]


def test_output_is_the_same_with_and_without_numba(log: Path) -> None:
    """Byte for byte."""
    pytest.importorskip("numba", reason="without numba there is nothing to compare")
    args = ("--synthetic", 4, log, "--policy", "wfp3", "--policy", "etc/slurm-score.yaml@recent", "--json")
    assert simulate(*args, "--numba").output == simulate(*args, "--no-numba").output


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ((), "a FILE or --synthetic SEED is needed"),
        (("LOG", "--policy", "fcsf"), "policy: unknown policy, did you mean 'fcfs'?"),
        (
            ("LOG", "--policy", "sjf@tsafir"),
            "--policy sjf@tsafir: unknown predictor, got 'tsafir'; one of request",
        ),
        (("LOG", "--waits", "x", "--policy", "sjf", "--policy", "saf"), "--waits needs one workload and one"),
        (("LOG", "--procs", "3"), ""),
        (("LOG", "--cluster", "LOG", "--procs", "3"), "--procs and --cluster both say how large"),
        (("LOG", "--events", "LOG"), "--events, --keep-wait and --keep-progress need --cluster"),
        (("LOG", "--scheduler", "bf_window=3"), "--scheduler changes nothing with --backfill easy"),
        (
            ("LOG", "--backfill", "slurm", "--scheduler", "bf_windw=3"),
            "--scheduler: bf_windw isn't simulated, did you mean",
        ),
        (("LOG", "--policy", "multifactor:age=x"), "multifactor: age must be a whole number, 0 or more"),
    ],
)
def test_wrong_usage_is_one_sentence(log: Path, args: tuple[str, ...], fault: str) -> None:
    """No traceback."""
    told = simulate(*(str(log) if arg == "LOG" else arg for arg in args))
    if fault:
        assert told.exit_code in (1, 2)
        assert fault in told.output
    else:
        assert "Note: " in told.output
        assert "1 jobs ask for more than 3 processors and are left out" in told.output


def test_a_file_without_a_size_needs_procs(tmp_path: Path) -> None:
    """Nothing is guessed."""
    path = tmp_path / "bare.swf"
    path.write_text(SWF.partition("\n")[2])
    assert "bare: its header doesn't say how many processors there are; --procs N" in simulate(path).output
    assert simulate(path, "--procs", 4).exit_code == 0


SITE = """\
nodes:
  - {names: "n[1-2]", cores: 4, mem_mb: 1000}
  - {names: g1, cores: 4, mem_mb: 1000, gres: "gpu:a100:2", weight: 5}
partitions: {all: {nodes: "n[1-2],g1"}}
qos: {low: 1, high: 9}
preempts: {high: [low]}
multifactor: {PriorityWeightQOS: 1000}
"""
SACCT = """\
JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|ReqCPUS|ReqTRES|User|QOS|Partition
7|2026-01-01T00:00:00|60|1|1|4|cpu=4,gres/gpu:a100=2|ann|low|all
8|2026-01-01T00:00:10|60|1|1|4|cpu=4,gres/gpu:a100=1|bob|high|all
9|2026-01-01T00:00:20|60|5|1|4|cpu=4|ann|low|all
"""


@pytest.fixture
def cluster(tmp_path: Path) -> tuple[Path, Path]:
    """Return sacct's table of three jobs, and a cluster."""
    jobs, site = tmp_path / "jobs.csv", tmp_path / "site.yaml"
    jobs.write_text(SACCT)
    site.write_text(SITE)
    return jobs, site


def test_a_table_on_a_cluster(cluster: tuple[Path, Path]) -> None:
    """Job 8 preempts 7, as its QOS may; backfill is Slurm's; GPUs have rows of their own."""
    jobs, site = cluster
    told = json.loads(simulate(jobs, "--cluster", site, "--policy", "multifactor", "--json").output)
    assert (told["backfill"], told["workloads"][0]["procs"]) == ("slurm", 12)
    (row,) = told["workloads"][0]["policies"]
    assert (row["restarts"], row["jobs"]) == (1, 3)
    assert [(gpu["name"], gpu["gpus"]) for gpu in row["gpus"]] == [("a100", 2)]
    assert {one["name"]: one["jobs"] for one in row["gpu_types"]} == {"a100": 2, "no GPU": 1}
    text = simulate(jobs, "--cluster", site, "--policy", "multifactor").output
    assert "FRAGMENTED" in text
    assert "multifactor: 1 runs were ended by a failure or by preemption." in text


def test_the_schedule_of_a_cluster_is_slurm_s_as_it_is_set_up(cluster: tuple[Path, Path]) -> None:
    """Job 8 waits for the node's cores: with an interval of an hour it is the main loop that starts it."""
    jobs, site = cluster
    site.write_text(SITE.partition("preempts")[0])
    out = jobs.with_name("waits")
    args = (jobs, "--cluster", site, "--waits", out)
    assert simulate(*args, "--scheduler", "bf_interval=10800,batch_sched_delay=0").exit_code == 0
    assert out.read_text() == "7 0\n8 50\n9 40\n"
    assert simulate(*args, "--scheduler", "bf_interval=5,batch_sched_delay=5").exit_code == 0
    assert out.read_text() == "7 0\n8 50\n9 0\n"


def test_what_happens_to_nodes_comes_from_a_table(cluster: tuple[Path, Path]) -> None:
    """A failure at 30 s ends job 7's run; what it keeps is a choice."""
    jobs, site = cluster
    site.write_text(SITE.partition("preempts")[0])
    events, out = jobs.with_name("events.csv"), jobs.with_name("waits")
    events.write_text("time,node,what\n2026-01-01T00:00:30,g1,fail\n2026-01-01 00:00:40,g1,resume\n")
    at_once = ("--scheduler", "batch_sched_delay=0,bf_interval=0")
    args = (jobs, "--cluster", site, "--events", events, "--waits", out, *at_once)
    assert simulate(*args).exit_code == 0
    assert out.read_text() == "7 100\n8 30\n9 0\n"
    assert simulate(*args, "--keep-wait", "--keep-progress").exit_code == 0
    assert out.read_text() == "7 10\n8 60\n9 0\n"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("time,node\n", ["not a list of node events, lacks columns, got what; columns time, node, what"]),
        (
            "time,node,what\nsoon,g1,fail\n5,g1,drian\n6,g[1,fail\n",
            [
                "events.csv:2: field time: not a number",
                "events.csv:3: field what: unknown event, did you mean 'drain'?, got 'drian'; one of fail,",
                "events.csv:4: field node: not a host list",
            ],
        ),
        ("time,node,what\n5,g2,fail\n", ["there is no such node, got 'g2'"]),
    ],
)
def test_every_wrong_event_is_named(cluster: tuple[Path, Path], text: str, faults: list[str]) -> None:
    """With file, line and field."""
    jobs, site = cluster
    events = jobs.with_name("events.csv")
    events.write_text(text)
    told = simulate(jobs, "--cluster", site, "--events", events)
    assert told.exit_code != 0
    assert [fault for fault in faults if fault not in told.output] == []


def test_a_cluster_that_is_none(cluster: tuple[Path, Path]) -> None:
    """Every problem has its line."""
    jobs, site = cluster
    site.write_text("nodes: [{names: n1, cores: 0, mem_mb: 1}]\npartitions: {p: {nodes: n2}}\n")
    told = simulate(jobs, "--cluster", site)
    assert told.exit_code != 0
    assert f"{site}:1: nodes.0.cores" in told.output


def test_a_cluster_gives_the_same_with_and_without_numba(cluster: tuple[Path, Path]) -> None:
    """Byte for byte; the invented jobs are of the cluster's size."""
    pytest.importorskip("numba", reason="without numba there is nothing to compare")
    jobs, site = cluster
    policies = ("--policy", "wfp3", "--policy", "etc/slurm-score.yaml", "--policy", "multifactor")
    args = (jobs, "--synthetic", 4, "--cluster", site, *policies, "--json")
    told = simulate(*args, "--numba").output
    assert json.loads(told)["workloads"][1]["policies"][0]["jobs"] > 1000
    assert told == simulate(*args, "--no-numba").output


def test_report_of_a_cluster_shows_its_gpus(cluster: tuple[Path, Path], tmp_path: Path) -> None:
    """Two plots more."""
    pytest.importorskip("matplotlib", reason="the report needs the extra sim")
    jobs, site = cluster
    assert simulate(jobs, "--cluster", site, "--report", tmp_path / "report").exit_code == 0
    names = {p.name for p in (tmp_path / "report").glob("*.png")}
    assert {"jobs-gpus.png", "jobs-stranded.png", "jobs-waits.png"} <= names


def test_the_example_of_the_help_runs() -> None:
    """As it stands there."""
    example = EPILOG.splitlines()[-1].split()
    assert example[:2] == ["slurm-score", "simulate"]
    assert simulate(*example[2:]).exit_code == 0


def test_policies_are_named_by_texts() -> None:
    """By name, with a predictor, as a file."""
    assert policy_of("sjf@recent") == named("sjf", "recent")
    assert policy_of("etc/slurm-score.yaml@recent").predictor == "recent"
    assert policy_of("multifactor").name == "multifactor"
    with pytest.raises(SimulationError):
        policy_of("nosuch")


class Page(HTMLParser):
    """The sources of a page's images, and every address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what it shows and what it would load."""
        values = dict(attrs)
        assert tag not in ("script", "link", "iframe")
        if tag == "img":
            self.images.append(values["src"] or "")


def test_report_opens_offline_and_comes_with_its_plots(tmp_path: Path) -> None:
    """Pictures are in the page; nothing is loaded from elsewhere."""
    pytest.importorskip("matplotlib", reason="the report needs the extra sim")
    folder = tmp_path / "report"
    args = ("--policy", "fcfs", "--policy", "wfp3", "--report", folder)
    assert simulate("--synthetic", 3, *args).exit_code == 0
    text = (folder / "index.html").read_text()
    images = Page(text).images
    assert len(images) == 5
    assert all(image.startswith("data:image/png;base64,iVBOR") for image in images)
    assert not re.search(r"https?://", text)
    assert "Who gained and who lost: fcfs → wfp3" in text
    pictures = sorted(folder.glob("*.png"))
    assert [p.name for p in pictures] == [
        f"synthetic-3-{kind}.png" for kind in ("queue", "sizes", "slowdowns", "used", "waits")
    ]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)


def test_report_is_the_same_each_time(tmp_path: Path) -> None:
    """Also its pictures."""
    pytest.importorskip("matplotlib", reason="the report needs the extra sim")
    for name in ("a", "b"):
        assert simulate("--synthetic", 3, "--report", tmp_path / name).exit_code == 0
    assert (tmp_path / "a" / "index.html").read_bytes() == (tmp_path / "b" / "index.html").read_bytes()


def test_who_gained_and_who_lost() -> None:
    """SJF starts user 1's short job before user 0's long one."""
    work = workload([(0, 10, 1, 10), (1, 100, 1, 100), (2, 5, 1, 5)], [2, 0, 1])
    before, after = (schedule(work, 1, named(name), Options()) for name in ("fcfs", "sjf"))
    told = changes(before, after)
    assert [(old.name, old.mean_wait_s, new.mean_wait_s) for old, new in told["gained"]] == [
        ("1", 108.0, 8.0)
    ]
    assert [(old.name, old.mean_wait_s, new.mean_wait_s) for old, new in told["lost"]] == [("0", 9.0, 14.0)]
    assert (told["winners"], told["losers"], told["policy"]) == (1, 1, "sjf")
