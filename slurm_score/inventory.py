"""Which GPUs a request accepts, how contended they are, and how many it could have now. Pure.

Source of the pressure formula and its sign: simulations over two GPU traces, see factors/README.md.
"""

import math
from collections.abc import Iterable, Mapping

from slurm_score.gres import GpuRequest
from slurm_score.model import Cluster, Job, Node

UNTYPED = "gpu"


def accepted_types(request: GpuRequest, partitions: tuple[str, ...], cluster: Cluster) -> tuple[str, ...]:
    """Return the GPU types that could serve a request, sorted; empty where the partitions have none.

    A typed request accepts its own types, if the partitions have them all; an untyped one accepts
    whatever type they have. Drained nodes count: they come back.
    """
    present = {gpu_type for node in cluster.nodes_of(partitions) for gpu_type in _by_type(node)}
    if not request.types:
        return tuple(sorted(present))
    wanted = [gpu_type for gpu_type, _ in request.types]
    return tuple(wanted) if present.issuperset(wanted) else ()


def usable_gpus(types: Iterable[str], partitions: tuple[str, ...], cluster: Cluster) -> int:
    """Return how many GPUs of these types stand on usable nodes of the partitions."""
    wanted = set(types)
    nodes = cluster.nodes_of(partitions)
    return sum(n for node in nodes if node.usable for t, n in _by_type(node).items() if t in wanted)


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
        (sum(_ready(t, n, request, cluster.nodes_of((p,))) for t, n in wanted) for p in partitions),
        default=0,
    )


def _by_type(node: Node) -> dict[str, int]:
    """Return a node's GPUs by type; those that slurm.conf gives no type count as type `gpu`."""
    untyped = node.gpus.total - sum(node.gpus.types.values())
    return dict(node.gpus.types) | ({UNTYPED: untyped} if untyped else {})


def _ready(gpu_type: str | None, count: int, request: GpuRequest, nodes: tuple[Node, ...]) -> int:
    group = request.per_node * count // request.total if request.total else 0
    free = (node.free_gpus(gpu_type) for node in nodes)
    if group:
        return min(count, sum(group for n in free if n >= group))
    return min(count, sum(free))
