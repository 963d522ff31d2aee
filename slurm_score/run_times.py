"""Keeps what accounting says of ended runs: for the score's predictions, for advice, in the history."""

import logging
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from slurm_score.errors import HistoryError, SlurmError
from slurm_score.factors.remaining import claimed_s, limits_s
from slurm_score.figures import Judge
from slurm_score.model import Cluster, EndedRun, Job, Predicted, RunTimes
from slurm_score.predict.estimator import Estimator
from slurm_score.predict.interface import in_order
from slurm_score.predict.kinds import CUT_SHORT
from slurm_score.predict.similar import HALF_AT_S, KEPT_RUNS, QUANTILE
from slurm_score.predict.store import KEEP_S, HistoryStore, open_history
from slurm_score.slurm.gateway import Gateway
from slurm_score.units import DAY_S, MINUTE_S

KEPT_USUAL = 50
USUAL_SHARE = 0.9
EVERY_S = 10.0 * MINUTE_S
FIRST_S = float(DAY_S)
"""How far back the first question goes, and the most that one question asks for."""
LATE_S = 10.0 * MINUTE_S
"""What is asked for again each time: a run's record can reach slurmdbd after we asked for its end."""
LEARNED_S = 180.0 * DAY_S
"""Users who ran nothing for so long are met as new ones."""
SACCT = "sacct"
"""The name of our own questions among the sources of the history."""
IMPORT, IMPORT_FROM = "history import", "history import, from"
"""The same of the command's: up to when it asked, and since when."""

log = logging.getLogger(__name__)


class RunTimeKeeper:
    """Asks accounting now and then which runs ended since, and learns from them.

    With a history it knows at the start what was learned before; it goes on without where the file
    can't be used, and says so once. `usual` tells by user how long jobs run, as far as they end well.
    """

    def __init__(self, gateway: Gateway, history: Path | None = None) -> None:
        self._gateway, self._history = gateway, history
        self._said: set[str] = set()
        self.judge = Judge()
        self._restart(QUANTILE)

    def _restart(self, quantile: float) -> None:
        self.estimator = Estimator(quantile)
        self.usual: dict[str, RunTimes] = {}
        self._asked_s: float | None = None
        self._seen: set[tuple[int, int, int]] = set()
        self._late = self._loaded = False
        self._runs: dict[str, deque[float]] = {}
        self._cut: dict[int, float] = {}
        self._claims: dict[int, float] = {}

    def refresh(self, now_s: float, quantile: float = QUANTILE, half_at_s: float = HALF_AT_S) -> None:
        """Ask accounting, if it is time to; without accounting what was known before stays."""
        if quantile != self.estimator.quantile:
            self._restart(quantile)
        self.estimator.half_at_s = half_at_s
        if not self._loaded:
            self._load(now_s)
        if self._asked_s is not None and now_s - self._asked_s < EVERY_S and not self._late:
            return
        asked = now_s - FIRST_S if self._asked_s is None else self._asked_s
        until = min(now_s, asked + FIRST_S)
        since = asked if self._asked_s is None else asked - LATE_S
        try:
            runs = self._gateway.read_ended_runs(int(since), int(until))
        except SlurmError as error:
            self._say_once(f"nothing new is learned of run times: {error}")
            return
        self._asked_s, self._late = until, until < now_s
        runs = tuple(self._with_claim(run) for run in runs if _key(run) not in self._seen)
        self.judge.judge(runs)
        self._learn(runs)
        self._forget_seen(until)
        self._write(runs, int(until))

    def predicted(self, jobs: Sequence[Job], cluster: Cluster) -> dict[int, Predicted]:
        """Return by job id what is predicted of them, and remember what they claim."""
        hinted = [
            job for job in jobs if job.pending and (job.hints.est_s or job.hints.left_s or job.hints.progress)
        ]
        for job, limit_s in zip(hinted, limits_s(hinted, cluster), strict=True):
            claim_s, said = claimed_s(job.hints, limit_s)
            if said:
                self._claims[job.job_id] = min(claim_s, self._claims.get(job.job_id, math.inf))
        found = self.estimator.predict_jobs(jobs, cluster, self._cut)
        self.judge.tell(found)
        return found

    def running(self, jobs: Sequence[Job], cluster: Cluster) -> dict[int, Predicted]:
        """Return by job id how long jobs run in all that run now."""
        return self.estimator.predict_jobs(jobs, cluster, self._cut)

    def _with_claim(self, run: EndedRun) -> EndedRun:
        """The claim by which a job came up in the queue counts, whatever its comment says at the end."""
        seen = self._claims.pop(run.job_id, None)
        return run if seen is None else replace(run, claim_s=min(seen, run.claim_s or math.inf))

    def _learn(self, runs: Iterable[EndedRun]) -> None:
        ordered = in_order(runs)
        self._seen.update(map(_key, ordered))
        self.estimator.observe(ordered)
        for run in ordered:
            if run.state in CUT_SHORT:
                self._cut[run.job_id] = self._cut.get(run.job_id, 0.0) + run.elapsed_s
                continue
            self._cut.pop(run.job_id, None)
            if run.state == "COMPLETED":
                kept = self._runs.setdefault(run.user, deque(maxlen=KEPT_USUAL))
                kept.append(run.elapsed_s)
                self.usual[run.user] = usual(kept)

    def _forget_seen(self, until_s: float) -> None:
        self._seen = {key for key in self._seen if key[2] > until_s - LATE_S}

    def _load(self, now_s: float) -> None:
        self._loaded = True
        if self._history is None:
            return
        try:
            with open_history(self._history) as store:
                _require_names(store, self._history)
                self._learn(store.recent(now_s - LEARNED_S, KEPT_RUNS))
                self._claims = store.claims()
                known = [until for s in (SACCT, IMPORT) if (until := store.imported_until(s)) is not None]
                self._asked_s = max(known, default=None)
                self._late = bool(known)
                self._forget_seen(self._asked_s or 0.0)
        except HistoryError as error:
            self._say_once(f"the history is not used: {error}")

    def _write(self, runs: Sequence[EndedRun], until_s: int) -> None:
        if self._history is None:
            return
        try:
            with open_history(self._history) as store:
                _require_names(store, self._history)
                store.add(runs, SACCT, until_s)
                store.keep_claims(self._claims, until_s)
                store.forget(until_s - KEEP_S)
        except HistoryError as error:
            self._say_once(f"the history is not kept: {error}")

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            log.warning("%s", sentence)
        self._said.add(sentence)


def _key(run: EndedRun) -> tuple[int, int, int]:
    """What no two runs share: a requeued job has another submit time."""
    return run.job_id, run.submit_s, run.end_s


def _require_names(store: HistoryStore, path: Path) -> None:
    if store.anonymous:
        raise HistoryError(
            f"{path}: its users stand in it by digests; name another file to the reprioritizer"
        )


def usual(elapsed_s: Iterable[float]) -> RunTimes:
    """Return how many runs there were, and within which time nine of ten of them ended."""
    runs = sorted(elapsed_s)
    return RunTimes(len(runs), runs[math.ceil(USUAL_SHARE * len(runs)) - 1])
