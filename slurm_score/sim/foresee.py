"""Kernels: when Slurm's backfill expects a job to start. Pure.

It doesn't find the earliest start. Running jobs are taken away in groups, each with a longer window than the
one before, and the job is expected when the last of the first sufficient group ends. It may have nodes that
no reservation takes from the moment of the search on for its whole length; if it would start only after
others come free again, the search is repeated from that moment on, and so it is where its own
reservation would overlap another. Source: Slurm 24.11, src/plugins/select/cons_tres/job_test.c,
_future_run_test; src/plugins/sched/backfill/backfill.c, _attempt_backfill.
"""

from slurm_score.sim.nodes import Limits, Needs, Site
from slurm_score.sim.placing import allowed_on, pick_nodes, ready_at
from slurm_score.sim.sorting import sort_rows
from slurm_score.sim.state import NEVER, RUNNING, Setup, State


def foresee_start(
    s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, row: int, t: int, latest: int
) -> int:
    """Return when a job is expected to start, NEVER if after `latest`.

    If that is now (t), `opens` marks the nodes that it may have, else those that it gets are `picked`.
    """
    length = s.planned[row]
    for node in range(limits.nodes):
        h.ready[node] = NEVER
        if allowed_on(h, limits, needs, row, node):
            h.ready[node] = ready_at(s, h, limits, needs, row, node, t)
    start = t
    while start <= latest:
        later = open_nodes(h, limits, needs, row, start, length)
        begin = nth_ready(h, limits, needs, row)
        if begin <= later:  # else its group ends later still
            begin = max(start, group_end(s, setup, h, begin, t))
        if begin <= later and begin < NEVER:
            if begin > latest or take_nodes(h, limits, setup, needs, row, t, begin, length):
                return begin if begin <= latest else NEVER
            if begin > start:
                later = begin
        start = later
    return NEVER


def open_nodes(h: Site, limits: Limits, needs: Needs, row: int, start: int, length: int) -> int:
    """Mark in `opens` the nodes that no reservation takes from start on; return when another comes free."""
    later = NEVER
    for node in range(limits.nodes):
        h.opens[node] = NEVER
        if not allowed_on(h, limits, needs, row, node):
            continue
        taken = taken_until(h, node, start, length)
        if taken > start:
            later = min(later, taken)
        else:
            h.opens[node] = start
    return later


def taken_until(h: Site, node: int, start: int, length: int) -> int:
    """Return when the first reservation of a node in a time and those that follow at once end, else start."""
    span, until = h.node_span[node], start
    while span >= 0:
        if h.span_end[span] > start:
            if h.span_begin[span] > (start + length if until == start else until):
                break
            until = max(until, h.span_end[span])
        span = h.span_next[span]
    return until


def nth_ready(h: Site, limits: Limits, needs: Needs, row: int) -> int:
    """Return when as many of the open nodes as a job needs are ready, NEVER if there are fewer."""
    known, soonest = 0, NEVER
    for node in range(limits.nodes):
        if h.opens[node] < NEVER:
            h.picked[known] = node
            known += 1
            soonest = min(soonest, h.ready[node])
    if known < needs.nodes[row]:
        return NEVER
    if needs.nodes[row] == 1:
        return soonest
    sort_rows(h.picked, h.ready, known, h.spare)
    return h.ready[h.picked[needs.nodes[row] - 1]]


def group_end(s: State, setup: Setup, h: Site, ready: int, t: int) -> int:
    """Return the last end in the group of running jobs in which `ready` lies: of those on open nodes.

    The first window reaches from the first end to the second full window after it; it grows until the next
    job is inside. Jobs elsewhere are passed over without a look at the window.
    """
    if ready <= t or ready == NEVER:
        return ready
    window, limit, last = setup.end_window, NEVER, ready
    for i in range(s.n[RUNNING] - 1, -1, -1):
        if not runs_on_open(h, s.plan_row[i]):
            continue
        last = s.plan_s[i]
        if limit == NEVER:
            limit = last + 2 * window - last % window
        following = next_end(s, h, i)
        if following > limit:
            if last >= ready:
                break
            while following > limit:
                more = setup.bf_window_linear if setup.bf_window_linear > 0 else window
                window, limit = window + more, limit + more
    return last


def next_end(s: State, h: Site, i: int) -> int:
    """Return the next planned end; of those that end together the ones elsewhere come first. Observed."""
    j = i - 1
    while j >= 0 and s.plan_s[j] == s.plan_s[i] and not runs_on_open(h, s.plan_row[j]):
        j -= 1
    return s.plan_s[max(j, 0)]


def runs_on_open(h: Site, row: int) -> bool:
    """Return whether a running job has an open node."""
    entry = h.job_head[row]
    while entry >= 0:
        if h.opens[h.entry_node[entry]] < NEVER:
            return True
        entry = h.entry_of_job[entry]
    return False


def take_nodes(
    h: Site, limits: Limits, setup: Setup, needs: Needs, row: int, t: int, begin: int, length: int
) -> bool:
    """Mark what can be had now, or pick what will be had; return whether no reservation overlaps that."""
    for node in range(limits.nodes):
        if h.opens[node] < NEVER:
            h.opens[node] = begin if h.ready[node] <= begin else NEVER
    if begin == t:
        return True
    pick_nodes(h, limits, needs, row, begin, False)
    slot = setup.bf_resolution
    first, last = max(t, begin // slot * slot), -(-(begin + length) // slot) * slot
    for i in range(needs.nodes[row]):
        span = h.node_span[h.picked[i]]
        while span >= 0 and h.span_begin[span] < last:
            if h.span_end[span] > first:
                return False
            span = h.span_next[span]
    return True
