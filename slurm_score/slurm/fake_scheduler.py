"""The fake Slurm's priorities, nodes and scheduler: who starts where in one pass. Pure: time is an argument.

Like Slurm's main scheduler the pass takes jobs in order of priority, and the first one that must wait
for resources stops everything behind it in its partition and on that partition's nodes. With backfill
it gets a reservation instead, and later jobs start if they don't delay it (EASY).

Source: slurm src/slurmctld/job_scheduler.c, _schedule, sort_job_queue2; D. Lifka, The ANL/IBM SP
scheduling system, JSSPP 1995.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isinf

from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition
from slurm_score.slurm.fake_jobs import Record, Share
from slurm_score.slurm.fake_submission import Need

NODES_REQUIRED = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"

MAX_PRIORITY = 2**32 - 1

Unit = Sequence[Record]  # what starts together: one record, or all components of a het job
Options = Sequence[Sequence[Partition]]  # for each record of a unit the partitions that admit it


@dataclass(frozen=True, slots=True)
class Placed:
    """A record, the partition it may start in now, and what it takes there."""

    record: Record
    partition: Partition
    shares: tuple[Share, ...]


def occupied(nodes: Iterable[Node], shares: Iterable[Share]) -> tuple[Node, ...]:
    """Return the nodes with the shares taken as well."""
    taken: dict[str, list[Share]] = defaultdict(list)
    for share in shares:
        taken[share.node].append(share)
    return tuple(_less(node, taken[node.name]) if node.name in taken else node for node in nodes)


def place(need: Need, nodes: Iterable[Node]) -> tuple[Share, ...] | None:
    """Return what a job would take of the nodes as they are, None where it doesn't fit.

    On one node the first that fits is taken: the order of the nodes stands for their Weight. Over
    several, the first ones, else those with the most to give, filled one after the other.
    """
    able = [node for node in nodes if _share(node, 1, need.gpus_per_node)]
    if not _are_enough(able, need):
        return None
    for count in range(need.min_nodes, min(need.max_nodes, len(able)) + 1):
        for chosen in _choices(able, count, need.gpus):
            shares = _fill(chosen, need)
            if shares:
                return shares
    return None


def scheduling_order(record: Record) -> tuple[int, int, int, int]:
    """Return the key that sorts records as the scheduler takes them: priority, submit time, job id, task.

    Source: slurm src/slurmctld/job_scheduler.c, sort_job_queue2.
    """
    task = -1 if record.task is None else record.task
    return -record.priority, record.submit_s, record.array_job_id or record.job_id, task


@dataclass(frozen=True, slots=True, kw_only=True)
class Multifactor:
    """priority/multifactor with its age, QOS and job size factors; the others are 0 here.

    `weights` maps a factor to its PriorityWeight; `nodes` and `cpus` are those of the whole cluster.
    """

    weights: Mapping[str, int]
    max_age_s: float
    qos: Mapping[str, int]
    nodes: int
    cpus: int

    def priority(self, record: Record, now_s: int) -> int:
        """Return the priority of a record that is neither held nor pinned, from 1 to 4,294,967,295.

        Source: slurm src/plugins/priority/multifactor, _get_priority_internal, set_priority_factors.
        """
        total = self._age(record, now_s) * self.weights["age"]
        total += self.qos[record.qos] / max([1, *self.qos.values()]) * self.weights["qos"]
        total += self._job_size(record.need) * self.weights["job_size"]
        return min(max(1, int(total + record.site_factor - record.nice)), MAX_PRIORITY)

    def _age(self, record: Record, now_s: int) -> float:
        if record.accrue_s is None:
            return 0.0
        return min(1.0, max(0, now_s - record.accrue_s) / self.max_age_s)

    def _job_size(self, need: Need) -> float:
        return min(1.0, (need.min_nodes / max(1, self.nodes) + need.cpus / max(1, self.cpus)) / 2)


@dataclass(slots=True)
class _Reservation:
    unit: Unit
    options: Options
    start_s: float
    nodes: frozenset[str]  # where it would run
    free: tuple[Node, ...]  # at start_s, by the time limits of what runs


@dataclass(slots=True, kw_only=True)
class SchedulerPass:
    """One pass of the scheduler. `nodes` have nothing taken, `running` is what runs on them.

    `start` starts a record and returns the one that now runs: of an array it is a new one.
    """

    now_s: int
    nodes: tuple[Node, ...]
    partitions: Mapping[str, Partition]
    running: list[Record]
    start: Callable[[Placed], Record]
    backfill: bool = False
    _free: tuple[Node, ...] = field(init=False, default=())
    _blocked: set[str] = field(init=False, default_factory=set)
    _closed: set[str] = field(init=False, default_factory=set)
    _reserved: list[_Reservation] = field(init=False, default_factory=list)
    _refused: dict[Hashable, str] = field(init=False, default_factory=dict)

    def run(self, units: Iterable[Unit]) -> None:
        """Start what can start, in the order given, and give everything else its reason."""
        self._free = occupied(self.nodes, (share for record in self.running for share in record.shares))
        for unit in units:
            self._consider(unit)

    def _consider(self, unit: Unit) -> None:
        head, request = unit[0], tuple((r.need, r.partitions, r.submission.limit_s) for r in unit)
        while head.pending:
            if self._is_at_task_limit(head):
                head.reason, head.eligible_s = "JobArrayTaskLimit", None
                return
            if request in self._refused:  # nothing becomes free in a pass
                _give_reason(unit, self._refused[request])
                return
            options = [self._admitting(record) for record in unit]
            placed = self._place_now(unit, options) if all(options) else None
            if placed is None:
                self._refused[request] = self._refuse(unit, options) if all(options) else head.reason
                return
            self._start(placed)

    def _start(self, placed: Sequence[Placed]) -> None:
        for each in placed:
            self.running.append(self.start(each))
            self._free = occupied(self._free, each.shares)
        for reservation in self._reserved:
            reservation.free = occupied(reservation.free, self._late_shares(placed, reservation))

    def _is_at_task_limit(self, record: Record) -> bool:
        if record.throttle is None:
            return False
        return sum(r.array_job_id == record.array_job_id for r in self.running) >= record.throttle

    def _admitting(self, record: Record) -> list[Partition]:
        up = [p for name in record.partitions if (p := self.partitions[name]).up]
        fitting = [p for p in up if record.limit_in(p) <= (inf if p.max_time_s is None else p.max_time_s)]
        admitting = [p for p in fitting if self.backfill or p.name not in self._blocked]
        if not admitting:
            record.reason = "Priority" if fitting else "PartitionTimeLimit" if up else "PartitionDown"
        return admitting

    def _place_now(self, unit: Unit, options: Options) -> list[Placed] | None:
        open_nodes = [node for node in self._free if node.name not in self._closed]
        placed = _place_unit(unit, options, open_nodes)
        if placed is None or self._delays_nobody(placed):
            return placed
        spared = frozenset[str]().union(*(reservation.nodes for reservation in self._reserved))
        placed = _place_unit(unit, options, [node for node in open_nodes if node.name not in spared])
        return placed if placed is not None and self._delays_nobody(placed) else None

    def _delays_nobody(self, placed: Sequence[Placed]) -> bool:
        for reservation in self._reserved:
            late = self._late_shares(placed, reservation)
            free = occupied(reservation.free, late)
            if late and _place_unit(reservation.unit, reservation.options, free) is None:
                return False
        return True

    def _late_shares(self, placed: Sequence[Placed], reservation: _Reservation) -> list[Share]:
        last_s = reservation.start_s - self.now_s
        return [s for each in placed if each.record.limit_in(each.partition) > last_s for s in each.shares]

    def _refuse(self, unit: Unit, options: Options) -> str:
        reason, names = self._why(unit, options), {p.name for each in options for p in each}
        if reason not in {"Resources", NODES_REQUIRED}:
            return _give_reason(unit, reason)
        if not self.backfill:
            self._closed |= {node.name for node in _members(self.nodes, names)}
        elif names <= self._blocked:
            return _give_reason(unit, "Priority")
        else:
            self._reserve(unit, options)
        self._blocked |= names
        _give_reason(unit, reason)
        return "Priority"

    def _why(self, unit: Unit, options: Options) -> str:
        if _place_unit(unit, options, [replace(node, usable=True) for node in self.nodes]) is None:
            is_elsewhere = any(not self._blocked.isdisjoint(record.partitions) for record in unit)
            return "Priority" if is_elsewhere else "PartitionConfig"
        open_nodes = [node for node in self.nodes if node.usable and node.name not in self._closed]
        for record, partitions in zip(unit, options, strict=True):
            if all(len(_members(open_nodes, {p.name})) < record.need.min_nodes for p in partitions):
                return NODES_REQUIRED
        if _place_unit(unit, options, self.nodes) is None:
            names = {p.name for each in options for p in each}
            unusable = (node.name for node in _members(self.nodes, names) if not node.usable)
            return f"ReqNodeNotAvail, UnavailableNodes:{','.join(unusable)}"
        return "Resources"

    def _reserve(self, unit: Unit, options: Options) -> None:
        ends = sorted({r.latest_end_s for r in self.running if not isinf(r.latest_end_s)})
        i = bisect_left(ends, True, key=lambda end_s: bool(_place_unit(unit, options, self._free_at(end_s))))
        placed = _place_unit(unit, options, self._free_at(ends[i])) if i < len(ends) else None
        if placed is not None:
            nodes = frozenset(share.node for each in placed for share in each.shares)
            self._reserved.append(_Reservation(unit, options, ends[i], nodes, self._free_at(ends[i])))

    def _free_at(self, time_s: float) -> tuple[Node, ...]:
        return occupied(self.nodes, (s for r in self.running if r.latest_end_s > time_s for s in r.shares))


def _give_reason(unit: Unit, reason: str) -> str:
    for record in unit:
        record.reason = reason
    return reason


def _place_unit(unit: Unit, options: Options, nodes: Iterable[Node]) -> list[Placed] | None:
    free, placed = tuple(nodes), list[Placed]()
    for record, partitions in zip(unit, options, strict=True):
        for partition in partitions:
            shares = place(record.need, _members(free, {partition.name}))
            if shares:
                placed.append(Placed(record, partition, shares))
                free = occupied(free, shares)
                break
        else:
            return None
    return placed


def _members(nodes: Iterable[Node], partitions: set[str]) -> list[Node]:
    return [node for node in nodes if not partitions.isdisjoint(node.partitions)]


def _less(node: Node, shares: Iterable[Share]) -> Node:
    cpus, gpus, types = node.cpus_used, node.gpus_used.total, dict(node.gpus_used.types)
    for share in shares:
        cpus, gpus = cpus + share.cpus, gpus + share.gpus.total
        for gpu_type, count in share.gpus.types.items():
            types[gpu_type] = types.get(gpu_type, 0) + count
    return replace(node, cpus_used=cpus, gpus_used=GpuCount(gpus, types))


def _share(node: Node, cpus: int, gpus: GpuCount) -> Share | None:
    free = {gpu_type: node.free_gpus(gpu_type) for gpu_type in node.gpus.types}
    if not node.usable or cpus > node.cpus - node.cpus_used or gpus.total > node.free_gpus(None):
        return None
    if any(count > free.get(gpu_type, 0) for gpu_type, count in gpus.types.items()):
        return None
    taken, of_any_type = dict(gpus.types), gpus.total - sum(gpus.types.values())
    for gpu_type in sorted(free):
        more = min(of_any_type, free[gpu_type] - taken.get(gpu_type, 0))
        taken[gpu_type] = taken.get(gpu_type, 0) + more
        of_any_type -= more
    return Share(node.name, cpus, GpuCount(gpus.total, {t: n for t, n in taken.items() if n}))


def _are_enough(nodes: Sequence[Node], need: Need) -> bool:
    wanted = [(None, need.gpus.total), *need.gpus.types.items()]
    return (
        len(nodes) >= need.min_nodes
        and sum(node.cpus - node.cpus_used for node in nodes) >= need.cpus
        and all(sum(node.free_gpus(gpu_type) for node in nodes) >= count for gpu_type, count in wanted)
    )


def _choices(able: Sequence[Node], count: int, gpus: GpuCount) -> list[Sequence[Node]]:
    if count == 1:
        return [[node] for node in able]
    richest = sorted(
        able, key=lambda node: (-_give(node, gpus, gpus.total).total, node.cpus_used - node.cpus)
    )
    return [able[:count], richest[:count]]


def _fill(nodes: Sequence[Node], need: Need) -> tuple[Share, ...] | None:
    cpus, gpus, shares = need.cpus, need.gpus, list[Share]()
    for later, node in zip(range(len(nodes) - 1, -1, -1), nodes, strict=True):
        given = _give(node, gpus, gpus.total - later)
        share = _share(
            node,
            max(1, min(node.cpus - node.cpus_used, cpus - later)),
            need.gpus_per_node if need.gpus_per_node.total else given,
        )
        if share is None:
            return None
        cpus, gpus = cpus - share.cpus, _minus(gpus, given)
        shares.append(share)
    return tuple(shares) if cpus <= 0 and not gpus.total else None


def _give(node: Node, wanted: GpuCount, limit: int) -> GpuCount:
    types: dict[str, int] = {}
    left = max(0, min(limit, node.free_gpus(None)))
    for gpu_type, count in wanted.types.items():
        types[gpu_type] = min(count, node.free_gpus(gpu_type), left)
        left -= types[gpu_type]
    of_any_type = min(left, wanted.total - sum(wanted.types.values()))
    return GpuCount(sum(types.values()) + of_any_type, types)


def _minus(gpus: GpuCount, given: GpuCount) -> GpuCount:
    types = {gpu_type: count - given.types.get(gpu_type, 0) for gpu_type, count in gpus.types.items()}
    return GpuCount(gpus.total - given.total, types)
