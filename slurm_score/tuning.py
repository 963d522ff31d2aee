"""How contended each GPU type was and how long the queue, hour by hour, and what that comes to. Pure.

P_t, the pressure on a type, is inventory.gpu_pressure's: what pending jobs ask for per usable one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_score.columns import columns_of
from slurm_score.model import Queue
from slurm_score.units import HOUR_S

DAY_H, WEEK_H = 24, 168
ENOUGH_H = DAY_H
"""From less than a day's hours no node weights are worked out: a night says nothing of the day."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a queue reached: entries, and the longest finite time limit in s, 0 where there is none.

    A record counts once for each of its partitions, as Slurm's schedulers test it.
    `unlimited` tells of jobs without an end.

    Source: slurm src/slurmctld/job_scheduler.c, build_job_queue.
    """

    entries: int = 0
    limit_s: float = 0.0
    unlimited: bool = False

    def __or__(self, other: "Extent") -> "Extent":
        """Return what covers both."""
        return Extent(
            max(self.entries, other.entries),
            max(self.limit_s, other.limit_s),
            self.unlimited or other.unlimited,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What the cycles of one hour saw; `hour` counts from the epoch.

    `pressure` adds up P_t over the cycles in which it was finite, `unusable` counts the others, in
    which jobs asked for a type and none of it was usable. Who isn't there wasn't asked for.
    """

    hour: int
    cycles: int
    extent: Extent = Extent()
    pressure: Mapping[str, float] = field(default_factory=dict)
    unusable: Mapping[str, int] = field(default_factory=dict)

    def mean(self, gpu_type: str) -> float | None:
        """Return the mean pressure on a type, None where it was never finite."""
        cycles = self.cycles - self.unusable.get(gpu_type, 0)
        return self.pressure.get(gpu_type, 0.0) / cycles if cycles > 0 else None


@dataclass(frozen=True, slots=True)
class Contention:
    """The mean pressure on one type over the last 24 hours and over the last 7 days."""

    day: float = 0.0
    week: float = 0.0

    @property
    def level(self) -> float:
        """The mean of both: steady by the week, and a load that came up today is felt the same day."""
        return (self.day + self.week) / 2


@dataclass(frozen=True, slots=True)
class History:
    """The hours that were recorded up to now, oldest first; hours in which no cycle ran are not there."""

    hours: tuple[Hour, ...]
    now_s: float

    def last(self, count: int) -> tuple[Hour, ...]:
        """Return those of the last `count` hours, this one included."""
        first = hour_of(self.now_s) - count
        return tuple(hour for hour in self.hours if hour.hour > first)

    @property
    def shortage(self) -> str:
        """What is missing for node weights, empty where there is enough."""
        recorded = len(self.last(WEEK_H))
        if not recorded:
            return "nothing was recorded in the last 7 days; is the reprioritizer running, with this audit?"
        if recorded < ENOUGH_H:
            return f"{recorded} of the last {WEEK_H} hours are recorded, {ENOUGH_H} are needed"
        if not self.last(DAY_H):
            return "nothing was recorded in the last 24 hours; is the reprioritizer running?"
        return ""

    @property
    def extent(self) -> Extent:
        """How far the queue reached in all that is kept."""
        reached = Extent()
        for hour in self.hours:
            reached |= hour.extent
        return reached

    def contention(self) -> dict[str, Contention]:
        """Return how contended each type was that anybody asked for in the last 7 days, by name.

        Each recorded hour counts alike, however many cycles it had. Infinite where a type was asked
        for and none of it was ever usable; else such cycles don't count: what was down for a night
        isn't contended.
        """
        day, week = self.last(DAY_H), self.last(WEEK_H)
        types = sorted({name for hour in week for name in (*hour.pressure, *hour.unusable)})
        return {name: Contention(_mean(day or week, name), _mean(week, name)) for name in types}


def hour_of(time_s: float) -> int:
    """Return the hour that a time is in, counted from the epoch."""
    return int(time_s // HOUR_S)


def extent_of(queue: Queue) -> Extent:
    """Return how far a queue reaches: of the jobs that could start, as far as holds and dependencies go."""
    columns = columns_of(queue)
    entries = columns.partitions.map(len)[columns.eligible]
    limits = columns.limit_s[columns.eligible]
    finite = limits[np.isfinite(limits)]
    return Extent(int(entries.sum()), float(finite.max(initial=0.0)), bool(np.isinf(limits).any()))


def split_pressure(pressure: Mapping[str, float]) -> Iterable[tuple[str, float, int]]:
    """Yield (type, finite pressure, 1 where it is infinite) for what one cycle adds to its hour."""
    for gpu_type, asked in pressure.items():
        yield (gpu_type, 0.0, 1) if math.isinf(asked) else (gpu_type, asked, 0)


def _mean(hours: Sequence[Hour], gpu_type: str) -> float:
    means = [mean for hour in hours if (mean := hour.mean(gpu_type)) is not None]
    return math.fsum(means) / len(means) if means else math.inf
