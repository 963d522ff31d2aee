"""The shipped fake Slurm behaves as Slurm does: priorities and SiteFactor.

Each docstring names the rule and where it comes from.
"""

import pytest

from slurm_score.errors import CommandFailedError, NotPermittedError, WriteRefusedError
from slurm_score.slurm.fake import Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate, UpdateFailure
from tests.unit.fake_support import T0, fill, job_of, one_node, starts, two_nodes, write

# Priority


def test_priority_is_the_weighted_sum_of_age_qos_and_job_size() -> None:
    """age 100 s of 1000 s, QOS 50 of 100, half the nodes and a quarter of the CPUs, site factor, nice.

    0.1 * 1000 + 0.5 * 2000 + (0.5 + 0.25) / 2 * 800 + 7 - 40 = 1367 (_get_priority_internal).
    """
    weights = {"age": 1000, "qos": 2000, "job_size": 800}
    slurm = two_nodes(priority_weights=weights, max_age_s=1000)
    slurm.drain("a")
    slurm.drain("v")
    job_id = slurm.submit(Submission(qos="high", cpus_per_task=4, nice=40))
    write(slurm, "1", 7)
    slurm.advance(T0 + 100)
    assert job_of(slurm, job_id).priority == 1367


def test_age_is_full_after_max_age() -> None:
    """The age factor reaches 1.0 at PriorityMaxAge and stays there (slurm.conf(5))."""
    slurm = one_node(priority_weights={"age": 500}, max_age_s=100)
    slurm.drain("n")
    slurm.submit(Submission())
    slurm.advance(T0 + 250)
    assert job_of(slurm, 1).priority == 500


def test_priority_is_never_below_one() -> None:
    """0 is hold, so a negative sum becomes 1 (_get_priority_internal)."""
    slurm = one_node()
    slurm.submit(Submission(nice=100))
    assert job_of(slurm, 1).priority == 1


def test_priority_is_capped() -> None:
    """A priority is 32 bits wide (_get_priority_internal)."""
    slurm = one_node(priority_weights={"qos": 2**32})
    slurm.submit(Submission(qos="urgent"))
    assert job_of(slurm, 1).priority == 4294967295


def test_held_job_is_at_priority_zero_and_not_in_sprio() -> None:
    """sbatch --hold gives JobHeldUser; sprio leaves out priority 0 (sbatch(1); sprio(1))."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    job = job_of(slurm, 1)
    assert (job.priority, job.reason, job.held) == (0, "JobHeldUser", True)
    assert (job.site_factor, job.eligible_s) == (None, None)
    assert slurm.schedule() == ()


def test_released_job_starts_and_becomes_eligible_then() -> None:
    """Release clears the hold and its reason; eligible time is set at that point (_release_job_rec)."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    slurm.advance(T0 + 50)
    slurm.release(1)
    job = job_of(slurm, 1)
    assert (job.priority, job.reason, job.eligible_s, job.site_factor) == (1, "None", T0 + 50, 0)
    assert slurm.schedule() == (1,)


def test_hold_by_an_operator_takes_the_age_away() -> None:
    """Holding removes the accrue time, so that age starts anew at the release (_hold_job_rec)."""
    slurm = one_node(priority_weights={"age": 1000}, max_age_s=1000)
    fill(slurm)
    slurm.submit(Submission())
    slurm.advance(T0 + 200)
    assert job_of(slurm, 2).priority == 200
    slurm.hold(2, "JobHeldAdmin")
    assert (job_of(slurm, 2).priority, job_of(slurm, 2).reason) == (0, "JobHeldAdmin")
    slurm.advance(T0 + 300)
    slurm.release(2)
    assert job_of(slurm, 2).priority == 1
    slurm.advance(T0 + 350)
    assert job_of(slurm, 2).priority == 50


def test_pinned_priority_is_never_recomputed() -> None:
    """Priority=N sets direct_set_prio and nice 0; sprio shows no factors, SITE 0 (_update_job)."""
    slurm = one_node(priority_weights={"age": 1000}, max_age_s=100)
    fill(slurm)
    slurm.submit(Submission(nice=100))
    slurm.update_priority(2, 5000)
    slurm.advance(T0 + 100)
    assert write(slurm, "2", 77) == ()
    job = job_of(slurm, 2)
    assert (job.priority, job.pinned, job.site_factor) == (5000, True, 0)
    assert slurm.site_factor_of(2) == 77


