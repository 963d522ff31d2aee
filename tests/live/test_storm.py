"""Storms of submissions: whatever state the service and slurmctld are in, the hook harms no job.

Every storm is 500 submissions of eleven kinds, and each of its jobs must be in the queue afterwards with the
record that the same submission has under a hook that does nothing; only SiteFactor, and with it Priority,
may differ, and only where a service answered.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from .storm.faulty_service import SITE_FACTOR
from .storm.lab import ARGVS, POLICY, STORM, Lab, Storm

pytest_plugins = ["tests.live.storm.fixtures"]

BREAKER_FAILURES, BREAKER_PAUSE_S = 3, 10  # the hook's defaults
# What the hook says of each fault. On a busy machine any of them may be a time-out as well.
FAULTS = {
    "stopped": "connect: (no such file or directory|connection refused)",
    "silent": "receive: timeout",
    "slow": "receive: timeout",
    "garbage": "receive: HTTP status missing",
    "cut": "receive: closed",
    "huge": "receive: reply too long",
    "foreign": "connect: permission denied",
}
UNREACHABLE = ("stopped", "foreign")
# What sbatch says when slurmctld is not there, in the releases' various words.
DOWN = re.compile(
    "Unable to contact slurm controller|Socket timed out|Zero Bytes|Connection re(fused|set)|missing socket"
)
HELD = sum("--hold" in argv for argv in ARGVS)
CYCLE_POLICY = """\
mode: enforce
slurm_factors: replace
max_snapshot_age: 1h
updates: {{per_cycle: 100000, min_age: 0s}}
factors:
  remaining: {{weight: {weight}, half_at: 5h, predict: false}}
"""
MANY = 5_000
FOLLOWERS = 600  # of het jobs: Slurm ranks them, and they are updated through their leaders
Say = Callable[[str], None]


def figures(storm: Storm) -> str:
    """Returns a storm's figures in words."""
    return f"{len(storm.answers)} submissions in {storm.seconds:.1f} s, {storm.pings} pings"


def assert_unharmed(lab: Lab, storm: Storm, *, scored: bool) -> None:
    """All were taken, slurmctld answered throughout, and every job is there with the right record."""
    assert storm.rejected == []
    assert len(storm.ids) == len(storm.answers) >= STORM
    assert storm.pings > 0
    assert storm.silent == []
    assert_right_records(lab, storm, scored=scored)


def assert_right_records(lab: Lab, storm: Storm, *, scored: bool) -> None:
    """Every id that sbatch returned is a job, with the record that it has without our hook."""
    records = lab.records(storm)
    assert {index: len(found) for index, found in records.items()} == {
        index: len(lab.expected[index % STORM]) for index in storm.ids.values()
    }
    for index, found in records.items():
        for record, expected in zip(found, lab.expected[index % STORM], strict=True):
            assert record.text == expected.text
            if not scored:
                assert record.priority == expected.priority


