"""A Slurm that behaves, in memory and on a clock of its own: for tests, demos and sites without one.

FakeSlurm is a Gateway. Beside that it takes what sbatch, scancel and scontrol do, schedules, and moves
its clock from event to event when told to. Nothing happens by itself and nothing is left to chance:
the same calls give the same schedule.

Not in it: memory, features, reservations, fairshare, priority tiers, preemption, the limits of
associations and QOS. A pass of the scheduler is run when something ends or becomes eligible, not every
sched_interval, and a het job is started by the main scheduler where Slurm leaves it to backfill.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from slurm_score.errors import ControllerDownError, NotPermittedError
from slurm_score.model import Cluster, EndedRun, Job, Node, Partition, PastRun, SlurmConfig
from slurm_score.slurm.fake_admin import FINISHED, INVALID_ID, Administered
from slurm_score.slurm.fake_controller import Controller, failed
from slurm_score.slurm.fake_intake import MAX_SITE_FACTOR, Intake, JobSubmit
from slurm_score.slurm.fake_jobs import JobRun, Record
from slurm_score.slurm.fake_submission import Submission
from slurm_score.slurm.gateway import (
    ControllerHost,
    Identity,
    Patience,
    SiteFactorUpdate,
    UpdateFailure,
    WriteGuard,
)
from slurm_score.units import DAY_S

__all__ = ["FakeSlurm", "JobRun", "JobSubmit", "Submission"]

START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
SLURM_USER = "slurm"

_OUT_OF_RANGE = f"scontrol: error: SiteFactor value out of range (+/- {MAX_SITE_FACTOR}). Value ignored"
_DENIED = "Access/permission denied"
_NOT_YOURS = "Invalid user id"
_REFUSED = frozenset({_DENIED, _NOT_YOURS})
_SCRONTAB = "Cannot modify scrontab jobs through scontrol"
_DOWN = "Unable to contact slurm controller (connect failure)"


class FakeSlurm(Administered):
    """A cluster, its queue and its clock; a Gateway that starts out read-only.

    The order of the nodes stands for their Weight, and what they say is in use is forgotten.
    `priority_weights` maps age, qos and job_size to PriorityWeights, `admin_levels` a user to an
    AdminLevel; `user` is who we are. `job_submit` is called with what the job_submit hook sends and
    answers with `site_factor` and `advice`; a failure of it never costs anybody a submission.

    `controllers` are the hosts of its slurmctld, and `dies_after` is how many updates more it carries
    out before it goes down, None for never; set it back to None to start it again.
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
        self.guard, self.patience, self.update_count = WriteGuard(), Patience(), 0
        self.controllers: tuple[ControllerHost, ...] = (ControllerHost("fake", True),)
        self.dies_after: int | None = None
        self._user, self._admin_levels = user, dict(admin_levels or {})
        controller = Controller(
            nodes,
            partitions,
            qos,
            start_s=start_s,
            priority_weights=priority_weights or {},
            max_age_s=max_age_s,
            backfill=backfill,
        )
        super().__init__(controller)
        self._intake = Intake(controller, job_submit)

    # The gateway

    def read_controllers(self) -> tuple[ControllerHost, ...]:
        """Return the hosts of the controllers, the primary first.

        Raises:
            ControllerDownError: none of them answers.
        """
        if self.dies_after == 0 or not any(controller.up for controller in self.controllers):
            raise ControllerDownError(_DOWN)
        return self.controllers

    def read_config(self) -> SlurmConfig:
        """Return the configuration of a Slurm 24.11.5 with priority/multifactor and no site factor plugin."""
        return SlurmConfig(
            cluster="fake",
            release="24.11.5",
            slurm_user=SLURM_USER,
            priority_type="priority/multifactor",
            priority_weights=dict(self._controller.priority.weights),
        )

    def read_cluster(self) -> Cluster:
        """Return configuration, partitions, nodes with what is in use, and QOS, by the virtual clock."""
        return Cluster(
            time_s=self.now_s,
            config=self.read_config(),
            partitions=dict(self._controller.partitions),
            nodes=self._controller.shown_nodes(),
            qos=dict(self._controller.priority.qos),
        )

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the pending and running job records by job id, with the SiteFactors that sprio shows."""
        return self._controller.shown_jobs()

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the earlier runs of those jobs that were requeued, oldest first."""
        records = [record for job_id in job_ids if (record := self._jobs.get(job_id)) is not None]
        return {record.job_id: record.past_runs for record in records if record.past_runs}

    def read_ended_runs(self, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
        """Return the runs that ended after `since_s` and not after `until_s`; not those before a requeue."""
        runs = (record.ended_run() for record in self._jobs)
        return tuple(run for run in runs if run is not None and since_s < run.end_s <= until_s)

    def read_identity(self) -> Identity:
        """Return who we are, with AdminLevel None for whom none was given."""
        return Identity(self._user, self._admin_levels.get(self._user, "None"))

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Set SiteFactors one after the other; return the updates that failed, with Slurm's sentence.

        `update_count` goes up by one for each update that reached a job. One that is made of several
        records is reported with the first sentence and keeps what was carried out, as in Slurm.

        Raises:
            WriteRefusedError: the guard doesn't permit it; nothing was changed.
            ControllerDownError: slurmctld went down on the way; the updates before were carried out.
            NotPermittedError: slurmctld refused every update.
            CommandFailedError: scontrol ignored a value that is out of range; the rest was carried out.

        Source: slurm src/slurmctld/job_mgr.c, update_job_str, _update_job.
        """
        self.guard.permit(updates)
        sent = [update for update in updates if abs(update.value) <= MAX_SITE_FACTOR]
        failures = tuple(UpdateFailure(update, why) for update in sent if (why := self._update(update)))
        if len(sent) < len(updates):
            raise failed("scontrol", _OUT_OF_RANGE)
        if failures and len(failures) == len(updates) and all(f.message in _REFUSED for f in failures):
            first = failures[0].message
            message = f"slurmctld refused all {len(failures)} updates: {first}"
            raise NotPermittedError(message, argv=("scontrol",), returncode=1, stderr=first)
        return failures

    # sbatch

    def submit(self, submission: Submission) -> int:
        """Return the job id of a job as sbatch would send it, of the array where it is one.

        Raises:
            CommandFailedError: slurmctld rejects it; the sentence is Slurm's.
        """
        return self._intake.take([submission]).job_id

    def submit_het(self, components: Sequence[Submission]) -> int:
        """Return the leader's job id of a het job; the components start and end together.

        The leader's run time is that of all, since its batch script is the job's.

        Raises:
            CommandFailedError: slurmctld rejects one of the components, and with it the job.
        """
        run_time_s = components[0].run_time_s
        together = [replace(component, run_time_s=run_time_s) for component in components]
        return self._intake.take(together, het=True).job_id

    def advice_of(self, job_id: int) -> tuple[str, ...]:
        """Return the lines that sbatch printed for its user when the job was submitted."""
        return self._record(job_id).advice

    # The clock

    @property
    def now_s(self) -> int:
        """The virtual clock, in seconds since the epoch."""
        return self._controller.now_s

    def schedule(self) -> tuple[int, ...]:
        """Run the scheduler once; return the job ids of what it started, in that order."""
        return self._controller.schedule()

    def next_event_s(self) -> int | None:
        """Return when the next job ends or a begin time comes, by the virtual clock; None for never."""
        return self._controller.next_event_s()

    def advance(self, to_s: int) -> None:
        """Move the clock to a time, through all that happens until then, that time included.

        A pass of the scheduler is run first of all, and at each event after everything that ends then
        has ended.

        Raises:
            ValueError: the time is past.
        """
        if to_s < self.now_s:
            raise ValueError(f"the clock goes forward only, got {to_s} at {self.now_s}")
        self._controller.run_until(to_s)
        self._controller.now_s = to_s

    def run_until_idle(self, limit_s: int = 365 * DAY_S) -> int:
        """Move the clock as long as anything happens, for `limit_s` at most; return its time.

        What is held, or waits for what never comes, stays in the queue.
        """
        self._controller.run_until(self.now_s + limit_s)
        return self.now_s

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

    def _update(self, update: SiteFactorUpdate) -> str:
        if self.dies_after is not None:
            if self.dies_after == 0:
                raise ControllerDownError(f"scontrol update: {_DOWN}", argv=("scontrol",), returncode=1)
            self.dies_after -= 1
        records = self._jobs.select(update.update_id)
        results = [INVALID_ID if r is None else self._set_site_factor(r, update.value) for r in records]
        self.update_count += "" in results
        return next((sentence for sentence in results if sentence), "")

    def _set_site_factor(self, record: Record, value: int) -> str:
        is_operator = self.read_identity().may_set_site_factor(SLURM_USER)
        if not is_operator and record.submission.user != self._user:
            return _NOT_YOURS
        if record.finished:
            return FINISHED
        if not is_operator:
            return _DENIED
        if record.submission.scrontab:
            return _SCRONTAB
        record.site_factor = value
        if record.held and record.reason == "BadConstraints":
            record.priority, record.reason = 1, "None"
        return ""
