"""The invented workload."""

from dataclasses import fields

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.sim.synthetic import LIMITS_S, Recipe, synthetic

RECIPE = Recipe(jobs=5000, procs=64, gpu_types=("a100", "h100"))


def columns(seed: int) -> list[list[int]]:
    """Return the columns of a workload as lists."""
    work = synthetic(seed, RECIPE)
    values = (getattr(work, field.name) for field in fields(work))
    return [value.tolist() for value in values if isinstance(value, np.ndarray)]


def test_same_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    """There is no other source of chance."""
    assert columns(7) == columns(7)
    assert columns(7)[1] != columns(8)[1]
    assert len(columns(7)) == 8


def test_load_is_the_one_asked_for() -> None:
    """Work submitted over what the machine can do in the time between first and last submission."""
    work = synthetic(1, RECIPE)
    length_s = work.submit_s.max() - work.submit_s.min()
    assert (work.procs * work.run_s).sum() / (64 * length_s) == pytest.approx(0.9, rel=0.03)


def test_jobs_are_possible() -> None:
    """Rising submissions, at least 1 s and one processor, within limit and machine; limits are usual ones."""
    work = synthetic(2, RECIPE)
    assert (np.diff(work.submit_s) >= 0).all()
    assert ((work.run_s >= 1) & (work.run_s <= work.request_s)).all()
    assert ((work.procs >= 1) & (work.procs <= 32)).all()
    assert set(work.request_s.tolist()) <= set(LIMITS_S)


def test_users_ask_for_more_than_they_need_and_submit_by_day() -> None:
    """The median limit is at least twice the run; more than twice as many jobs come at noon than at 3."""
    work = synthetic(3, Recipe(jobs=20_000))
    assert np.median(work.request_s / work.run_s) > 2
    hours = np.bincount(work.submit_s // 3600 % 24, minlength=24)
    assert hours[10:16].mean() > 2 * hours[1:5].mean()


def test_gpu_types_are_asked_for_by_some() -> None:
    """Jobs without GPUs have no type; some with GPUs take any."""
    work = synthetic(4, RECIPE)
    assert work.gpus is not None
    assert work.gpu_type is not None
    assert set(work.gpu_type[work.gpus == 0].tolist()) == {-1}
    assert set(work.gpu_type[work.gpus > 0].tolist()) == {-1, 0, 1}
    assert synthetic(4).gpus is None


def test_an_impossible_recipe_is_refused() -> None:
    """All problems at once."""
    with pytest.raises(SimulationError) as error:
        synthetic(1, Recipe(jobs=0, load=0.0))
    assert str(error.value) == (
        "synthetic: jobs must be above 0, got 0\nsynthetic: load must be above 0, got 0.0"
    )
