"""Kernels: jobs take nodes and leave them, by themselves or by force. Pure."""

from slurm_score.sim.backfill import enqueue
from slurm_score.sim.history import forecast
from slurm_score.sim.nodes import DOWN, DRAIN, DRAINED, ENTRIES, EVENTS, FAIL, LOGGED, UP, Limits, Needs, Site
from slurm_score.sim.placing import allowed_on, fits_free, gpu_type_for, pick_nodes
from slurm_score.sim.ranking import use
from slurm_score.sim.running import forget_plan, place, remove_at, start_job
from slurm_score.sim.state import FREE, NEVER, RUNNING, Jobs, Setup, State


def start_on_picked(jobs: Jobs, s: State, h: Site, limits: Limits, needs: Needs, row: int, t: int) -> None:
    """Start a job on the nodes at the front of `picked`."""
    for i in range(needs.nodes[row]):
        occupy(s, h, limits, needs, row, h.picked[i], t)
    start_job(jobs, s, row, t)


def occupy(s: State, h: Site, limits: Limits, needs: Needs, row: int, node: int, t: int) -> None:
    """Let a job take its part of a node, all of it if it is exclusive."""
    entry = h.n[ENTRIES]
    h.n[ENTRIES] = h.entry_on_node[entry]
    whole = needs.exclusive[row]
    cores = h.free_cores[node] if whole else needs.cores[row]
    mem = h.free_mem[node] if whole else needs.mem[row]
    kind = gpu_type_for(h, limits, needs, row, node) if needs.gpus[row] > 0 else -1
    h.entry_row[entry], h.entry_node[entry], h.entry_type[entry] = row, node, kind
    h.entry_cores[entry], h.entry_mem[entry] = cores, mem
    h.free_cores[node] -= cores
    h.free_mem[node] -= mem
    h.occupants[node] += 1
    if kind >= 0:
        h.free_gpus[node * limits.types + kind] -= needs.gpus[row]
    h.entry_of_job[entry] = h.job_head[row]
    h.job_head[row] = entry
    chain_by_end(s, h, node, entry, t + s.planned[row])


def chain_by_end(s: State, h: Site, node: int, entry: int, end: int) -> None:
    """Put an entry into its node's chain, which is in order of the planned ends."""
    before, after = -1, h.node_head[node]
    while after >= 0 and s.start[h.entry_row[after]] + s.planned[h.entry_row[after]] <= end:
        before, after = after, h.entry_on_node[after]
    h.entry_on_node[entry] = after
    if before < 0:
        h.node_head[node] = entry
    else:
        h.entry_on_node[before] = entry


def leave(s: State, h: Site, limits: Limits, needs: Needs, row: int, t: int) -> None:
    """Let a job leave its nodes at t, and write down what it had."""
    entry = h.job_head[row]
    while entry >= 0:
        node, kind = h.entry_node[entry], h.entry_type[entry]
        h.free_cores[node] += h.entry_cores[entry]
        h.free_mem[node] += h.entry_mem[entry]
        h.occupants[node] -= 1
        if kind >= 0:
            h.free_gpus[node * limits.types + kind] += needs.gpus[row]
        log(h, row, node, kind, h.entry_cores[entry], h.entry_mem[entry], s.start[row], t)
        unchain(h, node, entry)
        following = h.entry_of_job[entry]
        h.entry_on_node[entry] = h.n[ENTRIES]
        h.n[ENTRIES] = entry
        entry = following
    h.job_head[row] = -1


def unchain(h: Site, node: int, entry: int) -> None:
    """Take an entry out of its node's chain."""
    if h.node_head[node] == entry:
        h.node_head[node] = h.entry_on_node[entry]
        return
    before = h.node_head[node]
    while h.entry_on_node[before] != entry:
        before = h.entry_on_node[before]
    h.entry_on_node[before] = h.entry_on_node[entry]


def log(h: Site, row: int, node: int, kind: int, cores: int, mem: int, begin: int, end: int) -> None:
    """Write a line: a job's part of a node, and from when to when."""
    at = h.n[LOGGED]
    h.log_row[at], h.log_node[at], h.log_type[at] = row, node, kind
    h.log_cores[at], h.log_mem[at] = cores, mem
    h.log_begin[at], h.log_end[at] = begin, end
    h.n[LOGGED] = at + 1


