"""How long a job has waited while it could have started."""

from typing import Literal

import numpy as np

from slurm_score.factors.registry import Duration, Factor, FactorParams, Term, Weight
from slurm_score.model import Floats, Job, Queue
from slurm_score.units import HOUR_S, format_duration

RequeueCause = Literal["NODE_FAIL", "PREEMPTED", "REQUEUED"]


class WaitParams(FactorParams):
    """`max_wait` is the wait that gives 1; `keep_after` names the requeues that keep the earned wait."""

    weight: Weight = 350
    max_wait: Duration = 54.0 * HOUR_S
    keep_after: tuple[RequeueCause, ...] = ("NODE_FAIL", "PREEMPTED")


def job_wait_s(job: Job, now_s: float, keep_after: tuple[RequeueCause, ...]) -> float:
    """Return the wait of a job in s: since it became eligible, and what it kept of earlier runs.

    A job that can't start yet has waited 0 s, whatever it earned before. Slurm sets a requeued
    job's submit time anew; the waits before its earlier runs count as far back as every run
    between ended for a reason in `keep_after`. A begin time before the submission earns nothing.
    """
    if not job.eligible(now_s) or job.eligible_s is None:
        return 0.0
    wait = now_s - max(job.eligible_s, job.submit_s)
    for run in reversed(job.past_runs):
        if run.state not in keep_after:
            break
        wait += run.wait_s
    return max(0.0, wait)


def waits_s(queue: Queue, params: WaitParams) -> Floats:
    """Return the waits of a queue in s, float64[n_jobs]."""
    return queue.column(lambda job: job_wait_s(job, queue.now_s, params.keep_after))


def compute(queue: Queue, params: WaitParams) -> Term:
    """Return min(1, wait / max_wait)."""
    return Term(np.minimum(1.0, waits_s(queue, params) / params.max_wait))


def describe(queue: Queue, params: WaitParams, i: int) -> str:
    """Return the wait in words."""
    job = queue.jobs[i]
    if not job.eligible(queue.now_s):
        return "can't start yet, so the wait doesn't count"
    wait_s = job_wait_s(job, queue.now_s, params.keep_after)
    kept = ", earlier runs included" if wait_s > job_wait_s(job, queue.now_s, ()) else ""
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
