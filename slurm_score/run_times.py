"""How long each user's jobs usually run, learned from what accounting says of the jobs that ended."""

import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping

from slurm_score.errors import SlurmError
from slurm_score.model import EndedRun, RunTimes
from slurm_score.slurm.gateway import Gateway
from slurm_score.units import DAY_S, MINUTE_S

KEPT_RUNS = 50
USUAL_SHARE = 0.9
EVERY_S = 10.0 * MINUTE_S
FIRST_S = float(DAY_S)
"""How far back the first question goes."""

log = logging.getLogger(__name__)


class RunTimeKeeper:
    """Asks accounting now and then which jobs ended since, and keeps the last runs of each user."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._asked_s: float | None = None
        self._runs: dict[str, deque[float]] = {}
        self._usual: dict[str, RunTimes] = {}
        self._missed = False

    def current(self, now_s: float) -> Mapping[str, RunTimes]:
        """Return by user how long jobs usually run; without accounting what was known before."""
        since = now_s - FIRST_S if self._asked_s is None else self._asked_s
        if self._asked_s is not None and now_s - self._asked_s < EVERY_S:
            return self._usual
        try:
            runs = self._gateway.read_ended_runs(int(since), int(now_s))
        except SlurmError as error:
            if not self._missed:
                log.warning("users are not told of their usual run times: %s", error)
            self._missed = True
            return self._usual
        self._asked_s = now_s
        self._learn(runs)
        return self._usual

    def _learn(self, runs: Iterable[EndedRun]) -> None:
        for run in sorted(runs, key=lambda run: run.end_s):
            kept = self._runs.setdefault(run.user, deque(maxlen=KEPT_RUNS))
            kept.append(run.elapsed_s)
            self._usual[run.user] = usual(kept)


def usual(elapsed_s: Iterable[float]) -> RunTimes:
    """Return how many runs there were, and within which time nine of ten of them ended."""
    runs = sorted(elapsed_s)
    return RunTimes(len(runs), runs[math.ceil(USUAL_SHARE * len(runs)) - 1])
