"""A queue and a policy in, a score and its parts for every job out. Pure.

score = sum of weight x factor. The whole number wanted as SiteFactor is score + offset, rounded, or,
for a job that has waited longer than its guard, a number above every score and above what Slurm's
own factors can add, in the order in which jobs reached their guard. The offsets are the same for all
jobs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slurm_score.columns import Bools, Ints, columns_of
from slurm_score.errors import FactorError
from slurm_score.factors import AnyFactor, Term, registry
from slurm_score.factors.wait import waits_s
from slurm_score.model import NO_OFFSETS, Floats, Offsets, Queue
from slurm_score.policy import Policy
from slurm_score.units import MINUTE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The scores of a queue; row i belongs to `queue.jobs[i]`, columns to `names`.

    `factors` and `parts` are float64[n_jobs, n_factors], `score` float64[n_jobs] is the sum of the
    parts, `guarded` bool[n_jobs] marks the jobs past the guard, `points` float64[n_jobs] is what
    ranks a job within its tier: its score, or its minutes past the guard. `site` int64[n_jobs] is the
    SiteFactor wanted, `details` holds sub-terms by factor and name, each float64[n_jobs].
    """

    names: tuple[str, ...]
    weights: tuple[int, ...]
    factors: Floats
    parts: Floats
    score: Floats
    guarded: Bools
    points: Floats
    site: Ints
    details: Mapping[str, Mapping[str, Floats]]


def score_queue(queue: Queue, policy: Policy) -> Scores:
    """Return the scores of a queue.

    Raises:
        FactorError: a factor raised or left [0, 1]; there is no partial score.
    """
    terms, weights = _terms(queue, policy)
    factors, parts = _weighed(terms, weights)
    score = parts.sum(axis=1)
    waits = waits_s(queue, policy.factors["wait"])
    guards = guards_s(queue, policy)
    guarded = waits >= guards
    points = np.where(guarded, (waits - guards) / MINUTE_S, score)
    return Scores(
        names=tuple(terms),
        weights=weights,
        factors=factors,
        parts=parts,
        score=score,
        guarded=guarded,
        points=points,
        site=site_factors(points, guarded, guard_base(queue, policy), policy, queue.offsets),
        details={name: term.details for name, term in terms.items() if term.details},
    )


def scores_of(queue: Queue, policy: Policy) -> Floats:
    """Return the bare scores of a queue, float64[n_jobs]: all that jobs need that were submitted just now.

    Raises:
        FactorError: as score_queue.
    """
    _, parts = _weighed(*_terms(queue, policy))
    score: Floats = parts.sum(axis=1)
    return score


def _terms(queue: Queue, policy: Policy) -> tuple[dict[str, Term], tuple[int, ...]]:
    """The factors by name, each within its range, and their weights."""
    terms = {name: _term(factor, queue, policy) for name, factor in registry().items()}
    _require_in_range(terms, queue)
    return terms, tuple(policy.factors[name].weight for name in terms)


def _weighed(terms: Mapping[str, Term], weights: Sequence[int]) -> tuple[Floats, Floats]:
    """Factors and parts, float64[n_jobs, n_factors] each."""
    factors = np.array([term.values for term in terms.values()]).T
    return factors, factors * np.array(weights, np.float64)


def guards_s(queue: Queue, policy: Policy) -> Floats:
    """Return after what wait each job is past its guard, in s, float64[n_jobs]."""
    columns, guard = columns_of(queue), policy.guard
    named = np.minimum(columns.qos.map(guard.of_qos), columns.partitions.map(guard.of_partitions))
    return np.where(np.isinf(named), guard.after, named)


def with_offsets(scores: Scores, queue: Queue, policy: Policy, offsets: Offsets) -> Scores:
    """Return the scores with the SiteFactors that other offsets make."""
    base = guard_base(queue, policy)
    return replace(scores, site=site_factors(scores.points, scores.guarded, base, policy, offsets))


def queue_order(queue: Queue, scores: Scores, i: int) -> tuple[int, int, int]:
    """Return the sort key of job i in the order that Slurm will keep: ties by submit time, then id."""
    job = queue.jobs[i]
    return (-int(scores.site[i]), job.submit_s, job.job_id)


def neutral_site(policy: Policy, offsets: Offsets = NO_OFFSETS) -> int:
    """Return the SiteFactor for a job about which nothing is known: every factor at its neutral value."""
    total: float = sum(policy.factors[name].weight * factor.neutral for name, factor in registry().items())
    return site_of(total, policy, offsets)


def site_of(score: float, policy: Policy, offsets: Offsets) -> int:
    """Return the SiteFactor wanted for one job that is not past the guard."""
    return max(0, min(policy.cap, math.floor(score + offsets.score + 0.5)))


def guard_base(queue: Queue, policy: Policy) -> int:
    """Return the SiteFactor at which a queue's guard tier begins."""
    return guard_tier(policy, queue.cluster.config.priority_range)


def guard_tier(policy: Policy, priority_range: int) -> int:
    """Return the SiteFactor at which the guard tier begins: above all scores and Slurm's own factors."""
    return policy.total_weight + policy.room + priority_range + 1


def site_factors(points: Floats, guarded: Bools, base: int, policy: Policy, offsets: Offsets) -> Ints:
    """Return the SiteFactors wanted, int64[n_jobs] from 0 to the cap; the guard tier begins at `base`."""
    site = np.floor(points + np.where(guarded, base + offsets.guard, offsets.score) + 0.5)
    return np.clip(site, 0, policy.cap).astype(np.int64)


def _term(factor: AnyFactor, queue: Queue, policy: Policy) -> Term:
    try:
        term: Term = factor.compute(queue, policy.factors[factor.name])
    except Exception as error:
        raise FactorError(f"factor {factor.name!r} failed: {type(error).__name__}: {error}") from error
    return term


def _require_in_range(terms: Mapping[str, Term], queue: Queue) -> None:
    """Raise for the first value that is no number from 0 to 1; one look at all of them is cheap."""
    named = [
        (factor, name, values)
        for factor, term in terms.items()
        for name, values in ((factor, term.values), *term.details.items())
    ]
    for factor, name, values in named:
        if values.shape != (len(queue),):
            raise FactorError(f"factor {factor!r}: {name} has shape {values.shape}, not ({len(queue)},)")
    every = np.array([values for _, _, values in named])
    if every.size == 0 or (every.min() >= 0 and every.max() <= 1):
        return
    row, i = np.argwhere(~((every >= 0) & (every <= 1)))[0].tolist()
    factor, name, values = named[row]
    label = queue.jobs[i].label
    raise FactorError(f"factor {factor!r}: {name} is {values[i]} for job {label}, not in [0, 1]")
