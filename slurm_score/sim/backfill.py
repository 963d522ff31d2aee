"""Kernels: one pass over the waiting jobs without backfill, with EASY and its kin. Pure.

A pass starts jobs from the head while they fit. The first that doesn't fit gets a reservation; jobs
behind it may start if they don't delay it. Source: Lifka, The ANL/IBM SP scheduling system, 1995;
Tsafrir et al., TPDS 2007 (SJBF, EASY++).
"""

from slurm_score.sim.history import forecast
from slurm_score.sim.ranking import rank_queue
from slurm_score.sim.running import free_at, move_up, remove_at, reservation, start_job
from slurm_score.sim.state import (
    EASY,
    FREE,
    HEAD,
    LEAST,
    NEVER,
    NO_BACKFILL,
    RLSCHEDULER,
    STATIC,
    WAITING,
    Jobs,
    Setup,
    State,
)


def enqueue(jobs: Jobs, s: State, setup: Setup, row: int) -> None:
    """Put a submitted job into the queue: by its rank where that is fixed, else behind all others."""
    at = count = s.n[WAITING]
    if setup.rank == STATIC and setup.order != RLSCHEDULER:
        low = 0
        while low < at:
            middle = (low + at) >> 1
            if jobs.fixed[s.queue[middle]] <= jobs.fixed[row]:
                low = middle + 1
            else:
                at = middle
        move_up(s.queue, at, count)
    s.queue[at] = row
    s.n[WAITING] = count + 1
    s.n[LEAST] = min(s.n[LEAST], jobs.procs[row])


