"""Laws of predictors, whatever was observed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.model import Asked, EndedRun
from slurm_score.predict.baselines import MedianOfFive, Tsafrir, UserRequest
from slurm_score.predict.estimator import Estimator, restore_estimator
from slurm_score.predict.interface import Predictor
from slurm_score.predict.similar import SimilarRuns

USERS = st.sampled_from(("ann", "ben", "cho"))
LIMITS = st.sampled_from((60.0, 3600.0, 86_400.0, float("inf")))
ASKED = st.builds(
    Asked,
    user=USERS,
    limit_s=LIMITS,
    cpus=st.integers(1, 4),
    gpus=st.integers(0, 1),
    name=st.sampled_from("ab"),
)
RUNS = st.lists(
    st.builds(
        EndedRun,
        user=USERS,
        limit_s=LIMITS,
        cpus=st.integers(1, 4),
        gpus=st.integers(0, 1),
        name=st.sampled_from("ab"),
        submit_s=st.integers(0, 20),
        end_s=st.integers(21, 24),
        elapsed_s=st.integers(0, 20).map(float),
        job_id=st.integers(1, 10**6),
    ),
    max_size=25,
    unique_by=lambda run: run.job_id,
)
MAKERS = [UserRequest, Tsafrir, MedianOfFive, SimilarRuns]


@pytest.mark.parametrize("make", MAKERS)
@given(runs=RUNS, asked=ASKED)
def test_a_prediction_is_between_zero_and_the_limit(
    make: type[Predictor], runs: list[EndedRun], asked: Asked
) -> None:
    """Slurm ends a job at its limit."""
    predictor = make()
    predictor.observe(runs)
    assert 0 <= predictor.predict(asked).seconds <= asked.limit_s


@pytest.mark.parametrize("make", MAKERS)
@given(runs=RUNS, asked=ASKED, seed=st.integers(0, 99))
def test_the_order_of_what_is_observed_together_does_not_matter(
    make: type[Predictor], runs: list[EndedRun], asked: Asked, seed: int
) -> None:
    """Accounting tells the ends of one second in any order."""
    mixed = runs.copy()
    random.Random(seed).shuffle(mixed)
    one, other = make(), make()
    one.observe(runs)
    other.observe(mixed)
    assert one.predict(asked) == other.predict(asked)


@given(runs=RUNS, jobs=st.lists(ASKED, max_size=9))
def test_many_jobs_are_predicted_as_each_by_itself(runs: list[EndedRun], jobs: list[Asked]) -> None:
    """predict_all only saves time."""
    predictor = SimilarRuns()
    predictor.observe(runs)
    assert predictor.predict_all(jobs) == [predictor.predict(job) for job in jobs]


@given(runs=RUNS)
def test_an_estimator_is_what_it_stored(runs: list[EndedRun]) -> None:
    """Nothing is lost on the way through the snapshot."""
    estimator = Estimator()
    estimator.observe(runs)
    assert restore_estimator(estimator.stored()) == estimator
