"""slurm_score/audit/decisions.py: which decisions are news, and what is said of them."""

import pytest

from slurm_score.audit.decisions import GIVEN_UP, IN_BAND, LEFT_OVER, SENT, Decision, decisions, last_whys
from slurm_score.model import Job
from slurm_score.policy import Policy
from slurm_score.slurm.gateway import UpdateFailure

from .audit_support import ENFORCE, outcome_of
from .builders import HOUR, make_job, make_policy

COMPLETING = "Job/step already completing or completed"


def whys(found: list[Decision]) -> dict[int, str]:
    """Return why, by job."""
    return {decision.job_id: decision.why for decision in found}


def test_a_sent_update_is_told_with_old_new_score_and_parts() -> None:
    """The new value is the very one that went out, the parts add up to the score."""
    outcome = outcome_of(make_job(7, qos="high", wait_s=2 * HOUR, partitions=("main", "gpu"), site_factor=3))
    (found,) = decisions(outcome, ENFORCE, {})
    assert (found.why, found.old, found.new) == (SENT, 3, outcome.plan.updates[0].value)
    assert (found.job_id, found.label, found.user, found.partition) == (7, "7", "alice", "main,gpu")
    assert found.score == pytest.approx(float(outcome.scores.score[0]), abs=0.01)
    assert found.parts == pytest.approx(outcome.scores.parts[0].tolist(), abs=0.01)
    assert not found.guarded


def test_a_job_past_its_guard_is_marked() -> None:
    """Its number isn't its score: the history has to say so."""
    (found,) = decisions(outcome_of(make_job(7, wait_s=50 * HOUR)), ENFORCE, {})
    assert found.guarded
    assert found.new > ENFORCE.total_weight


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_outside_enforce_the_mode_is_why_nothing_was_sent(mode: str) -> None:
    """For all that are due, whether the plan has room for them or not: a row a job, not one a cycle."""
    policy = make_policy(mode=mode, updates={"per_cycle": 1})
    outcome = outcome_of(make_job(1), make_job(2), policy=policy)
    assert (len(outcome.plan.updates), outcome.plan.left_over) == (1, 1)
    told = f"mode is {mode}"
    assert whys(decisions(outcome, policy, {})) == {1: told, 2: told}
    assert decisions(outcome, policy, {1: told, 2: told}) == []


def test_a_failed_update_is_told_with_slurm_s_sentence_and_once() -> None:
    """Traps 16 and 17; what fails in the same way every minute is one row."""
    outcome = outcome_of(make_job(1), make_job(2))
    failure = UpdateFailure(outcome.plan.updates[1], COMPLETING)
    failed = outcome_of(make_job(1), make_job(2), failures=(failure,))
    assert whys(decisions(failed, ENFORCE, {})) == {1: SENT, 2: COMPLETING}
    assert whys(decisions(failed, ENFORCE, {1: SENT, 2: COMPLETING})) == {1: SENT}


def test_updates_beyond_the_limit_are_left_over_and_the_dead_band_is_not() -> None:
    """Only the planner knows which are due: job 3 holds what is wanted, 1 and 2 don't and one is sent."""
    policy = make_policy(mode="enforce", updates={"per_cycle": 1})
    (wanted,) = outcome_of(make_job(3), policy=policy).plan.updates
    right = make_job(3, site_factor=wanted.value)
    more = [make_job(i, site_factor=wanted.value) for i in (4, 5)]
    outcome = outcome_of(make_job(1), make_job(2), right, *more, policy=policy)
    assert (len(outcome.plan.updates), outcome.plan.left_over) == (1, 1)
    assert whys(decisions(outcome, policy, {})) == {1: SENT, 2: LEFT_OVER, 3: IN_BAND, 4: IN_BAND, 5: IN_BAND}


