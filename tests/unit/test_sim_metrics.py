"""Figures of schedules, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_score.sim.engine import Schedule
from slurm_score.sim.metrics import (
    bounded_slowdowns,
    by_gpu_type,
    by_qos,
    by_size,
    by_user,
    gini,
    littles_law,
    mean_over_time,
    measure,
    queue_over_time,
    used_over_time,
)
from slurm_score.sim.plots import resampled
from tests.unit.sim_support import schedule, workload


def three_jobs() -> Schedule:
    """Two processors: runs of 100, 5 and 50 s start at 0, 100 and 105 after waits of 0, 90 and 85 s."""
    rows = [(0, 100, 2, 100), (10, 5, 2, 5), (20, 50, 1, 50)]
    return schedule(workload(rows, [0, 1, 1], ["low", "high", "low"]), 2)


def test_metrics_of_three_jobs() -> None:
    """Slowdowns are 1, 95 / 10 and 135 / 50; 260 of 310 processor seconds are used."""
    got = measure(three_jobs(), 86)
    assert bounded_slowdowns(three_jobs()).tolist() == [1.0, 9.5, 2.7]
    assert got.slowdown == pytest.approx(4.4)
    assert got.mean_wait_s == pytest.approx(175 / 3)
    assert (got.max_wait_s, got.makespan_s, got.jobs) == (90, 155, 3)
    assert got.p95_wait_s == pytest.approx(89.5)
    assert got.p99_wait_s == pytest.approx(89.9)
    assert got.utilisation == pytest.approx(260 / 310)
    assert got.starved == pytest.approx(1 / 3)
    assert got.slowdown_gini == pytest.approx(gini(np.array([1.0, 6.1])))


def test_bounded_slowdown_is_never_below_1_and_counts_at_least_10_s() -> None:
    """Source: Feitelson and Rudolph, 1998; a run of 1 s that waited 4 s has 1, not 5."""
    waited = schedule(workload([(0, 5, 1, 5), (1, 1, 1, 1)]), 1)
    assert bounded_slowdowns(waited).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], 0.0), ([0, 0], 0.0), ([3, 3, 3], 0.0), ([0, 1], 0.5), ([1, 3], 0.25), ([0, 0, 0, 8], 0.75)],
)
def test_gini_coefficient(values: list[float], expected: float) -> None:
    """Half the mean absolute difference over the mean."""
    assert gini(np.array(values, np.float64)) == pytest.approx(expected)


def test_tables_have_a_row_for_each_user_qos_and_class_of_size() -> None:
    """Name, jobs, mean wait, longest wait."""
    ran = three_jobs()
    assert [(r.name, r.jobs, r.mean_wait_s) for r in by_user(ran)] == [("1", 2, 87.5), ("0", 1, 0.0)]
    assert [(r.name, r.jobs, r.max_wait_s) for r in by_qos(ran)] == [("low", 2, 85), ("high", 1, 90)]
    assert [(r.name, r.jobs, r.slowdown) for r in by_size(ran)] == [("1", 1, 2.7), ("2-3", 2, 5.25)]
    assert by_qos(schedule(workload([(0, 1, 1, 1)]), 1)) == []
    assert by_gpu_type(ran) == []


def test_table_by_gpu_type() -> None:
    """Types in their order, then any type, then no GPU."""
    work = workload([(0, 1, 1, 1)] * 4)
    gpus, gpu_type = np.array([1, 0, 2, 1]), np.array([1, -1, -1, 1])
    ran = schedule(replace(work, gpus=gpus, gpu_type=gpu_type, gpu_types=("a100", "h100")), 4)
    assert [(row.name, row.jobs) for row in by_gpu_type(ran)] == [("h100", 2), ("any", 1), ("no GPU", 1)]


@pytest.mark.parametrize(
    ("procs", "name"), [(1, "1"), (3, "2-3"), (4, "4-7"), (1023, "512-1023"), (5000, "1024+")]
)
def test_classes_of_size(procs: int, name: str) -> None:
    """From one power of two to the next; the last is open."""
    assert [row.name for row in by_size(schedule(workload([(0, 1, procs, 1)]), 5000))] == [name]


def test_queue_and_use_over_time() -> None:
    """Step functions from the first event to the last."""
    ran = three_jobs()
    at_s, waiting = queue_over_time(ran)
    assert dict(zip(at_s.tolist(), waiting.tolist(), strict=True)) == {0: 0, 10: 1, 20: 2, 100: 1, 105: 0}
    at_s, used = used_over_time(ran)
    assert dict(zip(at_s.tolist(), used.tolist(), strict=True)) == {0: 2, 100: 2, 105: 1, 155: 0}
    assert mean_over_time(at_s, used) == pytest.approx(260 / 155)


def test_littles_law_on_three_jobs() -> None:
    """175 s of waiting in 105 s."""
    assert littles_law(three_jobs()) == pytest.approx((175 / 105, 175 / 105))


def test_resampling_keeps_the_mean() -> None:
    """A plot's points are means over equal spans."""
    ran = three_jobs()
    at_s, used = used_over_time(ran)
    days, means = resampled(at_s, used)
    assert means.mean() == pytest.approx(mean_over_time(at_s, used))
    assert days[0] >= 0
