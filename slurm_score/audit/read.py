"""Readers of the audit: cycles, and the life of a job. They can't write, and don't wait for who does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_score.audit.store import reading
from slurm_score.jobid import JobId, has_task, parse_job_id

_CYCLE = (
    "id, start_s, policy, mode, pending, planned, sent, failed, left_over, rpcs,"
    " read_s, score_s, plan_s, write_s, halted, error"
)
_DECISION = (
    "SELECT decision.cycle, start_s, job_id, label, user, partition, old, new, score, guarded, weights,"
    " parts, why, policy FROM decision JOIN cycle ON cycle.id = decision.cycle WHERE "
)


@dataclass(frozen=True, slots=True)
class StoredCycle:
    """One cycle; `policy` is the hash, None where the policy was never good.

    Of `planned` updates so many were `sent`, and of those so many `failed`; `left_over` more wait for a
    later cycle; `halted` says why not all of the plan was sent.
    """

    cycle: int
    start_s: float
    policy: str | None
    mode: str
    pending: int
    planned: int
    sent: int
    failed: int
    left_over: int
    rpcs: int
    read_s: float
    score_s: float
    plan_s: float
    write_s: float
    halted: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """One decision about a job, with the time of its cycle, its policy's hash and the weights in force."""

    cycle: int
    start_s: float
    job_id: int
    job: str
    user: str
    partition: str
    old: int | None
    new: int
    score: float
    guarded: bool
    weights: dict[str, int]
    parts: dict[str, float]
    why: str
    policy: str


@dataclass(frozen=True, slots=True)
class History:
    """A job's decisions, oldest first, and the policies that they were made by, by their hash."""

    decisions: tuple[StoredDecision, ...]
    policies: dict[str, Any]


def read_cycles(path: Path, last: int, since_s: float = 0.0) -> tuple[StoredCycle, ...]:
    """Return the last cycles that began at `since_s` or later, `last` at most, newest last.

    Raises:
        AuditError: the audit can't be read.
    """
    query = f"SELECT {_CYCLE} FROM cycle WHERE start_s >= ? ORDER BY id DESC LIMIT ?"  # noqa: S608 - ours
    with reading(path) as connection:
        rows = connection.execute(query, (since_s, last)).fetchall()
    return tuple(StoredCycle(*row) for row in reversed(rows))


def read_history(path: Path, job_id: JobId) -> History:
    """Return what was decided about a job, or about an array and all tasks of it.

    A task is also found in the rows of its array as long as it was part of that record.

    Raises:
        AuditError: the audit can't be read.
    """
    with reading(path) as connection:
        rows = [
            *connection.execute(f"{_DECISION} array_id = ?", (job_id.job_id,)),
            *connection.execute(f"{_DECISION} job_id = ? AND job_id <> array_id", (job_id.job_id,)),
        ]
        found = sorted((_decision(row) for row in rows), key=lambda row: (row.cycle, row.job_id))
        mine = tuple(decision for decision in found if _concerns(decision, job_id))
        policies = {
            name: json.loads(
                connection.execute("SELECT stored FROM policy WHERE hash = ?", (name,)).fetchone()[0]
            )
            for name in dict.fromkeys(decision.policy for decision in mine)
        }
    return History(mine, policies)


def _decision(row: tuple[Any, ...]) -> StoredDecision:
    cycle, start_s, job_id, label, user, partition, old, new, score, guarded, weights, parts, why, policy = (
        row
    )
    in_force: dict[str, int] = json.loads(weights)
    return StoredDecision(
        cycle=cycle,
        start_s=start_s,
        job_id=job_id,
        job=label,
        user=user,
        partition=partition,
        old=old,
        new=new,
        score=score,
        guarded=bool(guarded),
        weights=in_force,
        parts=dict(zip(in_force, json.loads(parts), strict=True)),
        why=why,
        policy=policy,
    )


def _concerns(decision: StoredDecision, wanted: JobId) -> bool:
    """Whether a decision about the same number is about this task or component as well."""
    if wanted.task is None and wanted.het_offset is None:
        return True
    stored = parse_job_id(decision.job)
    if wanted.task is None or not (stored.tasks or stored.truncated):
        return (stored.task, stored.het_offset) == (wanted.task, wanted.het_offset)
    return stored.truncated or has_task(stored.tasks, wanted.task)
