"""The predictors to beat: the user's request, Tsafrir's mean of two, the median of the last five. Pure."""

import statistics
from collections import deque
from collections.abc import Iterable

from slurm_score.model import Asked, EndedRun, Predicted
from slurm_score.predict.interface import in_order


class UserRequest:
    """The time limit itself."""

    name = "user's request"

    def predict(self, asked: Asked) -> Predicted:
        """Return the limit."""
        return Predicted(asked.limit_s, "time limit")

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Learn nothing."""


class Tsafrir:
    """The mean of the user's last two ended runs in whole seconds; the limit until there are two.

    Source: Tsafrir, Etsion, Feitelson, Backfilling Using System-Generated Predictions, TPDS 2007.
    """

    name = "Tsafrir"

    def __init__(self) -> None:
        self._last: dict[str, deque[float]] = {}

    def predict(self, asked: Asked) -> Predicted:
        """Return min(limit, mean of the last two rounded down)."""
        last = self._last.get(asked.user, ())
        if len(last) < 2:
            return Predicted(asked.limit_s, "time limit")
        return Predicted(min(asked.limit_s, float(sum(last) // 2)), f"mean of {asked.user}'s last 2 runs")

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Remember the last two of each user."""
        for run in in_order(runs):
            self._last.setdefault(run.user, deque(maxlen=2)).append(run.elapsed_s)


class MedianOfFive:
    """The median of the last five of the same user, size and limit; else the mean of the last two."""

    name = "median of last 5"

    def __init__(self) -> None:
        self._last: dict[str, deque[float]] = {}
        self._same: dict[tuple[str, int, float], deque[float]] = {}

    def predict(self, asked: Asked) -> Predicted:
        """Return the median of the runs like it; else the mean of the user's last two, else the limit."""
        same = self._same.get((asked.user, asked.cpus, asked.limit_s))
        last = self._last.get(asked.user, ())
        if same:
            found, source = statistics.median(same), f"last {len(same)} like it of {asked.user}"
        elif len(last) == 2:
            found, source = sum(last) / 2, f"mean of {asked.user}'s last 2 runs"
        else:
            found, source = asked.limit_s, "time limit"
        return Predicted(min(asked.limit_s, found), source)

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Remember the last two of each user and the last five of each user, size and limit."""
        for run in in_order(runs):
            self._last.setdefault(run.user, deque(maxlen=2)).append(run.elapsed_s)
            key = (run.user, run.cpus, run.limit_s)
            self._same.setdefault(key, deque(maxlen=5)).append(run.elapsed_s)
