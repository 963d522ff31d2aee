"""slurm-score advise: what it prints of what was measured, and of what wasn't."""

import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_score.audit import AuditTrail
from slurm_score.cli import main
from slurm_score.cli.advise import advise, as_dict, lines
from slurm_score.model import Node, Partition, SlurmConfig
from slurm_score.policy import Policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.tuning_scheduler import ALL_GAIN
from slurm_score.tuning_weights import GAIN, KEPT

from .builders import DAY, HOUR, make_node


class Tuned(FakeSlurm):
    """A fake Slurm with SchedulerParameters."""

    parameters: tuple[str, ...] = ("defer", "bf_continue")

    def read_config(self) -> SlurmConfig:
        """Return the configuration with the parameters."""
        return replace(super().read_config(), scheduler_parameters=self.parameters)


def slurm_with(*nodes: Node, max_time_s: float = 7.0 * DAY) -> Tuned:
    """Return a cluster of one partition."""
    placed = [replace(node, partitions=("main",)) for node in nodes]
    return Tuned(placed, [Partition(name="main", default=True, max_time_s=max_time_s)], {"normal": 0})


H100S = [make_node(f"h{i}", "h100:4") for i in (1, 2)]
V100S = [make_node(f"v{i}", "v100:4") for i in (1, 2)]


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """Where the audit is to stand."""
    return tmp_path / "audit.sqlite"


def record(slurm: FakeSlurm, audit: Path, hours: int) -> None:
    """Run a cycle an hour; the fake's clock goes on, its jobs stay where they are."""
    trail = AuditTrail(audit)
    reprioritizer = Reprioritizer(slurm, Policy, audit.with_name("snapshot.jsonl"), audit=trail)
    for _ in range(hours):
        reprioritizer.cycle()
        slurm.advance(slurm.now_s + HOUR)


def wait_for_h100(slurm: FakeSlurm) -> None:
    """Take all h100 for 7 days and let 12 GPUs more be asked for."""
    for _ in range(2):
        slurm.submit(Submission(gres="gpu:h100:4", cpus_per_task=1, time_limit_s=7 * DAY, run_time_s=7 * DAY))
    for _ in range(3):
        slurm.submit(Submission(gres="gpu:h100:4", cpus_per_task=1, time_limit_s=HOUR, run_time_s=HOUR))


def test_all_of_it_can_be_pasted(audit: Path) -> None:
    """Every line is a comment, a scontrol command or a line of slurm.conf, for a day of real cycles."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 30)
    told = list(lines(advise(slurm, audit)))
    assert told == [
        "# node weights, from 30 of the last 168 hours:",
        "# v100: nobody waited for it in the last week; Weight is 1 now",
        "scontrol update NodeName=v[1-2] Weight=10",
        "# h100: 1.5 GPUs asked for per usable one over the last week, 1.5 over the last 24 hours; "
        "Weight is 1 now",
        "scontrol update NodeName=h[1-2] Weight=20",
        f"# {KEPT}",
        f"# {GAIN}",
        "",
        "# scheduler, in slurm.conf instead of the present line, then scontrol reconfigure:",
        *(line for line in told if line.startswith(("# bf_job_part_count_reserve: ", "# bf_window: 1440 "))),
        "SchedulerParameters=defer,bf_continue,bf_job_part_count_reserve=1,bf_window=10080",
        f"# {ALL_GAIN}",
        *(line for line in told if line.startswith("# bf_window: slurm.conf(5) advises a coarser")),
    ]
    assert len(told) == 14
    assert (
        "# bf_window: 1440 -> 10080: minutes; the longest limit is 7-00:00:00, MaxTime of partition main; "
        in ("\n".join(told))
    )


def test_nothing_is_written_to_slurm(audit: Path) -> None:
    """Neither weights nor SiteFactors: it reads."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 24)
    before = slurm.read_cluster()
    advise(slurm, audit)
    assert slurm.read_cluster() == before
    assert slurm.update_count == 0


