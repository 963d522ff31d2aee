"""What a user is told at submission: at most three lines, each kind switchable. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from slurm_score.columns import columns_of
from slurm_score.contention import accepted_types, of_type
from slurm_score.factors.qos import claimed_urgency
from slurm_score.inventory import UNTYPED
from slurm_score.model import Cluster, Demand, Job, Predicted, Queue, Releases, RunTimes
from slurm_score.never import why_never
from slurm_score.placement import fit_now
from slurm_score.policy import Policy
from slurm_score.request import Ask, ask_of
from slurm_score.score import Scores
from slurm_score.supply import comes_free, comes_free_in_words
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
    columns = columns_of(queue)
    types = [accepted_types(ask, queue.cluster) for ask in columns.asks.values]
    units = columns.asks.map(lambda ask: ask.units if ask else 0) * columns.tasks
    asked: dict[str, Counter[int]] = {}
    for i in np.flatnonzero(columns.eligible & (units > 0)).tolist():
        mine = types[columns.asks.codes[i]]
        if len(mine) == 1:
            asked.setdefault(mine[0], Counter())[int(scores.site[i])] += int(units[i])
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
    releases: Releases,
    predicted: Predicted | None = None,
) -> tuple[str, ...]:
    """Return the lines for the user of a new job with this SiteFactor and what is predicted of it."""
    wanted, ask = policy.advice, ask_of(job)
    never = why_never(ask, cluster) if ask and cluster.nodes else ""
    lines = list(ignored_hints(job, policy)) if wanted.hints else []
    lines += [f"this job can never start: {never}"] if wanted.never and never else []
    if wanted.other_type and ask and not never:
        lines.append(_other_type(ask, site, policy, cluster, demand))
    lines += [_time_limit(job, run_times, predicted)] if wanted.time_limit else []
    if wanted.wait and ask and not never:
        lines.append(_wait(ask, site, cluster, demand, releases))
    return tuple(f"slurm-score: {line}" for line in lines if line)[:MAX_LINES]


def ignored_hints(job: Job, policy: Policy) -> tuple[str, ...]:
    """Return a sentence for each hint that counts for nothing: not understood, or not open to the QOS."""
    problems = job.hints.problems
    if job.hints.urgency == "high" and claimed_urgency(job, policy.factors["qos"]) != "high":
        problems += (f"hint 'urgency=high' ignored: not open to QOS {job.qos or '(none)'}",)
    return problems


def _other_type(ask: Ask, site: int, policy: Policy, cluster: Cluster, demand: Mapping[str, Demand]) -> str:
    """A type that is idle, where the job names one that isn't."""
    if len(ask.gpus.types) != 1:
        return ""
    mine = ask.gpus.types[0][0]
    ahead = gpus_ahead(demand, mine, site)
    if not ahead and _is_free(mine, ask, cluster):
        return ""
    for other in _others(mine, ask, policy, cluster):
        if _is_free(other, ask, cluster) and not gpus_ahead(demand, other, site):
            queued = f"has {ahead} GPUs ahead of you" if ahead else "is not"
            return f"{other} is free now, {mine} {queued}"
    return ""


def _others(mine: str, ask: Ask, policy: Policy, cluster: Cluster) -> tuple[str, ...]:
    """The types that the user names as acceptable, best first; else all others that the job could have.

    Those of which it is known that they lack the memory asked for on each GPU are left out, and where
    nobody knows how much a type has, it is told of only if the user named it.
    """
    free = replace(ask, gpus=replace(ask.gpus, types=()))
    types = tuple(name for name in accepted_types(free, cluster) if name not in (mine, UNTYPED))
    if ask.order:
        return tuple(name for name in ask.order if name in types)
    if ask.vram_gib is None:
        return types
    known = {name: policy.gpu_table.facts(name).vram_gib or 0.0 for name in types}
    return tuple(name for name in types if known[name] >= ask.vram_gib)


def _is_free(gpu_type: str, ask: Ask, cluster: Cluster) -> bool:
    return fit_now(of_type(ask, gpu_type), cluster).ready >= 1.0


def _wait(ask: Ask, site: int, cluster: Cluster, demand: Mapping[str, Demand], releases: Releases) -> str:
    """When enough comes free, where it isn't now, and how much others ask for before.

    By the time of the snapshot, so that the line stays the same as long as that does.
    """
    types = accepted_types(ask, cluster)
    last = comes_free(ask, types, cluster, releases)
    if last is None:
        return ""
    ahead = sum(gpus_ahead(demand, name, site) for name in types)
    what = types[0] if len(types) == 1 and types[0] != UNTYPED else "GPUs"
    queued = f"; {ahead} are asked for ahead of you" if ahead else ""
    return f"enough {what} come free {comes_free_in_words(last, cluster.time_s)}{queued}"


def _time_limit(job: Job, run_times: Mapping[str, RunTimes], predicted: Predicted | None) -> str:
    """A limit far above what the user's jobs take, unless runs like this one took long."""
    usual, limit = run_times.get(job.user), job.time_limit_s
    if usual is None or limit is None or usual.runs < MIN_RUNS or job.hints.est_s is not None:
        return ""
    likely_s = max(usual.usual_s, predicted.seconds if predicted else 0.0)
    if limit <= max(FAR_ABOVE * likely_s, likely_s + HOUR_S):
        return ""
    ran = f"9 of 10 of your last {usual.runs} jobs ended within {format_duration(usual.usual_s)}"
    return f"{ran}, this one asks for {format_duration(limit)}; a shorter --time can start sooner"
