"""Kernels: which nodes a job can have, now or at a later time. Pure.

A node is ready for a job when enough of what runs on it has ended, by the limits. Reservations take
whole nodes, as in Slurm's backfill. Nodes of the lowest Weight come first; among these a job that
starts takes those where it leaves the least free, and a reservation those that are ready last, so that
what is free now stays free.
"""

from slurm_score.sim.nodes import UP, Limits, Needs, Site
from slurm_score.sim.sorting import sort_rows
from slurm_score.sim.state import NEVER, State


def gpu_type_for(h: Site, limits: Limits, needs: Needs, row: int, node: int) -> int:
    """Return the accepted type of which the node has enough free GPUs, the fewest; -1 if there is none."""
    best, left = -1, 0
    for kind in range(limits.types):
        free = h.free_gpus[node * limits.types + kind]
        enough = free >= needs.gpus[row] and (best < 0 or free < left)
        if enough and h.accepted[needs.gpu_set[row] * limits.types + kind]:
            best, left = kind, free
    return best


def fits_free(h: Site, limits: Limits, needs: Needs, row: int, node: int) -> bool:
    """Return whether what is free on a node now is enough."""
    if needs.exclusive[row] and h.occupants[node] > 0:
        return False
    if needs.cores[row] > h.free_cores[node] or needs.mem[row] > h.free_mem[node]:
        return False
    return needs.gpus[row] == 0 or gpu_type_for(h, limits, needs, row, node) >= 0


def allowed_on(h: Site, limits: Limits, needs: Needs, row: int, node: int) -> bool:
    """Return whether a job may run on a node that takes jobs."""
    return h.state[node] == UP and h.allowed[needs.place[row] * limits.nodes + node] != 0


def ready_at(s: State, h: Site, limits: Limits, needs: Needs, row: int, node: int, t: int) -> int:
    """Return when enough of a node is free, if what runs lasts as long as planned; NEVER if never."""
    if fits_free(h, limits, needs, row, node):
        return t
    cores, mem = h.free_cores[node], h.free_mem[node]
    occupants, entry = h.occupants[node], h.node_head[node]
    while entry >= 0:
        cores += h.entry_cores[entry]
        mem += h.entry_mem[entry]
        occupants -= 1
        other = h.entry_row[entry]
        enough = cores >= needs.cores[row] and mem >= needs.mem[row]
        enough = enough and not (needs.exclusive[row] and occupants > 0)
        if enough and (needs.gpus[row] == 0 or gpus_free_after(h, limits, needs, row, node, entry)):
            return s.start[other] + s.planned[other]
        entry = h.entry_on_node[entry]
    return NEVER


def gpus_free_after(h: Site, limits: Limits, needs: Needs, row: int, node: int, last: int) -> bool:
    """Return whether a node has enough GPUs of one type when its entries up to `last` are gone."""
    for kind in range(limits.types):
        if h.accepted[needs.gpu_set[row] * limits.types + kind]:
            free = h.free_gpus[node * limits.types + kind]
            entry = h.node_head[node]
            while True:
                if h.entry_type[entry] == kind:
                    free += needs.gpus[h.entry_row[entry]]
                if entry == last:
                    break
                entry = h.entry_on_node[entry]
            if free >= needs.gpus[row]:
                return True
    return False


def opens_at(h: Site, node: int, begin: int, length: int) -> int:
    """Return the earliest time from `begin` on at which no reservation takes the node for so long."""
    span = h.node_span[node]
    while span >= 0 and h.span_begin[span] < begin + length:
        begin = max(begin, h.span_end[span])
        span = h.span_next[span]
    return begin


def can_start(h: Site, limits: Limits, needs: Needs, row: int, t: int, length: int) -> bool:
    """Mark in `opens` the nodes that a job could have now (t), and return whether they are enough."""
    found = 0
    for node in range(limits.nodes):
        h.opens[node] = NEVER
        fits = not h.shut[node] and fits_free(h, limits, needs, row, node)
        if fits and allowed_on(h, limits, needs, row, node) and opens_at(h, node, t, length) == t:
            h.opens[node] = t
            found += 1
    return found >= needs.nodes[row]


def find_start(s: State, h: Site, limits: Limits, needs: Needs, row: int, t: int, latest: int) -> int:
    """Return when a job can start at the earliest, NEVER if after `latest`; `opens` marks its nodes then.

    No time before the one at which enough nodes open can do, but a node that opened before may be
    reserved again by then: then the search goes on from there.
    """
    length = s.planned[row]
    for node in range(limits.nodes):
        h.ready[node] = NEVER
        if allowed_on(h, limits, needs, row, node):
            h.ready[node] = ready_at(s, h, limits, needs, row, node, t)
    begin = t
    while begin <= latest:
        found = known = 0
        for node in range(limits.nodes):
            h.opens[node] = NEVER
            if h.ready[node] < NEVER:
                h.opens[node] = opens_at(h, node, max(begin, h.ready[node]), length)
                h.picked[known] = node
                known += 1
                found += h.opens[node] == begin
        if known < needs.nodes[row]:
            return NEVER
        if found >= needs.nodes[row]:
            return begin
        begin = kth_opening(h, needs.nodes[row], known)
    return NEVER


def kth_opening(h: Site, count: int, known: int) -> int:
    """Return when so many of the picked nodes have opened."""
    if count == 1:
        soonest = NEVER
        for i in range(known):
            soonest = min(soonest, h.opens[h.picked[i]])
        return soonest
    sort_rows(h.picked, h.opens, known, h.spare)
    return h.opens[h.picked[count - 1]]


def pick_nodes(h: Site, limits: Limits, needs: Needs, row: int, begin: int, now: bool) -> None:
    """Put the nodes that a job gets, of those that open at `begin`, at the front of `picked`."""
    for i in range(needs.nodes[row]):
        best = -1
        for node in range(limits.nodes):
            if h.opens[node] == begin and (best < 0 or better(h, limits, node, best, begin, now)):
                best = node
        h.picked[i] = best
        h.opens[best] = NEVER


def better(h: Site, limits: Limits, node: int, other: int, begin: int, now: bool) -> bool:
    """Return whether a node is to be taken before another that stands further ahead."""
    if h.weight[node] != h.weight[other]:
        return h.weight[node] < h.weight[other]
    if not now:
        return h.ready[node] > h.ready[other]
    gpus, others = free_gpus_on(h, limits, node), free_gpus_on(h, limits, other)
    if gpus != others:
        return gpus < others
    if h.free_cores[node] != h.free_cores[other]:
        return h.free_cores[node] < h.free_cores[other]
    return next_span(h, node, begin) < next_span(h, other, begin)


def free_gpus_on(h: Site, limits: Limits, node: int) -> int:
    """Return the free GPUs of a node."""
    free = 0
    for kind in range(limits.types):
        free += h.free_gpus[node * limits.types + kind]
    return free


def next_span(h: Site, node: int, begin: int) -> int:
    """Return when a node is reserved next."""
    span = h.node_span[node]
    while span >= 0:
        if h.span_end[span] > begin:
            return h.span_begin[span]
        span = h.span_next[span]
    return NEVER
