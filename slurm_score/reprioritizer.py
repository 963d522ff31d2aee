"""Read the queue, score it, plan the updates, apply them, tell the service: one cycle, or many."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from slurm_score.advice import demand_by_type
from slurm_score.audit import AuditTrail, CycleRecord, Outcome
from slurm_score.brakes import Brakes
from slurm_score.burst import Burst
from slurm_score.contention import gpu_pressure
from slurm_score.errors import ParseError, SlurmError, SlurmScoreError, SnapshotError, shown
from slurm_score.figures import NO_FIGURES, waits_of
from slurm_score.model import SLURM_PARTS, Job, PastRun, Queue, SlurmConfig
from slurm_score.pace import READS
from slurm_score.plan import Plan, SiteFactorUpdate, plan_reset, plan_updates
from slurm_score.policy import Mode, Policy
from slurm_score.profiles import NO_PROFILES, effective, load_of
from slurm_score.run_times import RunTimeKeeper
from slurm_score.score import score_queue, with_offsets
from slurm_score.slurm.gateway import Access, Gateway, UpdateFailure
from slurm_score.snapshot import Snapshot, read_snapshot, write_snapshot
from slurm_score.suitability import remarks, require_right_to_write, require_suitable
from slurm_score.supply import holds_gpus, releases_of, supply_of
from slurm_score.zone import zone_of

MAX_LOGGED = 20
SCRONTAB = "Cannot modify scrontab jobs"
"""Slurm's words for an update of a scrontab job."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """What a cycle did: jobs pending, updates planned, sent and failed, jobs skipped by reason.

    `left_over` updates more are due and wait for the next cycle; `halted` is what stopped the sending.
    """

    mode: Mode
    policy_hash: str
    pending: int
    planned: int
    sent: int
    failures: tuple[UpdateFailure, ...]
    skipped: Mapping[str, int]
    left_over: int = 0
    halted: str = ""

    def __str__(self) -> str:
        """Return the cycle in one line."""
        skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(self.skipped.items())) or "none"
        return (
            f"{self.mode}: {self.pending} pending, {self.planned} to change, {self.sent} sent, "
            f"{len(self.failures)} failed; skipped: {skipped}; {self._waits()}policy {self.policy_hash}"
        )

    def _waits(self) -> str:
        halted = f"{self.halted}; " if self.halted else ""
        return f"{self.left_over} more wait for the next cycle; {halted}" if self.left_over else halted


class _Notes:
    """What the audit is to hear of a cycle, collected on the way."""

    def __init__(self) -> None:
        self.policy: Policy | None = None
        self.outcome: Outcome | None = None
        self.error = ""
        self._start_s = time.time()
        self.seconds = dict.fromkeys(("read", "score", "plan", "write"), 0.0)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Note how long a part of the cycle takes, also where it fails."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = time.perf_counter() - began_s

    def record(self) -> CycleRecord:
        """Return what was noted."""
        return CycleRecord(
            start_s=self._start_s,
            policy=self.policy,
            outcome=self.outcome,
            rpcs=READS + len(self.outcome.sent) if self.outcome else 0,
            error=self.error,
            **{f"{part}_s": seconds for part, seconds in self.seconds.items()},
        )


class Reprioritizer:
    """Keeps a queue in the order of a policy, one cycle at a time.

    `policy` is asked anew each cycle; between cycles it remembers nothing that it couldn't read
    again, except how the earlier runs of requeued jobs ended and how long users' jobs run, which
    saves asking accounting, and which jobs Slurm has told to be scrontab's.
    """

    def __init__(
        self,
        gateway: Gateway,
        policy: Callable[[], Policy],
        snapshot_path: Path,
        brakes: Brakes | None = None,
        audit: AuditTrail | None = None,
        history: Path | None = None,
    ) -> None:
        self._gateway = gateway
        self._audit = audit
        self._profiles = NO_PROFILES
        self._figures = NO_FIGURES
        self._brakes = brakes or Brakes()
        gateway.patience.left_s = self._brakes.left_s
        self._scrontab: frozenset[int] = frozenset()
        self._policy = policy
        self._path = snapshot_path
        self._past: dict[int, tuple[int, tuple[PastRun, ...]]] = {}
        self._remarked: tuple[SlurmConfig, tuple[str, ...]] | None = None
        self._accounting_missed = False
        self._run_times = RunTimeKeeper(gateway, history)
        self._recall()

    def cycle(self) -> CycleReport:
        """Run one cycle and return what it did; whatever becomes of it, the audit hears of it.

        Raises:
            SlurmScoreError: the policy was never good, Slurm can't be read or isn't suitable, or the
                snapshot can't be written. Slurm's order is left as it was, or partly updated.
        """
        notes = _Notes()
        try:
            return self._cycle(notes)
        except SlurmScoreError as error:
            notes.error = str(error)
            raise
        finally:
            if self._audit is not None:
                self._audit.record(notes.record())

    def _cycle(self, notes: "_Notes") -> CycleReport:
        policy = notes.policy = self._policy()
        self._brakes.begin()
        self._gateway.guard.access = Access.READ_ONLY
        halted = self._brakes.killed() if policy.mode is Mode.ENFORCE else ""
        writes = policy.mode is Mode.ENFORCE and not halted
        with notes.timed("read"):
            snapshot = self._in_force(self._read(policy, writes))
        policy, queue, scrontab = snapshot.policy, snapshot.queue(), self._scrontab
        notes.policy = policy
        with notes.timed("score"):
            scores = score_queue(queue, policy)
        with notes.timed("plan"):
            plan = plan_updates(queue, scores, policy, scrontab)
        demand = demand_by_type(queue, with_offsets(scores, queue, policy, plan.offsets))
        snapshot = replace(snapshot, demand=demand, supply=supply_of(queue), offsets=plan.offsets)
        burst = Burst(plan.updates[: self._brakes.most(len(plan.updates))] if writes else ())
        try:
            if writes:
                with notes.timed("write"):
                    self._send(burst)
        finally:
            stopped = halted or burst.halted
            notes.outcome = Outcome(queue, scores, plan, burst.sent, burst.failures, stopped, scrontab)
            due = len(plan.updates) + plan.left_over - len(burst.sent)
            self._figures = self._figures.after(
                waits_of(queue, scores, policy),
                notes.seconds,
                left_over=due if policy.mode is Mode.ENFORCE else 0,
                sent=len(burst.sent),
                failed=len(burst.failures),
                judged=self._run_times.judge.sums,
            )
            write_snapshot(self._path, _applied(replace(snapshot, figures=self._figures), burst))
        if not writes:
            self._log_plan(plan)
        return CycleReport(
            mode=policy.mode,
            policy_hash=policy.hash,
            pending=len(queue),
            planned=len(plan.updates),
            sent=len(burst.sent),
            failures=tuple(burst.failures),
            skipped=plan.skipped,
            left_over=plan.left_over + (len(plan.updates) - len(burst.sent) if writes else 0),
            halted=stopped,
        )

    def _in_force(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the weights of the profile that its time and load call for."""
        written, queue = snapshot.policy, snapshot.queue()
        zone = zone_of(written.timezone)
        policy, self._profiles = effective(written, queue.now_s, load_of(queue), self._profiles, zone)
        return replace(snapshot, policy=policy, profiles=self._profiles)

    def _send(self, burst: Burst) -> None:
        self._gateway.guard.access = Access.ENFORCE
        try:
            burst.send(self._gateway, self._brakes)
        finally:
            self._gateway.guard.access = Access.READ_ONLY
            _log_failures(burst.failures)
            refused = (f.update.job_id for f in burst.failures if SCRONTAB in f.message)
            self._scrontab = self._scrontab.union(refused)

    def _read(self, policy: Policy, writes: bool) -> Snapshot:
        began_s = self._brakes.clock()
        cluster = self._gateway.read_cluster()
        require_suitable(cluster.config, policy)
        identity = self._gateway.read_identity()
        if writes:
            require_right_to_write(identity, cluster.config)
        self._remark(cluster.config, remarks(cluster.config, identity, policy))
        found = self._gateway.read_jobs()
        self._brakes.note_rate(cluster.config, identity)
        self._brakes.note_reads(self._brakes.clock() - began_s)
        self._scrontab = self._scrontab.intersection(job.job_id for job in found)
        by = policy.factors["remaining"]
        self._run_times.refresh(cluster.time_s, by.quantile, by.half_at)
        jobs = self._with_past_runs(found)
        told = policy.advice.time_limit and policy.mode is not Mode.OBSERVE
        predicted = self._run_times.predicted([job for job in jobs if job.pending], cluster)
        running = self._run_times.running(list(filter(holds_gpus, jobs)), cluster)
        predicts = by.predict
        return Snapshot(
            policy=policy,
            cluster=cluster,
            pressure=gpu_pressure(jobs, cluster),
            releases=releases_of(jobs, cluster, running if predicts else {}),
            run_times=self._run_times.usual if told else {},
            estimator=self._run_times.estimator,
            predicted=predicted if predicts else {},
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
            last = read_snapshot(self._path)
        except SnapshotError:
            return  # a first start, or a new release: accounting is asked again
        self._profiles = last.profiles
        self._figures, self._run_times.judge.sums = last.figures, last.figures.judged
        whole = (job for job in last.jobs if job.restarts and len(job.past_runs) >= job.restarts)
        self._past = {job.job_id: (job.restarts, job.past_runs) for job in whole}

    def _remark(self, config: SlurmConfig, sentences: tuple[str, ...]) -> None:
        """Log what Slurm this is and what is to be known of it, again only when it changes."""
        if self._remarked == (config, sentences):
            return
        self._remarked = (config, sentences)
        log.info("Slurm %s, cluster %s, %s", config.release, config.cluster, config.priority_type)
        for sentence in sentences:
            log.warning("%s", sentence)

    def _log_plan(self, plan: Plan) -> None:
        for update in plan.updates[:MAX_LOGGED]:
            log.info("would set JobId=%s SiteFactor=%d", update.update_id, update.value)


def plan_of_reset(gateway: Gateway, brakes: Brakes, partitions: Collection[str] = ()) -> Plan:
    """Return the updates that put SiteFactors back to 0, of the jobs of some partitions where any are named.

    The brakes are told how many of them slurmctld takes in a second.

    Raises:
        ParseError: there is no such partition.
        SlurmError: Slurm can't be read, or refuses us the right.
    """
    cluster = gateway.read_cluster()
    identity = gateway.read_identity()
    require_right_to_write(identity, cluster.config)
    brakes.note_rate(cluster.config, identity)
    unknown = sorted(set(partitions) - cluster.partitions.keys())
    if unknown:
        known = ", ".join(sorted(cluster.partitions))
        raise ParseError("--partition: no such partition", ",".join(unknown), f"there are {known}")
    jobs = gateway.read_jobs()
    if partitions:
        jobs = tuple(job for job in jobs if not set(partitions).isdisjoint(job.partitions))
    return plan_reset(Queue(jobs=jobs, cluster=cluster, now_s=cluster.time_s))


def reset(
    gateway: Gateway,
    plan: Plan,
    brakes: Brakes,
    progress: Callable[[int], None] = lambda _: None,
) -> Burst:
    """Put the SiteFactors of a plan of reset back to 0; return what was sent and what failed.

    Raises:
        SlurmError: Slurm failed on the way. A second plan has what is left to do.
    """
    gateway.guard.access = Access.RESET
    burst = Burst(plan.updates)
    try:
        burst.send(gateway, brakes, progress)
    finally:
        _log_failures(burst.failures)
    return burst


def _log_failures(failures: Sequence[UpdateFailure]) -> None:
    """Log the failed updates by Slurm's sentence: a job that started or ended meanwhile is no news."""
    first: dict[str, SiteFactorUpdate] = {}
    for failure in reversed(failures):
        first[failure.message] = failure.update
    counts = Counter(failure.message for failure in failures)
    for sentence, update in first.items():
        log.warning(
            "%d updates failed, JobId=%s first: %s", counts[sentence], update.update_id, shown(sentence)
        )


def _applied(snapshot: Snapshot, burst: Burst) -> Snapshot:
    """Return the snapshot with the SiteFactors that Slurm now holds, and the priorities that follow."""
    failed = {failure.update.job_id for failure in burst.failures}
    held = {update.job_id: update.value for update in burst.sent if update.job_id not in failed}
    jobs = tuple(_with_site(job, held[job.job_id]) if job.job_id in held else job for job in snapshot.jobs)
    return replace(snapshot, jobs=jobs)


def _with_site(job: Job, site: int) -> Job:
    """Return a job as Slurm holds it after an update: 1 is the least priority that isn't held.

    Where it was 1 before, only the parts tell what it had added up to.
    """
    own = job.priority - (job.site_factor or 0)
    if job.priority == 1:
        parts = dict(zip(SLURM_PARTS, job.slurm_parts, strict=False))
        own = sum(parts.values()) - 2 * parts.get("nice", 0)
    return replace(job, site_factor=site, priority=max(1, site + own))
