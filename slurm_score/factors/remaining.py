"""How long a job still has to run: the shorter, the higher."""

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from slurm_score.factors.registry import Duration, Factor, FactorParams, Term, Weight
from slurm_score.model import Job, Partition, Queue
from slurm_score.units import MINUTE_S, format_duration


class RemainingParams(FactorParams):
    """`half_at` is the remaining time that gives one half; `unknown` is the value without any estimate."""

    weight: Weight = 450
    half_at: Duration = 30.0 * MINUTE_S
    unknown: Annotated[float, Field(ge=0, le=1)] = 0.5


def remaining_s(job: Job, queue: Queue) -> tuple[float | None, str]:
    """Return the time in s that a job still has to run, None if unknown, and where that comes from.

    The user's hints come first, never above the time limit: `left=`, else `est=`, less the share
    that `progress=` says is done; then the limit, less that share; then the partition's default or
    maximum.
    """
    limit, source = _limit_s(job, queue)
    hints, undone = job.hints, 1.0 - (job.hints.progress or 0.0)
    if hints.left_s is not None:
        hint, name = hints.left_s, "hint left="
    elif hints.est_s is not None:
        hint, name = hints.est_s * undone, "hint est=" if undone == 1.0 else "hints est= and progress="
    elif limit is not None and undone < 1.0:
        hint, name = limit * undone, f"{source} and hint progress="
    else:
        return limit, source
    if limit is not None and hint > limit:
        return limit, f"{name} capped by the {source}"
    return hint, name


def compute(queue: Queue, params: RemainingParams) -> Term:
    """Return half_at / (half_at + remaining): 1 for almost done, 0 for unlimited."""
    remaining = queue.column(lambda job: remaining_s(job, queue)[0])
    values = params.half_at / (params.half_at + remaining)
    return Term(np.where(np.isnan(remaining), params.unknown, values))


def describe(queue: Queue, params: RemainingParams, i: int) -> str:
    """Return the remaining time and its source in words."""
    seconds, source = remaining_s(queue.jobs[i], queue)
    if seconds is None:
        return f"nothing tells how long it runs: counted as {params.unknown:g}"
    return f"{format_duration(seconds)} to run by its {source}; one half at {format_duration(params.half_at)}"


def _limit_s(job: Job, queue: Queue) -> tuple[float | None, str]:
    if job.time_limit_s is not None:
        return job.time_limit_s, "time limit"
    known = [p for name in job.partitions if (p := queue.cluster.partitions.get(name)) is not None]
    return max((_partition_s(partition) for partition in known), default=(None, ""))


def _partition_s(partition: Partition) -> tuple[float, str]:
    if partition.default_time_s is not None:
        return partition.default_time_s, "partition's default time"
    if partition.max_time_s is not None:
        return partition.max_time_s, "partition's maximum time"
    return math.inf, "partition, which sets no limit"


FACTOR = Factor(
    name="remaining",
    header="REMAIN",
    position=20,
    summary="half_at / (half_at + remaining time)",
    params=RemainingParams,
    compute=compute,
    describe=describe,
    neutral=0.5,
)
