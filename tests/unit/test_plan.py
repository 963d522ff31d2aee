"""slurm_score/plan.py: the updates to send, and who is left alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_score.model import Cluster, Job, Offsets, Queue, SlurmConfig
from slurm_score.plan import Plan, SiteFactorUpdate, best_offset, plan_reset, plan_updates, skip_reason
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.score import guard_base, score_queue
from tests.unit.builders import HOUR, MINUTE, NOW, make_cluster, make_job, make_policy, make_queue

BY_QOS = parse_policy("factors: {qos: {weight: 100}}")
ROOM = BY_QOS.room


def plan(*jobs: Job, policy: Policy = BY_QOS, **queue: Any) -> Plan:
    """Return the plan by QOS alone: high wants 100, low 25, normal 0, all plus the offset."""
    made = make_queue(*jobs, **queue)
    return plan_updates(made, score_queue(made, policy), policy)


def reset(*jobs: Job) -> Plan:
    """Return the plan that takes everything back."""
    return plan_reset(Queue(jobs=jobs, cluster=Cluster(time_s=0.0), now_s=0.0))


def applied(jobs: Sequence[Job], done: Plan) -> list[Job]:
    """Return the jobs with what Slurm holds after the plan."""
    held = {update.job_id: update.value for update in done.updates}
    return [replace(job, site_factor=held.get(job.job_id, job.site_factor)) for job in jobs]


def test_first_plan_begins_at_the_upper_end_of_the_range() -> None:
    """Offsets only shrink as waits grow. What Slurm has first now comes among the first."""
    low, high = (make_job(4, qos="low"), make_job(1, qos="low")), make_job(3, qos="high")
    done = plan(*low, high, make_job(2, site_factor=9))
    assert done.offsets.score == ROOM == 1000
    assert done.updates == (
        SiteFactorUpdate(3, "3", 1100),
        SiteFactorUpdate(2, "2", 1000),
        SiteFactorUpdate(1, "1", 1025),
        SiteFactorUpdate(4, "4", 1025),
    )


def test_offset_that_spares_most_updates_is_taken() -> None:
    """Case 47: four of five jobs stand right by 500 more than their scores; the fifth follows them."""
    jobs = [make_job(i, qos="high", site_factor=600) for i in (1, 2)]
    jobs += [
        make_job(3, qos="low", site_factor=525),
        make_job(4, site_factor=500),
        make_job(5, site_factor=0),
    ]
    done = plan(*jobs)
    assert (done.updates, done.skipped) == ((SiteFactorUpdate(5, "5", 500),), {"unchanged": 4})
    assert done.offsets.score == pytest.approx(500, abs=0.5)


def test_everybodys_waiting_costs_no_update() -> None:
    """A common drift: an hour later all waits have grown by 6.5 points, and the offset has shrunk by them."""
    policy = make_policy()
    jobs = [make_job(i, wait_s=i * 1000.0, qos=("low", "high")[i % 2]) for i in range(40)]
    jobs = applied(jobs, plan(*jobs, policy=policy))
    later = plan(*jobs, policy=policy, now_s=NOW + HOUR)
    assert later.updates == ()
    assert later.offsets.score == pytest.approx(policy.room - 350 / 54, abs=0.5)


def test_job_that_gains_more_than_the_others_is_updated() -> None:
    """Its QOS was changed: the order is no longer the wanted one."""
    jobs = [make_job(1, site_factor=700), make_job(2, site_factor=700), make_job(3, qos="low")]
    jobs = applied(jobs, plan(*jobs))
    assert [job.site_factor for job in jobs] == [700, 700, 725]
    assert plan(replace(jobs[0], qos="high"), *jobs[1:]).updates == (SiteFactorUpdate(1, "1", 800),)


def test_new_start_when_the_offset_has_used_up_its_range() -> None:
    """Everybody is raised, the first of the queue first, so that no order on the way is wrong."""
    policy = parse_policy("factors: {wait: {weight: 540}}")
    jobs = [make_job(i, wait_s=i * 36.0, site_factor=i // 10) for i in range(100)]
    done = plan(*jobs, policy=policy, now_s=NOW + 10 * HOUR)
    values = [update.value for update in done.updates]
    assert done.offsets.score == policy.room
    assert len(values) == 100
    assert values == sorted(values, reverse=True)


# near the top and below


def deep(dead_band: float, off: int, top: int = 2) -> Plan:
    """Return the plan for ten jobs of which the fifth is held `off` points too high."""
    policy = parse_policy(
        f"factors: {{size: {{weight: 1000}}}}\nupdates: {{exact_top: {top}, dead_band: {dead_band}}}"
    )
    sizes = [24, 23, 20, 18, 16, 14, 12, 10, 8, 6]
    jobs = [make_job(i, cpus=cpus) for i, cpus in enumerate(sizes, 1)]
    jobs = applied(jobs, plan(*jobs, policy=policy))
    held = jobs[4].site_factor or 0
    return plan(*jobs[:4], replace(jobs[4], site_factor=held + off), *jobs[5:], policy=policy)


@pytest.mark.parametrize(("dead_band", "off", "updates"), [(5, 4, 0), (5, 6, 1), (0.5, 1, 1), (0.5, 0, 0)])
def test_below_the_top_a_number_may_be_off_by_the_dead_band(dead_band: float, off: int, updates: int) -> None:
    """Noise below it sends nothing, again and again."""
    assert len(deep(dead_band, off).updates) == updates


def test_near_the_top_the_order_is_exact() -> None:
    """The same job among the first five of its partition."""
    assert len(deep(5, 4, top=5).updates) == 1


def test_who_could_be_taken_for_one_of_the_top_is_exact_too() -> None:
    """Six points below the last of the top it could stand above it with a number that is off."""
    policy = parse_policy("factors: {size: {weight: 1000}}\nupdates: {exact_top: 1, dead_band: 400}")
    jobs = [make_job(1, cpus=24), make_job(2, cpus=20), make_job(3, cpus=2)]
    jobs = applied(jobs, plan(*jobs, policy=policy))
    held = [job.site_factor or 0 for job in jobs]
    higher = (
        jobs[0],
        replace(jobs[1], site_factor=held[1] + 300),
        replace(jobs[2], site_factor=held[2] + 300),
    )
    assert [update.job_id for update in plan(*higher, policy=policy).updates] == [2]


def test_change_near_the_top_of_a_partition_is_sent_first() -> None:
    """By the better of the old and the new place: what must leave the top is as urgent."""
    policy = parse_policy("factors: {size: {weight: 2400}}\nupdates: {per_cycle: 2}")
    jobs = [make_job(i, cpus=24 - i) for i in range(12)]
    jobs = applied(jobs, plan(*jobs, policy=make_policy(factors=policy.stored()["factors"])))
    held = {job.job_id: job.site_factor or 0 for job in jobs}
    moved = {8: held[8] - 50, 10: held[10] + 3000, 3: held[3] - 250}
    wrong = tuple(replace(job, site_factor=moved.get(job.job_id, job.site_factor)) for job in jobs)
    done = plan(*wrong, policy=policy)
    assert [update.job_id for update in done.updates] == [10, 3]
    assert done.left_over == 1


def test_what_is_left_over_comes_in_the_next_cycle() -> None:
    """The cap spreads a first start over cycles; each one leaves the order better than it was."""
    policy = parse_policy("factors: {size: {weight: 2400}}\nupdates: {per_cycle: 5}")
    jobs = [make_job(i, cpus=24 - i) for i in range(12)]
    counts = []
    for _ in range(4):
        done = plan(*jobs, policy=policy)
        counts.append((len(done.updates), done.left_over))
        jobs = applied(jobs, done)
    assert counts == [(5, 7), (5, 2), (2, 0), (0, 0)]


# the guard tier


def test_waiting_past_the_guard_costs_no_update() -> None:
    """The tier is in order of wait, which all its jobs gain alike; it has an offset of its own."""
    policy = make_policy()
    jobs = [*(make_job(i, wait_s=50.0 * HOUR + i * 600) for i in range(5)), make_job(9)]
    first = plan(*jobs, policy=policy)
    jobs = applied(jobs, first)
    assert plan(*jobs, policy=policy, now_s=NOW + 2 * HOUR).updates == ()
    base = guard_base(make_queue(), policy)
    assert [job.site_factor for job in jobs[:2]] == [base + 50_000 + 300, base + 50_000 + 310]


def test_job_that_passes_the_guard_is_raised_above_all_others() -> None:
    """One update, and it stands below those that have waited longer."""
    policy = make_policy()
    jobs = [make_job(1, wait_s=46.0 * HOUR), make_job(2, wait_s=44.5 * HOUR), make_job(3, qos="high")]
    jobs = applied(jobs, plan(*jobs, policy=policy))
    done = plan(*jobs, policy=policy, now_s=NOW + HOUR)
    assert [update.job_id for update in done.updates] == [2]
    assert (jobs[0].site_factor or 0) > done.updates[0].value > (jobs[2].site_factor or 0)


# best_offset


@pytest.mark.parametrize(
    ("needed", "tolerance", "offset"),
    [
        ([], 0.5, 100.0),
        ([40.0], 0.5, 40.0),
        ([40.0, 40.0, 70.0], 0.5, 40.0),
        ([40.0, 41.0], 0.5, 40.5),
        ([-3.0, -2.0, 50.0], 0.5, 100.0),  # two of three can't be met in the range
        ([10.0, 20.0, 30.0], 0.5, 100.0),  # a third isn't worth a place far down
        ([99.9, 100.4], 0.5, 99.95),
        ([0.0, 9.0], 5.0, 4.5),
    ],
)
def test_best_offset_spares_most_updates_within_its_range(
    needed: list[float], tolerance: float, offset: float
) -> None:
    """The middle of the interval that most agree on; a fresh start where less than half do."""
    array = np.array(needed)
    assert best_offset(array, np.full(len(needed), tolerance), 100.0) == pytest.approx(offset, abs=0.06)


# who is left alone


def test_unchanged_job_costs_no_update() -> None:
    """Case 47: one RPC a changed job is the price, so unchanged ones are skipped and counted."""
    done = plan(make_job(1, qos="high", site_factor=100), make_job(2))
    assert (done.updates, done.skipped) == ((), {"unchanged": 2})


@pytest.mark.parametrize(
    ("release", "updates"), [("22.05.8", 0), ("23.11.10", 0), ("24.11.5", 1), ("26.05.5", 1)]
)
def test_trap_22_young_job_is_left_for_the_next_cycle_before_24_11(release: str, updates: int) -> None:
    """An update of a job that waits for its accounting record would keep the others waiting for 5 s."""
    cluster = make_cluster(config=SlurmConfig(release=release))
    young = make_job(1, qos="high", wait_s=5)
    done = plan(young, policy=BY_QOS, cluster=cluster)
    assert len(done.updates) == updates
    assert done.skipped == ({} if updates else {"too young": 1})
    assert len(plan(replace(young, submit_s=NOW - MINUTE), cluster=cluster).updates) == 1


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
    done = plan(job)
    assert (done.updates, done.skipped) == ((), {reason: 1})
    assert skip_reason(make_queue(job), 0) == reason


def test_job_that_sprio_does_not_list_waits_for_its_cycle() -> None:
    """slurm-facts 8.3: absence is not "gone"; what can't compete yet needs no place."""
    done = plan(make_job(1, qos="high", site_factor=None))
    assert (done.updates, done.skipped) == ((), {"not ranked by Slurm yet": 1})


