"""Policies: by name, Slurm's multifactor, and ours."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.multifactor import Multifactor, parse_multifactor
from slurm_score.sim.policies import Pool, QueuePolicy, named, qos_values, ranked
from tests.unit.sim_support import schedule, starts, workload

ONE = workload([(100, 50, 3, 200)])
POOL = Pool(procs=10)


@pytest.mark.parametrize(
    ("name", "predictor", "expected"),
    [
        ("fcfs", "request", 100.0),
        ("sjf", "request", 200.0),
        ("sjf", "clairvoyant", 50.0),
        ("saf", "request", 600.0),
        ("qssf", "clairvoyant", 150.0),
        ("f1", "request", 3 * 2.301029995663981 + 870 * 2),
        ("f2", "request", 3 * 14.142135623730951 + 25600 * 2),
        ("f3", "request", 600 + 6860000 * 2),
        ("f4", "request", 200 * 1.7320508075688772 + 530000 * 2),
        ("unicep", "request", 2.0),
        ("unicep-rl", "request", 1.584962500721156),
        ("saf", "recent", 3.0),
    ],
)
def test_fixed_part_of_the_rank(name: str, predictor: str, expected: float) -> None:
    """3 processors, submitted at 100 s, runs 50 s, asks for 200 s. Source: the formulas in print."""
    assert ranked(named(name, predictor), ONE, POOL).fixed.tolist() == pytest.approx([expected])


def test_f_policies_take_a_job_submitted_at_0() -> None:
    """The logarithm of 0.1 stands for that of 0. Source: RLScheduler."""
    assert ranked(named("f1"), workload([(0, 1, 1, 1)]), POOL).fixed.tolist() == [-870.0]


@pytest.mark.parametrize(
    ("name", "predictor", "fault"),
    [
        ("wfp", "request", "policy: unknown policy, did you mean 'wfp3'?, got 'wfp'; (known: fcfs, "),
        ("f3", "recent", "policy: f3 takes the logarithm or root of a run time that is known at submission"),
    ],
)
def test_an_unknown_policy_is_named(name: str, predictor: str, fault: str) -> None:
    """With what is known."""
    with pytest.raises(SimulationError) as error:
        named(name, predictor)
    assert str(error.value).startswith(fault)


def test_multifactor_reads_its_settings() -> None:
    """Weights are whole numbers, times have units, flags no value."""
    text = "age=1000,size=30000,max_age=14d,decay_half_life=12h,small_relative"
    assert parse_multifactor(text) == Multifactor(
        age=1000, size=30000, max_age=14 * 86400.0, decay_half_life=12 * 3600.0, small_relative=True
    )
    assert parse_multifactor("") == Multifactor()


def test_multifactor_tells_all_problems_at_once() -> None:
    """Unknown, no number, no duration, a value for a flag."""
    with pytest.raises(SimulationError) as error:
        parse_multifactor("agee=1,size=-3,max_age=soon,favor_small=yes,calc_period=0s")
    first, *rest = str(error.value).splitlines()
    assert first.startswith("multifactor: unknown setting, did you mean 'age'? (known: age, size,")
    settings = [line.partition(": ")[2].split()[0].rstrip(":") for line in rest]
    assert settings == ["size", "max_age", "favor_small", "calc_period"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Multifactor(size=1000.0), 200.0),
        (Multifactor(size=1000.0, favor_small=True), 800.0),
        (Multifactor(size=1000.0, small_relative=True), 20.0),
        (Multifactor(size=1000.0, small_relative=True, favor_small=True), 980.0),
        (Multifactor(qos=500.0), 125.0),
    ],
)
def test_multifactor_size_and_qos(policy: Multifactor, expected: float) -> None:
    """2 of 10 processors for 10 minutes, QOS priority 1 of 4. Source: Slurm, priority_multifactor.c."""
    work = workload([(0, 600, 2, 600)], qos=["low"])
    pool = Pool(procs=10, qos={"low": 1, "high": 4})
    assert policy.fixed(work, pool.procs, qos_values(work, pool)).tolist() == pytest.approx([expected])


def test_fair_share_puts_the_light_user_first() -> None:
    """User 0 has used the machine for 1,000 s; user 1's job came later and starts first."""
    rows = [(0, 1000, 1, 1000), (10, 100, 1, 100), (20, 100, 1, 100)]
    fair = QueuePolicy("multifactor", Multifactor(age=0.0, fairshare=1000.0))
    assert schedule(workload(rows, [0, 0, 1]), 1, fair).start_s.tolist() == [0, 1100, 1000]
    assert schedule(workload(rows, [0, 0, 1]), 1).start_s.tolist() == [0, 1000, 1100]


def test_usage_decays() -> None:
    """Once user 0's old usage has decayed, user 1's newer one counts more."""
    rows = [(0, 1000, 1, 1000), (90_000, 500, 1, 500), (90_001, 9, 1, 9), (90_002, 9, 1, 9)]
    work = workload(rows, [0, 1, 1, 0])
    for half_life, expected in ((1e9, [90_500, 90_509]), (3600.0, [90_509, 90_500])):
        policy = QueuePolicy("m", Multifactor(age=0.0, fairshare=1000.0, decay_half_life=half_life))
        assert schedule(work, 1, policy).start_s.tolist()[2:] == expected


def test_qos_of_our_policy_counts_on_a_flat_pool() -> None:
    """The later job of the higher QOS starts first."""
    work = workload([(0, 10, 1, 10), (1, 10, 1, 10), (2, 10, 1, 10)], qos=["low", "low", "high"])
    pool = Pool(procs=1, qos={"low": 0, "high": 10})
    ran = simulate(work, pool, QueuePolicy("ours", Policy()), Options())
    assert ran.start_s.tolist() == [0, 20, 10]
    assert starts([(0, 10, 1, 10), (1, 10, 1, 10), (2, 10, 1, 10)], 1) == [0, 10, 20]


def test_a_policy_with_profiles_is_refused() -> None:
    """Hours and loads are not part of a flat pool."""
    text = "profiles: {night: {when: {hours: '20:00-06:00'}, weights: {size: 400}}}"
    with pytest.raises(
        SimulationError, match="ours: profiles can't be simulated; simulate a policy for each"
    ):
        ranked(QueuePolicy("ours", parse_policy(text)), ONE, POOL)


def test_our_policy_refuses_gpus_on_a_flat_pool() -> None:
    """Size and gres_fit would go by GPUs, which a flat pool doesn't have."""
    work = replace(ONE, gpus=np.array([2]), gpu_type=np.array([-1]))
    with pytest.raises(SimulationError, match="ours: a flat pool has no GPUs, got 1 jobs that ask for some"):
        ranked(QueuePolicy("ours", Policy()), work, POOL)


def test_a_foreign_factor_with_a_weight_is_refused() -> None:
    """It isn't known to the kernels; with weight 0 it doesn't matter."""
    with_it = Policy()
    for weight, refused in ((7, True), (0, False)):
        params = type(with_it.factors["size"])(weight=weight)
        foreign = with_it.model_copy(update={"factors": {**with_it.factors, "moon": params}})
        if refused:
            with pytest.raises(SimulationError, match="factor moon can't be simulated, got weight 7"):
                ranked(QueuePolicy("ours", foreign), ONE, POOL)
        else:
            assert np.isfinite(ranked(QueuePolicy("ours", foreign), ONE, POOL).size_points).all()
