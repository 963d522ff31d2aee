"""Which GPUs a request accepts, how contended they are, and how many it could have now. Pure.

Source of the pressure formula and its sign: simulations over two GPU traces, see factors/README.md.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm_score.gres import GpuRequest
from slurm_score.model import Cluster, Job, Node

UNTYPED = "gpu"


@dataclass(frozen=True, slots=True)
class Supply:
    """The GPUs of some partitions by type; those that slurm.conf gives no type count as type `gpu`.

    `present` counts all, `usable` those on usable nodes. `free` tells by type (None: any type) on how
    many nodes how many GPUs could be taken now: `{"a100": {4: 2}}` is two nodes with four each.
    """

    present: Mapping[str, int]
    usable: Mapping[str, int]
    free: Mapping[str | None, Mapping[int, int]]


def supply(partitions: tuple[str, ...], cluster: Cluster) -> Supply:
    """Return the GPUs of the partitions together, worked out once for each cluster."""
    key = ("supply", partitions)
    found: Supply | None = cluster.memo.get(key)
    if found is None:
        found = cluster.memo[key] = _count(cluster.nodes_of(partitions))
    return found


def _count(nodes: tuple[Node, ...]) -> Supply:
    present: Counter[str] = Counter()
    usable: Counter[str] = Counter()
    free: dict[str | None, Counter[int]] = {None: Counter()}
    for node in nodes:
        by_type = _by_type(node)
        present.update(by_type)
        if node.usable:
            usable.update(by_type)
        for gpu_type in (None, *node.gpus.types):
            count = node.free_gpus(gpu_type)
            if count:
                free.setdefault(gpu_type, Counter())[count] += 1
    return Supply(present, usable, free)


def accepted_types(request: GpuRequest, partitions: tuple[str, ...], cluster: Cluster) -> tuple[str, ...]:
    """Return the GPU types that could serve a request, sorted; empty where the partitions have none.

    A typed request accepts its own types, if the partitions have them all; an untyped one accepts
    whatever type they have. Drained nodes count: they come back.
    """
    present = supply(partitions, cluster).present.keys()
    if not request.types:
        return tuple(sorted(present))
    wanted = [gpu_type for gpu_type, _ in request.types]
    return tuple(wanted) if present >= set(wanted) else ()


def usable_gpus(types: Iterable[str], partitions: tuple[str, ...], cluster: Cluster) -> int:
    """Return how many GPUs of these types stand on usable nodes of the partitions."""
    usable = supply(partitions, cluster).usable
    return sum(usable.get(gpu_type, 0) for gpu_type in set(types))


def gpu_pressure(jobs: Iterable[Job], cluster: Cluster) -> dict[str, float]:
    """Return by GPU type how contended it is: GPUs asked for by eligible pending jobs over supply.

    P_t = sum over the jobs that accept t of (GPUs asked / usable GPUs of the types it accepts);
    infinite where jobs ask for types of which no GPU is usable. Every task of an array counts.
    """
    asked: dict[tuple[GpuRequest, tuple[str, ...]], int] = {}
    for job in jobs:
        if job.gpus.total and job.eligible(cluster.time_s):
            key = (job.gpus, job.partitions)
            asked[key] = asked.get(key, 0) + job.gpus.total * job.task_count
    shares: dict[str, list[float]] = {}
    for (request, partitions), gpus in asked.items():
        types = accepted_types(request, partitions, cluster)
        supply = usable_gpus(types, partitions, cluster)
        for gpu_type in types:
            shares.setdefault(gpu_type, []).append(gpus / supply if supply else math.inf)
    return {gpu_type: math.fsum(shares[gpu_type]) for gpu_type in sorted(shares)}


def contention(
    request: GpuRequest, partitions: tuple[str, ...], cluster: Cluster, pressure: Mapping[str, float]
) -> float:
    """Return how contended the least contended type is that a request accepts, from 0 to infinity.

    Types without a usable GPU don't count, unless there is no other: then it is infinite. 0 for a
    request without GPUs, and for one that no node could ever serve.
    """
    types = accepted_types(request, partitions, cluster) if request.total else ()
    if not types:
        return 0.0
    usable = [gpu_type for gpu_type in types if usable_gpus((gpu_type,), partitions, cluster)]
    return min((pressure.get(gpu_type, 0.0) for gpu_type in usable), default=math.inf)


def ready_gpus(request: GpuRequest, partitions: tuple[str, ...], cluster: Cluster) -> int:
    """Return how many of the GPUs asked for could be had now, in the best single partition.

    A node serves a request for k GPUs on each node with k GPUs or none; without such grouping
    every free GPU of the right type counts.
    """
    wanted = request.types or ((None, request.total),)
    return max(
        (sum(_ready(t, n, request, supply((p,), cluster)) for t, n in wanted) for p in partitions),
        default=0,
    )


def _by_type(node: Node) -> dict[str, int]:
    untyped = node.gpus.total - sum(node.gpus.types.values())
    return dict(node.gpus.types) | ({UNTYPED: untyped} if untyped else {})


def _ready(gpu_type: str | None, count: int, request: GpuRequest, gpus: Supply) -> int:
    group = request.per_node * count // request.total if request.total else 0
    free = gpus.free.get(gpu_type, {}).items()
    if group:
        return min(count, sum(group * nodes for n, nodes in free if n >= group))
    return min(count, sum(n * nodes for n, nodes in free))
