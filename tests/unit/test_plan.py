"""slurm_score/plan.py: the updates to send, and who is left alone."""

from dataclasses import replace
from typing import Any

import pytest

from slurm_score.model import Job
from slurm_score.plan import Plan, SiteFactorUpdate, plan_reset, plan_updates, skip_reason
from slurm_score.policy import parse_policy
from slurm_score.score import score_queue
from tests.unit.builders import make_job, make_queue

BY_QOS = parse_policy("factors: {qos: {weight: 100}}")


def plan(*jobs: Job) -> Plan:
    """Return the plan by QOS alone: high wants 100, low 25, normal 0."""
    queue = make_queue(*jobs)
    return plan_updates(queue, score_queue(queue, BY_QOS))


def test_changed_jobs_are_updated_highest_first() -> None:
    """If the cycle is cut short, those that gain most are done; equal values go by job id."""
    low, high = (make_job(4, qos="low"), make_job(1, qos="low")), make_job(3, qos="high")
    assert plan(*low, high, make_job(2, site_factor=9)).updates == (
        SiteFactorUpdate(3, "3", 100),
        SiteFactorUpdate(1, "1", 25),
        SiteFactorUpdate(4, "4", 25),
        SiteFactorUpdate(2, "2", 0),
    )


def test_unchanged_job_costs_no_update() -> None:
    """Case 47: one RPC a changed job is the price, so unchanged ones are skipped and counted."""
    assert plan(make_job(1, qos="high", site_factor=100), make_job(2)) == Plan((), {"unchanged": 2})


LEFT_ALONE = [
    pytest.param({"priority": 0}, "held", id="held"),
    pytest.param({"priority": 0, "reason": "BadConstraints"}, "held", id="BadConstraints"),
    pytest.param({"priority": 0, "reason": "launch_failed_requeued_held"}, "held", id="case 34"),
    pytest.param({"priority": 5000, "pinned": True}, "pinned", id="case 36"),
    pytest.param({"het_job_id": 26}, "follows its het leader", id="case 26"),
]
"""Changes of a job that keep its SiteFactor from ever being touched, and the reason."""


@pytest.mark.parametrize(("changes", "reason"), LEFT_ALONE)
def test_held_pinned_and_het_component_are_never_updated(changes: dict[str, Any], reason: str) -> None:
    """An admin pinned it, Slurm holds it (any update would un-hold BadConstraints), or its leader speaks."""
    job = make_job(27, qos="high", **changes)
    assert plan(job) == Plan((), {reason: 1})
    assert skip_reason(job) == reason


def test_job_that_sprio_does_not_list_waits_for_its_cycle() -> None:
    """slurm-facts 8.3: absence is not "gone"; what can't compete yet needs no place."""
    assert plan(make_job(1, qos="high", site_factor=None)) == Plan((), {"not ranked by Slurm yet": 1})


def test_het_leader_speaks_for_its_job() -> None:
    """Case 26: one update by the leader's id covers all components."""
    leader = make_job(26, qos="high", het_job_id=26, label="26+0")
    follower = make_job(27, qos="high", het_job_id=26, label="26+1", update_id="26")
    assert plan(leader, follower) == Plan((SiteFactorUpdate(26, "26", 100),), {"follows its het leader": 1})


def test_array_is_updated_by_its_list_of_tasks() -> None:
    """slurm-facts 8.12: one value for the record; a task's own update would split it."""
    array = make_job(9, qos="high", label="9_[3-9%3]", update_id="9_[3-9]", tasks="3-9")
    assert plan(array).updates == (SiteFactorUpdate(9, "9_[3-9]", 100),)


def test_skipped_jobs_are_counted_by_reason() -> None:
    """The cycle's one line says why jobs got no update."""
    jobs = [make_job(1, priority=0), make_job(2, priority=0), make_job(3, pinned=True), make_job(4)]
    assert plan(*jobs).skipped == {"held": 2, "pinned": 1, "unchanged": 1}


def test_plan_of_an_empty_queue_is_empty() -> None:
    """Nothing waits, nothing to do."""
    assert plan() == Plan((), {})


# reset


def test_reset_puts_every_site_factor_back_to_0() -> None:
    """Only where it isn't 0; a job that sprio doesn't list is set to be sure."""
    changed = (make_job(1, site_factor=700), make_job(3, site_factor=None), make_job(4, site_factor=-1))
    assert plan_reset((*changed, make_job(2))) == Plan(
        (SiteFactorUpdate(1, "1", 0), SiteFactorUpdate(3, "3", 0), SiteFactorUpdate(4, "4", 0)),
        {"unchanged": 1},
    )


@pytest.mark.parametrize(("changes", "reason"), LEFT_ALONE)
def test_reset_leaves_the_same_jobs_alone(changes: dict[str, Any], reason: str) -> None:
    """Held and pinned jobs are never touched, not even to go back."""
    job = replace(make_job(27, **changes), site_factor=7)
    assert plan_reset((job,)) == Plan((), {reason: 1})


def test_reset_leaves_running_jobs_alone() -> None:
    """Their SiteFactor has no effect any more."""
    assert plan_reset((make_job(1, state="RUNNING", site_factor=700),)) == Plan((), {})


def test_applied_plan_leaves_nothing_to_do() -> None:
    """The order is stable between cycles: the second plan is empty."""
    jobs = (make_job(1, qos="high"), make_job(2, qos="low", site_factor=3))
    held = {update.job_id: update.value for update in plan(*jobs).updates}
    after = tuple(replace(job, site_factor=held.get(job.job_id, job.site_factor)) for job in jobs)
    assert plan(*after).updates == ()
