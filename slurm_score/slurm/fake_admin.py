"""What an administrator can do to the fake Slurm. For fake.py alone."""

from dataclasses import replace

from slurm_score.slurm.fake_controller import Controller, failed, hold
from slurm_score.slurm.fake_jobs import Record

INVALID_ID = "Invalid job id specified"
FINISHED = "Job has already finished"

_REQUEUE_STATES = {"user": "REQUEUED", "node_fail": "NODE_FAIL", "preempted": "PREEMPTED"}
_DONE = "Job/step already completing or completed"
_HELD = "Job is in held state"
_NOT_PENDING = "Job is no longer pending execution"
_STILL_PENDING = "Job is pending execution"


class Administered:
    """What an administrator does to jobs, nodes and partitions through scancel and scontrol."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self._jobs = controller, controller.jobs

    def hold(self, job_id: int | str, reason: str = "JobHeldUser") -> None:
        """Set a job's priority to 0; `JobHeldAdmin` is the reason when an operator does it.

        Raises:
            CommandFailedError: there is no such job, or it is not pending.
        """
        for record in self._pending(job_id):
            hold(record, reason)

    def release(self, job_id: int | str) -> None:
        """Let a held job go, or unpin a pinned one, whose nice becomes 0; its age starts anew after a hold.

        Raises:
            CommandFailedError: there is no such job, or it is not pending.

        Source: slurm src/slurmctld/job_mgr.c, _release_job_rec, _update_job.
        """
        for record in self._pending(job_id):
            if record.held:
                record.priority, record.reason = 1, "None"
                record.accrue_s = (
                    None if record.eligible_s is None else max(self._controller.now_s, record.eligible_s)
                )
                self._controller.note_eligibility(record)
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
                raise failed("scontrol", _HELD)
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
            raise failed("scontrol", _STILL_PENDING if any(r.pending for r in records) else _DONE)
        for record in running:
            self._controller.requeue(record, _REQUEUE_STATES[by])

    def cancel(self, job_id: int | str) -> None:
        """End a job as CANCELLED, pending or running; a het job as a whole.

        Raises:
            CommandFailedError: there is no such job, or it has ended.
        """
        active = [record for record in self._existing(job_id) if not record.finished]
        if not active:
            raise failed("scancel", _DONE)
        for record in active:
            self._controller.end(record, "CANCELLED")

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
        self._controller.set_node(node, False, "DRAIN")

    def resume(self, node: str) -> None:
        """Let jobs start on a node again."""
        self._controller.set_node(node, True, "IDLE")

    def fail(self, node: str) -> None:
        """Take a node down; its jobs are requeued as NODE_FAIL, het jobs as a whole."""
        self._controller.set_node(node, False, "DOWN")
        for record in self._jobs.active():
            if any(share.node == node for share in record.shares):
                for component in self._jobs.whole(record):
                    self._controller.requeue(component, "NODE_FAIL")

    def update_partition(self, name: str, *, up: bool) -> None:
        """Set a partition's state to UP or DOWN; jobs that run in it go on."""
        partitions = self._controller.partitions
        partitions[name] = replace(partitions[name], up=up)

    # Records

    def _record(self, job_id: int) -> Record:
        record = self._jobs.get(job_id)
        if record is None:
            raise failed("scontrol", INVALID_ID)
        return record

    def _existing(self, job_id: int | str) -> list[Record]:
        records = self._jobs.select(str(job_id))
        if None in records:
            raise failed("scontrol", INVALID_ID)
        return [record for record in records if record is not None]

    def _pending(self, job_id: int | str) -> list[Record]:
        records = self._existing(job_id)
        pending = [record for record in records if record.pending]
        if not pending:
            raise failed("scontrol", FINISHED if all(r.finished for r in records) else _NOT_PENDING)
        return pending
