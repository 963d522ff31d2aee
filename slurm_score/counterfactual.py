"""What would put a job forward: it is changed, scored again, and told where that helps. Pure.

Whoever wants another GPU changes what is asked for of both types, so the pressure and with it the others'
scores are worked out anew: what is promised is what the next cycle will find, if nothing else changes.
"""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_score.changes import Change, changes
from slurm_score.contention import Demand, demand_with, gpu_demand, pressure_of
from slurm_score.model import Job, Predicted, Queue, RunTimes
from slurm_score.placement import fit_now
from slurm_score.policy import Policy
from slurm_score.request import ask_of
from slurm_score.score import Scores, queue_order, score_queue
from slurm_score.standing import Standing, place, standings

LEAST_GAIN = 0.5
"""Points that are worth a word."""
MOST = 8

Predict = Callable[[Sequence[Job]], Mapping[int, Predicted]]
"""Tells by job id how long jobs will run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """A change that helps, and what it gives; `rank` counts from 1 among the `of` jobs of its partitions.

    `score` is that of the waiting job changed in place by the command `update`, which keeps its wait;
    `resubmitted` that of a new one with `options`, and the same where there is no `update`. `gain` and
    `ranks_gained` go with `score`, and may be below 0 where the change `helps` otherwise. Without `exact`
    the job's run time is taken to be predicted as now, whatever is changed: its user's runs aren't known
    here.
    """

    kind: str
    words: str
    options: str
    update: str
    score: float
    gain: float
    resubmitted: float
    rank: int
    of: int
    ranks_gained: int
    standings: tuple[Standing, ...]
    helps: tuple[str, ...]
    exact: bool


def counterfactuals(
    queue: Queue,
    scores: Scores,
    policy: Policy,
    i: int,
    predict: Predict,
    run_times: Mapping[str, RunTimes],
    others: Sequence[Job],
) -> tuple[Counterfactual, ...]:
    """Return the changes that would help job i, the greatest gain first.

    None for a job that is held, pinned, past its guard or part of a het job, nor for one that goes on
    from a checkpoint: how far it had come isn't known here.
    """
    job = queue.jobs[i]
    goes_on = bool(job.hints.ckpt and job.restarts)
    if job.held or job.pinned or job.het_job_id is not None or scores.guarded[i] or goes_on:
        return ()
    exact = _alike(predict((job,)).get(job.job_id), queue.predicted.get(job.job_id))
    by = predict if exact else _as_now(queue)
    weighed = (
        _weighed(queue, scores, policy, i, change, by)
        for change in changes(queue, i, policy, run_times, others)
    )
    found = [replace(told, exact=exact) for told in weighed if told.helps]
    return tuple(sorted(found, key=lambda told: -told.gain)[:MOST])


def _as_now(queue: Queue) -> Predict:
    """Predict what the queue knows by the job's id, whatever is changed about the job."""
    return lambda _: queue.predicted


def _alike(one: Predicted | None, other: Predicted | None) -> bool:
    """Whether two predictions agree: the snapshot doesn't know the runs of users who were long away."""
    if one is None or other is None:
        return one is other
    return math.isclose(one.scored_s, other.scored_s, abs_tol=1.0)


def _weighed(
    queue: Queue, scores: Scores, policy: Policy, i: int, change: Change, predict: Predict
) -> Counterfactual:
    job, new = queue.jobs[i], _anew(change.job, queue)
    changed = change.job if change.update else new
    others = _others(queue, i, changed)
    site = scores.site if others is queue else score_queue(others, policy).site
    told = score_queue(_alone(others, changed, predict), policy)
    key = (-int(told.site[0]), changed.submit_s, changed.job_id)
    rank, of = place(queue, site, i, changed.partitions, key)
    before, _ = place(queue, scores.site, i, job.partitions, queue_order(queue, scores, i))
    score = float(told.score[0])
    stands = standings(queue, site, i, changed, key)
    gain = score - float(scores.score[i])
    return Counterfactual(
        kind=change.kind,
        words=change.words,
        options=shlex.quote(change.options),
        update=_command(job, change),
        score=score,
        gain=gain,
        resubmitted=float(score_queue(_alone(others, new, predict), policy).score[0]),
        rank=rank,
        of=of,
        ranks_gained=before - rank,
        standings=stands,
        helps=tuple(_helps(queue, scores, i, change, gain, stands)),
        exact=True,
    )


def _command(job: Job, change: Change) -> str:
    words = ["scontrol", "update", f"JobId={job.update_id}", *change.update]
    return shlex.join(words) if change.update else ""


def _helps(
    queue: Queue, scores: Scores, i: int, change: Change, gain: float, stands: Sequence[Standing]
) -> Iterator[str]:
    """Yield in what way a change helps; points alone are no help where the line for the type is longer."""
    job = queue.jobs[i]
    now = standings(queue, scores.site, i, job, queue_order(queue, scores, i))
    ahead, before = _least_ahead(stands), _least_ahead(now)
    if gain >= LEAST_GAIN and (change.kind != "GPU type" or ahead <= before):
        yield "scores higher"
    if change.kind in ("GPU type", "partition") and stands[0].types and ahead < before:
        yield "has fewer GPUs ahead"
    if _fits(change.job, queue) and not _fits(job, queue):
        yield "fits what is free now"


def _least_ahead(stands: Sequence[Standing]) -> int:
    return min((standing.gpus_ahead for standing in stands), default=0)


def _fits(job: Job, queue: Queue) -> bool:
    ask = ask_of(job)
    return ask is not None and fit_now(ask, queue.cluster).ready >= 1.0


def _anew(job: Job, queue: Queue) -> Job:
    """The job as if it were submitted now: nothing waited, no earlier run."""
    now = int(queue.now_s)
    eligible = now if job.eligible(queue.now_s) else job.eligible_s
    return replace(job, submit_s=now, eligible_s=eligible, past_runs=(), restarts=0)


def _alone(queue: Queue, job: Job, predict: Predict) -> Queue:
    """A queue of one job, under the same pressure."""
    return replace(queue, jobs=(job,), predicted=predict((job,)))


def demand_of(queue: Queue) -> Demand:
    """Return what the queue asks for together, worked out once."""
    found: Demand | None = queue.memo.get("demand")
    if found is None:
        found = queue.memo["demand"] = gpu_demand(queue.jobs, queue.cluster)
    return found


def _others(queue: Queue, i: int, changed: Job) -> Queue:
    """The queue as the others find it once job i has changed: another pressure, if it asks for others."""
    job = queue.jobs[i]
    if ask_of(job) == ask_of(changed) or not job.eligible(queue.now_s):
        return queue
    pressure = pressure_of(demand_with(demand_of(queue), job, changed, queue.cluster))
    found = replace(queue, pressure=pressure)
    found.memo.update({name: queue.memo[name] for name in ("columns", "remaining") if name in queue.memo})
    return found