def test_release_unpins_a_job_without_giving_its_nice_back() -> None:
    """Release of a job that isn't held recomputes it, nice 0 (job_mgr.c, _update_job)."""
    slurm = one_node(priority_weights={"age": 1000}, max_age_s=100)
    fill(slurm)
    slurm.submit(Submission(nice=100))
    slurm.update_priority(2, 5000)
    write(slurm, "2", 77)
    slurm.advance(T0 + 100)
    slurm.release(2)
    assert (job_of(slurm, 2).priority, job_of(slurm, 2).pinned) == (1077, False)


def test_release_of_a_job_that_is_neither_held_nor_pinned_changes_nothing() -> None:
    """There is nothing to release (job_mgr.c, _update_job)."""
    slurm = one_node()
    slurm.submit(Submission(nice=-5))
    slurm.release(1)
    assert job_of(slurm, 1).priority == 5


def test_priority_of_a_held_job_can_not_be_set() -> None:
    """Priority=N on a held job is refused and does not release it (ESLURM_JOB_HELD)."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    with pytest.raises(CommandFailedError, match="Job is in held state"):
        slurm.update_priority(1, 5)
    assert job_of(slurm, 1).priority == 0


def test_priority_zero_holds() -> None:
    """Priority=0 is the same as scontrol hold (scontrol(1))."""
    slurm = one_node()
    slurm.submit(Submission())
    slurm.update_priority(1, 0)
    assert job_of(slurm, 1).reason == "JobHeldAdmin"


def test_hold_of_a_running_or_ended_job_is_refused() -> None:
    """Only pending jobs can be held (ESLURM_JOB_NOT_PENDING, ESLURM_JOB_FINISHED)."""
    slurm = one_node()
    fill(slurm, 60)
    with pytest.raises(CommandFailedError, match="Job is no longer pending execution"):
        slurm.hold(1)
    slurm.advance(T0 + 60)
    with pytest.raises(CommandFailedError, match="Job has already finished"):
        slurm.hold(1)


# SiteFactor


def test_guard_lets_nothing_through_at_first() -> None:
    """The guard starts read-only, and a refused write changes nothing (gateway.WriteGuard)."""
    slurm = two_nodes(access=Access.READ_ONLY)
    slurm.submit(Submission())
    with pytest.raises(WriteRefusedError):
        slurm.write_site_factors([SiteFactorUpdate(1, "1", 5)])
    assert (slurm.update_count, job_of(slurm, 1).site_factor) == (0, 0)


def test_site_factor_counts_at_once() -> None:
    """SiteFactor is stored and the priority recomputed in the same call (job_mgr.c, set_job_prio)."""
    slurm = two_nodes()
    slurm.submit(Submission())
    assert write(slurm, "1", 500) == ()
    assert (job_of(slurm, 1).site_factor, job_of(slurm, 1).priority) == (500, 500)
    assert slurm.update_count == 1


def test_site_factor_reorders_the_queue() -> None:
    """The scheduler takes the highest priority first (sort_job_queue2)."""
    slurm = one_node()
    fill(slurm, 100)
    slurm.submit(Submission(run_time_s=100))
    slurm.submit(Submission(run_time_s=100))
    write(slurm, "3", 10)
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "3": 100, "2": 200}


def test_held_job_stores_its_site_factor_and_stays_held() -> None:
    """On a held job SiteFactor is stored, takes effect on release and releases nothing (_update_job)."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    assert write(slurm, "1", 40) == ()
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).site_factor) == (0, None)
    assert slurm.site_factor_of(1) == 40
    slurm.release(1)
    assert job_of(slurm, 1).priority == 40


def test_update_of_a_job_with_bad_constraints_lets_it_go_until_the_next_pass() -> None:
    """Any update un-holds a BadConstraints job; the scheduler holds it again (_update_job, _schedule)."""
    slurm = one_node()
    slurm.submit(Submission())
    slurm.break_constraints(1)
    slurm.schedule()
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).reason) == (0, "BadConstraints")
    write(slurm, "1", 3)
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).reason) == (3, "None")
    slurm.schedule()
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).reason) == (0, "BadConstraints")


