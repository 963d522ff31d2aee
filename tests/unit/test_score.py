"""slurm_score/score.py: the sum of the parts, the guard tier above it, and no partial score ever."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from slurm_score.errors import FactorError
from slurm_score.factors import AnyFactor, Factor, FactorParams, Term, registry
from slurm_score.factors.qos import QosParams
from slurm_score.model import Cluster, Queue, SlurmConfig
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.score import guard_base, guards_s, neutral_site, queue_order, score_queue
from tests.unit.builders import HOUR, MINUTE, make_cluster, make_gpu_job, make_job, make_policy, make_queue

GUARD_S = 45 * HOUR


def weighing_cluster() -> Cluster:
    """Return the cluster with a Slurm whose own factors can add up to 1,500."""
    return make_cluster(config=SlurmConfig(priority_weights={"age": 1000, "qos": 500}))


def sites(queue: Queue, policy: Policy | None = None) -> list[int]:
    """Return the wanted SiteFactors of a queue."""
    values: list[int] = score_queue(queue, policy or Policy()).site.tolist()
    return values


def test_score_is_the_sum_of_weight_times_factor() -> None:
    """27 of 54 h, 30 min, 6 of 24 CPUs, QOS high: 350/2 + 450/2 + 200/4 + 500 + 0 = 950."""
    job = make_job(wait_s=27 * HOUR, time_limit_s=1800.0, cpus=6, qos="high")
    scores = score_queue(make_queue(job), Policy())
    assert scores.names == ("wait", "remaining", "size", "qos", "gres_fit")
    assert scores.weights == (350, 450, 200, 500, 100)
    assert scores.factors.tolist() == [[0.5, 0.5, 0.25, 1.0, 0.0]]
    assert scores.parts.tolist() == [[175.0, 225.0, 50.0, 500.0, 0.0]]
    assert scores.score.tolist() == [950.0]
    assert scores.site.tolist() == [950]
    assert scores.guarded.tolist() == [False]


def test_factor_at_0_does_not_erase_the_rest() -> None:
    """Case 56: additive on purpose; in a product a fair-share of 0 meant priority 0 for ever."""
    job = make_job(time_limit_s=float("inf"), cpus=12)
    assert score_queue(make_queue(job), Policy()).score.tolist() == [100.0]


@pytest.mark.parametrize(("cpus", "site"), [(1, 8), (2, 17), (3, 25), (6, 50)])
def test_site_factor_is_the_score_rounded_half_up(cpus: int, site: int) -> None:
    """200 x cpus / 24 = 8.33, 16.67, 25, 50, beside nothing else."""
    assert sites(make_queue(make_job(time_limit_s=float("inf"), cpus=cpus))) == [site]


def test_details_hold_the_sub_terms() -> None:
    """Those with a weight; factors without sub-terms have none."""
    queue = make_queue(make_gpu_job(1, "gpu:a100:4"))
    details = {name: sorted(values) for name, values in score_queue(queue, Policy()).details.items()}
    assert details == {"gres_fit": ["scarcity"]}


# guard


def test_guard_tier_begins_above_all_scores_and_slurms_own_range() -> None:
    """1,600 for our weights, 1,089 for their offset, 1,500 for Slurm's: 4,190 is more than any other has."""
    assert guard_base(make_queue(cluster=weighing_cluster()), Policy()) == 4190


@pytest.mark.parametrize(
    ("wait_s", "site", "guarded"),
    [
        (GUARD_S - 1, 450, False),
        (GUARD_S, 4190, True),
        (GUARD_S + MINUTE / 2 - 1, 4190, True),
        (GUARD_S + MINUTE, 4191, True),
        (GUARD_S + 10 * HOUR, 4790, True),
    ],
)
def test_guarded_job_has_one_point_more_for_every_minute(wait_s: int, site: int, guarded: bool) -> None:
    """Just below 45 h: 350 x 45/54 + 450 x 30/90 + 200/24 = 450; from there 4,190 and a point a minute."""
    scores = score_queue(make_queue(make_job(wait_s=wait_s), cluster=weighing_cluster()), Policy())
    assert scores.guarded.tolist() == [guarded]
    assert scores.site.tolist() == [site]


def test_guarded_jobs_stand_in_order_of_wait() -> None:
    """Neither QOS nor size counts among them: who waited longest is first."""
    queue = make_queue(
        make_job(1, wait_s=GUARD_S + 2 * HOUR),
        make_job(2, wait_s=GUARD_S + HOUR, qos="high", cpus=24, time_limit_s=60.0),
        make_job(3, wait_s=GUARD_S + 3 * HOUR, time_limit_s=float("inf")),
        make_job(4, wait_s=GUARD_S - MINUTE, qos="high", cpus=24, time_limit_s=60.0),
    )
    scores = score_queue(queue, Policy())
    order = sorted(range(4), key=lambda i: queue_order(queue, scores, i))
    assert [queue.jobs[i].job_id for i in order] == [3, 1, 2, 4]


