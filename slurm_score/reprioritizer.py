"""Read the queue, score it, plan the updates, apply them, tell the service: one cycle, or many."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from slurm_score.advice import demand_by_type
from slurm_score.errors import SlurmError, SlurmScoreError, SnapshotError, shown
from slurm_score.inventory import gpu_pressure
from slurm_score.model import Cluster, Job, PastRun, Queue, SlurmConfig
from slurm_score.plan import Plan, SiteFactorUpdate, plan_reset, plan_updates
from slurm_score.policy import Mode, Policy
from slurm_score.run_times import RunTimeKeeper
from slurm_score.score import score_queue
from slurm_score.slurm.gateway import Access, Gateway, UpdateFailure
from slurm_score.snapshot import Snapshot, read_snapshot, write_snapshot
from slurm_score.suitability import remarks, require_right_to_write, require_suitable

MAX_LOGGED = 20

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """What a cycle did: jobs pending, updates planned, sent and failed, jobs skipped by reason."""

    mode: Mode
    policy_hash: str
    pending: int
    planned: int
    sent: int
    failures: tuple[UpdateFailure, ...]
    skipped: Mapping[str, int]

    def __str__(self) -> str:
        """Return the cycle in one line."""
        skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(self.skipped.items())) or "none"
        return (
            f"{self.mode}: {self.pending} pending, {self.planned} to change, {self.sent} sent, "
            f"{len(self.failures)} failed; skipped: {skipped}; policy {self.policy_hash}"
        )


class Reprioritizer:
    """Keeps a queue in the order of a policy, one cycle at a time.

    `policy` is asked anew each cycle; between cycles it remembers nothing that it couldn't read
    again, except how the earlier runs of requeued jobs ended and how long users' jobs run, which
    saves asking accounting.
    """

    def __init__(self, gateway: Gateway, policy: Callable[[], Policy], snapshot_path: Path) -> None:
        self._gateway = gateway
        self._policy = policy
        self._path = snapshot_path
        self._past: dict[int, tuple[int, tuple[PastRun, ...]]] = {}
        self._remarked: tuple[SlurmConfig, tuple[str, ...]] | None = None
        self._accounting_missed = False
        self._run_times = RunTimeKeeper(gateway)
        self._recall()

    def cycle(self) -> CycleReport:
        """Run one cycle and return what it did.

        Raises:
            SlurmScoreError: the policy was never good, Slurm can't be read or isn't suitable, or the
                snapshot can't be written. Slurm's order is left as it was, or partly updated.
        """
        policy = self._policy()
        enforce = policy.mode is Mode.ENFORCE
        self._gateway.guard.access = Access.ENFORCE if enforce else Access.READ_ONLY
        snapshot = self._read(policy)
        queue = snapshot.queue()
        scores = score_queue(queue, policy)
        plan = plan_updates(queue, scores, policy)
        queue = replace(queue, offsets=plan.offsets)
        demand = demand_by_type(queue, score_queue(queue, policy))
        snapshot = replace(snapshot, demand=demand, offsets=plan.offsets)
        failures: tuple[UpdateFailure, ...] = ()
        try:
            if enforce:
                failures = self._gateway.write_site_factors(plan.updates)
                snapshot = _applied(snapshot, plan, failures)
        finally:
            write_snapshot(self._path, snapshot)
        return self._report(policy, len(queue), plan, failures)

    def run(self, every_s: float, stop: threading.Event) -> None:
        """Run cycles until `stop` is set; a cycle that fails is logged and the next one tried."""
        while not stop.is_set():
            try:
                log.info("%s", self.cycle())
            except SlurmScoreError as error:
                log.error("cycle given up: %s", error)
            stop.wait(every_s)

    def _read(self, policy: Policy) -> Snapshot:
        cluster = self._gateway.read_cluster()
        require_suitable(cluster.config, policy)
        identity = self._gateway.read_identity()
        if policy.mode is Mode.ENFORCE:
            require_right_to_write(identity, cluster.config)
        self._remark(cluster.config, remarks(cluster.config, identity, policy))
        jobs = self._with_past_runs(self._gateway.read_jobs())
        told = policy.advice.time_limit and policy.mode is not Mode.OBSERVE
        return Snapshot(
            policy=policy,
            cluster=cluster,
            pressure=gpu_pressure(jobs, cluster),
            run_times=self._run_times.current(cluster.time_s) if told else {},
            jobs=jobs,
        )

    def _with_past_runs(self, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        restarted = {job.job_id: job.restarts for job in jobs if job.restarts and job.pending}
        self._past = {i: known for i, known in self._past.items() if restarted.get(i) == known[0]}
        unknown = sorted(restarted.keys() - self._past.keys())
        found = self._ask_past_runs(unknown)
        # accounting hears of a run's end a little later: what isn't complete is asked for again
        self._past |= {i: (restarted[i], runs) for i, runs in found.items() if len(runs) >= restarted[i]}
        known = found | {i: runs for i, (_, runs) in self._past.items()}
        return tuple(
            replace(job, past_runs=known[job.job_id]) if job.job_id in known else job for job in jobs
        )

    def _ask_past_runs(self, job_ids: list[int]) -> dict[int, tuple[PastRun, ...]]:
        try:
            return dict(self._gateway.read_past_runs(job_ids))
        except SlurmError as error:
            if not self._accounting_missed:
                log.warning("requeued jobs count their wait from the requeue: %s", error)
            self._accounting_missed = True
            return {}

    def _recall(self) -> None:
        try:
            jobs = read_snapshot(self._path).jobs
        except SnapshotError:
            return  # a first start, or a new release: accounting is asked again
        whole = (job for job in jobs if job.restarts and len(job.past_runs) >= job.restarts)
        self._past = {job.job_id: (job.restarts, job.past_runs) for job in whole}

    def _remark(self, config: SlurmConfig, sentences: tuple[str, ...]) -> None:
        """Log what Slurm this is and what is to be known of it, again only when it changes."""
        if self._remarked == (config, sentences):
            return
        self._remarked = (config, sentences)
        log.info("Slurm %s, cluster %s, %s", config.release, config.cluster, config.priority_type)
        for sentence in sentences:
            log.warning("%s", sentence)

    def _report(
        self, policy: Policy, pending: int, plan: Plan, failures: tuple[UpdateFailure, ...]
    ) -> CycleReport:
        enforce = policy.mode is Mode.ENFORCE
        if not enforce:
            for update in plan.updates[:MAX_LOGGED]:
                log.info("would set JobId=%s SiteFactor=%d", update.update_id, update.value)
        _log_failures(failures)
        return CycleReport(
            mode=policy.mode,
            policy_hash=policy.hash,
            pending=pending,
            planned=len(plan.updates),
            sent=len(plan.updates) if enforce else 0,
            failures=failures,
            skipped=plan.skipped,
        )


def reset(gateway: Gateway) -> tuple[Plan, tuple[UpdateFailure, ...]]:
    """Put the SiteFactors of pending jobs back to 0; return what was planned and what failed.

    Raises:
        SlurmError: Slurm can't be read, or refuses us the right; nothing was changed.
    """
    require_right_to_write(gateway.read_identity(), gateway.read_config())
    plan = plan_reset(Queue(jobs=gateway.read_jobs(), cluster=Cluster(time_s=0.0), now_s=0.0))
    gateway.guard.access = Access.RESET
    failures = gateway.write_site_factors(plan.updates)
    _log_failures(failures)
    return plan, failures


def _log_failures(failures: tuple[UpdateFailure, ...]) -> None:
    """Log the failed updates by Slurm's sentence: a job that started or ended meanwhile is no news."""
    first: dict[str, SiteFactorUpdate] = {}
    for failure in reversed(failures):
        first[failure.message] = failure.update
    counts = Counter(failure.message for failure in failures)
    for sentence, update in first.items():
        log.warning(
            "%d updates failed, JobId=%s first: %s", counts[sentence], update.update_id, shown(sentence)
        )


def _applied(snapshot: Snapshot, plan: Plan, failures: tuple[UpdateFailure, ...]) -> Snapshot:
    """Return the snapshot with the SiteFactors that Slurm now holds."""
    failed = {failure.update.job_id for failure in failures}
    held = {update.job_id: update.value for update in plan.updates if update.job_id not in failed}
    jobs = tuple(
        replace(job, site_factor=held[job.job_id]) if job.job_id in held else job for job in snapshot.jobs
    )
    return replace(snapshot, jobs=jobs)
