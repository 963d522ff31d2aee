"""Kernels: Slurm's two loops over one pool and one partition. Pure.

The main loop starts jobs in order of priority until one is blocked. The backfill loop plans in the same
order: each job that it tests gets the earliest start that a profile of free processors allows, is
started if that is now, and else keeps its place in the profile, so that no job behind it can delay it.
Source: Slurm 24.11, src/slurmctld/job_scheduler.c, _schedule; src/plugins/sched/backfill/backfill.c,
_attempt_backfill. Otherwise than there, a job may end in the very second in which a reservation begins.
"""

from slurm_score.sim.backfill import drop_started
from slurm_score.sim.conservative import earliest, give, point_at, split
from slurm_score.sim.ranking import rank_queue
from slurm_score.sim.running import free_at, start_job
from slurm_score.sim.sorting import sort_rows
from slurm_score.sim.state import (
    CLOCK,
    FREE,
    LEAST,
    LOOK,
    LOOKED,
    NEVER,
    POINTS,
    RUNNING,
    SLURM,
    STATIC,
    WAITING,
    Jobs,
    Setup,
    State,
)


def next_pass(s: State, setup: Setup) -> int:
    """Return when one of the loops runs next, if nothing happens."""
    t = s.n[LOOK]
    if setup.backfill == SLURM and setup.bf_interval > 0 and s.n[FREE] >= s.n[LEAST]:
        t = min(t, (s.n[CLOCK] // setup.bf_interval + 1) * setup.bf_interval)
    return t


def backfill_due(setup: Setup, t: int) -> bool:
    """Return whether backfill runs at t."""
    return setup.backfill == SLURM and (setup.bf_interval == 0 or t % setup.bf_interval == 0)


def main_loop_due(s: State, t: int) -> bool:
    """Return whether the main loop is to look at t at what happened before; take note that it does."""
    if s.n[LOOK] > t:
        return False
    s.n[LOOKED], s.n[LOOK] = t, NEVER
    return s.n[WAITING] > 0


def main_loop_now(s: State, setup: Setup, t: int, happened: bool) -> bool:
    """Return whether the main loop looks at once at what happened at t; if not, take note when it will."""
    if setup.batch_sched_delay == 0 or not happened:
        return happened
    s.n[LOOK] = min(s.n[LOOK], max(t + 1, s.n[LOOKED] + setup.batch_sched_delay))
    return False


def pass_like_slurm(jobs: Jobs, s: State, setup: Setup, t: int, main: bool, due: bool) -> None:
    """Run the main loop, then backfill, each if it is its time."""
    free = free_at(jobs, s, t)
    if free < s.n[LEAST] or not (due or main):
        return
    count = order_queue(jobs, s, setup, t)
    first = 0
    if main:
        while first < min(count, setup.queue_depth) and jobs.procs[s.picks[first]] <= free:
            free -= jobs.procs[s.picks[first]]
            start_job(jobs, s, s.picks[first], t)
            first += 1
    if due and first < count and free >= s.n[LEAST]:
        backfill_like_slurm(jobs, s, setup, t, first, count)
    drop_started(jobs, s)


def order_queue(jobs: Jobs, s: State, setup: Setup, t: int) -> int:
    """Put those that wait into `picks` in order of their rank; return how many they are."""
    count = s.n[WAITING]
    for i in range(count):
        s.picks[i] = s.queue[i]
    if setup.rank != STATIC:
        rank_queue(jobs, s, setup, t)
        sort_rows(s.picks, s.keys, count, s.spare)
    return count


def backfill_like_slurm(jobs: Jobs, s: State, setup: Setup, t: int, first: int, count: int) -> None:
    """Plan the picks from `first` on, and start those whose planned start is now."""
    free = lay_profile(jobs, s, t)
    forget_tests(s, setup)
    reserves = setup.bf_job_part_count_reserve or count
    tested = 0
    for i in range(first, count):
        row = s.picks[i]
        if tested >= setup.bf_max_job_test or free < s.n[LEAST]:
            break
        if too_many_of_user(s, setup, jobs.user[row]):
            continue
        tested += 1
        procs, length = jobs.procs[row], s.planned[row]
        if procs <= free and fits_now(s, procs, length):
            give(s, t, t + length, -procs)
            start_job(jobs, s, row, t)
            free -= procs
        elif reserves > 0:
            begin = earliest(s, procs, length)
            if begin <= t + setup.bf_window:
                reserve_slots(s, setup, t, begin, length, procs)
                reserves -= 1


def forget_tests(s: State, setup: Setup) -> None:
    """Begin to count the jobs of each user that are tested."""
    if setup.bf_max_job_user > 0:
        for user in range(setup.users):
            s.tested[user] = 0


def too_many_of_user(s: State, setup: Setup, user: int) -> bool:
    """Count another job of a user; return whether it is beyond bf_max_job_user."""
    if setup.bf_max_job_user == 0:
        return False
    s.tested[user] += 1
    return s.tested[user] > setup.bf_max_job_user


def fits_now(s: State, procs: int, length: int) -> bool:
    """Return whether processors are free from the profile's begin on for so long."""
    end = s.point_s[0] + length
    for i in range(s.n[POINTS]):
        if s.point_s[i] >= end:
            break
        if s.point_free[i] < procs:
            return False
    return True


def reserve_slots(s: State, setup: Setup, t: int, begin: int, length: int, procs: int) -> None:
    """Take processors out of the profile, from the slot of the begin to the slot of the end.

    Slurm reserves nodes, so what the rounding adds to the front costs only nodes that the job will have.
    """
    slot = setup.bf_resolution
    first = max(t, begin // slot * slot)
    end = slot_end(slot, begin + length)
    give(s, begin, end, -procs)
    last = split(s, first)
    left = s.point_free[point_at(s, begin)]
    while last < s.n[POINTS] and s.point_s[last] < begin:
        s.point_free[last] = min(s.point_free[last], left)
        last += 1


def slot_end(slot: int, end: int) -> int:
    """Return a reservation's end, rounded up to bf_resolution. Observed on Slurm 24.11."""
    return -(-end // slot) * slot


def lay_profile(jobs: Jobs, s: State, t: int) -> int:
    """Make the profile of what runs at t; return what is free now."""
    free = free_at(jobs, s, t)
    s.point_s[0], s.point_free[0] = t, free
    at, later = 0, free
    for i in range(s.n[RUNNING] - 1, -1, -1):
        end = s.plan_s[i]
        if end <= t:
            continue
        later += jobs.procs[s.plan_row[i]]
        if s.point_s[at] != end:
            at += 1
            s.point_s[at] = end
        s.point_free[at] = later
    s.n[POINTS] = at + 1
    return free
