"""A Slurm that behaves, in memory and on a clock of its own: for tests, demos and sites without one.

FakeSlurm is a Gateway. Beside that it takes what sbatch, scancel and scontrol do, schedules, and moves
its clock from event to event when told to. Nothing happens by itself and nothing is left to chance:
the same calls give the same schedule.

Not in it: memory, features, reservations, fairshare, priority tiers, preemption, the limits of
associations and QOS. A pass of the scheduler is run when something ends or becomes eligible, not every
sched_interval, and a het job is started by the main scheduler where Slurm leaves it to backfill.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_score.errors import CommandFailedError, ParseError, SlurmScoreError
from slurm_score.gres import GpuCount
from slurm_score.model import Cluster, Job, Node, Partition, PastRun, SlurmConfig
from slurm_score.slurm.fake_jobs import JobList, JobRun, Need, Record, Submission, expand_array, work_out_need
from slurm_score.slurm.fake_scheduler import (
    Multifactor,
    Placed,
    SchedulerPass,
    Unit,
    occupied,
    place,
    scheduling_order,
)
from slurm_score.slurm.gateway import Identity, SiteFactorUpdate, UpdateFailure, WriteGuard
from slurm_score.units import DAY_S

__all__ = ["FakeSlurm", "JobRun", "JobSubmit", "Submission"]

MAX_SITE_FACTOR = 2**31 - 3
NO_VAL = -2  # a site_factor that a job_submit script sets to this stays unset
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
SLURM_USER = "slurm"

_FACTORS = ("age", "assoc", "fairshare", "job_size", "partition", "qos", "tres")
_FIRST_UID = 1000
_REQUEUE_STATES = {"user": "REQUEUED", "node_fail": "NODE_FAIL", "preempted": "PREEMPTED"}

_OUT_OF_RANGE = f"SiteFactor value out of range (+/- {MAX_SITE_FACTOR})"
_INVALID_ID = "Invalid job id specified"
_FINISHED = "Job/step already completing or completed"
_DENIED = "Access/permission denied"
_NOT_YOURS = "Invalid user id"
_HELD = "Job is in held state"
_NOT_PENDING = "Job is no longer pending execution"
_STILL_PENDING = "Job is pending execution"

JobSubmit = Callable[[dict[str, Any]], Mapping[str, Any]]


class FakeSlurm:
    """A cluster, its queue and its clock; a Gateway that starts out read-only.

    The order of the nodes stands for their Weight, and what they say is in use is forgotten.
    `priority_weights` maps age, qos and job_size to PriorityWeights, `admin_levels` a user to an
    AdminLevel; `user` is who we are. `job_submit` is called with what the job_submit hook sends and
    answers with `site_factor` and `advice`; a failure of it never costs anybody a submission.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        partitions: Iterable[Partition],
        qos: Mapping[str, int],
        *,
        start_s: int = START_S,
        priority_weights: Mapping[str, int] | None = None,
        max_age_s: float = 7 * DAY_S,
        admin_levels: Mapping[str, str] | None = None,
        user: str = SLURM_USER,
        job_submit: JobSubmit | None = None,
        backfill: bool = False,
    ) -> None:
        self.guard, self.update_count = WriteGuard(), 0
        self._now_s, self._user, self._backfill, self._job_submit = start_s, user, backfill, job_submit
        self._admin_levels, self._uids = dict(admin_levels or {}), dict[str, int]()
        self._jobs = JobList()
        self._nodes = {node.name: _emptied(node) for node in nodes}
        self._partitions = {p.name: self._sized(p) for p in partitions}
        self._priority = Multifactor(
            weights=dict.fromkeys(_FACTORS, 0) | dict(priority_weights or {}),
            max_age_s=max_age_s,
            qos=dict(qos),
            nodes=len(self._nodes),
            cpus=sum(node.cpus for node in self._nodes.values()),
        )

    # The gateway

    def read_config(self) -> SlurmConfig:
        """Return the configuration of a Slurm 24.11.5 with priority/multifactor and no site factor plugin."""
        return SlurmConfig(
            cluster="fake",
            release="24.11.5",
            slurm_user=SLURM_USER,
            priority_type="priority/multifactor",
            priority_weights=dict(self._priority.weights),
        )

    def read_cluster(self) -> Cluster:
        """Return configuration, partitions, nodes with what is in use, and QOS, by the virtual clock."""
        taken = (share for record in self._jobs.active() for share in record.shares)
        return Cluster(
            time_s=self._now_s,
            config=self.read_config(),
            partitions=dict(self._partitions),
            nodes=tuple(_with_states(node) for node in occupied(self._nodes.values(), taken)),
            qos=dict(self._priority.qos),
        )

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the pending and running job records by job id, with the SiteFactors that sprio shows."""
        self._recompute_priorities()
        return tuple(
            record.job(self._now_s, self._limit_of(record), self._dependency_text(record))
            for record in self._jobs.active()
        )

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the earlier runs of those jobs that were requeued, oldest first."""
        records = [record for job_id in job_ids if (record := self._jobs.get(job_id)) is not None]
        return {record.job_id: record.past_runs for record in records if record.past_runs}

    def read_identity(self) -> Identity:
        """Return who we are, with AdminLevel None for whom none was given."""
        return Identity(self._user, self._admin_levels.get(self._user, "None"))

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Set SiteFactors one after the other; return the updates that failed, with Slurm's sentence.

        `update_count` goes up by one for each update that reached a job. One that is made of several
        records is reported with the first sentence and keeps what was carried out, as in Slurm.

        Raises:
            WriteRefusedError: the guard doesn't permit it; nothing was changed.

        Source: slurm src/slurmctld/job_mgr.c, update_job_str, _update_job.
        """
        self.guard.permit(updates)
        return tuple(UpdateFailure(update, why) for update in updates if (why := self._update(update)))

    # sbatch

    def submit(self, submission: Submission) -> int:
        """Return the job id of a job as sbatch would send it, of the array where it is one.

        Raises:
            CommandFailedError: slurmctld rejects it; the sentence is Slurm's.
        """
        record = self._create(submission)
        self._jobs.add(record)
        return record.job_id

    def submit_het(self, components: Sequence[Submission]) -> int:
        """Return the leader's job id of a het job; the components start and end together.

        The leader's run time is that of all, since its batch script is the job's.

        Raises:
            CommandFailedError: slurmctld rejects one of the components, and with it the job.
        """
        run_time_s = components[0].run_time_s
        records: list[Record] = []
        for offset, component in enumerate(components):
            record = self._create(replace(component, run_time_s=run_time_s), offset)
            record.het_job_id = records[0].job_id if records else record.job_id
            records.append(record)
        for record in records:
            self._jobs.add(record)
        return records[0].job_id

    def advice_of(self, job_id: int) -> tuple[str, ...]:
        """Return the lines that sbatch printed for its user when the job was submitted."""
        return self._record(job_id).advice

    # scancel and scontrol, as an administrator

    def hold(self, job_id: int | str, reason: str = "JobHeldUser") -> None:
        """Set a job's priority to 0; `JobHeldAdmin` is the reason when an operator does it.

        Raises:
            CommandFailedError: there is no such job, or it is not pending.
        """
        for record in self._pending(job_id):
            _hold(record, reason)

    def release(self, job_id: int | str) -> None:
        """Let a held job go, or unpin a pinned one, whose nice becomes 0; its age starts anew after a hold.

        Raises:
            CommandFailedError: there is no such job, or it is not pending.

        Source: slurm src/slurmctld/job_mgr.c, _release_job_rec, _update_job.
        """
        for record in self._pending(job_id):
            if record.held:
                record.priority, record.reason = 1, "None"
                record.accrue_s = None if record.eligible_s is None else max(self._now_s, record.eligible_s)
                self._test_eligibility(record)
            elif record.pinned:
                record.pinned, record.nice = False, 0

    def update_priority(self, job_id: int | str, priority: int) -> None:
        """Pin a job's priority: it is never recomputed and the nice becomes 0. Priority 0 holds the job.

        Raises:
            CommandFailedError: there is no such job, it is not pending, or it is held.

        Source: slurm src/slurmctld/job_mgr.c, _update_job: direct_set_prio.
        """
        if priority == 0:
            self.hold(job_id, "JobHeldAdmin")
            return
        for record in self._pending(job_id):
            if record.held:
                raise _failed("scontrol", _HELD)
            record.priority, record.pinned, record.nice = priority, True, 0

    def requeue(self, job_id: int | str, by: str = "user") -> None:
        """Put a running job back into the queue; `by` is user, node_fail or preempted.

        Its submit time becomes now, and an earlier run more is in `read_past_runs`. SiteFactor and
        pinned priority stay.

        Raises:
            CommandFailedError: there is no such job, or it is not running.
        """
        records = self._existing(job_id)
        running = [record for record in records if record.running]
        if not running:
            raise _failed("scontrol", _STILL_PENDING if any(r.pending for r in records) else _FINISHED)
        for record in running:
            self._requeue(record, _REQUEUE_STATES[by])

    def cancel(self, job_id: int | str) -> None:
        """End a job as CANCELLED, pending or running; a het job as a whole.

        Raises:
            CommandFailedError: there is no such job, or it has ended.
        """
        active = [record for record in self._existing(job_id) if not record.finished]
        if not active:
            raise _failed("scancel", _FINISHED)
        for record in active:
            self._end(record, "CANCELLED")

    def break_constraints(self, job_id: int | str) -> None:
        """Make the constraints of a pending job such that no node meets them.

        The next pass of the scheduler holds it with BadConstraints, and each pass after an update of
        any kind, which lets go of such a job, holds it again.

        Source: slurm src/slurmctld/job_scheduler.c, _schedule; job_mgr.c, _update_job.
        """
        for record in self._pending(job_id):
            record.constraints_fail = True

    def drain(self, node: str) -> None:
        """Let no more jobs start on a node; what runs there goes on."""
        self._set_node(node, False, "DRAIN")

    def resume(self, node: str) -> None:
        """Let jobs start on a node again."""
        self._set_node(node, True, "IDLE")

    def fail(self, node: str) -> None:
        """Take a node down; its jobs are requeued as NODE_FAIL, het jobs as a whole."""
        self._set_node(node, False, "DOWN")
        for record in self._jobs.active():
            if any(share.node == node for share in record.shares):
                for component in self._jobs.whole(record):
                    self._requeue(component, "NODE_FAIL")

    def update_partition(self, name: str, *, up: bool) -> None:
        """Set a partition's state to UP or DOWN; jobs that run in it go on."""
        self._partitions[name] = replace(self._partitions[name], up=up)

    # The clock

    @property
    def now_s(self) -> int:
        """The virtual clock, in seconds since the epoch."""
        return self._now_s

    def schedule(self) -> tuple[int, ...]:
        """Run the scheduler once; return the job ids of what it started, in that order."""
        for record in self._jobs.active():
            self._test_eligibility(record)
            if record.pending and record.constraints_fail and not record.held:
                _hold(record, "BadConstraints")
        self._recompute_priorities()
        running = [record for record in self._jobs.active() if record.running]
        before = len(running)
        SchedulerPass(
            now_s=self._now_s,
            nodes=tuple(self._nodes.values()),
            partitions=self._partitions,
            running=running,
            start=self._start,
            backfill=self._backfill,
        ).run(self._units())
        return tuple(record.job_id for record in running[before:])

    def next_event_s(self) -> int | None:
        """Return when the next job ends or a begin time comes, by the virtual clock; None for never."""
        active = self._jobs.active()
        begins = [r.submission.begin_s for r in active if r.pending and r.submission.begin_s is not None]
        ends = [record.ends_s for record in active if record.running]
        next_s = min([*(begin_s for begin_s in begins if begin_s > self._now_s), *ends], default=math.inf)
        return None if math.isinf(next_s) else math.ceil(next_s)

    def advance(self, to_s: int) -> None:
        """Move the clock to a time, through all that happens until then, that time included.

        A pass of the scheduler is run first of all, and at each event after everything that ends then
        has ended.

        Raises:
            ValueError: the time is past.
        """
        if to_s < self._now_s:
            raise ValueError(f"the clock goes forward only, got {to_s} at {self._now_s}")
        self.schedule()
        while (event_s := self.next_event_s()) is not None and event_s <= to_s:
            self._step(event_s)
        self._now_s = to_s

    def run_until_idle(self, limit_s: int = 365 * DAY_S) -> int:
        """Move the clock as long as anything happens, for `limit_s` at most; return its time.

        What is held, or waits for what never comes, stays in the queue.
        """
        last_s = self._now_s + limit_s
        self.schedule()
        while (event_s := self.next_event_s()) is not None and event_s <= last_s:
            self._step(event_s)
        return self._now_s

    # What a test or a demo wants to know

    @property
    def history(self) -> Mapping[int, JobRun]:
        """What became of every job record so far, by job id."""
        return {record.job_id: record.run() for record in self._jobs}

    @property
    def started(self) -> Mapping[int, JobRun]:
        """What became of the job records that have started, by job id, in order of their start."""
        runs = [(run.start_s, run) for run in self.history.values() if run.start_s is not None]
        return {run.job_id: run for _, run in sorted(runs, key=lambda pair: pair[0])}

    def site_factor_of(self, job_id: int) -> int:
        """Return the SiteFactor that slurmctld holds of a record, where sprio doesn't show it as well."""
        return self._record(job_id).site_factor

    # Submission

    def _create(self, submission: Submission, het_offset: int | None = None) -> Record:
        site_factor, advice = self._ask_job_submit(submission, het_offset)
        need, tasks, throttle = _parsed(submission, het_offset)
        record = Record(
            job_id=0,
            submission=submission,
            need=need,
            partitions=self._valid_partitions(submission, need),
            qos=self._valid_qos(submission),
            submit_s=self._now_s,
            nice=submission.nice,
            site_factor=site_factor,
            advice=advice,
            tasks=tasks,
            throttle=throttle,
            het_offset=het_offset,
        )
        if submission.dependency is not None and self._jobs.get(submission.dependency) is None:
            raise _rejected("Job dependency problem")
        record.job_id = self._jobs.new_id()
        record.array_job_id = record.job_id if tasks else None
        if submission.hold:
            _hold(record, "JobHeldUser")
        elif not tasks:  # slurmctld makes an array eligible at the scheduler's next pass
            self._test_eligibility(record)
        return record

    def _ask_job_submit(self, submission: Submission, het_offset: int | None) -> tuple[int, tuple[str, ...]]:
        if self._job_submit is None:
            return 0, ()
        uid = self._uids.setdefault(submission.user, _FIRST_UID + len(self._uids))
        try:
            reply = self._job_submit(submission.job_desc(uid, het_offset))
        except (SlurmScoreError, OSError):
            return 0, ()
        return _valid_site_factor(reply.get("site_factor")), tuple(reply.get("advice") or ())

    def _valid_partitions(self, submission: Submission, need: Need) -> tuple[str, ...]:
        default = next((p.name for p in self._partitions.values() if p.default), "")
        names = tuple(name for name in (submission.partition or default).split(",") if name)
        if not names:
            raise _rejected("No partition specified or system default partition")
        if not self._partitions.keys() >= set(names):
            raise _rejected("Invalid partition name specified")
        nodes = [replace(node, usable=True) for node in self._nodes.values()]
        if not any(place(need, [node for node in nodes if name in node.partitions]) for name in names):
            raise _rejected("Requested node configuration is not available")
        return names

    def _valid_qos(self, submission: Submission) -> str:
        default = "normal" if "normal" in self._priority.qos else next(iter(self._priority.qos), "")
        qos = submission.qos or default
        if qos not in self._priority.qos:
            raise _rejected("Invalid qos specification")
        return qos

    # Records

    def _record(self, job_id: int) -> Record:
        record = self._jobs.get(job_id)
        if record is None:
            raise _failed("scontrol", _INVALID_ID)
        return record

    def _existing(self, job_id: int | str) -> list[Record]:
        records = self._jobs.select(str(job_id))
        if None in records:
            raise _failed("scontrol", _INVALID_ID)
        return [record for record in records if record is not None]

    def _pending(self, job_id: int | str) -> list[Record]:
        records = self._existing(job_id)
        pending = [record for record in records if record.pending]
        if not pending:
            raise _failed("scontrol", _FINISHED if all(r.finished for r in records) else _NOT_PENDING)
        return pending

    def _update(self, update: SiteFactorUpdate) -> str:
        if abs(update.value) > MAX_SITE_FACTOR:
            return _OUT_OF_RANGE
        records = self._jobs.select(update.update_id)
        results = [_INVALID_ID if r is None else self._set_site_factor(r, update.value) for r in records]
        self.update_count += "" in results
        return next((sentence for sentence in results if sentence), "")

    def _set_site_factor(self, record: Record, value: int) -> str:
        is_operator = self.read_identity().may_set_site_factor(SLURM_USER)
        if not is_operator and record.submission.user != self._user:
            return _NOT_YOURS
        if record.finished:
            return _FINISHED
        if not is_operator:
            return _DENIED
        record.site_factor = value
        if record.held and record.reason == "BadConstraints":
            record.priority, record.reason = 1, "None"
        return ""

    def _recompute_priorities(self) -> None:
        for record in self._jobs.active():
            if record.pending and not record.held and not record.pinned:
                record.priority = self._priority.priority(record, self._now_s)

    def _test_eligibility(self, record: Record) -> None:
        if not record.pending or record.held:
            return
        state = self._dependency_state(record)
        if state:
            record.reason = "Dependency" if state == "unfulfilled" else "DependencyNeverSatisfied"
            return
        if record.eligible_s is None:
            record.eligible_s = max(self._now_s, record.submission.begin_s or 0)
            record.accrue_s = record.accrue_s or record.eligible_s
        if record.eligible_s > self._now_s:
            record.reason = "BeginTime"
        elif record.reason in {"Dependency", "BeginTime"}:
            record.reason = "None"

    def _dependency_state(self, record: Record) -> str:
        if record.submission.dependency is None:
            return ""
        others = self._jobs.all_of(record.submission.dependency)
        if not all(other.finished for other in others):
            return "unfulfilled"
        return "" if all(other.state == "COMPLETED" for other in others) else "failed"

    def _dependency_text(self, record: Record) -> str:
        state, job_id = self._dependency_state(record), record.submission.dependency
        if not state or job_id is None or not record.pending:
            return ""
        return f"afterok:{job_id}{'_*' if self._record(job_id).array_job_id == job_id else ''}({state})"

    def _limit_of(self, record: Record) -> float:
        return record.limit_s if record.running else record.limit_in(self._partitions[record.partitions[0]])

    # Events

    def _units(self) -> list[Unit]:
        ready = sorted((r for r in self._jobs.active() if r.eligible(self._now_s)), key=scheduling_order)
        heads = [r for r in ready if r.het_job_id in {None, r.job_id}]
        units = [self._jobs.whole(record) for record in heads]
        return [unit for unit in units if all(record.eligible(self._now_s) for record in unit)]

    def _start(self, placed: Placed) -> Record:
        record = placed.record
        if record.tasks:
            record = self._jobs.split(record, record.tasks[0])
        record.state, record.reason, record.start_s = "RUNNING", "None", self._now_s
        record.partition, record.shares = placed.partition.name, placed.shares
        record.limit_s = record.limit_in(placed.partition)
        return record

    def _step(self, event_s: int) -> None:
        self._now_s = event_s
        for record in self._jobs.active():
            if record.running and record.ends_s <= self._now_s:
                self._end(record, "COMPLETED" if record.done_s <= record.latest_end_s else "TIMEOUT")
        self.schedule()

    def _end(self, ended: Record, state: str) -> None:
        for record in self._jobs.whole(ended):
            record.state, record.reason, record.end_s, record.shares = state, "None", self._now_s, ()
            self._jobs.retire(record)

    def _requeue(self, record: Record, state: str) -> None:
        waited_since_s = max(record.eligible_s or record.submit_s, record.submit_s)
        wait_s = (record.start_s or self._now_s) - waited_since_s
        record.past_runs = (*record.past_runs, PastRun(state, wait_s))
        record.state, record.reason, record.submit_s = "PENDING", "None", self._now_s
        record.eligible_s = record.accrue_s = record.start_s = None
        record.partition, record.shares, record.limit_s = "", (), math.inf
        self._test_eligibility(record)

    # Nodes

    def _sized(self, partition: Partition) -> Partition:
        cpus = sum(node.cpus for node in self._nodes.values() if partition.name in node.partitions)
        return replace(partition, cpus=partition.cpus or cpus)

    def _set_node(self, name: str, usable: bool, state: str) -> None:
        if name not in self._nodes:
            raise _failed("scontrol", "Invalid node name specified")
        self._nodes[name] = replace(self._nodes[name], usable=usable, states=(state,))