def test_guarded_jobs_stand_in_the_order_in_which_they_reached_their_guards() -> None:
    """Not by wait: 20 h of a QOS with a guard of 12 h are 8 h past it, 50 h of another 5 h."""
    policy = parse_policy("guard: {after: 45h, qos: {high: 12h}, partitions: {gpu: 49h}}")
    queue = make_queue(
        make_job(1, wait_s=50 * HOUR),
        make_job(2, wait_s=20 * HOUR, qos="high"),
        make_job(3, wait_s=11 * HOUR, qos="high"),
        make_job(4, wait_s=50 * HOUR, partitions=("gpu",)),
        make_job(5, wait_s=46 * HOUR, partitions=("main", "gpu")),
    )
    scores = score_queue(queue, policy)
    assert guards_s(queue, policy).tolist() == [45 * HOUR, 12 * HOUR, 12 * HOUR, 49 * HOUR, 45 * HOUR]
    assert scores.guarded.tolist() == [True, True, False, True, True]
    assert scores.points[scores.guarded].tolist() == [300.0, 480.0, 60.0, 60.0]
    base = guard_base(queue, policy)
    assert (scores.site[scores.guarded] - base).tolist() == [300, 480, 60, 60]


def test_guard_tier_begins_at_the_same_number_in_every_profile() -> None:
    """1,700 for the heaviest weights, 2,178 for the offset at the steepest wait, 1,500 for Slurm's own."""
    heavy = "a: {when: {days: sat}, weights: {qos: 600}}"
    steep = "b: {when: {days: sun}, weights: {wait: 700, qos: 0}}"
    policy = parse_policy(f"profiles: {{{heavy}, {steep}}}")
    queue = make_queue(cluster=weighing_cluster())
    assert {guard_base(queue, policy.with_weights(weights)) for weights in policy.weight_sets.values()} == {
        1700 + 2178 + 1500 + 1
    }


def test_guard_works_without_any_weight_on_wait() -> None:
    """Nothing starves, whatever the policy weighs."""
    policy = parse_policy("factors: {qos: {weight: 10}}")
    assert sites(make_queue(make_job(1, wait_s=GUARD_S), make_job(2, qos="high")), policy) == [1011, 10]


def test_job_that_cant_start_is_never_guarded() -> None:
    """A dependency of a week earns no place above the others."""
    job = make_job(wait_s=7 * 24 * HOUR, eligible_s=None)
    assert score_queue(make_queue(job), Policy()).guarded.tolist() == [False]


def test_site_factor_stops_at_the_cap() -> None:
    """Cases 40 and 41: scontrol ignores a value above the range, and the hook's would wrap around."""
    policy = make_policy(cap=1700)
    assert sites(make_queue(make_job(wait_s=GUARD_S + 1000 * HOUR)), policy) == [1700]


# order


def test_ties_go_to_the_earlier_submission_then_the_lower_id() -> None:
    """As slurmctld sorts equal priorities."""
    queue = make_queue(make_job(3), make_job(1), make_job(2, submit_s=5))
    scores = score_queue(queue, parse_policy("factors: {qos: {weight: 1}}"))
    order = sorted(range(3), key=lambda i: queue_order(queue, scores, i))
    assert [queue.jobs[i].job_id for i in order] == [2, 1, 3]


# neutral


def test_neutral_site_factor_is_the_neutral_value_of_every_factor() -> None:
    """By default only remaining has one: 450 / 2."""
    assert neutral_site(Policy()) == 225
    assert neutral_site(parse_policy("factors: {qos: {weight: 10}}")) == 0


def test_neutral_site_factor_stops_at_the_cap() -> None:
    """No SiteFactor above the cap is ever sent, a neutral one neither."""
    assert neutral_site(make_policy(cap=1601)) == 225


# factors that fail


def stub(compute: Callable[[Queue], Any]) -> Mapping[str, AnyFactor]:
    """Return the registry with another computation for qos."""
    qos = Factor(
        name="qos",
        header="QOS",
        position=40,
        summary="a stub",
        params=QosParams,
        compute=lambda queue, _: compute(queue),
        describe=lambda *_: "",
    )
    return registry() | {"qos": qos}


def failing(_: Queue) -> Term:
    """Raise as a factor with a fault does."""
    raise ZeroDivisionError("no such thing")


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (failing, "factor 'qos' failed: ZeroDivisionError: no such thing"),
        (lambda _: Term(np.array([0.5, np.nan])), "factor 'qos': qos is nan for job 2, not in [0, 1]"),
        (lambda _: Term(np.array([1.5, 0.5])), "factor 'qos': qos is 1.5 for job 1, not in [0, 1]"),
        (lambda _: Term(np.array([0.5, -0.1])), "factor 'qos': qos is -0.1 for job 2, not in [0, 1]"),
        (lambda _: Term(np.array([np.inf, 0.5])), "factor 'qos': qos is inf for job 1, not in [0, 1]"),
        (lambda _: Term(np.array([0.5])), "factor 'qos': qos has shape (1,), not (2,)"),
        (lambda _: Term(np.array([[0.5], [0.5]])), "factor 'qos': qos has shape (2, 1), not (2,)"),
        (
            lambda _: Term(np.array([0.5, 0.5]), {"part": np.array([0.5, 2.0])}),
            "factor 'qos': part is 2.0 for job 2, not in [0, 1]",
        ),
    ],
)
def test_factor_that_fails_stops_the_cycle(
    monkeypatch: pytest.MonkeyPatch, compute: Callable[[Queue], Any], message: str
) -> None:
    """It raised, or left [0, 1], or lost a job: Slurm's order is left alone, never set by half a score."""
    monkeypatch.setattr("slurm_score.score.registry", lambda: stub(compute))
    with pytest.raises(FactorError) as caught:
        score_queue(make_queue(make_job(1), make_job(2)), Policy())
    assert str(caught.value) == message


def test_every_factor_has_parameters_in_every_policy() -> None:
    """Scoring never has to ask whether a factor is there."""
    assert all(isinstance(Policy().factors[name], FactorParams) for name in registry())
