"""Kernels: the rank of a waiting job under a policy, lower first. Pure.

The product's own score is made of the formulas in its factors' files.
"""

import math

from slurm_score.factors import remaining, wait
from slurm_score.sim.history import forecast
from slurm_score.sim.state import (
    ACCRUED,
    MULTIFACTOR,
    RUNNING,
    SCORE,
    SHORT,
    UNICEP,
    WAITING,
    WFP3,
    Jobs,
    Setup,
    State,
)

wait_value, remaining_value = wait.value, remaining.value

GUARD_TIER = 1e15
"""Past the guard a rank is when the guard was reached less this: below that of every score."""

JUST_SUBMITTED_S = 1e-15
"""What UNICEP adds to a wait, so that jobs submitted just now have an order. Source: RLScheduler."""


def score(jobs: Jobs, setup: Setup, row: int, wait_s: float, left_s: float) -> float:
    """Return the score by the product's factors, added in the order of their columns."""
    points = setup.wait_weight * wait_value(wait_s, setup.max_wait_s)
    points += setup.remaining_weight * remaining_value(left_s, setup.half_at_s)
    points += jobs.size_points[row]
    return points + jobs.qos_points[row]


def rank(jobs: Jobs, s: State, setup: Setup, row: int, t: int) -> float:
    """Return the rank of a waiting job at t."""
    kind = setup.rank
    wait_s = 1.0 * (t - jobs.submit[row])
    if kind == SCORE:
        if wait_s >= jobs.guard[row]:
            return jobs.submit[row] + jobs.guard[row] - GUARD_TIER
        return -score(jobs, setup, row, wait_s, forecast(jobs, s, setup.rank_by, row))
    if kind == WFP3:
        ratio = wait_s / forecast(jobs, s, setup.rank_by, row)
        return -(ratio * ratio * ratio) * jobs.procs[row]
    if kind == UNICEP:
        return -(wait_s + JUST_SUBMITTED_S) / (jobs.fixed[row] * forecast(jobs, s, setup.rank_by, row))
    if kind == SHORT:
        return jobs.fixed[row] * forecast(jobs, s, setup.rank_by, row)
    if kind == MULTIFACTOR:
        aged = setup.wait_weight * wait_value(wait_s, setup.max_wait_s)
        shared = setup.share_weight * s.share[jobs.user[row]]
        return -(aged + shared + jobs.fixed[row])
    return 1.0 * jobs.fixed[row]


def rank_queue(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Write the rank of every waiting job into `keys`, which are by row."""
    if setup.rank == MULTIFACTOR and setup.share_weight > 0:
        count_usage(jobs, s, setup, t)
    for i in range(s.n[WAITING]):
        row = s.queue[i]
        s.keys[row] = rank(jobs, s, setup, row, t)


def count_usage(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Bring usage and fair-share up to date, at most every PriorityCalcPeriod.

    Usage decays with its half-life; the factor is 2^-(the user's part of it / his share / damping), all
    users having the same share. Source: Slurm, priority_multifactor, "Classic Fairshare".
    """
    passed = t - s.n[ACCRUED]
    if passed < setup.calc_period_s:
        return
    for i in range(s.n[RUNNING]):
        use(jobs, s, s.end_row[i], t)
    s.n[ACCRUED] = t
    kept = math.exp(-passed * math.log(2.0) / setup.half_life_s)
    total = 0.0
    for user in range(setup.users):
        s.usage[user] *= kept
        total += s.usage[user]
    if total > 0:
        for user in range(setup.users):
            s.share[user] = math.exp(
                -s.usage[user] / total * setup.users / setup.share_damping * math.log(2.0)
            )


def use(jobs: Jobs, s: State, row: int, t: int) -> None:
    """Add the processor seconds that a job has used since usage was last counted."""
    since = max(s.start[row], s.n[ACCRUED])
    s.usage[jobs.user[row]] += 1.0 * jobs.procs[row] * (t - since)
