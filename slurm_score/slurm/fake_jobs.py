"""The fake Slurm's jobs: the records that slurmctld keeps of them, and what ids stand for. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

from slurm_score.errors import ParseError
from slurm_score.factors.remaining import claimed_s
from slurm_score.gres import GpuCount
from slurm_score.hints import parse_hints
from slurm_score.jobid import JobId, parse_job_id
from slurm_score.model import EndedRun, Job, Partition, PastRun
from slurm_score.predict.kinds import kind_of_name
from slurm_score.slurm.fake_submission import Need, Submission, expand_array, format_tasks


@dataclass(frozen=True, slots=True)
class Share:
    """What a job takes of one node."""

    node: str
    cpus: int
    gpus: GpuCount


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """What became of a job record: times are by the virtual clock, None for what has not happened.

    `start_s` and `end_s` are those of its last run, `state` is accounting's word.
    """

    job_id: int
    label: str
    name: str
    state: str
    submit_s: int
    eligible_s: int | None
    start_s: int | None
    end_s: int | None


@dataclass(slots=True, kw_only=True)
class Record:
    """One job record of slurmctld: a job, the tasks of an array not split off yet, or a het component.

    `priority` 0 is held, whatever `reason` says; `accrue_s` is since when it gains age; `limit_s` is
    the time limit in force while it runs.
    """

    job_id: int
    submission: Submission
    need: Need
    partitions: tuple[str, ...]
    qos: str
    submit_s: int
    nice: int
    site_factor: int = 0
    advice: tuple[str, ...] = ()
    array_job_id: int | None = None
    task: int | None = None
    tasks: tuple[int, ...] = ()
    throttle: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None
    state: str = "PENDING"
    reason: str = "None"
    priority: int = 1
    pinned: bool = False
    constraints_fail: bool = False
    eligible_s: int | None = None
    accrue_s: int | None = None
    start_s: int | None = None
    end_s: int | None = None
    limit_s: float = math.inf
    partition: str = ""
    shares: tuple[Share, ...] = ()
    past_runs: tuple[PastRun, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether it waits to start."""
        return self.state == "PENDING"

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.state == "RUNNING"

    @property
    def finished(self) -> bool:
        """Whether it has ended for good."""
        return not self.pending and not self.running

    @property
    def held(self) -> bool:
        """Whether it is at priority 0."""
        return self.priority == 0

    @property
    def id(self) -> JobId:
        """Its id as squeue prints it."""
        if self.array_job_id is None:
            return JobId(self.het_job_id or self.job_id, het_offset=self.het_offset)
        throttle = self.throttle if self.tasks else None
        return JobId(self.array_job_id, self.task, format_tasks(self.tasks), throttle)

    def eligible(self, now_s: int) -> bool:
        """Return whether it could start by now, as far as holds, begin time and dependency go."""
        return self.pending and not self.held and self.eligible_s is not None and self.eligible_s <= now_s

    def limit_in(self, partition: Partition) -> float:
        """Return its time limit in s in a partition, `math.inf` where there is none.

        Source: slurm.conf(5), DefaultTime: a job without a limit gets it, MaxTime where it is not set.
        """
        limits = (self.submission.limit_s, partition.default_time_s, partition.max_time_s)
        return next((limit for limit in limits if limit is not None), math.inf)

    @property
    def latest_end_s(self) -> float:
        """When its time limit ends it, by the virtual clock; `math.inf` for never."""
        return math.inf if self.start_s is None else self.start_s + self.limit_s

    @property
    def ends_s(self) -> float:
        """When it ends, by the virtual clock, done or not; `math.inf` for never."""
        return min(self.done_s, self.latest_end_s)

    @property
    def done_s(self) -> float:
        """When it would be done, by the virtual clock, if no limit ended it; `math.inf` for never."""
        run_s = self.submission.run_time_s
        return math.inf if self.start_s is None or run_s is None else self.start_s + run_s

    def job(self, now_s: int, limit_s: float, dependency: str) -> Job:
        """Return what squeue and sprio tell of it, with its time limit and dependency as given.

        sprio leaves out what is held, not pending or not eligible yet: its SiteFactor is not known,
        nor that it is pinned. Of a pinned job sprio shows no factors, and SITE 0.

        Source: slurm src/plugins/priority/multifactor, priority_p_get_priority_factors_list.
        """
        listed = self.eligible(now_s)
        return Job(
            job_id=self.job_id,
            label=str(self.id),
            update_id=self.id.update_id,
            tasks=self.id.tasks,
            het_job_id=self.het_job_id,
            user=self.submission.user,
            account=self.submission.account,
            qos=self.qos,
            partitions=(self.partition,) if self.partition else self.partitions,
            state=self.state,
            reason=self.reason,
            priority=self.priority,
            submit_s=self.submit_s,
            eligible_s=self.eligible_s,
            start_s=self.start_s,
            time_limit_s=limit_s,
            nodes=len(self.shares) or self.need.min_nodes,
            max_nodes=0 if self.shares else self.submission.nodes or 0,
            cpus=self.need.cpus,
            gpus=self.submission.gpu_request,
            node_list=",".join(share.node for share in self.shares),
            restarts=len(self.past_runs),
            dependency=dependency,
            hints=parse_hints(self.submission.comment),
            site_factor=(0 if self.pinned else self.site_factor) if listed else None,
            pinned=self.pinned and listed,
            origin=self.submission.origin,
            name=self.submission.name,
        )

    def run(self) -> JobRun:
        """Return what became of it so far."""
        return JobRun(
            job_id=self.job_id,
            label=str(self.id),
            name=self.submission.name,
            state=self.state,
            submit_s=self.submit_s,
            eligible_s=self.eligible_s,
            start_s=self.start_s,
            end_s=self.end_s,
        )

    def ended_run(self) -> EndedRun | None:
        """Return what accounting tells of its run, None before its end or where it never ran."""
        if not self.finished or self.start_s is None or self.end_s is None:
            return None
        hints, gpus = parse_hints(self.submission.comment), self.submission.gpu_request
        claim_s, said = claimed_s(hints, self.limit_s)
        return EndedRun(
            user=self.submission.user,
            limit_s=self.limit_s,
            cpus=self.need.cpus,
            gpus=gpus.total,
            gpu_types=",".join(name for name, _ in gpus.types),
            account=self.submission.account,
            name=kind_of_name(self.submission.name),
            partition=self.partition,
            qos=self.qos,
            claim_s=claim_s if said else None,
            submit_s=self.submit_s,
            end_s=self.end_s,
            elapsed_s=float(self.end_s - self.start_s),
            job_id=self.job_id,
            state=self.state,
            restarts=len(self.past_runs),
        )


