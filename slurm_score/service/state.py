"""What the service answers from: two watched files, a clock, and the numbers that /metrics shows."""

import contextlib
import gc
import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from slurm_score.errors import SnapshotError
from slurm_score.inventory import inventory_of
from slurm_score.service import reports
from slurm_score.service.collector import StateCollector
from slurm_score.snapshot import Snapshot, read_snapshot
from slurm_score.watch import Watched, is_there, read_policy

BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
MAX_REPORTS = 4
"""Reports that are being made or wait their turn; more are turned away."""

_HOOK = re.compile(
    r"slurm_score\.lua/(?P<version>\S{1,20}) \(Lua (?P<lua>5\.\d)[^;]{0,10}; loaded (?P<s>\d{1,12})"
    r"(?:; failed (?P<failed>\d{1,12}); resting (?P<resting>\d{1,12}))?\)"
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class HookSeen:
    """The hook that asked last: when, its version and Lua, when slurmctld loaded it (s since the epoch).

    Since then `failed` of its questions had no answer, and `resting` submissions passed while its
    breaker was open. It tells both with its next question.
    """

    last_s: float | None = None
    version: str = ""
    lua: str = ""
    loaded_s: int | None = None
    failed: int = 0
    resting: int = 0


class Metrics:
    """The numbers that /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "slurm_score_answer_seconds", "Time to answer the hook", buckets=BUCKETS, registry=self.registry
        )
        self.answers = Counter(
            "slurm_score_answers", "Answers to the hook, by outcome", ["outcome"], registry=self.registry
        )
        self.shed = Counter(
            "slurm_score_reports_shed", "Reports turned away, too many at once", registry=self.registry
        )
        self.age = Gauge("slurm_score_snapshot_age_seconds", "Age of the snapshot", registry=self.registry)
        self.hook = Gauge("slurm_score_hook_last_seconds", "When the hook asked last", registry=self.registry)
        self.gpus = Gauge(
            "slurm_score_gpus",
            "GPUs in the last snapshot: total, used, free, broken, largest on one node, largest block, "
            "asked by jobs that accept this type only, flexible by jobs that accept others too",
            ["partition", "type", "what"],
            registry=self.registry,
        )
        self.policy = Gauge("slurm_score_policy", "Policy in force", ["hash", "mode"], registry=self.registry)
        self._noted: list[tuple[str, float]] = []

    def note(self, outcome: str, seconds: float) -> None:
        """Note an answer to the hook; it is counted later, when nobody waits for it."""
        self._noted.append((outcome, seconds))

    def count(self) -> None:
        """Count the answers that were noted since the last time."""
        noted, self._noted = self._noted, []
        for outcome, seconds in noted:
            self.answers.labels(outcome).inc()
            self.seconds.observe(seconds)


class State:
    """What both applications share. `refresh` reads the files; the answers to the hook never touch them.

    `new_worker` makes what reports are made in; a thread will do where nobody submits meanwhile.
    `killed` says that the kill switch is on, by default STOP beside the snapshot: no first score then.
    Once a report was asked for, `wants_reports`, the worker reads each new snapshot before the next one is.

    Raises:
        PolicyError: the policy can't be read at the start.
    """

    def __init__(
        self,
        policy: Path,
        snapshot: Path,
        clock: Callable[[], float] = time.time,
        new_worker: Callable[[], Executor] = partial(ThreadPoolExecutor, 1),  # noqa: B008 - makes nothing yet
        kill_switch: Path | None = None,
    ) -> None:
        self.policy = Watched(policy, read_policy)
        self.snapshot = Watched(snapshot, _read_for_hook)
        self.clock = clock
        self.metrics = Metrics()
        self.hook = HookSeen()
        self.metrics.registry.register(StateCollector(self))
        self._agent, self._is_hook = b"", False
        self.killed = ""
        self._kill_switch = kill_switch or snapshot.with_name("STOP")
        self.reports = 0
        self.wants_reports = False
        self._prepared: Snapshot | None = None
        self.new_worker = new_worker
        self.worker = new_worker()
        self.policy.current()
        self.refresh()

    def refresh(self) -> None:
        """Look whether the files changed and read those that did; for a thread beside the answers."""
        self.policy.current()
        self.killed = f"kill switch {self._kill_switch}" if is_there(self._kill_switch) else ""
        try:
            snapshot = self.snapshot.current()
        except SnapshotError as error:
            log.debug("%s", error)  # the answers say so as well
        else:
            self._prepare(snapshot)

    def _prepare(self, snapshot: Snapshot) -> None:
        """Let the worker read a new snapshot."""
        if not self.wants_reports or snapshot is self._prepared:
            return
        self._prepared = snapshot
        # It died, which the next report finds out, or the service is being closed.
        with contextlib.suppress(RuntimeError):
            self.worker.submit(reports.prepare, self.snapshot.path)

    def close(self) -> None:
        """End the worker; what it has begun is finished."""
        self.worker.shutdown(cancel_futures=True)
        gc.unfreeze()

    def age_s(self) -> float | None:
        """Return the snapshot's age in s, None where there is none."""
        try:
            return self.clock() - self.snapshot.latest().cluster.time_s
        except SnapshotError:
            return None

    def saw_hook(self, user_agent: bytes) -> None:
        """Remember who asked, if it was the hook."""
        if user_agent != self._agent:
            self._agent, match = user_agent, _HOOK.fullmatch(user_agent.decode("latin-1"))
            self._is_hook = match is not None
            if match:
                told = (int(match[name] or 0) for name in ("s", "failed", "resting"))
                self.hook = HookSeen(None, match["version"], match["lua"], *told)
        if self._is_hook:
            self.hook.last_s = self.clock()


def _read_for_hook(path: Path) -> Snapshot:
    """A snapshot without its jobs, its nodes put in columns beforehand.

    It lives long and holds no garbage: without this, Python would look through all of it again and
    again, tens of milliseconds in which nobody is answered. What was garbage before goes first.
    """
    gc.collect()
    gc.disable()
    try:
        snapshot = read_snapshot(path, with_jobs=False)
        inventory_of(snapshot.cluster)
    finally:
        gc.freeze()
        gc.enable()
    return snapshot
