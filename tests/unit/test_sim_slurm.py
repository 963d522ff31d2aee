"""Slurm's two loops on a flat pool, by hand, and SchedulerParameters as text."""

from dataclasses import replace

import pytest

from slurm_score.errors import SimulationError
from slurm_score.sim.engine import Options
from slurm_score.sim.scheduler import Scheduler, parse_scheduler
from tests.unit.sim_support import Rows, schedule, starts, workload

EVERY_EVENT = Scheduler(batch_sched_delay_s=0, bf_interval_s=0, bf_resolution_s=1)


def by(scheduler: Scheduler) -> Options:
    """Return options with Slurm's backfill."""
    return Options(backfill="slurm", scheduler=scheduler)


QUEUE: Rows = [(0, 10, 6, 10), (1, 10, 6, 10), (2, 10, 8, 10)]
"""On 8 processors: one runs until 10, two wait for 10 and for 20."""
SHORT, LONG = (3, 5, 2, 5), (3, 25, 2, 25)


@pytest.mark.parametrize(
    ("last", "scheduler", "expected"),
    [
        (LONG, EVERY_EVENT, [0, 10, 20, 30]),  # it would delay the second that waits
        (LONG, replace(EVERY_EVENT, bf_job_part_count_reserve=2), [0, 10, 20, 30]),
        (LONG, replace(EVERY_EVENT, bf_job_part_count_reserve=1), [0, 10, 28, 3]),
        (LONG, replace(EVERY_EVENT, bf_window_s=17), [0, 10, 20, 30]),
        (LONG, replace(EVERY_EVENT, bf_window_s=16), [0, 10, 28, 3]),  # nothing is planned beyond the window
        (SHORT, EVERY_EVENT, [0, 10, 20, 3]),
        (SHORT, replace(EVERY_EVENT, bf_interval_s=4), [0, 10, 20, 4]),
        (SHORT, replace(EVERY_EVENT, bf_max_job_test=3), [0, 10, 20, 3]),
        (SHORT, replace(EVERY_EVENT, bf_max_job_test=2), [0, 10, 20, 10]),
        (SHORT, replace(EVERY_EVENT, bf_max_job_test=1), [0, 10, 20, 30]),
        (SHORT, replace(EVERY_EVENT, bf_max_job_user=2), [0, 10, 20, 10]),
    ],
)
def test_each_parameter_of_backfill(
    last: tuple[int, int, int, int], scheduler: Scheduler, expected: list[int]
) -> None:
    """Source: slurm.conf(5), SchedulerParameters."""
    assert starts([*QUEUE, last], 8, options=by(scheduler)) == expected


def test_the_limit_of_one_user_leaves_others_alone() -> None:
    """Source: slurm.conf(5), bf_max_job_user."""
    work = workload([*QUEUE, SHORT], users=[0, 0, 0, 1])
    ran = schedule(work, 8, options=by(replace(EVERY_EVENT, bf_max_job_user=2)))
    assert ran.start_s.tolist() == [0, 10, 20, 3]


@pytest.mark.parametrize(("resolution_s", "expected"), [(1, [0, 10, 3]), (4, [0, 10, 20])])
def test_reservations_begin_at_whole_slots(resolution_s: int, expected: list[int]) -> None:
    """The one for 10 begins at 8, so a job that ends at 10 is in its way. Source: backfill.c."""
    scheduler = replace(EVERY_EVENT, bf_resolution_s=resolution_s)
    assert starts([(0, 10, 4, 10), (1, 10, 8, 10), (3, 7, 2, 7)], 8, options=by(scheduler)) == expected


@pytest.mark.parametrize(("resolution_s", "expected"), [(1, [0, 10, 30, 40]), (60, [0, 10, 43, 3])])
def test_reservations_end_at_whole_slots(resolution_s: int, expected: list[int]) -> None:
    """The one from 10 to 30 holds until 60, so the next begins there, and a job until 43 is in nobody's way.

    Observed on Slurm 24.11 with DebugFlags=Backfill.
    """
    scheduler = replace(EVERY_EVENT, bf_resolution_s=resolution_s)
    rows: Rows = [(0, 10, 6, 10), (1, 20, 6, 20), (2, 10, 8, 10), (3, 40, 2, 40)]
    assert starts(rows, 8, options=by(scheduler)) == expected


def test_rounding_takes_no_processors_that_the_job_won_t_have() -> None:
    """The slot that comes before 10 costs only processors of the job that waits for 10."""
    scheduler = replace(EVERY_EVENT, bf_resolution_s=4)
    assert starts([(0, 10, 6, 10), (1, 10, 6, 10), (3, 30, 2, 30)], 8, options=by(scheduler)) == [0, 10, 3]


def test_main_loop_starts_so_many_jobs_at_most() -> None:
    """The rest waits for backfill or for the next event. Source: slurm.conf(5), default_queue_depth."""
    rows: Rows = [(1, 10, 1, 10), (1, 10, 1, 10)]
    at_once = Scheduler(batch_sched_delay_s=0, queue_depth=1)
    assert starts(rows, 8, options=by(at_once)) == [1, 11]
    assert starts(rows, 8, options=by(replace(at_once, bf_interval_s=5))) == [1, 5]


@pytest.mark.parametrize(
    ("delay_s", "expected"),
    [
        (0, [1, 2, 6, 16]),
        (1, [2, 3, 7, 18]),  # what happens in one second is seen in the next
        (3, [2, 5, 8, 19]),  # and no run is earlier than 3 s after the last
        (9, [2, 11, 11, 29]),
    ],
)
def test_main_loop_waits_after_its_last_run(delay_s: int, expected: list[int]) -> None:
    """Source: slurm.conf(5), batch_sched_delay, and slurmctld's log of 24.11."""
    rows: Rows = [(1, 10, 1, 10), (2, 30, 1, 30), (6, 10, 1, 10), (7, 9, 7, 9)]
    scheduler = Scheduler(batch_sched_delay_s=delay_s, bf_interval_s=3600)
    assert starts(rows, 8, options=by(scheduler)) == expected


def test_slurm_looks_at_a_second_as_a_whole() -> None:
    """Other orders of events are refused."""
    with pytest.raises(SimulationError, match="order batch"):
        starts(QUEUE, 8, options=Options(backfill="slurm", order="pyss"))


def test_parameters_are_read_as_slurm_has_them() -> None:
    """bf_window is in minutes; what changes nothing here is passed over."""
    text = "bf_window=4320,bf_max_job_test=2500, bf_interval=120,default_queue_depth=7,bf_continue"
    assert parse_scheduler(text) == Scheduler(
        queue_depth=7, bf_interval_s=120, bf_max_job_test=2500, bf_window_s=4320 * 60
    )
    assert parse_scheduler("") == Scheduler()


def test_every_wrong_parameter_is_named() -> None:
    """All at once, with what is allowed."""
    with pytest.raises(SimulationError) as caught:
        parse_scheduler("bf_windw=3,bf_interval=soon,bf_resolution=0", "site:7")
    first, *others = map(str, caught.value.problems)
    assert first.startswith(
        "site:7: bf_windw isn't simulated, did you mean 'bf_window'?, got 'bf_windw=3'; ("
    )
    assert others == [
        "site:7: bf_interval is wrong, got 'soon'; from 0 to 10800",
        "site:7: bf_resolution is wrong, got '0'; from 1 to 3600",
    ]
