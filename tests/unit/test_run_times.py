"""slurm_score/run_times.py: what is usual, when accounting is asked, and what happens without it."""

import logging

import pytest

from slurm_score.errors import AccountingDownError
from slurm_score.model import EndedRun, Node, Partition, RunTimes
from slurm_score.run_times import EVERY_S, KEPT_RUNS, RunTimeKeeper, usual
from slurm_score.slurm.fake import FakeSlurm, Submission
from tests.unit.builders import DAY, NOW


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
    slurm.runs = (EndedRun("alice", NOW - 60, 10.0), EndedRun("alice", NOW + 700, 30.0))
    keeper = RunTimeKeeper(slurm)
    known = [keeper.current(now)["alice"] for now in (NOW, NOW + EVERY_S - 1, NOW + 800)]
    assert known == [RunTimes(1, 10.0), RunTimes(1, 10.0), RunTimes(2, 30.0)]
    assert slurm.asked == [(NOW - DAY, NOW), (NOW, NOW + 800)]


def test_only_the_last_runs_of_a_user_count() -> None:
    """Who changes what he runs is soon known by it."""
    slurm = Accounting()
    slurm.runs = tuple(
        EndedRun("bob", NOW - 1000 + i, 100.0 if i < 20 else 1.0) for i in range(KEPT_RUNS + 20)
    )
    assert RunTimeKeeper(slurm).current(NOW) == {"bob": RunTimes(KEPT_RUNS, 1.0)}


def test_without_accounting_what_was_known_stays_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And the next question goes back to where the last answer ended."""
    slurm = Accounting()
    slurm.runs = (EndedRun("alice", NOW - 60, 10.0),)
    keeper = RunTimeKeeper(slurm)
    keeper.current(NOW)
    slurm.down = True
    with caplog.at_level(logging.WARNING):
        known = [keeper.current(NOW + minutes * 60) for minutes in (20, 40)]
    assert known == [{"alice": RunTimes(1, 10.0)}] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "users are not told of their usual run times: slurmdbd is down"
    ]
    slurm.down = False
    keeper.current(NOW + 3600)
    assert slurm.asked[-1] == (NOW, NOW + 3600)


def test_fake_tells_the_jobs_that_completed() -> None:
    """Whose, when, how long; not those that run or were cancelled."""
    node = Node(name="n1", cpus=2, partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True, cpus=2)], {"normal": 0})
    slurm.submit(Submission(user="ann", run_time_s=60, time_limit_s=600))
    slurm.submit(Submission(user="ben", run_time_s=9000, time_limit_s=9000))
    slurm.schedule()
    began = int(slurm.now_s)
    slurm.run_until_idle(100)
    assert slurm.read_ended_runs(began, began + 100) == (EndedRun("ann", began + 60, 60.0),)
    assert slurm.read_ended_runs(began + 60, began + 100) == ()
