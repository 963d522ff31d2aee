"""How long a job still has to run: the shorter, the higher."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from slurm_score.columns import Bools, Ints, columns_of
from slurm_score.factors.registry import Duration, Factor, FactorParams, Term, Weight
from slurm_score.hints import Hints
from slurm_score.model import Cluster, Floats, Job, Partition, Queue
from slurm_score.units import MINUTE_S, format_duration

Left = TypeVar("Left", float, Floats)

ALIKE_S = 5.0
"""Times that differ by less are told as one."""


class RemainingParams(FactorParams):
    """How a remaining time becomes a value, and which one is taken.

    `half_at` is the remaining time that gives one half; `unknown` is the value without any estimate.
    `quantile` is the share of jobs that shall end within the predicted time that is told; the value
    is the mean over all times that a job may take. Without `predict` limits and hints count alone.
    """

    weight: Weight = 450
    half_at: Duration = 30.0 * MINUTE_S
    unknown: Annotated[float, Field(ge=0, le=1)] = 0.5
    predict: bool = True
    quantile: Annotated[float, Field(ge=0.5, le=0.9)] = 0.6


def value(left_s: Left, half_at_s: float) -> Left:
    """Return the factor of a remaining time, or of a column of them; the simulator compiles it."""
    return half_at_s / (half_at_s + left_s)


def left_of(factor: Left, half_at_s: float) -> Left:
    """Return the remaining time of a factor above 0, or of a column of them."""
    return half_at_s / factor - half_at_s


class Source(IntEnum):
    """Where a remaining time comes from."""

    NOTHING = 0
    LIMIT = 1
    DEFAULT = 2
    MAXIMUM = 3
    NO_LIMIT = 4
    LEFT = 5
    EST = 6
    EST_PROGRESS = 7
    PROGRESS = 8
    PREDICTED = 9


_WORDS = {
    Source.LIMIT: "time limit",
    Source.DEFAULT: "partition's default time",
    Source.MAXIMUM: "partition's maximum time",
    Source.NO_LIMIT: "partition, which sets no limit",
    Source.LEFT: "hint left=",
    Source.EST: "hint est=",
    Source.EST_PROGRESS: "hints est= and progress=",
}


@dataclass(frozen=True, slots=True)
class Remaining:
    """The time left to run of each job: `seconds` float64[n_jobs], NaN where nothing tells.

    `scored` is the time that the factor is taken of: of a prediction its certainty equivalent.
    `limit_source` and `source` say where the limit and the time come from; `capped` bool[n_jobs]
    marks the hints that went above the limit.
    """

    seconds: Floats
    scored: Floats
    limit_source: Ints
    source: Ints
    capped: Bools


def remaining(queue: Queue) -> Remaining:
    """Return the time that each job still has to run.

    What earlier runs tell comes first; the hints are in it, as far as past ones came true. Without it
    the user's hints, never above the time limit: `left=`, else `est=`, less the share that `progress=`
    says is done; then the limit, less that share; then the partition's default or maximum.
    """
    found: Remaining | None = queue.memo.get("remaining")
    if found is None:
        found = queue.memo["remaining"] = _remaining(queue)
    return found


def _remaining(queue: Queue) -> Remaining:
    columns = columns_of(queue)
    ceilings = [_partitions_s(names, queue.cluster) for names in columns.partitions.values]
    unset = np.isnan(columns.limit_s)
    codes = columns.partitions.codes
    limit = np.where(unset, np.array([s for s, _ in ceilings], np.float64)[codes], columns.limit_s)
    source = np.where(unset, np.array([word for _, word in ceilings], np.int64)[codes], int(Source.LIMIT))
    seconds, limit_source, capped = limit.copy(), source.copy(), np.zeros(len(queue), np.bool_)
    for i in columns.hinted:
        hint, said = claimed_s(queue.jobs[i].hints, limit[i])
        if said:
            capped[i] = hint > limit[i]
            seconds[i], source[i] = (limit[i] if capped[i] else hint), said
    scored = seconds
    if queue.predicted:
        found = [queue.predicted.get(job.job_id) for job in queue.jobs]
        told = np.array([one is not None for one in found], np.bool_)
        predicted = np.array([math.nan if one is None else one.seconds for one in found], np.float64)
        seconds, source = np.where(told, predicted, seconds), np.where(told, int(Source.PREDICTED), source)
        capped = np.where(told, predicted > limit, capped)
        seconds = np.where(told & capped, limit, seconds)
        counted = np.array([math.nan if one is None else one.scored_s for one in found], np.float64)
        scored = np.where(told, np.fmin(counted, limit), seconds)
    return Remaining(seconds, scored, limit_source, source, capped)


def limits_s(jobs: Sequence[Job], cluster: Cluster) -> list[float]:
    """Return the time limit that holds for each job in s; infinite where nothing tells of one."""
    known: dict[tuple[str, ...], float] = {}
    for names in {job.partitions for job in jobs if job.time_limit_s is None}:
        seconds, _ = _partitions_s(names, cluster)
        known[names] = math.inf if math.isnan(seconds) else seconds
    return [known[job.partitions] if job.time_limit_s is None else job.time_limit_s for job in jobs]


def claimed_s(hints: Hints, limit_s: float) -> tuple[float, Source]:
    """Return what the user's hints say, in s, and which of them; NaN and NOTHING where they don't."""
    undone = 1.0 - (hints.progress or 0.0)
    if hints.left_s is not None:
        return hints.left_s, Source.LEFT
    if hints.est_s is not None:
        return hints.est_s * undone, Source.EST if undone == 1.0 else Source.EST_PROGRESS
    if undone < 1.0 and not math.isnan(limit_s):
        return limit_s * undone, Source.PROGRESS
    return math.nan, Source.NOTHING


def compute(queue: Queue, params: RemainingParams) -> Term:
    """Return half_at / (half_at + remaining): 1 for almost done, 0 for unlimited.

    Of a prediction it is the mean over the runs that the prediction is made of.
    """
    scored = remaining(queue).scored
    return Term(np.where(np.isnan(scored), params.unknown, value(scored, params.half_at)))


def describe(queue: Queue, params: RemainingParams, i: int) -> str:
    """Return the remaining time and its source in words."""
    times = remaining(queue)
    seconds = float(times.seconds[i])
    if math.isnan(seconds):
        return f"nothing tells how long it runs: counted as {params.unknown:g}"
    limit, source = _WORDS.get(Source(times.limit_source[i]), ""), Source(times.source[i])
    predicted = queue.predicted.get(queue.jobs[i].job_id)
    if source is Source.PREDICTED and predicted is not None:
        words = f"predicted: {predicted.source}{f', capped by the {limit}' if times.capped[i] else ''}"
        words += _scored_words(seconds, float(times.scored[i]), params.quantile)
        return f"{format_duration(seconds)} to run, {words}; one half at {format_duration(params.half_at)}"
    words = f"{limit} and hint progress=" if source is Source.PROGRESS else _WORDS[source]
    words += f" capped by the {limit}" if times.capped[i] else ""
    return f"{format_duration(seconds)} to run by its {words}; one half at {format_duration(params.half_at)}"


def alike(told_s: float, scored_s: float) -> bool:
    """Whether a predicted time and the one that is scored are the same to a reader."""
    return told_s == scored_s or abs(told_s - scored_s) < ALIKE_S


def _scored_words(seconds: float, scored: float, quantile: float) -> str:
    """How a prediction counts, where that isn't the time that most such runs end within."""
    if alike(seconds, scored):
        return ""
    return f"; {quantile:.0%} end within that, by what all may take it counts as {format_duration(scored)}"


def _partitions_s(names: tuple[str, ...], cluster: Cluster) -> tuple[float, Source]:
    """The most that a job without a limit of its own may run in one of these partitions."""
    known = [p for name in names if (p := cluster.partitions.get(name)) is not None]
    return max((_partition_s(partition) for partition in known), default=(math.nan, Source.NOTHING))


def _partition_s(partition: Partition) -> tuple[float, Source]:
    if partition.default_time_s is not None:
        return partition.default_time_s, Source.DEFAULT
    if partition.max_time_s is not None:
        return partition.max_time_s, Source.MAXIMUM
    return math.inf, Source.NO_LIMIT


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
