"""Laws of Slurm's two loops on a flat pool, by brute force."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.sim.policies import QueuePolicy
from slurm_score.sim.scheduler import ONE_RESERVATION, Scheduler
from slurm_score.sim.sorting import sort_rows
from slurm_score.sim.workload import Workload
from tests.property.test_sim_laws import PROCS, policies, workloads
from tests.unit.sim_support import Rows, schedule
from tests.unit.test_sim_slurm import EVERY_EVENT, by

HORIZON = 2000


@given(work=workloads(), policy=policies())
def test_one_reservation_at_every_event_is_easy(work: Workload, policy: QueuePolicy) -> None:
    """Source: score-research, "one reservation gives EASY's start times exactly"."""
    easy = schedule(work, PROCS, policy)
    slurm = schedule(work, PROCS, policy, by(ONE_RESERVATION))
    assert slurm.start_s.tolist() == easy.start_s.tolist()


def brute_force(work: Workload, scheduler: Scheduler) -> list[int]:
    """Return the starts, first come first served, worked out second by second."""
    rows = list(
        zip(*(c.tolist() for c in (work.submit_s, work.run_s, work.procs, work.request_s)), strict=True)
    )
    start: dict[int, int] = {}
    t = 0
    while len(start) < len(rows):
        waiting = [i for i, row in enumerate(rows) if row[0] <= t and i not in start]
        ended = any(start[i] + rows[i][1] == t for i in start)
        if ended or any(row[0] == t for row in rows):
            plan_once(rows, start, waiting, t, scheduler)
        t += 1
    return [start[i] for i in range(len(rows))]


def free_from(rows: Rows, start: dict[int, int], t: int) -> list[int]:
    """Return how many processors are free so many seconds from t, if runs take all they asked for."""
    free = [PROCS] * HORIZON
    for i, began in start.items():
        if began + rows[i][1] > t:
            for k in range(began + rows[i][3] - t):
                free[k] -= rows[i][2]
    return free


def plan_once(rows: Rows, start: dict[int, int], waiting: list[int], t: int, scheduler: Scheduler) -> None:
    """Make one pass: `free[k]` processors are free k seconds from now."""
    free = free_from(rows, start, t)
    tested = 0
    for reserved, i in enumerate(waiting):
        _, _, procs, request = rows[i]
        begin = next(k for k in range(HORIZON) if min(free[k : k + request]) >= procs)
        tested += tested > 0 or begin > 0  # the main loop tests those before the first that is blocked
        if tested > scheduler.bf_max_job_test:
            return
        if begin == 0:
            start[i] = t
        elif not may_reserve(begin, reserved_so_far(waiting, start, reserved), scheduler):
            continue
        for k in range(begin, begin + request):
            free[k] -= procs


def may_reserve(begin: int, reserved: int, scheduler: Scheduler) -> bool:
    """Return whether a job that could begin in so many seconds keeps its place."""
    most = scheduler.bf_job_part_count_reserve or HORIZON
    return begin <= scheduler.bf_window_s and reserved < most


def reserved_so_far(waiting: list[int], start: dict[int, int], count: int) -> int:
    """Return how many of the first jobs were planned for later."""
    return sum(i not in start for i in waiting[:count])


@given(work=workloads(max_size=8), reserve=st.sampled_from((0, 1, 2)), depth=st.sampled_from((1, 2, 500)))
def test_plans_equal_brute_force(work: Workload, reserve: int, depth: int) -> None:
    """Every tested job keeps its place in the profile, if it may have one."""
    scheduler = replace(EVERY_EVENT, bf_job_part_count_reserve=reserve, bf_max_job_test=depth)
    small = replace(work, request_s=np.maximum(work.run_s, np.minimum(work.request_s, 100)))
    assert schedule(small, PROCS, options=by(scheduler)).start_s.tolist() == brute_force(small, scheduler)


@given(keys=st.lists(st.integers(0, 5), max_size=40))
def test_sorting_is_stable(keys: list[int]) -> None:
    """Rows of one key stay in their order, as with Python's own."""
    rows = list(range(len(keys)))
    sort_rows(rows, keys, len(keys), [0] * len(keys))
    assert rows == sorted(range(len(keys)), key=keys.__getitem__)