class JobList:
    """The records of all jobs, finished ones as well, and what the ids of scontrol and scancel stand for."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self._tasks: dict[int, dict[int, Record]] = {}
        self._active: dict[int, Record] = {}
        self._last_id = 0

    def __iter__(self) -> Iterator[Record]:
        """Return every record, in order of job id."""
        return iter(self._records.values())

    def active(self) -> list[Record]:
        """Return the records that are pending or running, in order of job id."""
        return list(self._active.values())

    def new_id(self) -> int:
        """Return the next job id."""
        self._last_id += 1
        return self._last_id

    def add(self, record: Record) -> None:
        """Take in a new record."""
        self._records[record.job_id] = self._active[record.job_id] = record
        if record.array_job_id is not None and record.task is not None:
            self._tasks.setdefault(record.array_job_id, {})[record.task] = record

    def retire(self, record: Record) -> None:
        """Note that a record has ended."""
        self._active.pop(record.job_id, None)

    def get(self, job_id: int) -> Record | None:
        """Return the record of this number, None where there is none."""
        return self._records.get(job_id)

    def all_of(self, job_id: int) -> list[Record]:
        """Return the records of a job: of a whole array, of all components of a het job by its leader."""
        record = self._records.get(job_id)
        if record is None:
            return []
        if record.het_job_id == job_id:
            return self.whole(record)
        tasks = self._tasks.get(job_id, {}).values() if record.array_job_id == job_id else ()
        return [record, *(task for task in tasks if task is not record)]

    def whole(self, record: Record) -> list[Record]:
        """Return what starts and ends together with a record: the components of a het job, else itself."""
        if record.het_job_id is None:
            return [record]
        following = (self._records.get(job_id) for job_id in count(record.het_job_id))
        ours = takewhile(lambda r: r is not None and r.het_job_id == record.het_job_id, following)
        return [component for component in ours if component is not None]

    def select(self, text: str) -> list[Record | None]:
        """Return the records that an id means in an update, None for each one that is not there.

        A list that covers all tasks of the array's pending record means that record; tasks named
        otherwise are split off, each into a record of its own.

        Source: slurm src/slurmctld/job_mgr.c, update_job_str.
        """
        try:
            job_id = parse_job_id(text)
        except ParseError:
            return [None]
        if job_id.tasks:
            return self._select_tasks(job_id.job_id, expand_array(job_id.tasks)[0])
        if job_id.task is not None:
            return [self._select_task(job_id.job_id, job_id.task)]
        found = self.all_of(job_id.job_id)
        if job_id.het_offset is not None:
            found = [record for record in found if record.het_offset == job_id.het_offset]
        return [*found] or [None]

    def split(self, pending: Record, task: int) -> Record:
        """Return the record that one task of an array gets; the rest keeps the array's id.

        The last task has no rest to leave, so the array's record becomes its own.

        Source: slurm src/slurmctld/job_mgr.c, job_array_split, job_array_post_sched.
        """
        if pending.tasks == (task,):
            pending.tasks, pending.task = (), task
            self.add(pending)
            return pending
        pending.tasks = tuple(other for other in pending.tasks if other != task)
        record = replace(pending, job_id=self.new_id(), task=task, tasks=())
        self.add(record)
        return record

    def _select_tasks(self, array_job_id: int, wanted: Sequence[int]) -> list[Record | None]:
        pending = self._records.get(array_job_id)
        together = set(pending.tasks) if pending is not None else set()
        if pending is None or not together or not together.issubset(wanted):
            return [self._select_task(array_job_id, task) for task in wanted]
        return [pending, *(self._select_task(array_job_id, t) for t in wanted if t not in together)]

    def _select_task(self, array_job_id: int, task: int) -> Record | None:
        pending = self._records.get(array_job_id)
        if pending is not None and task in pending.tasks:
            return self.split(pending, task) if pending.pending else pending
        return self._tasks.get(array_job_id, {}).get(task)
