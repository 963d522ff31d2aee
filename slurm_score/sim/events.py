"""Kernels: what happens one second after the other. Pure.

What happens in one second has an order, and the published schedules depend on it. pyss: predictions
are corrected; submissions in file order; ends in order of the starts, a pass after each. Processors
whose expected and real end are both now already count as free for the submissions. EASY makes a pass for a
submitted job that fits, EASY++ for each. batch: all ends, all submissions, one pass. rlscheduler: as
pyss, with a pass after each event.
"""

from slurm_score.sim.backfill import enqueue, schedule
from slurm_score.sim.conservative import (
    compress,
    forget_past,
    next_reserved,
    release,
    reserve,
    start_reserved,
)
from slurm_score.sim.history import forecast, learn
from slurm_score.sim.ranking import use
from slurm_score.sim.running import correct, end_next, free_at
from slurm_score.sim.slurm import backfill_due, main_loop_due, main_loop_now, next_pass, pass_like_slurm
from slurm_score.sim.state import (
    BATCH,
    CLAIRVOYANT,
    CLOCK,
    CONSERVATIVE,
    EASY,
    ENDED,
    NEVER,
    NEXT,
    NO_BACKFILL,
    PYSS,
    REQUEST,
    RUNNING,
    SLURM,
    WAITING,
    Jobs,
    Setup,
    State,
)


def run(jobs: Jobs, s: State, setup: Setup, ended: int) -> bool:
    """Go on until so many jobs have ended, or all; return whether any is left."""
    total = len(s.start)
    ended = min(ended, total)
    while s.n[ENDED] < ended:
        t = next_time(jobs, s, setup)
        s.n[CLOCK] = t
        if setup.plan_by != REQUEST and setup.plan_by != CLAIRVOYANT:
            correct(jobs, s, t)
        if setup.backfill == CONSERVATIVE:
            step_with_reservations(jobs, s, setup, t)
        elif setup.backfill == SLURM:
            step_like_slurm(jobs, s, setup, t)
        elif setup.order == BATCH:
            step_in_batch(jobs, s, setup, t)
        else:
            step_one_by_one(jobs, s, setup, t)
    return s.n[ENDED] < total


def next_time(jobs: Jobs, s: State, setup: Setup) -> int:
    """Return when something happens next."""
    t = NEVER
    if s.n[NEXT] < len(s.start):
        t = jobs.submit[s.n[NEXT]]
    if s.n[RUNNING] > 0:
        t = min(t, s.end_s[s.n[RUNNING] - 1])
    if setup.backfill == CONSERVATIVE:
        t = min(t, next_reserved(s))
    if setup.backfill == SLURM and s.n[WAITING] > 0:
        t = min(t, next_pass(s, setup))
    return t


def submits_at(jobs: Jobs, s: State, t: int) -> bool:
    """Return whether another job is submitted at t."""
    return s.n[NEXT] < len(s.start) and jobs.submit[s.n[NEXT]] == t


def ends_at(s: State, t: int) -> bool:
    """Return whether another job ends at t."""
    return s.n[RUNNING] > 0 and s.end_s[s.n[RUNNING] - 1] == t


def submit(jobs: Jobs, s: State, setup: Setup) -> int:
    """Submit the next job; return its row."""
    row = s.n[NEXT]
    s.n[NEXT] = row + 1
    s.planned[row] = int(forecast(jobs, s, setup.plan_by, row))
    enqueue(jobs, s, setup, row)
    return row


def end(jobs: Jobs, s: State, setup: Setup, t: int) -> int:
    """End the job whose end is next; return its row."""
    row = end_next(jobs, s)
    s.n[ENDED] += 1
    if setup.learns:
        learn(jobs, s, row)
    if setup.share_weight > 0:
        use(jobs, s, row, t)
    return row


def step_one_by_one(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Let the events of t happen, with a pass after each that may start a job."""
    while submits_at(jobs, s, t):
        row = submit(jobs, s, setup)
        picky = setup.order == PYSS and setup.backfill in (NO_BACKFILL, EASY)
        if not picky or jobs.procs[row] <= free_at(jobs, s, t):
            schedule(jobs, s, setup, t)
    while ends_at(s, t):
        end(jobs, s, setup, t)
        schedule(jobs, s, setup, t)


def step_in_batch(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Let all ends and submissions of t happen, then make one pass."""
    while ends_at(s, t):
        end(jobs, s, setup, t)
    while submits_at(jobs, s, t):
        submit(jobs, s, setup)
    if s.n[WAITING] > 0:
        schedule(jobs, s, setup, t)


def step_like_slurm(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Run the main loop on what happened before; let all of t happen, then run what is due now."""
    if main_loop_due(s, t):
        pass_like_slurm(jobs, s, setup, t, True, False)
    happened = False
    while ends_at(s, t):
        end(jobs, s, setup, t)
        happened = True
    while submits_at(jobs, s, t):
        submit(jobs, s, setup)
        happened = True
    main = main_loop_now(s, setup, t, happened)
    if s.n[WAITING] > 0:
        pass_like_slurm(jobs, s, setup, t, main, backfill_due(setup, t))


def step_with_reservations(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """Let the events of t happen in the order asked for; each changes reservations."""
    forget_past(s, t)
    if setup.order == BATCH:
        end_and_compress(jobs, s, setup, t)
    start_reserved(jobs, s, t)
    while submits_at(jobs, s, t):
        reserve(jobs, s, submit(jobs, s, setup))
        start_reserved(jobs, s, t)
    if setup.order != BATCH:
        end_and_compress(jobs, s, setup, t)
    start_reserved(jobs, s, t)


def end_and_compress(jobs: Jobs, s: State, setup: Setup, t: int) -> None:
    """End the jobs whose time has come; if one ended early, move reservations forward."""
    early = False
    while ends_at(s, t):
        row = end(jobs, s, setup, t)
        if s.start[row] + s.planned[row] > t:
            release(jobs, s, row, t)
            early = True
    if early:
        compress(jobs, s, setup, t)
