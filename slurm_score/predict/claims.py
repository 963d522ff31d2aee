"""How far a user's hints are believed: as far as his past ones came true. Pure."""

import math
from collections import deque
from collections.abc import Iterable

from slurm_score.factors.remaining import left_of, value
from slurm_score.model import EndedRun, Predicted
from slurm_score.predict.interface import in_order
from slurm_score.units import format_duration

KEPT = 20
FIRST = 3
"""So many claims must have come to their end before only they count."""
DECAY = 0.9
PER_DOUBLING = 0.5
"""What a past claim counts less for each doubling between it and the one in question."""
LEAST_S = 1.0


class Claims:
    """The last claims of each user, and what became of them."""

    def __init__(self, quantile: float) -> None:
        self._quantile = quantile
        self._known: dict[str, deque[tuple[float, float]]] = {}

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Learn from runs that ended; those that claimed nothing tell nothing."""
        for run in in_order(run for run in runs if run.claim_s is not None):
            known = self._known.setdefault(run.user, deque(maxlen=KEPT))
            known.append((max(run.claim_s or 0.0, LEAST_S), run.elapsed_s))

    def calibrate(
        self, user: str, claim_s: float, limit_s: float, otherwise: Predicted | None, half_at_s: float
    ) -> Predicted:
        """Return claim × the user's own ratio at the quantile, never above the limit.

        Its certainty equivalent goes by the mean of the factor over the same ratios.

        The ratio is that of the user's last claims, near ones and late ones first. Until there are three,
        `otherwise`, what the runs without hints tell, stands for each that is missing; where that is
        unknown as well, a first claim is believed.
        """
        claim = max(claim_s, LEAST_S)
        known = self._known.get(user, ())
        weighed = [
            (ran_s / said_s, DECAY**age * PER_DOUBLING ** abs(math.log2(said_s / claim)))
            for age, (said_s, ran_s) in enumerate(reversed(known))
        ]
        missing = max(0, FIRST - len(known))
        instead = otherwise.seconds / claim if otherwise else 1.0
        ratio = _quantile([*weighed, *((instead, 1.0) for _ in range(missing))], self._quantile)
        words = f"hint {format_duration(claim_s)} × {ratio:.2g}, {_whose(user, len(known), otherwise)}"
        capped = ", capped by the limit" if claim * ratio > limit_s else ""
        ends = [(min(limit_s, claim * ratio), weight) for ratio, weight in weighed]
        ends += missing * [(otherwise.scored_s if otherwise else min(limit_s, claim), 1.0)]
        return Predicted(min(limit_s, claim * ratio), words + capped, _equivalent_s(ends, half_at_s))

    def stored(self) -> dict[str, list[list[float]]]:
        """Return all it knows as plain values."""
        return {user: [list(pair) for pair in known] for user, known in self._known.items()}

    def restore(self, stored: dict[str, list[list[float]]]) -> None:
        """Take back what was stored."""
        self._known = {
            user: deque(((said_s, ran_s) for said_s, ran_s in known), maxlen=KEPT)
            for user, known in stored.items()
        }


def _whose(user: str, known: int, otherwise: Predicted | None) -> str:
    if known >= FIRST:
        return f"the ratio of {user}'s last {known} hints"
    without = otherwise.source if otherwise else "nothing else is known"
    return f"with {known} hints known and {without}"


def _equivalent_s(weighed: list[tuple[float, float]], half_at_s: float) -> float:
    """Return the run time whose factor is the mean of those of run times with weights; infinite for none."""
    total = sum(weight for _, weight in weighed)
    mean = sum(weight * value(seconds, half_at_s) for seconds, weight in weighed) / total
    return max(0.0, left_of(mean, half_at_s)) if mean else math.inf


def _quantile(weighed: list[tuple[float, float]], quantile: float) -> float:
    """Return the least value with so much of the weight up to it."""
    weighed.sort()
    wanted, summed = quantile * sum(weight for _, weight in weighed) * (1 - 1e-12), 0.0
    for ratio, weight in weighed:
        summed += weight
        if summed >= wanted:
            return ratio
    return weighed[-1][0]
