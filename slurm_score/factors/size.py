"""How much of its partition a job asks for: the wider, the higher, so that big jobs don't starve."""

from typing import TypeVar

import numpy as np
from numpy import minimum

from slurm_score.columns import columns_of
from slurm_score.factors.registry import Factor, FactorParams, Term, Weight
from slurm_score.inventory import inventory_of
from slurm_score.model import Floats, Job, Queue

Count = TypeVar("Count", float, Floats)


class SizeParams(FactorParams):
    """Size has no parameter besides its weight."""

    weight: Weight = 200


def value(count: Count, total: Count | float) -> Count:
    """Return the factor of a size, or of a column of them; the simulator uses it too."""
    factor: Count = minimum(1.0, count / total)
    return factor


def asked(job: Job) -> tuple[int, str]:
    """Return how many GPUs a job asks for, or CPUs where it asks for no GPU, and the unit."""
    return (job.gpus.total, "GPUs") if job.gpus.total else (job.cpus, "CPUs")


def capacity(partitions: tuple[str, ...], unit: str, queue: Queue) -> int:
    """Return the GPUs or CPUs of the largest of the partitions, broken nodes included."""
    cluster = queue.cluster
    if unit == "GPUs":
        return max((_gpus_of(p, queue) for p in partitions), default=0)
    return max((cluster.partitions[p].cpus for p in partitions if p in cluster.partitions), default=0)


def _gpus_of(partition: str, queue: Queue) -> int:
    memo = queue.cluster.memo
    key = ("GPUs of", partition)
    found: int | None = memo.get(key)
    if found is None:
        nodes = inventory_of(queue.cluster)
        mine = nodes.partitions.get(partition)
        found = memo[key] = 0 if mine is None else int(nodes.total[nodes.kinds[0]][:, mine].sum())
    return found


def compute(queue: Queue, params: SizeParams) -> Term:  # noqa: ARG001 - the shape of every factor
    """Return asked / capacity, at most 1; 0 where the capacity isn't known."""
    columns = columns_of(queue)
    on_gpus, of = columns.gpus > 0, columns.partitions
    wanted = np.where(on_gpus, columns.gpus, columns.cpus)
    total = np.where(
        on_gpus,
        of.map(lambda names: capacity(names, "GPUs", queue)),
        of.map(lambda names: capacity(names, "CPUs", queue)),
    )
    known = total > 0
    return Term(np.where(known, value(wanted, np.where(known, total, 1.0)), 0.0))


def describe(queue: Queue, params: SizeParams, i: int) -> str:  # noqa: ARG001 - the shape of every factor
    """Return the size in words."""
    job = queue.jobs[i]
    count, unit = asked(job)
    return f"asks for {count} of the {capacity(job.partitions, unit, queue)} {unit} of its partition"


FACTOR = Factor(
    name="size",
    header="SIZE",
    position=30,
    summary="asked GPUs (or CPUs) / those of the partition",
    params=SizeParams,
    compute=compute,
    describe=describe,
)
