"""Kernels: a cluster, second after second, under Slurm's two loops. Pure.

In one second come all ends, then what happens to nodes, then all submissions, each in its own order, then
the main loop and, if it is due, backfill. Source: as slurm.py, of which this is the form for nodes.
"""

from slurm_score.sim.backfill import drop_started
from slurm_score.sim.events import end, ends_at, submit, submits_at
from slurm_score.sim.foresee import foresee_start
from slurm_score.sim.nodes import EVENTS, LOGGED, SPANS, UP, Limits, Needs, Site
from slurm_score.sim.occupy import change_node, leave, preempt, start_on_picked
from slurm_score.sim.placing import can_start, find_start, pick_nodes
from slurm_score.sim.ranking import GUARD_TIER
from slurm_score.sim.slurm import (
    backfill_due,
    forget_tests,
    main_loop_due,
    main_loop_now,
    next_pass,
    order_queue,
    slot_end,
    too_many_of_user,
)
from slurm_score.sim.sorting import sort_rows
from slurm_score.sim.state import (
    CLOCK,
    ENDED,
    FREE,
    LEAST,
    LOOK,
    NEVER,
    NEXT,
    RUNNING,
    WAITING,
    Jobs,
    Setup,
    State,
)

DONE, MORE, STUCK = range(3)
"""What a run of the kernel ends with: all have ended; go on; somebody waits and nothing will happen."""


def run_cluster(jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, ended: int) -> int:
    """Go on until so many jobs have ended, or the log is full."""
    total = len(s.start)
    while s.n[ENDED] < total:
        if s.n[ENDED] >= ended or h.n[LOGGED] >= limits.log:
            return MORE
        t = next_second(jobs, s, setup, h, limits)
        if t == NEVER:
            return STUCK
        s.n[CLOCK] = t
        if main_loop_due(s, t):
            pass_on_cluster(jobs, s, setup, h, limits, needs, t, True, False)
        main = main_loop_now(s, setup, t, happen(jobs, s, setup, h, limits, needs, t))
        if s.n[WAITING] > 0:
            pass_on_cluster(jobs, s, setup, h, limits, needs, t, main, backfill_due(setup, t))
    return DONE


def next_second(jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits) -> int:
    """Return when something happens next."""
    t = NEVER
    if s.n[NEXT] < len(s.start):
        t = jobs.submit[s.n[NEXT]]
    if s.n[RUNNING] > 0:
        t = min(t, s.end_s[s.n[RUNNING] - 1])
    if h.n[EVENTS] < limits.events:
        t = min(t, h.event_s[h.n[EVENTS]])
    if s.n[WAITING] > 0 and (t < NEVER or s.n[LOOK] < NEVER):
        t = min(t, next_pass(s, setup))
    return t


def happen(jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, t: int) -> bool:
    """Let all happen that happens at t; return whether anything did."""
    happened = False
    while ends_at(s, t):
        row = end(jobs, s, setup, t)
        leave(s, h, limits, needs, row, t)
        h.ended_s[row] = t
        happened = True
    while h.n[EVENTS] < limits.events and h.event_s[h.n[EVENTS]] <= t:
        change_node(jobs, s, setup, h, limits, needs, t)
        happened = True
    while submits_at(jobs, s, t):
        submit(jobs, s, setup)
        happened = True
    return happened


def pass_on_cluster(
    jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, t: int, main: bool, due: bool
) -> None:
    """Run the main loop, then backfill, each if it is its time."""
    hopeless = s.n[FREE] < s.n[LEAST] and not limits.preempts
    if hopeless or not (due or main):
        return
    count = order_queue(jobs, s, setup, t)
    if limits.fits > 0:
        add_fit(s, h, limits, needs, count)
    if main:
        main_loop(jobs, s, setup, h, limits, needs, t, count)
    if due:
        backfill_loop(jobs, s, setup, h, limits, needs, t, count)
    drop_started(jobs, s)


def main_loop(
    jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, t: int, count: int
) -> None:
    """Start the picks in order; behind one that is blocked nobody starts in its partition or on its nodes."""
    for partition in range(limits.partitions):
        h.blocked[partition] = 0
    open_ones = limits.partitions
    for i in range(min(count, setup.queue_depth)):
        row = s.picks[i]
        partition = needs.partition[row]
        if h.blocked[partition]:
            continue
        if start_now(jobs, s, setup, h, limits, needs, row, t):
            continue
        h.blocked[partition] = 1
        open_ones -= 1
        if open_ones == 0:
            break
        for node in range(limits.nodes):
            h.shut[node] |= h.members[partition * limits.nodes + node]
    for node in range(limits.nodes):
        h.shut[node] = 0


def start_now(
    jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, row: int, t: int
) -> bool:
    """Start a job if it fits, by preemption if it must; return whether it started."""
    if can_start(h, limits, needs, row, t, s.planned[row]):
        pick_nodes(h, limits, needs, row, t, True)
    elif not (limits.preempts and preempt(jobs, s, setup, h, limits, needs, row, t)):
        return False
    start_on_picked(jobs, s, h, limits, needs, row, t)
    return True