def test_running_job_accepts_a_site_factor() -> None:
    """An update of a running job is carried out, though useless (job_mgr.c, _update_job)."""
    slurm = one_node()
    fill(slurm)
    assert write(slurm, "1", 5) == ()
    assert slurm.site_factor_of(1) == 5


@pytest.mark.parametrize("update_id", ["99", "99_1", "99_[1-2]", "1_1", "1+1", "x"])
def test_update_of_an_unknown_id_fails(update_id: str) -> None:
    """Slurm's sentence for ids that stand for no job (slurm_errno.c, ESLURM_INVALID_JOB_ID)."""
    slurm = one_node()
    slurm.submit(Submission())
    assert write(slurm, update_id, 5) == ("Invalid job id specified",)
    assert slurm.update_count == 0


def test_update_of_an_ended_job_fails() -> None:
    """A finished job can't be updated (slurm_errno.c, ESLURM_JOB_FINISHED)."""
    slurm = one_node()
    fill(slurm, 10)
    slurm.advance(T0 + 10)
    assert write(slurm, "1", 5) == ("Job has already finished",)


def test_update_without_operator_rights_fails() -> None:
    """Own jobs: ESLURM_ACCESS_DENIED; those of others: ESLURM_USER_ID_MISSING (_update_job)."""
    slurm = two_nodes(user="ann")
    slurm.submit(Submission(user="ann"))
    slurm.submit(Submission(user="bob"))
    updates = [SiteFactorUpdate(2, "2", 5), SiteFactorUpdate(9, "9", 5), SiteFactorUpdate(1, "1", 5)]
    assert [failure.message for failure in slurm.write_site_factors(updates)] == [
        "Invalid user id",
        "Invalid job id specified",
        "Access/permission denied",
    ]
    assert (slurm.update_count, slurm.site_factor_of(1)) == (0, 0)


@pytest.mark.parametrize(
    ("user", "level"), [("slurm", "None"), ("root", "None"), ("ops", "Operator"), ("ops", "Administrator")]
)
def test_operators_set_site_factors(user: str, level: str) -> None:
    """root, SlurmUser, and AdminLevel Operator or higher may (job_mgr.c, validate_operator)."""
    slurm = two_nodes(user=user, admin_levels={"ops": level})
    slurm.submit(Submission(user="bob"))
    assert write(slurm, "1", 5) == ()


def test_right_refused_for_all_updates_is_an_error() -> None:
    """As with the commands: one sentence, not one failure for each update."""
    slurm = two_nodes(user="ops", admin_levels={"ops": "None"})
    slurm.submit(Submission(user="bob"))
    with pytest.raises(NotPermittedError, match=r"^slurmctld refused all 1 updates: Invalid user id$"):
        write(slurm, "1", 5)


@pytest.mark.parametrize("value", [2147483645, -2147483645])
def test_site_factor_has_a_range(value: int) -> None:
    """scontrol takes what fits beside NICE_OFFSET (scontrol/update_job.c)."""
    slurm = one_node()
    slurm.submit(Submission())
    assert write(slurm, "1", value) == ()
    assert slurm.site_factor_of(1) == value


@pytest.mark.parametrize("value", [2147483646, -2147483646])
def test_site_factor_out_of_range_is_ignored_and_an_error(value: int) -> None:
    """scontrol names no job, and carries out the other updates."""
    slurm = one_node()
    slurm.submit(Submission())
    slurm.submit(Submission())
    updates = [SiteFactorUpdate(1, "1", value), SiteFactorUpdate(2, "2", 5)]
    with pytest.raises(CommandFailedError, match=r"value out of range \(\+/- 2147483645\)\. Value ignored"):
        slurm.write_site_factors(updates)
    assert (slurm.site_factor_of(1), slurm.site_factor_of(2)) == (0, 5)


def test_updates_go_on_after_a_failure() -> None:
    """scontrol carries out the rest and names the update that failed (scontrol(1), stdin)."""
    slurm = one_node()
    slurm.submit(Submission())
    bad, good = SiteFactorUpdate(9, "9", 5), SiteFactorUpdate(1, "1", 6)
    assert slurm.write_site_factors([bad, good]) == (UpdateFailure(bad, "Invalid job id specified"),)
    assert (slurm.site_factor_of(1), slurm.update_count) == (6, 1)
