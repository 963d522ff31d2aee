"""Which types a request accepts, how contended they are, and which of the free ones match it. Pure.

Source of the pressure formula and its sign: simulations over two GPU traces, see factors/README.md.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_score.gpu_types import GpuTypes
from slurm_score.gres import GpuRequest, is_mig_type
from slurm_score.inventory import SHARD, inventory_of, places_of
from slurm_score.model import Cluster, Job
from slurm_score.never import could_fit
from slurm_score.placement import ready_now, wanted_rows
from slurm_score.request import Ask, ask_of, code_asks


def accepted_types(ask: Ask | None, cluster: Cluster) -> tuple[str, ...]:
    """Return the types that could serve a request, sorted; none where it could never start.

    What Slurm is told decides: types, constraint, node lists, partitions, reservation. A user's hints
    and --prefer are wishes, which must not pay. Drained nodes count: they come back.
    """
    if ask is None or not could_fit(ask, cluster):
        return ()
    key = ("types", ask)
    found: tuple[str, ...] | None = cluster.memo.get(key)
    if found is None:
        found = cluster.memo[key] = _accepted(ask, cluster)
    return found


def _accepted(ask: Ask, cluster: Cluster) -> tuple[str, ...]:
    nodes, there = inventory_of(cluster), places_of(ask, cluster).there
    rows = {row for found, _ in wanted_rows(ask, nodes) for row in found if there[row]}
    return tuple(sorted(nodes.types[row] for row in rows))


def usable_units(types: Iterable[str], ask: Ask, cluster: Cluster) -> int:
    """Return how many GPUs (slices, shards) of these types stand where a job could start, free or not."""
    there, usable = inventory_of(cluster).types, places_of(ask, cluster).usable
    return sum(int(usable[there.index(name)]) for name in set(types) if name in there)


Demand = Mapping[str, Mapping[int, int]]
"""By GPU type and by the supply of those who ask: how many GPUs they ask for."""


def gpu_pressure(jobs: Sequence[Job], cluster: Cluster) -> dict[str, float]:
    """Return by type how contended it is: GPUs asked for by eligible pending jobs over supply.

    P_t = sum over the jobs that accept t of (GPUs asked / usable GPUs of the types it accepts). Every
    task of an array counts. A job for which no GPU is usable competes for none: P_t is infinite where
    all jobs that accept t are like that.
    """
    return pressure_of(gpu_demand(jobs, cluster))


def gpu_demand(jobs: Sequence[Job], cluster: Cluster) -> Demand:
    """Return what the eligible pending jobs ask for together."""
    waiting = [job for job in jobs if job.eligible(cluster.time_s)]
    codes, asks = code_asks(waiting)
    tasks = [0] * len(asks)
    for code, job in zip(codes, waiting, strict=True):
        tasks[code] += job.task_count
    asked: dict[str, Counter[int]] = {}
    for ask, count in zip(asks, tasks, strict=True):
        _add(asked, ask, count, cluster)
    return asked


def demand_with(demand: Demand, job: Job, other: Job, cluster: Cluster) -> Demand:
    """Return the demand with another eligible job in the place of one that it counts."""
    asked = {gpu_type: Counter(supplies) for gpu_type, supplies in demand.items()}
    _add(asked, ask_of(job), -job.task_count, cluster)
    _add(asked, ask_of(other), other.task_count, cluster)
    left = {gpu_type: +supplies for gpu_type, supplies in asked.items()}
    return {gpu_type: supplies for gpu_type, supplies in left.items() if supplies}


def pressure_of(demand: Demand) -> dict[str, float]:
    """Return by type how contended it is under a demand."""
    return {gpu_type: _pressure(demand[gpu_type]) for gpu_type in sorted(demand)}


def _add(asked: dict[str, Counter[int]], ask: Ask | None, count: int, cluster: Cluster) -> None:
    """Count an ask so many times."""
    types = accepted_types(ask, cluster)
    if ask is None or not types:
        return
    supply = usable_units(types, ask, cluster)
    for gpu_type in types:
        asked.setdefault(gpu_type, Counter())[supply] += ask.units * count


def _pressure(asked: Mapping[int, int]) -> float:
    """Return the pressure of what is asked of each supply; sums of whole numbers don't hang on an order."""
    shares = [units / supply for supply, units in asked.items() if supply]
    return math.fsum(shares) if shares else math.inf


