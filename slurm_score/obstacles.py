"""What keeps a job from starting, whatever its score, as far as a snapshot tells. Pure."""

from collections.abc import Iterator
from functools import partial

from slurm_score.columns import columns_of
from slurm_score.contention import accepted_types, usable_units
from slurm_score.factors.remaining import limits_s
from slurm_score.inventory import inventory_of
from slurm_score.model import Job, Partition, Queue
from slurm_score.never import why_never
from slurm_score.request import ask_of
from slurm_score.units import format_duration


def obstacles(queue: Queue, i: int) -> tuple[str, ...]:
    """Return a sentence, without a full stop, for each thing beside the score that job i waits for.

    Slurm gives one reason at a time; these are looked for whatever it says.
    """
    job = queue.jobs[i]
    found = (_over_asking(job, queue), _partitions(job, queue), _tiers(job, queue), _nodes(job, queue))
    return tuple(sentence for some in (*found, _reservation(job, queue)) for sentence in some)


def _over_asking(job: Job, queue: Queue) -> Iterator[str]:
    ask = ask_of(job)
    if ask and queue.cluster.nodes and (never := why_never(ask, queue.cluster)):
        yield f"it can never start: {never}"
    mine = _known(job, queue)
    cpus = max((partition.cpus for partition in mine), default=0)
    if cpus and job.cpus > cpus:
        yield f"it can never start: it asks for {job.cpus} CPUs, {_named(mine)} has {cpus}"
    limit, most = limits_s([job], queue.cluster)[0], [partition.max_time_s for partition in mine]
    if mine and all(max_s is not None and limit > max_s for max_s in most):
        allowed = format_duration(max(max_s for max_s in most if max_s is not None))
        yield f"it asks for {format_duration(limit)}, {_named(mine)} gives {allowed} at most"


def _partitions(job: Job, queue: Queue) -> Iterator[str]:
    mine = _known(job, queue)
    if mine and not any(partition.up for partition in mine):
        yield f"{_named(mine)} starts no jobs now"


def _tiers(job: Job, queue: Queue) -> Iterator[str]:
    """Yield the partitions of a higher tier that have jobs waiting and share nodes with the job's own.

    Slurm looks at the jobs of a higher tier first, whatever their priority.

    Source: slurm.conf(5), PriorityTier.
    """
    columns, nodes = columns_of(queue), inventory_of(queue.cluster).partitions
    for mine in _known(job, queue):
        for other in queue.cluster.partitions.values():
            higher = other.priority_tier > mine.priority_tier
            if not higher or other.name not in nodes or mine.name not in nodes:
                continue
            name = other.name
            waiting = columns.eligible & columns.partitions.mask(partial(_holds, name))
            if waiting.any() and (nodes[name] & nodes[mine.name]).any():
                tiers = f"PriorityTier {other.priority_tier}, not {mine.priority_tier} as {mine.name}"
                yield f"{int(waiting.sum())} jobs of partition {name} go first: it has {tiers}"


def _holds(name: str, names: tuple[str, ...]) -> bool:
    return name in names


def _nodes(job: Job, queue: Queue) -> Iterator[str]:
    ask, cluster = ask_of(job), queue.cluster
    mine = [node for node in cluster.nodes if not set(node.partitions).isdisjoint(job.partitions)]
    if mine and not any(node.usable for node in mine):
        yield f"no node of {_named(_known(job, queue))} starts jobs now"
        return
    types = accepted_types(ask, cluster)
    if ask and types and not usable_units(types, ask, cluster):
        yield f"no {'|'.join(types)} that it could use is on a node that starts jobs now"


def _reservation(job: Job, queue: Queue) -> Iterator[str]:
    if not job.reservation:
        return
    found = queue.cluster.reservations.get(job.reservation)
    if found is None:
        yield f"there is no reservation {job.reservation}"
    elif not found.active:
        yield f"its reservation {job.reservation} is not active"


def _known(job: Job, queue: Queue) -> list[Partition]:
    known = queue.cluster.partitions
    return [known[name] for name in job.partitions if name in known]


def _named(partitions: list[Partition]) -> str:
    return f"partition {','.join(partition.name for partition in partitions)}"
