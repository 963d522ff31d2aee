"""The engine on a few jobs, worked out by hand: rows are (submit, run, processors, request)."""

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.policy import Policy
from slurm_score.sim import state
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.outside import Submitted
from slurm_score.sim.policies import Pool, QueuePolicy, named
from slurm_score.sim.running import lengthen
from tests.unit.sim_support import Rows, schedule, starts, workload

WIDE_HEAD: Rows = [(0, 100, 3, 100), (1, 100, 4, 100), (2, 50, 1, 50), (3, 100, 1, 200)]
TWO_AT_ONCE: Rows = [(0, 100, 3, 100), (1, 100, 4, 100), (1, 90, 1, 90), (1, 50, 1, 50)]


@pytest.mark.parametrize(
    ("backfill", "rows", "expected"),
    [
        ("none", WIDE_HEAD, [0, 100, 200, 200]),
        ("easy", WIDE_HEAD, [0, 100, 2, 200]),
        ("conservative", WIDE_HEAD, [0, 100, 2, 200]),
        ("easy", TWO_AT_ONCE, [0, 100, 1, 200]),
        ("easy-sjbf", TWO_AT_ONCE, [0, 100, 200, 1]),
        ("easy++", TWO_AT_ONCE, [0, 100, 200, 1]),
    ],
)
def test_backfill_starts_what_ends_before_the_heads_reservation(
    backfill: str, rows: Rows, expected: list[int]
) -> None:
    """Four processors: the second job needs all and waits for 100; SJBF takes the shortest first."""
    assert starts(rows, 4, options=Options(backfill=backfill)) == expected


def test_processors_that_the_head_leaves_over_are_used_once() -> None:
    """Five processors: at 100 the head leaves one over; the third job takes it, the fourth waits."""
    rows = [(0, 100, 3, 100), (1, 100, 4, 100), (2, 500, 1, 500), (3, 500, 1, 500)]
    assert starts(rows, 5) == [0, 100, 2, 200]


def test_easy_lets_a_job_delay_the_second_in_line_and_conservative_does_not() -> None:
    """Ten processors: job 4 ends after job 3's reservation, which only conservative keeps."""
    rows = [(0, 100, 6, 100), (1, 100, 8, 100), (2, 100, 10, 100), (3, 250, 2, 250)]
    assert starts(rows, 10, options=Options(backfill="easy")) == [0, 100, 253, 3]
    assert starts(rows, 10, options=Options(backfill="conservative")) == [0, 100, 200, 300]


def test_an_early_end_moves_conservative_reservations_forward() -> None:
    """Job 1 ends at 40 instead of 100: job 2 moves to 40 and job 3 behind it to 140."""
    rows = [(0, 40, 4, 100), (1, 100, 4, 100), (2, 10, 4, 10)]
    assert starts(rows, 4, options=Options(backfill="conservative")) == [0, 40, 140]


@pytest.mark.parametrize(("order", "expected"), [("pyss", [0, 100, 10]), ("batch", [0, 10, 20])])
def test_order_of_a_second_decides_who_starts(order: str, expected: list[int]) -> None:
    """At 10 job 1 ends early and job 3 comes: pyss sees the submission first, batch the end."""
    rows = [(0, 10, 1, 100), (5, 10, 2, 10), (10, 90, 1, 90)]
    assert starts(rows, 2, options=Options(order=order)) == expected


def test_rlscheduler_backfills_only_what_ends_strictly_before() -> None:
    """The third job would end at 100, which is the head's reservation."""
    rows = [(0, 100, 3, 100), (1, 100, 4, 100), (2, 98, 1, 98)]
    assert starts(rows, 4, options=Options(order="rlscheduler")) == [0, 100, 200]
    assert starts(rows, 4, options=Options(order="batch")) == [0, 100, 2]


def test_rlscheduler_keeps_a_head_once_chosen() -> None:
    """The second job was chosen before the shorter third came."""
    rows = [(0, 100, 4, 100), (1, 50, 4, 50), (2, 10, 4, 10)]
    assert starts(rows, 4, "sjf", Options(order="rlscheduler")) == [0, 100, 150]
    assert starts(rows, 4, "sjf", Options(order="batch")) == [0, 110, 100]


@pytest.mark.parametrize(("t", "expected"), [(9, 10), (10, 70), (70, 310), (309, 310), (310, 910)])
def test_predictions_that_are_too_short_grow_by_steps(t: int, expected: int) -> None:
    """60 s, then 300, then 900 in all are added to the first prediction. Source: Tsafrir et al., 2007."""
    jobs, fresh = one_running(planned=10, run=905, request=1000)
    lengthen(jobs, fresh, 0, t)
    assert fresh.planned[0] == expected


def test_predictions_never_grow_beyond_the_request() -> None:
    """A run of 250 s with a request of 260 s is expected to end at 260, not at 310."""
    jobs, fresh = one_running(planned=10, run=250, request=260)
    lengthen(jobs, fresh, 0, 100)
    assert fresh.planned[0] == 260


