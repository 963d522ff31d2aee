"""What a cycle comes to in a few numbers, for those who watch it over time. Pure."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from slurm_score.columns import Bools, Coded, columns_of
from slurm_score.contention import accepted_types
from slurm_score.factors.wait import waits_s
from slurm_score.model import EndedRun, Floats, Predicted, Queue
from slurm_score.policy import Policy
from slurm_score.predict.kinds import COUNTED
from slurm_score.score import Scores

K = TypeVar("K", bound=Hashable)

NO_GPU = "none"
"""Stands for the GPU type of jobs that ask for none."""

MOST_TOLD = 200_000
"""Jobs whose prediction is remembered until they end."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits in s of the pending jobs that could start; `guarded` of them are past their guard.

    A job that accepts several GPU types counts for each of them, one that no node could serve for none.
    """

    jobs: int = 0
    guarded: int = 0
    p95_s: float = 0.0
    longest_by_qos_s: Mapping[str, float] = field(default_factory=dict)
    longest_by_type_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """How good predictions were, summed up: runs, how many took longer than told, absolute errors in s.

    `elapsed_s` is how long these runs took in all.
    """

    runs: int = 0
    too_short: int = 0
    error_s: float = 0.0
    elapsed_s: float = 0.0

    def plus(self, told_s: float, elapsed_s: float) -> "Judged":
        """Return the sums with one more run in them."""
        return Judged(
            self.runs + 1,
            self.too_short + (elapsed_s > told_s),
            self.error_s + abs(elapsed_s - told_s),
            self.elapsed_s + elapsed_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The last cycle (its waits, how long each part took, the updates left over), and sums of all.

    `cycles`, `sent`, `failed` and `judged` add up from cycle to cycle, also over a restart.
    """

    waits: Waits = Waits()
    seconds: Mapping[str, float] = field(default_factory=dict)
    left_over: int = 0
    cycles: int = 0
    sent: int = 0
    failed: int = 0
    judged: Judged = Judged()

    def after(
        self,
        waits: Waits,
        seconds: Mapping[str, float],
        *,
        left_over: int,
        sent: int,
        failed: int,
        judged: Judged,
    ) -> "Figures":
        """Return the figures after one more cycle, of which `failed` updates of those `sent` were refused."""
        return Figures(
            waits=waits,
            seconds=dict(seconds),
            left_over=left_over,
            cycles=self.cycles + 1,
            sent=self.sent + sent,
            failed=self.failed + failed,
            judged=judged,
        )


NO_FIGURES = Figures()


def waits_of(queue: Queue, scores: Scores, policy: Policy) -> Waits:
    """Return the waits of a queue's jobs, as the score counts them."""
    columns, waits = columns_of(queue), waits_s(queue, policy.factors["wait"])
    able = columns.eligible
    if not able.any():
        return Waits()
    by_type: dict[str, float] = {}
    for ask, longest_s in _longest(columns.asks, waits, able).items():
        names = accepted_types(ask, queue.cluster) if ask and ask.units else (NO_GPU,)
        by_type |= {name: max(longest_s, by_type.get(name, 0.0)) for name in names}
    return Waits(
        jobs=int(able.sum()),
        guarded=int((scores.guarded & able).sum()),
        p95_s=float(np.quantile(waits[able], 0.95)),
        longest_by_qos_s=_longest(columns.qos, waits, able),
        longest_by_type_s=dict(sorted(by_type.items())),
    )


class Judge:
    """Compares what was told of waiting jobs with how long they ran; `sums` is what came of it so far.

    The last prediction before a job started counts. A job that came and went between two cycles was
    told nothing, and of an array one task is known by its number.
    """

    def __init__(self) -> None:
        self.sums = Judged()
        self._told_s: dict[int, float] = {}

    def tell(self, predicted: Mapping[int, Predicted]) -> None:
        """Remember what is predicted of jobs, by job id; the oldest of too many are forgotten."""
        new = {job_id: one.seconds for job_id, one in predicted.items() if math.isfinite(one.seconds)}
        kept = [item for item in self._told_s.items() if item[0] not in new]
        self._told_s = dict(kept[max(0, len(kept) + len(new) - MOST_TOLD) :]) | new

    def judge(self, runs: Iterable[EndedRun]) -> None:
        """Add the runs that were told of and ended by themselves; each counts once."""
        for run in runs:
            told_s = self._told_s.pop(run.job_id, None)
            if told_s is not None and run.state in COUNTED:
                self.sums = self.sums.plus(told_s, run.elapsed_s)


def _longest(column: Coded[K], waits: Floats, able: Bools) -> dict[K, float]:
    """Return the longest wait in s of those that could start, by value of a column."""
    longest = np.full(len(column.values), -1.0)
    np.maximum.at(longest, column.codes[able], waits[able])
    return {
        value: wait_s for value, wait_s in zip(column.values, longest.tolist(), strict=True) if wait_s >= 0
    }