def raised(lab: Lab, storm: Storm) -> int:
    """Returns how many records have a higher priority than without our hook."""
    return sum(
        record.priority > expected.priority
        for index, found in lab.records(storm).items()
        for record, expected in zip(found, lab.expected[index % STORM], strict=True)
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_storm_passes_a_service_that_fails(lab: Lab, fault: str, say: Say) -> None:
    """No job gets a score, no user reads a word, and after three failures nobody is asked for 10 s."""
    calls = lab.calls
    lab.load_hook()
    with lab.service(fault) as service:
        storm = lab.storm()
        tally = lab.tally()
    say(f"{figures(storm)}, {tally}, {service.counts}")
    assert_unharmed(lab, storm, scored=False)
    assert set(storm.told) == {""}
    assert re.search(f"slurm_score: no score: ({FAULTS[fault]}|.*timeout)", lab.log(), re.IGNORECASE)
    failed = tally.pop("failed")
    assert tally == {"scored": 0, "neutral": 0, "refused": 0, "resting": calls - failed}
    assert BREAKER_FAILURES <= failed <= BREAKER_FAILURES + 1 + storm.seconds / BREAKER_PAUSE_S
    assert service.counts.get("connections", 0) == (0 if fault in UNREACHABLE else failed)


@pytest.mark.parametrize("workers", [1, 8])
def test_a_storm_passes_a_service_that_is_well(lab: Lab, workers: int, say: Say) -> None:
    """Each job that the hook has a score for has a higher priority; nothing else of it differs."""
    calls = lab.calls
    lab.load_hook()
    storm = lab.storm(workers=workers)
    tally = lab.tally()
    say(f"{figures(storm)}, {tally}")
    assert_unharmed(lab, storm, scored=True)
    assert sum(tally.values()) == calls
    assert tally["scored"] > 0
    assert tally["neutral"] <= HELD
    assert raised(lab, storm) == tally["scored"]


def test_a_storm_passes_a_service_that_restarts_every_second(lab: Lab, say: Say) -> None:
    """A job is scored or left alone, depending on whom it met; nothing else of it differs."""
    calls = lab.calls
    lab.load_hook()
    with lab.service("restarting") as service:
        storm = lab.storm()
        tally = lab.tally()
    say(f"{figures(storm)}, {tally}, {service.counts}")
    assert_unharmed(lab, storm, scored=True)
    assert set(storm.told) == {""}
    assert sum(tally.values()) == calls
    assert tally["scored"] > 0
    assert service.counts["connections"] <= 2 * (tally["failed"] + 1 + storm.seconds)
    priorities = {record.priority for found in lab.records(storm).values() for record in found}
    held, left_alone, nice = 0, 1, SITE_FACTOR - 20
    assert priorities <= {held, left_alone, nice, SITE_FACTOR}


@contextmanager
def storm_beside(lab: Lab, workers: int) -> Iterator[Future[Storm]]:
    """A storm that has begun when the context does, and lasts at least as long."""
    with ThreadPoolExecutor(1) as pool:
        taken = lab.submitted()
        storm = pool.submit(lab.storm, workers=workers, until=True)
        try:
            lab.wait_for_submissions(taken + 50)
            yield storm
        finally:
            lab.end_storm()


def test_cycles_over_5000_jobs_and_a_storm_do_not_wait_for_each_other(lab: Lab, say: Say) -> None:
    """Each cycle changes every job, through the same hook that new jobs pass meanwhile.

    No offset spares an update: doubled weights move the jobs away from each other.
    """
    lab.load_hook()
    lab.fill_queue(MANY + FOLLOWERS)
    lab.product.set_policy(CYCLE_POLICY.format(weight=1000))
    lab.cycle()
    sites = [lab.product.sites()]
    reports = []
    with storm_beside(lab, workers=1) as running:
        for weight in (2000, 1000):
            lab.product.set_policy(CYCLE_POLICY.format(weight=weight))
            reports.append(lab.cycle())
            sites.append(lab.product.sites())
    storm = running.result()
    lab.product.set_policy(POLICY)
    say(f"{figures(storm)}, {lab.tally()}, {reports}")
    assert_unharmed(lab, storm, scored=True)
    for before, after in itertools.pairwise(sites):
        assert [job_id for job_id in sites[0] if before[job_id] == after[job_id]] == []
    for report in reports:
        sent, failed = re.findall(r"(\d+) sent, (\d+) failed", report)[0]
        assert int(sent) >= MANY
        assert failed == "0"


def test_a_storm_goes_on_across_a_reconfiguration(lab: Lab, say: Say) -> None:
    """The configuration is read again, from 23.11 on by a new slurmctld in the place of the old one."""
    assert_goes_on(lab, say, lambda: lab.cluster.exec(["scontrol", "reconfigure"]))


def test_a_storm_goes_on_across_a_restart_of_the_controller(lab: Lab, say: Say) -> None:
    """The same with slurmctld ended by SIGTERM and started again."""

    def restart() -> None:
        lab.product.stop_slurmctld()
        lab.cluster.start_daemon("slurmctld")

    assert_goes_on(lab, say, restart)


def assert_goes_on(lab: Lab, say: Say, interrupt: Callable[[], object]) -> None:
    """Every id that sbatch returned is a job; a submission was refused by Slurm itself or not at all."""
    lab.load_hook()
    with storm_beside(lab, workers=8) as running:
        interrupt()
        lab.wait_for_submissions(100)
    storm = running.result()
    say(f"{figures(storm)}, {len(storm.rejected)} rejected {set(storm.rejected)}, {lab.tally()}")
    assert_right_records(lab, storm, scored=True)
    assert [said for said in storm.rejected if not DOWN.search(said) or "score" in said] == []