def backfill_loop(
    jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, t: int, count: int
) -> None:
    """Plan the picks in order; start those whose planned start is now, reserve nodes for the others."""
    for partition in range(limits.partitions):
        h.reserved[partition] = 0
    forget_tests(s, setup)
    h.n[SPANS] = tested = 0
    for i in range(count):
        row = s.picks[i]
        if tested >= setup.bf_max_job_test or s.n[FREE] < s.n[LEAST]:
            break
        if s.start[row] >= 0 or too_many_of_user(s, setup, jobs.user[row]):
            continue
        tested += 1
        plan(jobs, s, setup, h, limits, needs, row, t)
    for node in range(limits.nodes):
        h.node_span[node] = -1


def plan(jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, row: int, t: int) -> None:
    """Start a job now if no reservation is in its way, else reserve its nodes if it may have that."""
    partition, most = needs.partition[row], setup.bf_job_part_count_reserve
    begin = NEVER
    if most > 0 and h.reserved[partition] >= most:
        if can_start(h, limits, needs, row, t, s.planned[row]):
            begin = t
    else:
        begin = look_ahead(s, setup, h, limits, needs, row, t)
    if begin == t:
        pick_nodes(h, limits, needs, row, t, True)
        start_on_picked(jobs, s, h, limits, needs, row, t)
    elif begin < NEVER:
        slot = setup.bf_resolution
        first = max(t, begin // slot * slot)
        last = slot_end(slot, begin + s.planned[row])
        for i in range(needs.nodes[row]):
            reserve_node(h, h.picked[i], first, last)
        h.reserved[partition] += 1


def look_ahead(s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, row: int, t: int) -> int:
    """Return when a job is to start, as early as it can or as Slurm foresees it, with its nodes."""
    latest = t + setup.bf_window
    if setup.end_window > 0:
        return foresee_start(s, setup, h, limits, needs, row, t, latest)
    begin = find_start(s, h, limits, needs, row, t, latest)
    if t < begin < NEVER:
        pick_nodes(h, limits, needs, row, begin, False)
    return begin


def reserve_node(h: Site, node: int, begin: int, end_s: int) -> None:
    """Put a reservation into a node's chain, which is in order of their beginnings."""
    span = h.n[SPANS]
    h.n[SPANS] = span + 1
    h.span_begin[span], h.span_end[span] = begin, end_s
    before, after = -1, h.node_span[node]
    while after >= 0 and h.span_begin[after] <= begin:
        before, after = after, h.span_next[after]
    h.span_next[span] = after
    if before < 0:
        h.node_span[node] = span
    else:
        h.span_next[before] = span


def add_fit(s: State, h: Site, limits: Limits, needs: Needs, count: int) -> None:
    """Add the points of gres_fit to the ranks, and put the picks in order again.

    Contended types first: contention.gpu_pressure and contention.contention, over those that wait.
    """
    for fit in range(limits.fits):
        h.fit_asked[fit] = 0.0
    for i in range(count):
        fit = needs.fit[s.picks[i]]
        if fit >= 0:
            h.fit_asked[fit] += needs.gpus[s.picks[i]] * needs.nodes[s.picks[i]]
    weigh_types(h, limits)
    for i in range(count):
        row = s.picks[i]
        if needs.fit[row] >= 0 and s.keys[row] > -GUARD_TIER / 2:
            s.keys[row] -= h.fit_points[needs.fit[row]]
    sort_rows(s.picks, s.keys, count, s.spare)


def weigh_types(h: Site, limits: Limits) -> None:
    """Work out the pressure on each GPU type, and from it the points of each class of jobs."""
    types = limits.types
    for kind in range(types):
        h.pressure[kind] = 0.0
    for fit in range(limits.fits):
        supply = count_usable(h, limits, fit)
        for kind in range(types):
            if h.fit_accepts[fit * types + kind] and supply > 0:
                h.pressure[kind] += h.fit_asked[fit] / supply
    for fit in range(limits.fits):
        count_usable(h, limits, fit)
        least = 1e300
        for kind in range(types):
            if h.fit_usable[kind] > 0:
                least = min(least, h.pressure[kind])
        h.fit_points[fit] = limits.fit_weight * (least / (1.0 + least))


def count_usable(h: Site, limits: Limits, fit: int) -> float:
    """Write by type the usable GPUs that a class of jobs may have into `fit_usable`; return their sum."""
    types, total = limits.types, 0.0
    for kind in range(types):
        h.fit_usable[kind] = 0.0
        if h.fit_accepts[fit * types + kind]:
            for node in range(limits.nodes):
                if h.state[node] == UP and h.allowed[h.fit_place[fit] * limits.nodes + node]:
                    h.fit_usable[kind] += h.gpus[node * types + kind]
            total += h.fit_usable[kind]
    return total