def requeue(
    jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, row: int, t: int
) -> None:
    """End a run by force; the job waits again, with its wait and its progress if it may keep them."""
    count = s.n[RUNNING]
    at = place(s.end_s, count, s.start[row] + jobs.run[row])
    while s.end_row[at] != row:
        at += 1
    remove_at(s.end_s, count, at)
    remove_at(s.end_row, count, at)
    forget_plan(s, row, count)
    s.n[RUNNING] = count - 1
    s.n[FREE] += jobs.procs[row]
    if setup.share_weight > 0:
        use(jobs, s, row, t)
    leave(s, h, limits, needs, row, t)
    if limits.checkpoints:
        jobs.run[row] -= t - s.start[row]
    if not limits.keeps_wait:
        jobs.submit[row] = t
        if limits.fcfs:
            jobs.fixed[row] = 1.0 * t
    h.restarts[row] += 1
    s.start[row] = -1
    s.planned[row] = int(forecast(jobs, s, setup.plan_by, row))
    enqueue(jobs, s, setup, row)


def change_node(jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, t: int) -> None:
    """Let the next node event happen; a node that fails loses its jobs."""
    event = h.n[EVENTS]
    h.n[EVENTS] = event + 1
    node, kind = h.event_node[event], h.event_kind[event]
    if kind == FAIL:
        h.state[node] = DOWN
        while h.node_head[node] >= 0:
            requeue(jobs, s, setup, h, limits, needs, h.entry_row[h.node_head[node]], t)
    elif kind == DRAIN:
        h.state[node] = DRAINED if h.state[node] == UP else h.state[node]
    else:
        h.state[node] = UP


def preempt(
    jobs: Jobs, s: State, setup: Setup, h: Site, limits: Limits, needs: Needs, row: int, t: int
) -> bool:
    """Make room for a job by requeueing jobs of QOS below its own; return whether that was possible.

    Nodes where fewer have to go come first; on each, those go first that started last.
    """
    found = 0
    for node in range(limits.nodes):
        h.opens[node] = NEVER
        if allowed_on(h, limits, needs, row, node) and not h.shut[node]:
            victims = victims_on(s, h, limits, needs, row, node, t)
            if victims >= 0:
                h.opens[node], h.ready[node] = t, -victims
                found += 1
    if found < needs.nodes[row]:
        return False
    pick_nodes(h, limits, needs, row, t, False)
    for i in range(needs.nodes[row]):
        while not fits_free(h, limits, needs, row, h.picked[i]):
            victim = last_victim(s, h, limits, needs, row, h.picked[i], t)
            requeue(jobs, s, setup, h, limits, needs, victim, t)
    return True


def may_preempt(s: State, h: Site, limits: Limits, needs: Needs, row: int, other: int, t: int) -> bool:
    """Return whether a job may preempt another; none is preempted in the second of its start."""
    return h.below[needs.qos[row] * limits.qos + needs.qos[other]] != 0 and s.start[other] < t


def victims_on(s: State, h: Site, limits: Limits, needs: Needs, row: int, node: int, t: int) -> int:
    """Return how many may be preempted on a node where a job would fit without them, -1 if it wouldn't."""
    cores, mem = h.free_cores[node], h.free_mem[node]
    left, count = h.occupants[node], 0
    entry = h.node_head[node]
    while entry >= 0:
        if may_preempt(s, h, limits, needs, row, h.entry_row[entry], t):
            cores += h.entry_cores[entry]
            mem += h.entry_mem[entry]
            left -= 1
            count += 1
        entry = h.entry_on_node[entry]
    if cores < needs.cores[row] or mem < needs.mem[row] or (needs.exclusive[row] and left > 0):
        return -1
    return count if gpus_without_victims(s, h, limits, needs, row, node, t) else -1


def gpus_without_victims(
    s: State, h: Site, limits: Limits, needs: Needs, row: int, node: int, t: int
) -> bool:
    """Return whether a node would have enough GPUs of one type without those that may be preempted."""
    if needs.gpus[row] == 0:
        return True
    for kind in range(limits.types):
        if h.accepted[needs.gpu_set[row] * limits.types + kind]:
            free = h.free_gpus[node * limits.types + kind]
            entry = h.node_head[node]
            while entry >= 0:
                other = h.entry_row[entry]
                if h.entry_type[entry] == kind and may_preempt(s, h, limits, needs, row, other, t):
                    free += needs.gpus[other]
                entry = h.entry_on_node[entry]
            if free >= needs.gpus[row]:
                return True
    return False


def last_victim(s: State, h: Site, limits: Limits, needs: Needs, row: int, node: int, t: int) -> int:
    """Return the job that started last of those on a node that may be preempted."""
    last = -1
    entry = h.node_head[node]
    while entry >= 0:
        other = h.entry_row[entry]
        later = last < 0 or (s.start[other], other) > (s.start[last], last)
        if later and may_preempt(s, h, limits, needs, row, other, t):
            last = other
        entry = h.entry_on_node[entry]
    return last
