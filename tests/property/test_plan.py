"""Laws of the plan: it leads to the wanted order, ends there, and leaves alone who is to be left alone."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.columns import columns_of
from slurm_score.model import Queue
from slurm_score.plan import Plan, plan_reset, plan_updates, skip_codes
from slurm_score.policy import Policy
from slurm_score.score import Scores, score_queue
from tests.property.strategies import policies, queues

bands = st.sampled_from((0.5, 1.0, 40.0))
tops = st.sampled_from((0, 1, 3, 500))


def planned(queue: Queue, policy: Policy, band: float = 0.5, top: int = 500) -> tuple[Plan, Scores, Policy]:
    """Return the plan, the scores with its offsets, and the policy with this dead band and top."""
    changed = policy.updates.model_copy(update={"dead_band": band, "exact_top": top})
    policy = policy.model_copy(update={"updates": changed})
    plan = plan_updates(queue, score_queue(queue, policy), policy)
    return plan, score_queue(replace(queue, offsets=plan.offsets), policy), policy


def applied(queue: Queue, plan: Plan) -> Queue:
    """Return the queue with the SiteFactors that Slurm holds after the plan."""
    held = {update.job_id: update.value for update in plan.updates}
    jobs = tuple(replace(job, site_factor=held.get(job.job_id, job.site_factor)) for job in queue.jobs)
    return replace(queue, jobs=jobs, offsets=plan.offsets)


@given(queue=queues(), policy=policies(), band=bands, top=tops)
def test_second_plan_is_empty(queue: Queue, policy: Policy, band: float, top: int) -> None:
    """Goal 4: with nothing changed in the cluster nothing is left to send."""
    plan, _, _ = planned(queue, policy, band, top)
    assert planned(applied(queue, plan), policy, band, top)[0].updates == ()


@given(queue=queues(), policy=policies())
def test_plan_leads_to_the_wanted_order(queue: Queue, policy: Policy) -> None:
    """Of any two jobs that may be touched, a point or more apart: the better one stands higher."""
    plan, scores, _ = planned(queue, policy)
    held = columns_of(applied(queue, plan)).site
    free = np.flatnonzero(skip_codes(queue, policy) == 0)
    for one in free:
        for other in free:
            above = scores.guarded[one] > scores.guarded[other]
            same = scores.guarded[one] == scores.guarded[other]
            if above or (same and scores.points[one] > scores.points[other] + 1 + 1e-5):
                assert held[one] > held[other]


@given(queue=queues(), policy=policies(), band=bands, top=tops)
def test_no_number_is_off_by_more_than_the_dead_band(
    queue: Queue, policy: Policy, band: float, top: int
) -> None:
    """Traps 9 and 10: and it is within the range, from 0 to the cap, so never Slurm's -2."""
    plan, scores, policy = planned(queue, policy, band, top)
    after = columns_of(applied(queue, plan)).site
    free = skip_codes(queue, policy) == 0
    assert (np.abs(after[free] - scores.site[free]) <= band + 0.5 + 1e-5).all()
    assert all(0 <= update.value <= policy.cap for update in plan.updates)


@given(queue=queues(), policy=policies())
def test_held_pinned_and_het_components_are_never_in_a_plan(queue: Queue, policy: Policy) -> None:
    """Decision 2, for updates and for the way back."""
    left_alone = {job.job_id for job in queue.jobs if job.held or job.pinned or job.follows_leader}
    for plan in (planned(queue, policy)[0], plan_reset(queue)):
        assert left_alone.isdisjoint(update.job_id for update in plan.updates)


@given(queue=queues(), policy=policies())
def test_every_job_is_updated_or_counted(queue: Queue, policy: Policy) -> None:
    """No job is lost in silence, and none is updated twice."""
    for plan in (planned(queue, policy)[0], plan_reset(queue)):
        assert len(plan.updates) + sum(plan.skipped.values()) == len(queue)
        assert len({update.job_id for update in plan.updates}) == len(plan.updates)


@given(queue=queues())
def test_reset_sends_zeros_only(queue: Queue) -> None:
    """And after it there is nothing to reset."""
    plan = plan_reset(queue)
    assert {update.value for update in plan.updates} <= {0}
    assert plan_reset(applied(queue, plan)).updates == ()
