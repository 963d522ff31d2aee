"""What the kernels read and change: columns of jobs, a state of counters and arrays, choices. Pure.

The kernels are plain functions over these tuples. Columns are typed as the lists that they are in plain
Python; under numba they are numpy arrays. Jobs are rows in order of submission. The names in capitals
are places in `State.n` and codes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

CLOCK, NEXT, WAITING, RUNNING, FREE, LEAST, HEAD, POINTS, ENDED, ACCRUED, LOOKED, LOOK = range(12)
"""Places in `State.n`: the time; the next row to submit; how many wait and run; free processors; a lower
bound on the processors of those that wait; the head that was chosen for good (order rlscheduler), -1 for
none; points of the profile (conservative); how many have ended; to when usage is counted (fair-share);
when Slurm's main loop ran last, and when it runs next, NEVER if nothing happened since."""

PYSS, BATCH, RLSCHEDULER = range(3)
"""Orders of what happens in one second."""

NO_BACKFILL, EASY, EASY_SJBF, EASY_PLUS_PLUS, CONSERVATIVE, SLURM = range(6)
"""Kinds of backfill."""

STATIC, WFP3, UNICEP, SHORT, SCORE, MULTIFACTOR = range(6)
"""Ranks: fixed at submission, and those that change while a job waits."""

REQUEST, CLAIRVOYANT, TSAFRIR, RECENT, TOLD, SCORED = range(6)
"""Where a run time comes from before the job has run; SCORED is the one that TOLD's predictor gives to a
score of ours."""

RING = 5
"""How many ended runs of the same user, size and request count."""

NEVER = 1 << 62
"""Later than every time."""


class Jobs(NamedTuple):
    """The jobs, one row each: times in s, and what of a policy is fixed for a job."""

    submit: list[int]
    run: list[int]
    procs: list[int]
    request: list[int]
    user: list[int]
    group: list[int]
    fixed: list[float]
    size_points: list[float]
    qos_points: list[float]
    guard: list[float]


class State(NamedTuple):
    """All that changes. `queue` holds waiting rows in order of rank or of submission; the running jobs
    stand twice, latest first: by their end and by the end that the scheduler expects."""

    n: list[int]
    start: list[int]
    planned: list[int]
    corrections: list[int]
    queue: list[int]
    keys: list[float]
    picks: list[int]
    end_s: list[int]
    end_row: list[int]
    plan_s: list[int]
    plan_row: list[int]
    last: list[int]
    before: list[int]
    runs: list[int]
    ring: list[int]
    median: list[float]
    usage: list[float]
    share: list[float]
    reserved: list[int]
    tested: list[int]
    spare: list[int]
    point_s: list[int]
    point_free: list[int]


class Setup(NamedTuple):
    """One simulation's choices, as numbers: the floats are the parameters of the rank, then come those of
    Slurm's scheduler (scheduler.py), times in s."""

    procs: int
    order: int
    backfill: int
    plan_by: int
    plan_anew: bool
    rank: int
    rank_by: int
    learns: bool
    users: int
    wait_weight: float = 0.0
    max_wait_s: float = 1.0
    remaining_weight: float = 0.0
    half_at_s: float = 1.0
    share_weight: float = 0.0
    share_damping: float = 1.0
    half_life_s: float = 1.0
    calc_period_s: int = 300
    queue_depth: int = 0
    batch_sched_delay: int = 0
    bf_interval: int = 0
    bf_max_job_test: int = 0
    bf_max_job_user: int = 0
    bf_job_part_count_reserve: int = 0
    bf_resolution: int = 1
    bf_window: int = 0
    end_window: int = 0
    bf_window_linear: int = 0


class Sizes(NamedTuple):
    """How many rows, users, groups and places for running jobs a state needs, and whether a profile."""

    jobs: int
    users: int
    groups: int
    running: int
    profile: bool


def new_state(sizes: Sizes, procs: int) -> State:
    """Return the state of an empty machine, in numpy arrays."""
    jobs, running = sizes.jobs, sizes.running + 1
    n: list[int] = _ints(12)
    n[FREE], n[LEAST], n[HEAD], n[POINTS] = procs, NEVER, -1, 1
    n[LOOKED], n[LOOK] = -NEVER, NEVER
    points = 2 * (jobs + 2) if sizes.profile else 2
    return State(
        n=n,
        start=_ints(jobs, -1),
        planned=_ints(jobs),
        corrections=_ints(jobs),
        queue=_ints(jobs + 1),
        keys=_floats(jobs + 1),
        picks=_ints(jobs + 1),
        end_s=_ints(running),
        end_row=_ints(running),
        plan_s=_ints(running),
        plan_row=_ints(running),
        last=_ints(sizes.users, -1),
        before=_ints(sizes.users, -1),
        runs=_ints(sizes.groups),
        ring=_ints(sizes.groups * RING),
        median=_floats(sizes.groups),
        usage=_floats(sizes.users),
        share=_floats(sizes.users, 1.0),
        reserved=_ints(jobs if sizes.profile else 1),
        tested=_ints(sizes.users if sizes.profile else 1),
        spare=_ints(jobs if sizes.profile else 1),
        point_s=_ints(points),
        point_free=_ints(points, procs),
    )


def as_lists(columns: Sequence[Any]) -> list[list[Any]]:
    """Return numpy columns as lists, which plain Python reads faster."""
    return [column.tolist() for column in columns]


def _ints(count: int, value: int = 0) -> Any:
    return np.full(count, value, np.int64)


def _floats(count: int, value: float = 0.0) -> Any:
    return np.full(count, value, np.float64)