def test_het_leader_speaks_for_its_job() -> None:
    """Case 26: one update by the leader's id covers all components."""
    leader = make_job(26, qos="high", het_job_id=26, label="26+0")
    follower = make_job(27, qos="high", het_job_id=26, label="26+1", update_id="26")
    done = plan(leader, follower)
    assert done.updates == (SiteFactorUpdate(26, "26", 1100),)
    assert done.skipped == {"follows its het leader": 1}


def test_array_is_updated_by_its_list_of_tasks() -> None:
    """slurm-facts 8.12: one value for the record; a task's own update would split it."""
    array = make_job(9, qos="high", label="9_[3-9%3]", update_id="9_[3-9]", tasks="3-9")
    assert plan(array).updates == (SiteFactorUpdate(9, "9_[3-9]", 1100),)


def test_skipped_jobs_are_counted_by_reason() -> None:
    """The cycle's one line says why jobs got no update."""
    jobs = [make_job(1, priority=0), make_job(2, priority=0), make_job(3, pinned=True), make_job(4)]
    assert plan(*jobs).skipped == {"held": 2, "pinned": 1, "unchanged": 1}


def test_plan_of_an_empty_queue_is_empty() -> None:
    """Nothing waits, nothing to do."""
    assert plan() == Plan((), {}, Offsets(1000, 50_000))