def _emptied(node: Node) -> Node:
    state = "IDLE" if node.usable else "DOWN" if "DOWN" in node.states else "DRAIN"
    return replace(node, states=(state,), cpus_used=0, mem_used_mib=0, gpus_used=GpuCount())


def _with_states(node: Node) -> Node:
    if "DOWN" in node.states:
        return node
    in_use = "IDLE" if not node.cpus_used else "MIXED" if node.cpus_used < node.cpus else "ALLOCATED"
    return replace(node, states=(in_use,) if node.usable else (in_use, "DRAIN"))


def _parsed(submission: Submission, het_offset: int | None) -> tuple[Need, tuple[int, ...], int | None]:
    try:
        need = work_out_need(submission)
    except ParseError as error:
        raise _rejected("Invalid generic resource (gres) specification") from error
    if need.gpus.total and need.gpus_per_node.total:
        raise _rejected("Invalid generic resource (gres) specification")
    if not submission.array:
        return need, (), None
    try:
        tasks, throttle = expand_array(submission.array)
    except ParseError as error:
        raise _rejected("Invalid job array specification") from error
    if not tasks or het_offset is not None:
        raise _rejected("Invalid job array specification")
    return need, tasks, throttle


def _valid_site_factor(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if abs(value) <= MAX_SITE_FACTOR and value != NO_VAL else 0


def _hold(record: Record, reason: str) -> None:
    record.priority, record.pinned, record.reason, record.accrue_s = 0, False, reason, None


def _rejected(sentence: str) -> CommandFailedError:
    return _failed("sbatch", f"Batch job submission failed: {sentence}")


def _failed(command: str, sentence: str) -> CommandFailedError:
    return CommandFailedError(sentence, argv=(command,), returncode=1, stderr=sentence)
