"""slurm_score/run_times.py: what is usual, when accounting is asked, and what happens without it."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_score.errors import AccountingDownError
from slurm_score.hints import Hints
from slurm_score.model import EndedRun, Job, Node, Partition, RunTimes
from slurm_score.run_times import EVERY_S, KEPT_USUAL, LATE_S, RunTimeKeeper, usual
from slurm_score.slurm.fake import FakeSlurm, Submission
from tests.unit.builders import DAY, NOW, make_cluster, make_job

LATE = int(LATE_S)


def ended(user: str, end_s: int, elapsed_s: float, **more: Any) -> EndedRun:
    """Return a run with a limit of an hour."""
    known = {"limit_s": 3600.0, "submit_s": end_s - int(elapsed_s), "job_id": end_s} | more
    return EndedRun(user=user, end_s=end_s, elapsed_s=elapsed_s, **known)


def usual_at(keeper: RunTimeKeeper, now_s: float) -> dict[str, RunTimes]:
    """Return what is usual after a question at this time."""
    keeper.refresh(now_s)
    return dict(keeper.usual)


class Accounting(FakeSlurm):
    """A Slurm whose accounting says what the test wants, and writes down what it was asked."""

    def __init__(self) -> None:
        node = Node(name="n1", cpus=1, partitions=("main",))
        super().__init__([node], [Partition(name="main", default=True, cpus=1)], {"normal": 0})
        self.runs: tuple[EndedRun, ...] = ()
        self.down = False
        self.asked: list[tuple[int, int]] = []

    def read_ended_runs(self, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
        """Return the runs that ended in the time asked for."""
        self.asked.append((since_s, until_s))
        if self.down:
            raise AccountingDownError("slurmdbd is down")
        return tuple(run for run in self.runs if since_s < run.end_s <= until_s)


@pytest.mark.parametrize(
    ("elapsed", "seconds"),
    [([5.0], 5.0), ([1.0, 9.0], 9.0), ([float(i) for i in range(1, 11)], 9.0), ([1.0] * 9 + [100.0], 1.0)],
)
def test_usual_is_what_nine_of_ten_runs_ended_within(elapsed: list[float], seconds: float) -> None:
    """One very long run of ten changes nothing."""
    assert usual(elapsed) == RunTimes(len(elapsed), seconds)


def test_accounting_is_asked_for_a_day_and_then_for_what_is_new() -> None:
    """Every ten minutes at most; each run counts once."""
    slurm = Accounting()
    slurm.runs = (ended("alice", NOW - 60, 10.0), ended("alice", NOW + 700, 30.0))
    keeper = RunTimeKeeper(slurm)
    known = [usual_at(keeper, now)["alice"] for now in (NOW, NOW + EVERY_S - 1, NOW + 800)]
    assert known == [RunTimes(1, 10.0), RunTimes(1, 10.0), RunTimes(2, 30.0)]
    assert slurm.asked == [(NOW - DAY, NOW), (NOW - LATE, NOW + 800)]


def test_a_record_that_comes_late_is_learned_once() -> None:
    """slurmctld sends it to slurmdbd in its own time: by then its end was asked for already."""
    slurm = Accounting()
    keeper = RunTimeKeeper(slurm)
    early, late = ended("alice", NOW - 60, 10.0), ended("alice", NOW - 1, 30.0)
    known = []
    for i, runs in enumerate([(early,), (early, late), (early, late)]):
        slurm.runs = runs
        known.append(usual_at(keeper, NOW + i * EVERY_S / 2)["alice"].runs)
        known.append(usual_at(keeper, NOW + i * EVERY_S)["alice"].runs)
    assert known == [1, 1, 1, 2, 2, 2]


def test_only_the_last_runs_of_a_user_count() -> None:
    """Who changes what he runs is soon known by it."""
    slurm = Accounting()
    slurm.runs = tuple(ended("bob", NOW - 1000 + i, 100.0 if i < 20 else 1.0) for i in range(KEPT_USUAL + 20))
    assert usual_at(RunTimeKeeper(slurm), NOW) == {"bob": RunTimes(KEPT_USUAL, 1.0)}


def test_without_accounting_what_was_known_stays_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And the next question goes back to where the last answer ended."""
    slurm = Accounting()
    slurm.runs = (ended("alice", NOW - 60, 10.0),)
    keeper = RunTimeKeeper(slurm)
    keeper.refresh(NOW)
    slurm.down = True
    with caplog.at_level(logging.WARNING):
        known = [usual_at(keeper, NOW + minutes * 60) for minutes in (20, 40)]
    assert known == [{"alice": RunTimes(1, 10.0)}] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "nothing new is learned of run times: slurmdbd is down"
    ]
    slurm.down = False
    keeper.refresh(NOW + 3600)
    assert slurm.asked[-1] == (NOW - LATE, NOW + 3600)