def one_running(planned: int, run: int, request: int) -> tuple[state.Jobs, state.State]:
    """Return a job that has started at 0 with a predicted run time."""
    jobs = state.Jobs([0], [run], [1], [request], [0], [0], [0.0], [0.0], [0.0], [0.0])
    fresh = state.State(*state.as_lists(state.new_state(state.Sizes(1, 1, 1, 1, False), 1)))
    fresh.start[0], fresh.planned[0] = 0, planned
    return jobs, fresh


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", [0, 100, 120, 145]),
        ("sjf", [0, 140, 115, 100]),
        ("saf", [0, 115, 135, 100]),
        ("qssf", [0, 115, 135, 100]),
        ("f1", [0, 100, 120, 145]),
    ],
)
def test_named_policies_order_the_queue(policy: str, expected: list[int]) -> None:
    """Two processors that job 1 holds until 100; areas are 40, 60, 30; F1 counts submission most."""
    rows = [(0, 100, 2, 100), (1, 20, 1, 40), (2, 25, 2, 30), (3, 15, 2, 15)]
    assert starts(rows, 2, policy, Options(backfill="none")) == expected


def test_recent_predicts_the_median_of_the_last_five_alike() -> None:
    """Runs of 10, 30, 20 s with one request: the next such job counts as 20 s and passes one of 25 s."""
    rows = [
        *[(0, 10, 1, 500), (20, 30, 1, 500), (60, 20, 1, 500)],
        *[(100, 50, 1, 50), (110, 25, 1, 25), (120, 20, 1, 500)],
    ]
    users = [0, 0, 0, 1, 1, 0]
    by_request = schedule(workload(rows, users), 1, named("sjf"))
    by_history = schedule(workload(rows, users), 1, named("sjf", "recent"))
    assert by_request.start_s.tolist()[3:] == [100, 150, 175]
    assert by_history.start_s.tolist()[3:] == [100, 170, 150]


def test_guard_puts_the_longest_waiting_first() -> None:
    """Past 45 h a job stands above a shorter one, whatever its score."""
    day, hour = 86400, 3600
    rows = [(0, 2 * day, 1, 2 * day), (1, 3 * day, 1, 3 * day), (2 * day - hour, 60, 1, 60)]
    assert starts(rows, 1, QueuePolicy("default", Policy())) == [0, 2 * day, 5 * day]
    assert starts(rows, 1, "sjf") == [0, 2 * day + 60, 2 * day]


def test_jobs_of_one_second_keep_the_order_of_the_file() -> None:
    """Ties are decided by submission, then by the row, also where the file is not sorted."""
    rows = [(5, 10, 1, 10), (0, 10, 1, 10), (0, 10, 1, 10), (0, 10, 1, 10)]
    for policy in ("fcfs", "sjf", "wfp3", "unicep"):
        assert starts(rows, 1, policy) == [30, 0, 10, 20]


class Constant:
    """A predictor that counts what it is told."""

    def __init__(self) -> None:
        self.observed: list[tuple[int, int, int]] = []

    def observe(self, job: Submitted, run_s: int, end_s: int) -> None:
        """Keep job id, run time and end."""
        self.observed.append((job.job_id, run_s, end_s))

    def predict(self, job: Submitted) -> float:
        """Return 40 s for all but job 3."""
        return 4.0 if job.job_id == 3 else 40.0


def test_a_predictor_from_outside_is_told_of_ends_and_asked_for_the_order() -> None:
    """Job 3 counts as 4 s and passes job 2; each end is told once, in order."""
    predictor = Constant()
    work = workload([(0, 10, 1, 99), (1, 20, 1, 99), (2, 30, 1, 99)])
    told = simulate(work, Pool(procs=1), named("sjf", "told"), predictor=predictor)
    assert told.start_s.tolist() == [0, 40, 10]
    assert predictor.observed == [(1, 10, 10), (3, 30, 40), (2, 20, 60)]


def test_progress_is_told_of_ended_jobs() -> None:
    """Reports come in rising order and end below the number of jobs."""
    seen: list[int] = []
    work = workload([(i, 1, 1, 1) for i in range(10_000)])
    simulate(work, Pool(procs=1), named("fcfs"), progress=seen.append)
    assert seen == [4096, 8192]


@pytest.mark.parametrize(
    ("options", "procs", "fault"),
    [
        (Options(backfill="esy"), 4, "simulation: unknown backfill, got 'esy'; one of none, easy"),
        (Options(order="x", plan="y"), 4, "simulation: unknown plan, got 'y'"),
        (Options(), 3, "small: a job needs 4 processors; there are 3"),
        (Options(backfill="conservative", plan="recent"), 4, "where a run outlives its plan, got recent"),
        (Options(order="rlscheduler", backfill="easy++"), 4, "has a backfill of its own, got easy++"),
        (Options(plan="told"), 4, "simulation: predictor told needs a predictor"),
    ],
)
def test_what_cannot_be_simulated_is_said_in_one_sentence(options: Options, procs: int, fault: str) -> None:
    """All problems at once, each with what is allowed."""
    with pytest.raises(SimulationError) as error:
        starts(WIDE_HEAD, procs, options=options)
    assert fault in str(error.value)


def test_a_workload_without_jobs_is_refused() -> None:
    """There is nothing to say about it."""
    with pytest.raises(SimulationError, match="small: there is no job to simulate"):
        starts([], 4)


def test_the_workload_is_not_changed() -> None:
    """Columns are read only by the engine."""
    work = workload(WIDE_HEAD)
    before = work.submit_s.copy()
    schedule(work, 4)
    assert np.array_equal(before, work.submit_s)
