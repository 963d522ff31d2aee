"""A cycle to record, a clock to set, and what the audit then holds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slurm_score.audit import AuditTrail, CycleRecord, Outcome, StoredDecision, read_history
from slurm_score.jobid import JobId
from slurm_score.model import Job
from slurm_score.plan import plan_updates
from slurm_score.policy import Policy
from slurm_score.score import score_queue

from .builders import NOW, make_policy, make_queue

ENFORCE = make_policy(mode="enforce")
NOBODY = 65534


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = float(NOW)

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def outcome_of(*jobs: Job, policy: Policy = ENFORCE, sent: int | None = None, **rest: Any) -> Outcome:
    """Return what a cycle over jobs comes to; so many of the plan's updates went out, in enforce all."""
    queue = make_queue(*jobs)
    scores = score_queue(queue, policy)
    plan = plan_updates(queue, scores, policy, rest.get("scrontab", ()))
    most = len(plan.updates) if policy.mode == "enforce" else 0
    return Outcome(queue, scores, plan, plan.updates[: most if sent is None else sent], **rest)


def cycle_of(*jobs: Job, policy: Policy = ENFORCE, start_s: float = NOW) -> CycleRecord:
    """Return the record of a cycle over jobs in which all went well."""
    return CycleRecord(start_s=start_s, policy=policy, outcome=outcome_of(*jobs, policy=policy), rpcs=6)


def trail_at(path: Path, clock: Clock | None = None, **options: Any) -> AuditTrail:
    """Return a trail with a clock of its own."""
    return AuditTrail(path, clock or Clock(), **options)


def history_of(path: Path, number: int) -> list[StoredDecision]:
    """Return the stored decisions about a job."""
    return list(read_history(path, JobId(number)).decisions)


@contextmanager
def without_rights() -> Iterator[None]:
    """Be nobody in particular for a while: root may write everywhere."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
