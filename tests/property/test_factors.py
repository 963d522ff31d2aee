"""Laws of the factors and of the score, over random queues; the factors come from the registry."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.explain import explain_job
from slurm_score.factors import registry
from slurm_score.factors.remaining import RemainingParams
from slurm_score.factors.remaining import compute as compute_remaining
from slurm_score.factors.wait import WaitParams, waits_s
from slurm_score.factors.wait import compute as compute_wait
from slurm_score.model import Floats, Queue
from slurm_score.policy import Policy
from slurm_score.score import guard_base, guards_s, score_queue
from tests.property.strategies import policies, queue_of, queues, shifted
from tests.unit.builders import DAY


def values(queue: Queue, policy: Policy) -> dict[str, Floats]:
    """Return the values of every factor of the registry, and its sub-terms, by name."""
    terms = {name: factor.compute(queue, policy.factors[name]) for name, factor in registry().items()}
    return {name: term.values for name, term in terms.items()} | {
        f"{name}.{detail}": column for name, term in terms.items() for detail, column in term.details.items()
    }


def older(queue: Queue, by_s: int) -> Queue:
    """Return the queue with every job submitted and eligible earlier by `by_s`."""
    jobs = tuple(
        replace(
            job,
            submit_s=job.submit_s - by_s,
            eligible_s=None if job.eligible_s is None else job.eligible_s - by_s,
        )
        for job in queue.jobs
    )
    return queue_of(jobs, queue.cluster)


@given(queue=queues(), policy=policies())
def test_every_factor_is_finite_and_between_0_and_1(queue: Queue, policy: Policy) -> None:
    """One value a job, for each factor and for each sub-term, whatever stands in the queue."""
    for column in values(queue, policy).values():
        assert column.shape == (len(queue),)
        assert np.isfinite(column).all()
        assert ((column >= 0) & (column <= 1)).all()


@given(queue=queues(min_size=1), policy=policies())
def test_every_factor_describes_every_job(queue: Queue, policy: Policy) -> None:
    """Explain has a sentence for each, in one line."""
    for name, factor in registry().items():
        for i in range(len(queue)):
            told = factor.describe(queue, policy.factors[name], i)
            assert told
            assert told.isprintable()


@given(queue=queues(), policy=policies(), by_s=st.integers(-30 * DAY, 30 * DAY))
def test_every_factor_depends_on_time_differences_only(queue: Queue, policy: Policy, by_s: int) -> None:
    """The same queue at another time has the same values: no factor knows the calendar."""
    before, after = values(queue, policy), values(shifted(queue, by_s), policy)
    assert {key: column.tolist() for key, column in before.items()} == {
        key: column.tolist() for key, column in after.items()
    }


@given(queue=queues(), policy=policies(), order=st.randoms(use_true_random=False))
def test_score_does_not_depend_on_the_order_of_the_queue(queue: Queue, policy: Policy, order: Random) -> None:
    """Jobs in another order have the same factors, scores and SiteFactors, each for itself."""
    places = list(range(len(queue)))
    order.shuffle(places)
    mixed = queue_of(tuple(queue.jobs[i] for i in places), queue.cluster)
    there, here = score_queue(mixed, policy), score_queue(queue, policy)
    assert there.factors.tolist() == here.factors[places].tolist()
    assert there.site.tolist() == here.site[places].tolist()
    assert there.guarded.tolist() == here.guarded[places].tolist()


@given(queue=queues(), by_s=st.integers(0, 60 * DAY))
def test_wait_never_falls_with_the_wait(queue: Queue, by_s: int) -> None:
    """Whoever became eligible earlier has at least as much."""
    params = WaitParams()
    longer = older(queue, by_s)
    assert (waits_s(longer, params) >= waits_s(queue, params)).all()
    assert (compute_wait(longer, params).values >= compute_wait(queue, params).values).all()


@given(queue=queues(), later_s=st.integers(0, 60 * DAY))
def test_wait_never_falls_while_time_passes(queue: Queue, later_s: int) -> None:
    """A job that could start doesn't lose its place by waiting."""
    later = replace(queue, now_s=queue.now_s + later_s)
    params = WaitParams()
    assert (compute_wait(later, params).values >= compute_wait(queue, params).values).all()


@given(queue=queues(), more_s=st.integers(0, 60 * DAY))
def test_remaining_never_rises_with_the_time_limit(queue: Queue, more_s: int) -> None:
    """A longer limit is never worth more, with hints or without; unknown stays unknown."""
    jobs = tuple(
        job if job.time_limit_s is None else replace(job, time_limit_s=job.time_limit_s + more_s)
        for job in queue.jobs
    )
    before, after = queue, queue_of(jobs, queue.cluster)
    params = RemainingParams()
    assert (compute_remaining(after, params).values <= compute_remaining(before, params).values).all()


@given(queue=queues(), hint_s=st.integers(1, 60 * DAY), more_s=st.integers(0, 60 * DAY))
def test_remaining_never_rises_with_the_hint(queue: Queue, hint_s: int, more_s: int) -> None:
    """A higher estimate is never worth more, and none is worth more than its limit allows."""
    params = RemainingParams()

    def hinted(seconds: float) -> Floats:
        jobs = tuple(replace(job, hints=replace(job.hints, est_s=seconds, left_s=None)) for job in queue.jobs)
        return compute_remaining(queue_of(jobs, queue.cluster), params).values

    assert (hinted(hint_s + more_s) <= hinted(hint_s)).all()


@given(queue=queues(), policy=policies())
def test_parts_add_up_to_the_score(queue: Queue, policy: Policy) -> None:
    """score = sum of weight x factor, never above the sum of the weights; explain tells the same numbers."""
    scores = score_queue(queue, policy)
    assert (scores.score >= 0).all()
    assert (scores.score <= policy.total_weight + 1e-6).all()
    for i in range(len(queue)):
        told = explain_job(queue, scores, policy, i)
        assert sum(term.part for term in told.terms) == pytest.approx(told.score)
        assert [term.part for term in told.terms] == pytest.approx(
            [term.weight * term.factor for term in told.terms]
        )
        assert 1 <= told.rank <= told.of <= len(queue)


@given(queue=queues(min_size=1), policy=policies())
def test_guard_tier_stands_above_every_other_job(queue: Queue, policy: Policy) -> None:
    """Goal 1: whoever is past the guard is first, whatever Slurm's own factors add to the others."""
    scores = score_queue(queue, policy)
    base = guard_base(queue, policy)
    assert (scores.site[scores.guarded] >= base).all()
    assert (scores.site[~scores.guarded] + queue.cluster.config.priority_range < base).all()


@given(queue=queues(min_size=2), policy=policies())
def test_guard_tier_is_in_order_of_wait(queue: Queue, policy: Policy) -> None:
    """Among guarded jobs a longer wait past the guard never has a lower number."""
    scores = score_queue(queue, policy)
    past = waits_s(queue, policy.factors["wait"]) - guards_s(queue, policy)
    waits = past[scores.guarded]
    sites = scores.site[scores.guarded]
    order = np.argsort(waits, kind="stable")
    assert (np.diff(sites[order]) >= 0).all()


@given(queue=queues(), policy=policies())
def test_site_factor_is_one_that_slurm_takes(queue: Queue, policy: Policy) -> None:
    """Cases 40 and 41: whole, from 0 to the cap, so never Slurm's -2 nor anything that wraps around."""
    site = score_queue(queue, policy).site
    assert site.dtype == np.int64
    assert ((site >= 0) & (site <= policy.cap)).all()
