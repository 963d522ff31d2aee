"""How long a job has waited while it could have started."""

from typing import Literal, TypeVar

import numpy as np
from numpy import minimum

from slurm_score.columns import columns_of
from slurm_score.factors.registry import Duration, Factor, FactorParams, Term, Weight
from slurm_score.model import Floats, Job, Queue
from slurm_score.units import HOUR_S, format_duration

Wait = TypeVar("Wait", float, Floats)
RequeueCause = Literal["NODE_FAIL", "PREEMPTED", "REQUEUED"]


class WaitParams(FactorParams):
    """`max_wait` is the wait that gives 1; `keep_after` names the requeues that keep the earned wait."""

    weight: Weight = 350
    max_wait: Duration = 54.0 * HOUR_S
    keep_after: tuple[RequeueCause, ...] = ("NODE_FAIL", "PREEMPTED")


def value(wait_s: Wait, max_wait_s: float) -> Wait:
    """Return the factor of a wait, or of a column of them; the simulator compiles it."""
    factor: Wait = minimum(1.0, wait_s / max_wait_s)
    return factor


def waits_s(queue: Queue, params: WaitParams) -> Floats:
    """Return the waits of a queue in s, float64[n_jobs]: since a job could start, and what it kept.

    A job that can't start yet has waited 0 s, whatever it earned before. Slurm sets a requeued
    job's submit time anew; the waits before its earlier runs count as far back as every run
    between ended for a reason in `keep_after`. A begin time before the submission earns nothing.
    """
    key = ("waits_s", params.keep_after)
    found: Floats | None = queue.memo.get(key)
    if found is None:
        found = queue.memo[key] = _waits_s(queue, params)
    return found


def _waits_s(queue: Queue, params: WaitParams) -> Floats:
    columns = columns_of(queue)
    waits = np.where(columns.eligible, queue.now_s - columns.since_s, 0.0)
    for i in columns.retried[columns.eligible[columns.retried]]:
        waits[i] += _kept_s(queue.jobs[i], params.keep_after)
    return np.maximum(0.0, waits)


def _kept_s(job: Job, keep_after: tuple[RequeueCause, ...]) -> float:
    kept = 0.0
    for run in reversed(job.past_runs):
        if run.state not in keep_after:
            break
        kept += run.wait_s
    return kept


def compute(queue: Queue, params: WaitParams) -> Term:
    """Return min(1, wait / max_wait)."""
    return Term(value(waits_s(queue, params), params.max_wait))


def describe(queue: Queue, params: WaitParams, i: int) -> str:
    """Return the wait in words."""
    if not columns_of(queue).eligible[i]:
        return "can't start yet, so the wait doesn't count"
    kept = ", earlier runs included" if _kept_s(queue.jobs[i], params.keep_after) else ""
    wait_s = float(waits_s(queue, params)[i])
    return f"has waited {format_duration(wait_s)} of {format_duration(params.max_wait)}{kept}"


FACTOR = Factor(
    name="wait",
    header="WAIT",
    position=10,
    summary="min(1, wait / max_wait); wait runs while the job could start",
    params=WaitParams,
    compute=compute,
    describe=describe,
)