def contention(ask: Ask | None, cluster: Cluster, pressure: Mapping[str, float]) -> float:
    """Return how contended the least contended type is that a request accepts, from 0 to infinity.

    Types without a usable GPU don't count, unless there is no other: then it is infinite. 0 for a
    request without GPUs, and for one that no node could ever serve.
    """
    types = accepted_types(ask, cluster)
    if ask is None or not types:
        return 0.0
    usable = [pressure.get(name, 0.0) for name in types if usable_units((name,), ask, cluster)]
    finite = (0.0 if math.isinf(value) else value for value in usable)  # what none of those could use
    return min(finite, default=math.inf)


def acceptable_types(ask: Ask, cluster: Cluster, gpu_types: GpuTypes) -> tuple[str, ...]:
    """Return the accepted types with the memory that the user needs on each GPU, sorted."""
    need = ask.vram_gib
    types = accepted_types(ask, cluster)
    return tuple(name for name in types if need is None or gpu_types.has_vram(name, need))


def preferred_types(ask: Ask, cluster: Cluster) -> frozenset[str]:
    """Return the types on the nodes that --prefer names."""
    liked = replace(ask, where=ask.where._replace(features=ask.prefer))
    return frozenset(accepted_types(liked, cluster))


@dataclass(frozen=True, slots=True)
class Match:
    """The type that would serve a request best of those free now, and how well it matches, in [0, 1]."""

    gpu_type: str = ""
    value: float = 0.0


def match_now(ask: Ask, cluster: Cluster, gpu_types: GpuTypes) -> Match:
    """Return the best acceptable type that could serve the whole request now.

    In the user's order if he gives one, else the least capable first. Value: how early it comes in the
    user's order, times the memory needed over the memory that it has; what is needed is what the user
    asks, without that the memory of the least capable type that the job accepts.
    """
    groups = _by_preference(ask, cluster, gpu_types)
    for i, group in enumerate(groups):
        for gpu_type in group:
            if ready_now(of_type(ask, gpu_type), cluster):
                return Match(gpu_type, (1 - i / len(groups)) * _thrift(ask, gpu_type, groups, gpu_types))
    return Match()


def of_type(ask: Ask, gpu_type: str) -> Ask:
    """Return the request with all its GPUs, or all its shards, of one type, unless it asks for several."""
    if gpu_type.partition(":")[0] == SHARD:
        name = gpu_type.partition(":")[2]
        return ask if len(ask.shards.types) > 1 else replace(ask, shards=_all_of(ask.shards, name))
    if is_mig_type(gpu_type) or len(ask.gpus.types) > 1:
        return ask
    return replace(ask, gpus=_all_of(ask.gpus, gpu_type))


def _all_of(request: GpuRequest, name: str) -> GpuRequest:
    return replace(request, types=((name, request.total),)) if request.total else request


def _by_preference(ask: Ask, cluster: Cluster, gpu_types: GpuTypes) -> list[list[str]]:
    """The acceptable types, in groups that the user likes equally, each from the least capable."""
    types = acceptable_types(ask, cluster, gpu_types)
    types = tuple(sorted(types, key=lambda name: (*gpu_types.capability(name), name)))
    if ask.order:
        return [[name] for name in ask.order if name in types] or ([list(types)] if types else [])
    liked = preferred_types(ask, cluster) if ask.prefer else frozenset()
    groups = [[name for name in types if name in liked], [name for name in types if name not in liked]]
    return [group for group in groups if group]


def _thrift(ask: Ask, gpu_type: str, groups: Sequence[Sequence[str]], gpu_types: GpuTypes) -> float:
    have = gpu_types.facts(gpu_type).vram_gib
    need = ask.vram_gib
    if need is None and not ask.order:
        known = (gpu_types.facts(name).vram_gib for group in groups for name in group)
        need = min((vram for vram in known if vram is not None), default=None)
    return 1.0 if have is None or need is None else min(1.0, need / have)
