"""What there is of each GPU type, in what blocks, who wants it, and when more of it comes free. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_score.columns import columns_of
from slurm_score.contention import accepted_types
from slurm_score.inventory import Bools, Inventory, hosts_named, inventory_of
from slurm_score.model import Cluster, Job, Predicted, Queue, Release, Releases
from slurm_score.request import Ask
from slurm_score.units import format_duration

HOLDS_GPUS = frozenset(
    {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"}
)
MAX_RELEASES = 200
"""Times told of for each type, the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSupply:
    """One GPU type (MIG profile, shards) in one partition.

    `total` = `used` + `free` + `broken`; `broken` stands on nodes where no job starts, drained ones
    included. `largest` is the most that one node has free for one job, `block` the largest that is free
    in equal parts on several nodes: (nodes, on each). `asked` is what eligible pending jobs ask for that
    accept this type only, `flexible` what those ask for that accept others too; tasks counted.
    """

    partition: str
    gpu_type: str
    total: int
    used: int
    free: int
    broken: int
    largest: int
    block: tuple[int, int]
    asked: int
    flexible: int


def supply_of(queue: Queue) -> tuple[TypeSupply, ...]:
    """Return what each partition has of each type, by name."""
    nodes, wanted = inventory_of(queue.cluster), _demand(queue)
    return tuple(
        _type_supply(name, row, nodes, nodes.partitions[name], wanted)
        for name in sorted(nodes.partitions)
        for row in range(len(nodes.types))
        if nodes.total[row, nodes.partitions[name]].any()
    )


def _type_supply(
    partition: str, row: int, nodes: Inventory, mine: Bools, wanted: Mapping[tuple[str, str], tuple[int, int]]
) -> TypeSupply:
    total, open_ = nodes.total[row, mine], nodes.usable[mine]
    free = np.where(open_, nodes.free[row, mine], 0)
    shared = row >= nodes.kinds[2].start
    for_one_job = np.minimum(free, nodes.shards_free_cap[mine]) if shared else free
    broken = int(total[~open_].sum())
    asked, flexible = wanted.get((partition, nodes.types[row]), (0, 0))
    return TypeSupply(
        partition=partition,
        gpu_type=nodes.types[row],
        total=int(total.sum()),
        used=int(total.sum() - free.sum()) - broken,
        free=int(free.sum()),
        broken=broken,
        largest=int(for_one_job.max(initial=0)),
        block=_largest_block(for_one_job.tolist()),
        asked=asked,
        flexible=flexible,
    )


def _largest_block(free: Iterable[int]) -> tuple[int, int]:
    """The most GPUs in equal parts on several nodes; of equal ones the fewest nodes."""
    ordered = sorted(free, reverse=True)
    blocks = [(count, each) for count, each in enumerate(ordered, 1) if each]
    return max(blocks, key=lambda block: (block[0] * block[1], block[1]), default=(0, 0))


def _demand(queue: Queue) -> dict[tuple[str, str], tuple[int, int]]:
    """What eligible jobs ask for by partition and type: of it alone, and of it among others."""
    columns = columns_of(queue)
    tasks = np.zeros(len(columns.asks.values))
    np.add.at(tasks, columns.asks.codes[columns.eligible], columns.tasks[columns.eligible])
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for ask, count in zip(columns.asks.values, tasks.tolist(), strict=True):
        types = accepted_types(ask, queue.cluster)
        for partition in ask.where.partitions if ask else ():
            for gpu_type in types:
                alone, flexible = found.get((partition, gpu_type), (0, 0))
                units = _units(ask, count)
                only = len(types) == 1
                found[partition, gpu_type] = (alone + units * only, flexible + units * (not only))
    return found


def _units(ask: Ask | None, tasks: float) -> int:
    return 0 if ask is None else int(ask.units * tasks)


def holds_gpus(job: Job) -> bool:
    """Return whether a job has GPUs or MIG slices that it will give back."""
    return job.state in HOLDS_GPUS and bool(job.gpus.total or job.slices.total)


def releases_of(jobs: Sequence[Job], cluster: Cluster, predicted: Mapping[int, Predicted]) -> Releases:
    """Return when running jobs give back what, by type, earliest first.

    A job's end is the predicted one (run times by job id) where there is one that is still to come, never
    later than its limit; else its limit. A job without either gives nothing back that can be told. Of a
    job that names no type, the GPUs count as those of its nodes, if these have one type.
    """
    found: dict[str, Counter[tuple[float, bool]]] = {}
    of_node = _types_by_node(cluster)
    for job in filter(holds_gpus, jobs):
        end_s, is_predicted = _end(job, predicted.get(job.job_id), cluster.time_s)
        if end_s is not None:
            for gpu_type, count in _held_by(job, of_node):
                found.setdefault(gpu_type, Counter())[end_s, is_predicted] += count
    return {name: _in_order(found[name])[:MAX_RELEASES] for name in sorted(found)}


def _end(job: Job, predicted: Predicted | None, now_s: float) -> tuple[float | None, bool]:
    """A job's end in s, and whether it is predicted: one that has run for longer than that may go on.

    A suspended job's clock stands still, so its prediction tells nothing.
    """
    if predicted is not None and job.start_s is not None and job.state == "RUNNING":
        end_s = job.start_s + predicted.seconds
        if now_s < end_s < (math.inf if job.end_s is None else job.end_s):
            return end_s, True
    return job.end_s, False


def _in_order(counted: Mapping[tuple[float, bool], int]) -> tuple[Release, ...]:
    return tuple(sorted(Release(end_s, count, told) for (end_s, told), count in counted.items()))


def _types_by_node(cluster: Cluster) -> dict[str, frozenset[str]]:
    nodes = inventory_of(cluster)
    return {
        name: frozenset(nodes.types[row] for row in np.flatnonzero(nodes.total[nodes.kinds[0], i]))
        for i, name in enumerate(nodes.names)
    }


def _held_by(job: Job, of_node: Mapping[str, frozenset[str]]) -> Iterable[tuple[str, int]]:
    yield from job.gpus.types
    yield from job.slices.types
    if job.gpus.total and not job.gpus.types:
        names = hosts_named(job.node_list)
        types = frozenset[str]().union(*(of_node.get(name, frozenset()) for name in names))
        if len(types) == 1:
            yield next(iter(types)), job.gpus.total


def comes_free(ask: Ask, types: Sequence[str], cluster: Cluster, releases: Releases) -> Release | None:
    """Return what brings the last of the GPUs of these types that a request asks for and that aren't free.

    None where enough are free, or where that can't be told. As far as is known of the running jobs, if
    nobody else takes them, wherever they stand: a lower bound. `predicted` holds if any of them is.
    """
    nodes = inventory_of(cluster)
    rows = [row for row, name in enumerate(nodes.types) if name in types]
    missing, told = ask.units - int(nodes.free[rows][:, nodes.usable].sum()), False
    if missing <= 0:
        return None
    for end_s, count, is_predicted in sorted(one for name in types for one in releases.get(name, ())):
        missing, told = missing - count, told or is_predicted
        if missing <= 0:
            return Release(max(end_s, cluster.time_s), count, told)
    return None


def comes_free_in_words(release: Release, now_s: float) -> str:
    """Return when enough comes free, and by what that is told."""
    known = "what is known of the running jobs" if release.predicted else "the running jobs' limits"
    return f"within {format_duration(max(0.0, release.end_s - now_s))} by {known}"