def test_what_was_planned_and_not_sent_is_left_over_with_the_cause() -> None:
    """A deadline, a kill switch, a Slurm that failed: the updates that went out before are told as sent."""
    jobs = (make_job(1), make_job(2))
    halted = outcome_of(*jobs, sent=1, halted="deadline")
    assert whys(decisions(halted, ENFORCE, {})) == {1: SENT, 2: f"{LEFT_OVER}: deadline"}
    failed = outcome_of(*jobs, sent=0)
    told = f"{LEFT_OVER}: {GIVEN_UP}"
    assert whys(decisions(failed, ENFORCE, {}, given_up=True)) == {1: told, 2: told}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (make_job(1, priority=0), "held"),
        (make_job(1, pinned=True), "pinned"),
        (make_job(1, site_factor=None), "not ranked by Slurm yet"),
        (make_job(1, het_job_id=2), "follows its het leader"),
    ],
)
def test_a_job_that_is_left_alone_is_told_with_the_planner_s_reason(job: Job, why: str) -> None:
    """Once, until the reason changes."""
    assert whys(decisions(outcome_of(job), ENFORCE, {})) == {1: why}
    assert decisions(outcome_of(job), ENFORCE, {1: why}) == []
    assert whys(decisions(outcome_of(job), ENFORCE, {1: "too young"})) == {1: why}


def test_a_scrontab_job_is_told_as_the_planner_was_told() -> None:
    """Slurm lets nobody update it."""
    outcome = outcome_of(make_job(1), make_job(2), scrontab=frozenset({1}))
    assert whys(decisions(outcome, ENFORCE, {})) == {1: "scrontab job", 2: SENT}


@pytest.mark.parametrize(
    ("before", "news"),
    [
        (None, True),
        (SENT, False),
        (IN_BAND, False),
        ("held", True),
        (LEFT_OVER, True),
        (COMPLETING, True),
    ],
)
def test_a_job_that_holds_what_is_wanted_is_news_only_after_something_else(
    before: str | None, news: bool
) -> None:
    """That an update was carried out needs no second row."""
    (update,) = outcome_of(make_job(1)).plan.updates
    outcome = outcome_of(make_job(1, site_factor=update.value))
    found = decisions(outcome, ENFORCE, {} if before is None else {1: before})
    assert whys(found) == ({1: IN_BAND} if news else {})


def test_being_left_over_again_for_another_cause_is_no_news() -> None:
    """A slow slurmctld tells another number of seconds each time."""
    outcome = outcome_of(make_job(1), sent=0, halted="slurmctld took 7.1 s for 250 updates")
    assert decisions(outcome, ENFORCE, {1: f"{LEFT_OVER}: deadline"}) == []


def test_an_update_is_always_news() -> None:
    """Every SiteFactor that we set is in the history."""
    assert whys(decisions(outcome_of(make_job(1)), ENFORCE, {1: SENT})) == {1: SENT}


def test_last_whys_are_those_of_the_queue() -> None:
    """A job that left is forgotten; one that comes back is told anew."""
    outcome = outcome_of(make_job(1), make_job(2))
    found = [decision for decision in decisions(outcome, ENFORCE, {}) if decision.job_id == 2]
    assert last_whys(outcome.queue, {1: "held", 2: "held", 3: "held"}, found) == {1: "held", 2: SENT}


@pytest.mark.parametrize(
    ("label", "array_id", "stored"),
    [
        ("9", 9, "9"),
        ("", 12, "12"),
        ("9_[3-9%3]", 9, "9_[3-9%3]"),
        ("9_4", 9, "9_4"),
        ("9+1", 9, "9+1"),
        ("9_[" + "1,3," * 40 + "5]", 9, "9_[" + "1,3," * 14 + "1,..."),
    ],
)
def test_a_job_is_stored_by_the_number_of_its_array(label: str, array_id: int, stored: str) -> None:
    """Case 25; a long list of tasks is cut as squeue cuts it."""
    (found,) = decisions(outcome_of(make_job(12, label=label)), ENFORCE, {})
    assert (found.job_id, found.array_id, found.label) == (12, array_id, stored)


def test_text_that_is_no_unicode_is_escaped() -> None:
    """SQLite refuses a lone surrogate, and a whole cycle would be lost for it."""
    (found,) = decisions(outcome_of(make_job(1, user="al\udcffice")), ENFORCE, {})
    assert found.user == "al\\udcffice"


def test_an_empty_queue_has_no_decisions() -> None:
    """Nothing to say."""
    assert decisions(outcome_of(), Policy(), {}) == []