# reset


def test_reset_puts_every_site_factor_back_to_0() -> None:
    """Only where it isn't 0; a job that sprio doesn't list is set to be sure."""
    changed = (make_job(1, site_factor=700), make_job(3, site_factor=None), make_job(4, site_factor=-1))
    assert reset(*changed, make_job(2)) == Plan(
        (SiteFactorUpdate(1, "1", 0), SiteFactorUpdate(3, "3", 0), SiteFactorUpdate(4, "4", 0)),
        {"unchanged": 1},
    )


@pytest.mark.parametrize(("changes", "reason"), LEFT_ALONE)
def test_reset_leaves_the_same_jobs_alone(changes: dict[str, Any], reason: str) -> None:
    """Held and pinned jobs are never touched, not even to go back."""
    job = replace(make_job(27, **changes), site_factor=7)
    assert reset(job) == Plan((), {reason: 1})


def test_reset_leaves_running_jobs_alone() -> None:
    """Their SiteFactor has no effect any more."""
    assert reset(make_job(1, state="RUNNING", site_factor=700)) == Plan((), {})


@pytest.mark.parametrize(("origin", "ours"), [("", True), ("Test", True), ("test", True), ("other", False)])
def test_job_of_another_cluster_is_left_to_it(origin: str, ours: bool) -> None:
    """Trap 27: the origin of a federated job is a cluster's name, whatever its case; ours is `test`."""
    done = plan(make_job(1, origin=origin, site_factor=5000))
    assert len(done.updates) == ours
    assert done.skipped == ({} if ours else {"belongs to another cluster": 1})


def test_scrontab_job_is_left_alone_once_known() -> None:
    """Trap 28: Slurm lets nobody update it."""
    queue = make_queue(make_job(1, site_factor=5000), make_job(2, site_factor=5000))
    done = plan_updates(queue, score_queue(queue, BY_QOS), BY_QOS, {2})
    assert ([update.job_id for update in done.updates], done.skipped) == ([1], {"scrontab job": 1})
