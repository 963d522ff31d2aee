"""The fake Slurm's intake: what sbatch sends becomes a record, or is rejected. For fake.py alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_score.errors import CommandFailedError, ParseError, SlurmScoreError
from slurm_score.slurm.fake_controller import Controller, failed, hold
from slurm_score.slurm.fake_jobs import Record
from slurm_score.slurm.fake_scheduler import place
from slurm_score.slurm.fake_submission import Need, Submission, expand_array, work_out_need

MAX_SITE_FACTOR = 2**31 - 3
NO_VAL = -2  # a site_factor that a job_submit script sets to this stays unset

JobSubmit = Callable[[dict[str, Any]], Mapping[str, Any]]
_FIRST_UID = 1000


class Intake:
    """Takes submissions in; `job_submit` is asked first, and a failure of it costs nobody a submission."""

    def __init__(self, controller: Controller, job_submit: JobSubmit | None) -> None:
        self._controller, self._job_submit = controller, job_submit
        self._uids = dict[str, int]()

    def take(self, components: Sequence[Submission], *, het: bool = False) -> Record:
        """Return the record of a job, of the leader where there are components.

        Raises:
            CommandFailedError: slurmctld rejects one of them, and with it all.
        """
        records: list[Record] = []
        for offset, component in enumerate(components):
            record = self._create(component, offset if het else None)
            if het:
                record.het_job_id = records[0].job_id if records else record.job_id
            records.append(record)
        for record in records:
            self._controller.jobs.add(record)
        return records[0]

    def _create(self, submission: Submission, het_offset: int | None) -> Record:
        site_factor, advice = self._ask_job_submit(submission, het_offset)
        need, tasks, throttle = _parsed(submission, het_offset)
        jobs = self._controller.jobs
        record = Record(
            job_id=0,
            submission=submission,
            need=need,
            partitions=self._valid_partitions(submission, need),
            qos=self._valid_qos(submission),
            submit_s=self._controller.now_s,
            nice=submission.nice,
            site_factor=site_factor,
            advice=advice,
            tasks=tasks,
            throttle=throttle,
            het_offset=het_offset,
        )
        if submission.dependency is not None and jobs.get(submission.dependency) is None:
            raise _rejected("Job dependency problem")
        record.job_id = jobs.new_id()
        record.array_job_id = record.job_id if tasks else None
        if submission.hold:
            hold(record, "JobHeldUser")
        elif not tasks:  # slurmctld makes an array eligible at the scheduler's next pass
            self._controller.note_eligibility(record)
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
        partitions = self._controller.partitions
        default = next((p.name for p in partitions.values() if p.default), "")
        names = tuple(name for name in (submission.partition or default).split(",") if name)
        if not names:
            raise _rejected("No partition specified or system default partition")
        if not partitions.keys() >= set(names):
            raise _rejected("Invalid partition name specified")
        nodes = [replace(node, usable=True) for node in self._controller.nodes.values()]
        if not any(place(need, [node for node in nodes if name in node.partitions]) for name in names):
            raise _rejected("Requested node configuration is not available")
        return names

    def _valid_qos(self, submission: Submission) -> str:
        known = self._controller.priority.qos
        default = "normal" if "normal" in known else next(iter(known), "")
        qos = submission.qos or default
        if qos not in known:
            raise _rejected("Invalid qos specification")
        return qos


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


def _rejected(sentence: str) -> CommandFailedError:
    return failed("sbatch", f"Batch job submission failed: {sentence}")
