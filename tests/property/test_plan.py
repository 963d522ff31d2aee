"""Laws of the plan: it leads to the wanted numbers, ends there, and leaves alone who is to be left alone."""

from dataclasses import replace

from hypothesis import given

from slurm_score.model import Job, Queue
from slurm_score.plan import Plan, plan_reset, plan_updates
from slurm_score.policy import Policy
from slurm_score.score import score_queue
from tests.property.strategies import policies, queues


def applied(jobs: tuple[Job, ...], plan: Plan) -> tuple[Job, ...]:
    """Return the jobs with the SiteFactors that Slurm holds after the plan."""
    held = {update.job_id: update.value for update in plan.updates}
    return tuple(replace(job, site_factor=held.get(job.job_id, job.site_factor)) for job in jobs)


@given(queue=queues(), policy=policies())
def test_second_plan_is_empty(queue: Queue, policy: Policy) -> None:
    """Goal 4: with the wanted values in Slurm nothing is left to send."""
    scores = score_queue(queue, policy)
    after = replace(queue, jobs=applied(queue.jobs, plan_updates(queue, scores)))
    assert plan_updates(after, scores).updates == ()


@given(queue=queues(), policy=policies())
def test_plan_leads_to_the_wanted_site_factors(queue: Queue, policy: Policy) -> None:
    """Every job that may be touched and that Slurm ranks holds what the policy wants."""
    scores = score_queue(queue, policy)
    after = applied(queue.jobs, plan_updates(queue, scores))
    free = [
        i
        for i, job in enumerate(queue.jobs)
        if not (job.held or job.pinned or job.follows_leader or job.site_factor is None)
    ]
    assert [after[i].site_factor for i in free] == [int(scores.site[i]) for i in free]


@given(queue=queues(), policy=policies())
def test_held_pinned_and_het_components_are_never_in_a_plan(queue: Queue, policy: Policy) -> None:
    """Decision 2, for updates and for the way back."""
    left_alone = {job.job_id for job in queue.jobs if job.held or job.pinned or job.follows_leader}
    for plan in (plan_updates(queue, score_queue(queue, policy)), plan_reset(queue.jobs)):
        assert left_alone.isdisjoint(update.job_id for update in plan.updates)


@given(queue=queues(), policy=policies())
def test_every_job_is_updated_or_counted(queue: Queue, policy: Policy) -> None:
    """No job is lost in silence, and none is updated twice."""
    for plan in (plan_updates(queue, score_queue(queue, policy)), plan_reset(queue.jobs)):
        assert len(plan.updates) + sum(plan.skipped.values()) == len(queue)
        assert len({update.job_id for update in plan.updates}) == len(plan.updates)


@given(queue=queues(), policy=policies())
def test_highest_values_are_sent_first(queue: Queue, policy: Policy) -> None:
    """A cycle that is cut short has done what matters most."""
    sent = [update.value for update in plan_updates(queue, score_queue(queue, policy)).updates]
    assert sent == sorted(sent, reverse=True)


@given(queue=queues())
def test_reset_sends_zeros_only(queue: Queue) -> None:
    """And after it there is nothing to reset."""
    plan = plan_reset(queue.jobs)
    assert {update.value for update in plan.updates} <= {0}
    assert plan_reset(applied(queue.jobs, plan)).updates == ()