def schedule(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Make a pass at t."""
    if setup.order == RLSCHEDULER:
        pass_with_chosen_head(jobs, s, setup, t)
        return
    free = free_at(jobs, s, t)
    if free < s.n[LEAST]:
        return
    if setup.plan_anew:
        plan_queue(jobs, s, setup)
    if setup.rank == STATIC:
        head, free = start_heads_in_order(jobs, s, t, free)
    else:
        rank_queue(jobs, s, setup, t)
        head, free = start_heads_by_rank(jobs, s, t, free)
    if setup.backfill != NO_BACKFILL and s.n[WAITING] > 1 and free >= s.n[LEAST]:
        shadow, extra = reservation(jobs, s, s.queue[head], t, free)
        if setup.rank == STATIC and setup.backfill == EASY:
            backfill_in_order(jobs, s, t, free, shadow, extra)
        else:
            backfill_by_rank(jobs, s, t, head, free, shadow, extra, setup.backfill != EASY)


def plan_queue(jobs: Jobs, s: State, setup: Setup) -> None:
    """Predict every waiting job anew."""
    for i in range(s.n[WAITING]):
        row = s.queue[i]
        s.planned[row] = int(forecast(jobs, s, setup.plan_by, row))


def start_heads_in_order(jobs: Jobs, s: State, t: int, free: int) -> tuple[int, int]:
    """Start jobs from the front of the queue while they fit; return the head's place and what is free."""
    while s.n[WAITING] > 0 and jobs.procs[s.queue[0]] <= free:
        free -= jobs.procs[s.queue[0]]
        start_at(jobs, s, 0, t)
    return 0, free


def start_heads_by_rank(jobs: Jobs, s: State, t: int, free: int) -> tuple[int, int]:
    """Start the jobs of lowest rank while they fit; return the head's place and what is free."""
    head = first_ranked(s)
    while head >= 0 and jobs.procs[s.queue[head]] <= free:
        free -= jobs.procs[s.queue[head]]
        start_at(jobs, s, head, t)
        head = first_ranked(s)
    return head, free


def first_ranked(s: State) -> int:
    """Return the place in the queue of the lowest rank, the first of equals; -1 if nobody waits."""
    best, lowest = -1, 0.0
    for i in range(s.n[WAITING]):
        key = s.keys[s.queue[i]]
        if best < 0 or key < lowest:
            best, lowest = i, key
    return best


def backfill_in_order(jobs: Jobs, s: State, t: int, free: int, shadow: int, extra: int) -> None:
    """Start jobs behind the head, in the order of the queue."""
    i = 1
    while i < s.n[WAITING] and free > 0:
        row = s.queue[i]
        procs = jobs.procs[row]
        if procs <= free and (procs <= extra or t + s.planned[row] <= shadow):
            start_at(jobs, s, i, t)
            free -= procs
            extra -= 0 if t + s.planned[row] <= shadow else procs
        else:
            i += 1


def backfill_by_rank(
    jobs: Jobs, s: State, t: int, head: int, free: int, shadow: int, extra: int, shortest: bool
) -> None:
    """Start jobs behind the head by planned run time, if `shortest`, then by rank, then by place."""
    count = 0
    for i in range(s.n[WAITING]):
        s.picks[count] = s.queue[i]
        count += i != head
    started = False
    while count > 0:
        best = kept = 0
        for i in range(count):
            row = s.picks[i]
            procs = jobs.procs[row]
            if procs <= free and (procs <= extra or t + s.planned[row] <= shadow):
                s.picks[kept] = row
                if kept > 0 and stands_before(s, row, s.picks[best], shortest):
                    best = kept
                kept += 1
        count = kept - 1
        if kept > 0:
            row = s.picks[best]
            remove_at(s.picks, kept, best)
            start_job(jobs, s, row, t)
            free -= jobs.procs[row]
            extra -= 0 if t + s.planned[row] <= shadow else jobs.procs[row]
            started = True
    if started:
        drop_started(jobs, s)


def stands_before(s: State, row: int, other: int, shortest: bool) -> bool:
    """Return whether a row comes before another that stands further ahead in the queue."""
    if shortest and s.planned[row] != s.planned[other]:
        return s.planned[row] < s.planned[other]
    return s.keys[row] < s.keys[other]


def start_at(jobs: Jobs, s: State, at: int, t: int) -> None:
    """Start the job at a place of the queue."""
    count, row = s.n[WAITING], s.queue[at]
    remove_at(s.queue, count, at)
    s.n[WAITING] = count - 1
    start_job(jobs, s, row, t)
    if jobs.procs[row] <= s.n[LEAST]:
        drop_started(jobs, s)


def drop_started(jobs: Jobs, s: State) -> None:
    """Take the jobs that have started out of the queue, and find the least that one of the rest needs."""
    kept, least = 0, NEVER
    for i in range(s.n[WAITING]):
        row = s.queue[i]
        if s.start[row] < 0:
            s.queue[kept] = row
            kept += 1
            least = min(least, jobs.procs[row])
    s.n[WAITING], s.n[LEAST] = kept, least


def pass_with_chosen_head(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Make a pass as RLScheduler does: a head, once chosen, stays it until it starts.

    Others may start, in order of submission, if they end before the head's reservation; processors
    that it leaves over don't count. Source: RLScheduler's HPCSimPickJobs.py,
    moveforward_for_resources_backfill_greedy.
    """
    while s.n[WAITING] > 0:
        if s.n[HEAD] < 0:
            rank_queue(jobs, s, setup, t)
            s.n[HEAD] = s.queue[first_ranked(s)]
        head = s.n[HEAD]
        if jobs.procs[head] > s.n[FREE]:
            break
        start_job(jobs, s, head, t)
        drop_started(jobs, s)
        s.n[HEAD] = -1
    free = free_at(jobs, s, t)
    if setup.backfill == NO_BACKFILL or s.n[WAITING] < 2 or jobs.procs[s.n[HEAD]] <= free:
        return
    shadow, _ = reservation(jobs, s, s.n[HEAD], t, free)
    for i in range(s.n[WAITING]):
        row = s.queue[i]
        if row != s.n[HEAD] and jobs.procs[row] <= s.n[FREE] and t + s.planned[row] < shadow:
            start_job(jobs, s, row, t)
    drop_started(jobs, s)
