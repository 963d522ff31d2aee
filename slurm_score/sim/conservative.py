"""Kernels: conservative backfill, which gives every job a reservation when it is submitted. Pure.

What is free at which time is a profile: `point_free[i]` processors from `point_s[i]` until the next
point. When a run ends early, reservations move forward one by one in the policy's order, never back.
Source: Mu'alem and Feitelson, Utilization, predictability, workloads, and user runtime estimates, 2001.
"""

from slurm_score.sim.backfill import drop_started
from slurm_score.sim.ranking import rank_queue
from slurm_score.sim.running import move_up, remove_at, start_job
from slurm_score.sim.state import NEVER, POINTS, STATIC, WAITING, Jobs, Setup, State


def point_at(s: State, t: int) -> int:
    """Return the last point of the profile that isn't after t."""
    low, high = 0, s.n[POINTS] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if s.point_s[middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low


def split(s: State, t: int) -> int:
    """Return the point at t, which is made if there is none."""
    at, count = point_at(s, t), s.n[POINTS]
    if s.point_s[at] == t:
        return at
    move_up(s.point_s, at + 1, count)
    move_up(s.point_free, at + 1, count)
    s.point_s[at + 1] = t
    s.point_free[at + 1] = s.point_free[at]
    s.n[POINTS] = count + 1
    return at + 1


def give(s: State, begin: int, end: int, procs: int) -> None:
    """Add free processors between two times; a negative number takes them."""
    if begin >= end:
        return
    first, last = split(s, begin), split(s, end)
    for i in range(first, last):
        s.point_free[i] += procs
    for i in (last, first):
        if i > 0 and s.point_free[i - 1] == s.point_free[i]:
            remove_at(s.point_s, s.n[POINTS], i)
            remove_at(s.point_free, s.n[POINTS], i)
            s.n[POINTS] -= 1


def forget_past(s: State, t: int) -> None:
    """Let the profile begin at t."""
    at, count = point_at(s, t), s.n[POINTS]
    if at > 0:
        for i in range(at, count):
            s.point_s[i - at] = s.point_s[i]
            s.point_free[i - at] = s.point_free[i]
        s.n[POINTS] = count - at
    s.point_s[0] = t


def earliest(s: State, procs: int, length_s: int) -> int:
    """Return the earliest time from the profile's begin on at which processors are free so long."""
    begin = s.point_s[0]
    for i in range(s.n[POINTS]):
        if s.point_s[i] >= begin + length_s:
            break
        if s.point_free[i] < procs:
            begin = s.point_s[i + 1]
    return begin


def reserve(jobs: Jobs, s: State, row: int) -> None:
    """Give a job the earliest reservation."""
    begin = earliest(s, jobs.procs[row], s.planned[row])
    s.reserved[row] = begin
    give(s, begin, begin + s.planned[row], -jobs.procs[row])


def release(jobs: Jobs, s: State, row: int, t: int) -> None:
    """Free what an ended run had reserved beyond t."""
    give(s, t, s.start[row] + s.planned[row], jobs.procs[row])


def compress(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Move reservations forward in the policy's order, until none can move any more."""
    forget_past(s, t)
    count = s.n[WAITING]
    for i in range(count):
        s.picks[i] = s.queue[i]
    if setup.rank != STATIC:
        rank_queue(jobs, s, setup, t)
        sort_picks(s, count)
    moved = True
    while moved:
        moved = False
        for i in range(count):
            row = s.picks[i]
            begin, length = s.reserved[row], s.planned[row]
            give(s, begin, begin + length, jobs.procs[row])
            reserve(jobs, s, row)
            moved = moved or s.reserved[row] < begin


def sort_picks(s: State, count: int) -> None:
    """Sort the picked rows by key; equals keep their order."""
    for i in range(1, count):
        row = s.picks[i]
        k = i
        while k > 0 and s.keys[row] < s.keys[s.picks[k - 1]]:
            s.picks[k] = s.picks[k - 1]
            k -= 1
        s.picks[k] = row


def start_reserved(jobs: Jobs, s: State, t: int) -> None:
    """Start the jobs whose reservation has come, in the order of the queue."""
    due = False
    for i in range(s.n[WAITING]):
        row = s.queue[i]
        if s.reserved[row] <= t:
            start_job(jobs, s, row, t)
            due = True
    if due:
        drop_started(jobs, s)


def next_reserved(s: State) -> int:
    """Return when the next reservation comes."""
    soonest = NEVER
    for i in range(s.n[WAITING]):
        soonest = min(soonest, s.reserved[s.queue[i]])
    return soonest