def test_advice_that_was_taken_is_not_given_again(audit: Path) -> None:
    """The same history, on a cluster with the weights and the parameters that were advised."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 24)
    taken = slurm_with(*(replace(n, weight=20) for n in H100S), *(replace(n, weight=10) for n in V100S))
    taken.parameters = ("bf_continue", "bf_job_part_count_reserve=1", "bf_window=10080")
    taken.advance(slurm.now_s)
    assert list(lines(advise(taken, audit))) == [
        "# node weights: nothing to change, from 24 of the last 168 hours",
        "",
        "# scheduler: nothing to change",
    ]


def test_too_little_history_gives_no_weights(audit: Path) -> None:
    """23 hours: the sentence says how many there are, the scheduler's settings are told all the same."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 23)
    first, blank, *rest = lines(advise(slurm, audit))
    assert first == "# node weights: no advice: 23 of the last 168 hours are recorded, 24 are needed"
    assert blank == ""
    assert "SchedulerParameters=defer,bf_continue,bf_job_part_count_reserve=1,bf_window=10080" in rest


def test_a_short_history_is_taken_when_asked_for(audit: Path) -> None:
    """With --short-history the weights are there, and so is the warning."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 1)
    told = list(lines(advise(slurm, audit, short_history=True)))
    assert told[0] == (
        "# node weights: take them with care: 1 of the last 168 hours are recorded, 24 are needed"
    )
    assert "scontrol update NodeName=h[1-2] Weight=20" in told


@pytest.mark.parametrize("short_history", [False, True])
def test_a_missing_history_is_one_sentence(audit: Path, short_history: bool) -> None:
    """The settings of the scheduler are told from the queue as it is now."""
    slurm = slurm_with(*H100S, max_time_s=math.inf)
    slurm.parameters = ("bf_continue", "bf_job_part_count_reserve=1")
    for _ in range(130):
        slurm.submit(Submission(gres="gpu:h100:4", time_limit_s=3 * DAY, run_time_s=HOUR))
    slurm.schedule()
    told = list(lines(advise(slurm, audit, short_history=short_history)))
    sentence = f"{audit}: no audit yet; is the reprioritizer running, with this file?"
    assert told[:2] == [f"# node weights: no advice: {sentence}", ""]
    assert (
        "SchedulerParameters=bf_continue,bf_job_part_count_reserve=1,bf_window=4320,default_queue_depth=150"
        in told
    )


def test_json_has_everything_by_name(audit: Path) -> None:
    """For a program that applies it or shows it."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 24)
    told = json.loads(json.dumps(as_dict(advise(slurm, audit))))
    assert told["history"] == {"hours": 24, "of": 168, "shortage": ""}
    assert [(c["hosts"], c["now"], c["weight"]) for c in told["weights"]["changes"]] == [
        ("v[1-2]", [1], 10),
        ("h[1-2]", [1], 20),
    ]
    assert told["weights"]["changes"][1]["command"] == "scontrol update NodeName=h[1-2] Weight=20"
    assert [(c["name"], c["now"], c["then"]) for c in told["scheduler"]["changes"]] == [
        ("bf_job_part_count_reserve", "0", "1"),
        ("bf_window", "1440", "10080"),
    ]
    assert told["scheduler"]["line"].startswith("SchedulerParameters=defer,")


def test_the_lines_are_one_shell_script(audit: Path, tmp_path: Path) -> None:
    """Pasted into a shell, only scontrol is called, with the arguments that were meant."""
    slurm = slurm_with(*H100S, *V100S)
    wait_for_h100(slurm)
    record(slurm, audit, 24)
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\necho "$@"\n')
    scontrol.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh"],
        input="\n".join(lines(advise(slurm, audit))),
        env={"PATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert (done.stdout.splitlines(), done.stderr) == (
        ["update NodeName=v[1-2] Weight=10", "update NodeName=h[1-2] Weight=20"],
        "",
    )


def test_help_has_an_example() -> None:
    """What is printed looks like it."""
    text = CliRunner().invoke(main, ["advise", "--help"]).stdout
    assert "$ slurm-score advise\n" in text
    assert "scontrol update NodeName=g[1-4] Weight=20" in text


def test_without_slurm_it_is_one_sentence(audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 1."""
    monkeypatch.setenv("PATH", "")
    result = CliRunner().invoke(main, ["advise", "--audit", str(audit)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "slurm-score: scontrol: not found; are Slurm's commands on PATH?\n"
