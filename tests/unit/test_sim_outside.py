"""The product's predictor in the simulator: what it knows when, and the same schedule every time."""

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.model import Asked, EndedRun
from slurm_score.policy import load_policy
from slurm_score.predict.similar import SimilarRuns
from slurm_score.sim import state
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.outside import Similar, Submitted
from slurm_score.sim.policies import Pool, QueuePolicy, named, ranked_by
from slurm_score.sim.synthetic import synthetic
from tests.unit.sim_support import workload

WORK, POOL = synthetic(5), Pool(procs=128)


def job(job_id: int = 1, user: int = 0, procs: int = 1, submit_s: int = 0) -> Submitted:
    """Return a job of an hour's limit."""
    return Submitted(job_id=job_id, user=user, procs=procs, request_s=3600, submit_s=submit_s)


def test_it_says_what_the_product_s_predictor_says() -> None:
    """Runs of two users and two sizes, told one by one; the limit until one has ended."""
    simulated, ours = Similar(), SimilarRuns()
    assert simulated.predict(job()) == 3600
    for i, (user, procs, run_s) in enumerate([(0, 1, 60), (0, 2, 900), (1, 1, 5), (0, 1, 80)]):
        end_s = 1000 * (i + 1)
        simulated.observe(job(i, user, procs, end_s - run_s), run_s, end_s)
        ours.observe(
            [EndedRun(user=str(user), limit_s=3600, cpus=procs, job_id=i, submit_s=end_s - run_s,
                      end_s=end_s, elapsed_s=run_s)]
        )  # fmt: skip
        for cpus in (1, 2, 4):
            told = ours.predict(Asked(user=str(user), limit_s=3600, cpus=cpus)).seconds
            assert simulated.predict(job(user=user, procs=cpus)) == told


def test_a_waiting_job_is_predicted_anew_when_a_run_of_its_user_has_ended() -> None:
    """By the site's only run all that wait are alike. Job 2 runs 9 s, so its user's next one passes job 4."""
    rows = [(0, 100, 1, 100), (1, 9, 1, 3000), (2, 30, 1, 3000), (3, 300, 1, 2000)]
    work = workload(rows, users=[0, 1, 1, 2])
    assert simulate(work, Pool(procs=1), named("sjf")).start_s.tolist() == [0, 400, 409, 100]
    learned = simulate(work, Pool(procs=1), named("sjf", "similar"))
    assert learned.start_s.tolist() == [0, 100, 109, 139]


def test_schedules_are_the_same_every_time() -> None:
    """No state is left behind by a simulation, with numba asked for or not."""
    policy = QueuePolicy("ours", load_policy({}), "similar")
    first = simulate(WORK, POOL, policy, Options(backfill="easy++", plan="similar"))
    for numba in (None, False):
        again = simulate(WORK, POOL, policy, Options(backfill="easy++", plan="similar", numba=numba))
        assert np.array_equal(first.start_s, again.start_s)


@pytest.mark.parametrize("plan", ["tsafrir", "recent"])
def test_kernels_learn_beside_it(plan: str) -> None:
    """Reservations by a predictor of the kernels, order by ours: not what reservations by the limit give."""
    policy = named("sjf", "similar")
    found = simulate(WORK, POOL, policy, Options(backfill="easy++", plan=plan))
    assert not np.array_equal(found.start_s, simulate(WORK, POOL, policy, Options(backfill="easy++")).start_s)


def test_the_policy_s_quantile_counts_for_reservations_alone() -> None:
    """factors.remaining.quantile is for the times that are told; the order goes by the mean factor."""
    ours = [
        QueuePolicy("ours", load_policy({"factors": {"remaining": {"quantile": q}}}), "similar")
        for q in (0.5, 0.9)
    ]
    half, most = (simulate(WORK, POOL, policy).start_s for policy in ours)
    assert np.array_equal(half, most)
    planned = Options(backfill="easy++", plan="similar")
    half, most = (simulate(WORK, POOL, policy, planned).start_s for policy in ours)
    assert not np.array_equal(half, most)


def test_a_score_of_ours_is_told_what_a_run_time_is_worth() -> None:
    """The certainty equivalent for the policy's half_at, the median for other rules and for reservations."""
    simulated = Similar(half_at_s=60.0)
    for i, run_s in enumerate((3000, 3000, 3000, 10)):
        simulated.observe(job(i, submit_s=5000 * i), run_s, 5000 * i + run_s)
    assert simulated.predict(job()) == 3002
    assert 10 < simulated.scored(job()) < Similar().scored(job()) + 1000
    assert ranked_by(QueuePolicy("ours", load_policy({}), "similar")) == state.SCORED
    assert ranked_by(named("sjf", "similar")) == state.TOLD


def test_one_predictor_is_asked_at_a_time() -> None:
    """A predictor of one's own beside ours."""
    with pytest.raises(SimulationError, match="predictors told and similar don't go together"):
        simulate(WORK, POOL, named("sjf", "told"), Options(plan="similar"), predictor=Similar())
