"""Kernels: the jobs that run, in two sorted arrays, and when the head of the queue could start. Pure."""

from slurm_score.sim.state import FREE, RUNNING, Jobs, State

INCREMENTS_S = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""What is added to a prediction that proved too short, one after the other. Source: Tsafrir et al.,
Backfilling using system-generated predictions, TPDS 2007."""


def place(keys: list[int], count: int, key: int) -> int:
    """Return the first place in falling keys whose key is not above `key`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] > key:
            low = middle + 1
        else:
            high = middle
    return low


def move_up(values: list[int], at: int, count: int) -> None:
    """Make room at a place of an array of which `count` places are used."""
    for i in range(count, at, -1):
        values[i] = values[i - 1]


def insert(keys: list[int], rows: list[int], count: int, key: int, row: int) -> None:
    """Put a row before all whose key is not above its own: among equals the first in comes out first."""
    at = place(keys, count, key)
    move_up(keys, at, count)
    move_up(rows, at, count)
    keys[at] = key
    rows[at] = row


def remove_at(values: list[int], count: int, at: int) -> None:
    """Close the gap at a place of an array of which `count` places are used."""
    for i in range(at, count - 1):
        values[i] = values[i + 1]


def start_job(jobs: Jobs, s: State, row: int, t: int) -> None:
    """Start a job at t; the caller takes it out of the queue."""
    count = s.n[RUNNING]
    s.start[row] = t
    insert(s.end_s, s.end_row, count, t + jobs.run[row], row)
    insert(s.plan_s, s.plan_row, count, t + s.planned[row], row)
    s.n[RUNNING] = count + 1
    s.n[FREE] -= jobs.procs[row]


def forget_plan(s: State, row: int, count: int) -> None:
    """Take a row out of the expected ends, of which there are `count`."""
    key = s.start[row] + s.planned[row]
    at = place(s.plan_s, count, key)
    while s.plan_row[at] != row:
        at += 1
    remove_at(s.plan_s, count, at)
    remove_at(s.plan_row, count, at)


def end_next(jobs: Jobs, s: State) -> int:
    """End the job whose end is next, in order of their starts among equals; return its row."""
    count = s.n[RUNNING]
    row = s.end_row[count - 1]
    forget_plan(s, row, count)
    s.n[RUNNING] = count - 1
    s.n[FREE] += jobs.procs[row]
    return row


def free_at(jobs: Jobs, s: State, t: int) -> int:
    """Return the free processors at t; those of jobs that are expected to end by then count."""
    free = s.n[FREE]
    i = s.n[RUNNING] - 1
    while i >= 0 and s.plan_s[i] <= t:
        free += jobs.procs[s.plan_row[i]]
        i -= 1
    return free


def reservation(jobs: Jobs, s: State, row: int, t: int, free: int) -> tuple[int, int]:
    """Return when a job that doesn't fit now fits at the latest, in s, and the processors left over then.

    All ends expected in that second count. `free` is what is free at t.
    """
    need = jobs.procs[row]
    i = s.n[RUNNING] - 1
    while i >= 0 and s.plan_s[i] <= t:
        i -= 1
    shadow = t
    while i >= 0:
        shadow = s.plan_s[i]
        free += jobs.procs[s.plan_row[i]]
        i -= 1
        if free >= need and (i < 0 or s.plan_s[i] != shadow):
            break
    return shadow, free - need


def correct(jobs: Jobs, s: State, t: int) -> None:
    """Lengthen the prediction of every run that by t has outlived it: by 60 s, then 300 s, … in all."""
    count = s.n[RUNNING]
    i = count - 1
    while i >= 0 and s.plan_s[i] <= t:
        row = s.plan_row[i]
        if s.planned[row] >= jobs.run[row]:
            i -= 1
            continue
        remove_at(s.plan_s, count, i)
        remove_at(s.plan_row, count, i)
        lengthen(jobs, s, row, t)
        insert(s.plan_s, s.plan_row, count - 1, s.start[row] + s.planned[row], row)
        i = count - 1


def lengthen(jobs: Jobs, s: State, row: int, t: int) -> None:
    """Correct one prediction until it reaches past t or to the run's own end; never beyond the request."""
    while s.planned[row] < jobs.run[row] and s.start[row] + s.planned[row] <= t:
        done = s.corrections[row]
        longer = jobs.request[row]
        if done < len(INCREMENTS_S):
            earlier = INCREMENTS_S[done - 1] if done > 0 else 0
            longer = min(longer, s.planned[row] - earlier + INCREMENTS_S[done])
        s.planned[row] = longer
        s.corrections[row] = done + 1