def test_another_half_at_counts_at_once_and_nothing_is_forgotten() -> None:
    """Runs of 10 s and of 1,000 s: for a half_at of 10 s the chance of 10 s counts for more."""
    slurm = Accounting()
    slurm.runs = tuple(ended("bob", NOW - 90 + i, 1000.0 if i % 2 else 10.0) for i in range(20))
    keeper, job, cluster = RunTimeKeeper(slurm), make_job(1, user="bob"), make_cluster()
    keeper.refresh(NOW)
    first = keeper.predicted([job], cluster)[1]
    keeper.refresh(NOW, half_at_s=10.0)
    then = keeper.predicted([job], cluster)[1]
    assert then.seconds == first.seconds
    assert 10.0 < then.scored_s < first.scored_s < 1000.0


def test_fake_tells_the_runs_that_ended() -> None:
    """Whose, what they asked for, when, how long, by which state; not those that run."""
    node = Node(name="n1", cpus=2, partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True, cpus=2)], {"normal": 0})
    slurm.submit(Submission(user="ann", run_time_s=60, time_limit_s=600, comment="score: est=2m"))
    slurm.submit(Submission(user="ben", run_time_s=9000, time_limit_s=9000))
    slurm.schedule()
    began = int(slurm.now_s)
    slurm.run_until_idle(100)
    run = EndedRun(
        user="ann", limit_s=600.0, name="job", partition="main", qos="normal", claim_s=120.0,
        submit_s=began, end_s=began + 60, elapsed_s=60.0, job_id=1,
    )  # fmt: skip
    assert slurm.read_ended_runs(began, began + 100) == (run,)
    assert slurm.read_ended_runs(began + 60, began + 100) == ()


def job(**more: Any) -> Job:
    """Return a pending job of alice's with a limit of an hour."""
    return replace(make_job(7), **more)


def test_a_restart_finds_in_the_history_what_was_learned(tmp_path: Path) -> None:
    """And asks accounting only for what ended since, a day at a time."""
    slurm, cluster = Accounting(), make_cluster()
    slurm.runs = (ended("alice", NOW - 60, 10.0),)
    first = RunTimeKeeper(slurm, tmp_path / "h.sqlite")
    first.refresh(NOW)
    again = RunTimeKeeper(slurm, tmp_path / "h.sqlite")
    again.refresh(NOW + 3 * DAY)
    again.refresh(NOW + 3 * DAY)
    assert again.predicted([job()], cluster) == first.predicted([job()], cluster)
    assert slurm.asked[1:] == [(NOW - LATE, NOW + DAY), (NOW + DAY - LATE, NOW + 2 * DAY)]


def test_a_damaged_history_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Runs are learned all the same, from accounting."""
    path = tmp_path / "h.sqlite"
    path.write_text("no database " * 100)
    slurm = Accounting()
    slurm.runs = (ended("alice", NOW - 60, 10.0),)
    keeper = RunTimeKeeper(slurm, path)
    keeper.refresh(NOW)
    assert keeper.predicted([job()], make_cluster())[7].seconds == 12.0
    assert len(caplog.records) == 2  # read at the start, written after the question


def test_a_claim_in_the_queue_counts_whatever_the_comment_says_later() -> None:
    """scontrol update comment= before the end makes no honest user."""
    slurm = Accounting()
    keeper = RunTimeKeeper(slurm)
    for day in range(4):
        now = NOW + day * DAY
        keeper.predicted([job(job_id=day, hints=Hints(est_s=60.0))], make_cluster())
        slurm.runs = (ended("alice", now, 3000.0, job_id=day, claim_s=3000.0),)
        keeper.refresh(now)
    said = keeper.predicted([job(hints=Hints(est_s=60.0))], make_cluster())[7]
    assert (said.seconds, said.source) == (3000.0, "hint 00:01:00 × 50, the ratio of alice's last 4 hints")


def test_a_checkpoint_saves_what_was_run_before_the_requeue() -> None:
    """With ckpt=yes the rest remains, without it all of it is run again."""
    slurm = Accounting()
    slurm.runs = (
        ended("alice", NOW - 90, 1000.0, job_id=3),
        ended("alice", NOW - 60, 400.0, job_id=7, state="NODE_FAIL"),
    )
    keeper = RunTimeKeeper(slurm)
    keeper.refresh(NOW)
    saved, lost = (
        keeper.predicted([job(restarts=1, hints=Hints(ckpt=ckpt))], make_cluster())[7].seconds
        for ckpt in (True, False)
    )
    assert (saved, lost) == (602.0, 1002.0)
