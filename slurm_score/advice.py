"""What a user is told at submission: at most three lines, each kind switchable. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from slurm_score import inventory
from slurm_score.factors.qos import claimed_urgency
from slurm_score.model import Cluster, Demand, Job, Queue, RunTimes
from slurm_score.policy import Policy
from slurm_score.score import Scores
from slurm_score.units import HOUR_S, format_duration

MAX_LINES = 3
MIN_RUNS = 5
"""Runs that must be known before a user's usual run time is one."""
FAR_ABOVE = 4.0
"""A limit so many times the usual run time, and an hour above it, is worth a word."""


def demand_by_type(queue: Queue, scores: Scores) -> dict[str, Demand]:
    """Return for each GPU type what is asked of it alone: (SiteFactor, GPUs), highest first.

    Jobs that accept several types are left out: nobody knows which of them they will take.
    """
    asked: dict[str, Counter[int]] = {}
    for job, site in zip(queue.jobs, scores.site.tolist(), strict=True):
        if not (job.gpus.total and job.eligible(queue.now_s)):
            continue
        types = inventory.accepted_types(job.gpus, job.partitions, queue.cluster)
        if len(types) == 1:
            asked.setdefault(types[0], Counter())[site] += job.gpus.total * job.task_count
    return {name: tuple(sorted(asked[name].items(), reverse=True)) for name in sorted(asked)}


def gpus_ahead(demand: Mapping[str, Demand], gpu_type: str, site: int) -> int:
    """Return how many GPUs of a type are asked for by jobs that stand before a new one."""
    return sum(gpus for other, gpus in demand.get(gpu_type, ()) if other >= site)


def advise(
    job: Job,
    site: int,
    policy: Policy,
    cluster: Cluster,
    demand: Mapping[str, Demand],
    run_times: Mapping[str, RunTimes],
) -> tuple[str, ...]:
    """Return the lines for the user of a new job with this SiteFactor."""
    wanted = policy.advice
    lines = list(ignored_hints(job, policy)) if wanted.hints else []
    lines += [_other_type(job, site, cluster, demand)] if wanted.other_type else []
    lines += [_time_limit(job, run_times)] if wanted.time_limit else []
    return tuple(f"slurm-score: {line}" for line in lines if line)[:MAX_LINES]


def ignored_hints(job: Job, policy: Policy) -> tuple[str, ...]:
    """Return a sentence for each hint that counts for nothing: not understood, or not open to the QOS."""
    problems = job.hints.problems
    if job.hints.urgency == "high" and claimed_urgency(job, policy.factors["qos"]) != "high":
        problems += (f"hint 'urgency=high' ignored: not open to QOS {job.qos or '(none)'}",)
    return problems


def _other_type(job: Job, site: int, cluster: Cluster, demand: Mapping[str, Demand]) -> str:
    """A type that is idle, where the job names one that isn't."""
    if len(job.gpus.types) != 1:
        return ""
    mine = job.gpus.types[0][0]
    ahead = gpus_ahead(demand, mine, site)
    if not ahead and _is_free(mine, job, cluster):
        return ""
    for other in _others(mine, job, cluster):
        if _is_free(other, job, cluster) and not gpus_ahead(demand, other, site):
            queued = f"has {ahead} GPUs ahead of you" if ahead else "is not"
            return f"{other} is free now, {mine} {queued}"
    return ""


def _others(mine: str, job: Job, cluster: Cluster) -> tuple[str, ...]:
    """The types that the user names as acceptable, best first; else all others of the partitions.

    Who asks for so much memory on each GPU and names no type is not told of any: it may not fit.
    """
    present = inventory.supply(job.partitions, cluster).present
    named = {name.lower(): name for name in present if name not in (mine, inventory.UNTYPED)}
    if job.hints.gpu:
        return tuple(named[name] for name in job.hints.gpu if name in named)
    return () if job.hints.vram_gib else tuple(sorted(named.values()))


def _is_free(gpu_type: str, job: Job, cluster: Cluster) -> bool:
    request = replace(job.gpus, types=((gpu_type, job.gpus.total),))
    return inventory.ready_gpus(request, job.partitions, cluster) == job.gpus.total


def _time_limit(job: Job, run_times: Mapping[str, RunTimes]) -> str:
    usual, limit = run_times.get(job.user), job.time_limit_s
    if usual is None or limit is None or usual.runs < MIN_RUNS or job.hints.est_s is not None:
        return ""
    if limit <= max(FAR_ABOVE * usual.usual_s, usual.usual_s + HOUR_S):
        return ""
    ran = f"9 of 10 of your last {usual.runs} jobs ended within {format_duration(usual.usual_s)}"
    return f"{ran}, this one asks for {format_duration(limit)}; a shorter --time can start sooner"
