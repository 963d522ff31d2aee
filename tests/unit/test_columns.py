"""slurm_score/columns.py: a queue in columns, each value in its row."""

from typing import Any

import numpy as np
import pytest

from slurm_score.columns import Coded, columns_of
from slurm_score.hints import Hints, parse_hints
from slurm_score.model import PastRun
from slurm_score.request import ask_of
from tests.unit.builders import NOW, make_gpu_job, make_job, make_queue

JOBS = (
    make_job(1, wait_s=100, time_limit_s=None, qos="high", site_factor=None),
    make_gpu_job(2, "gpu:a100:2", label="2_[0-4]", tasks="0-4", submit_s=NOW - 50, eligible_s=NOW - 70),
    make_job(3, priority=0, het_job_id=2, hints=parse_hints("score: est=20m")),
    make_job(4, eligible_s=None, pinned=True, het_job_id=4, past_runs=(PastRun("NODE_FAIL", 5.0),)),
    make_gpu_job(5, "gpu:a100:2", eligible_s=NOW + 1, hides_tasks=True, hints=Hints()),
    make_job(6, state="RUNNING"),
)
NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("job_id", [1, 2, 3, 4, 5, 6]),
        ("eligible", [True, True, False, False, False, False]),
        ("since_s", [NOW - 100.0, NOW - 50.0, NOW, NAN, NOW + 1.0, NOW]),
        ("limit_s", [NAN, 3600.0, 3600.0, 3600.0, 3600.0, 3600.0]),
        ("gpus", [0.0, 2.0, 0.0, 0.0, 2.0, 0.0]),
        ("tasks", [1.0, 5.0, 1.0, 1.0, 1.0, 1.0]),
        ("site", [NAN, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ("held", [False, False, True, False, False, False]),
        ("pinned", [False, False, False, True, False, False]),
        ("follows", [False, False, True, False, False, False]),
        ("hides", [False, False, False, False, True, False]),
        ("hinted", [2]),
        ("retried", [3]),
    ],
)
def test_column_holds_what_each_job_says(name: str, values: list[Any]) -> None:
    """NaN where a job has no such number; a hint that says nothing is none."""
    np.testing.assert_array_equal(getattr(columns_of(make_queue(*JOBS)), name), values)


def test_few_different_values_are_kept_once() -> None:
    """Equal requests in equal partitions share a code, whether or not they are the same object."""
    columns = columns_of(make_queue(*JOBS))
    assert (columns.qos.values, columns.qos.codes.tolist()) == (("high", "normal"), [0, 1, 1, 1, 1, 1])
    assert columns.asks.codes.tolist() == [0, 1, 0, 0, 1, 0]
    assert columns.asks.values == (None, ask_of(JOBS[1]))


def test_value_is_worked_out_once_for_each_key() -> None:
    """Five thousand jobs in three QOS cost three look-ups."""
    asked: list[str] = []

    def value(qos: str) -> float:
        asked.append(qos)
        return len(qos)

    coded = Coded(np.array([0, 1, 0]), ("normal", "high"))
    assert coded.map(value).tolist() == [6.0, 4.0, 6.0]
    assert coded.mask(lambda qos: qos == "high").tolist() == [False, True, False]
    assert asked == ["normal", "high"]


def test_columns_are_made_once() -> None:
    """Every factor reads the same ones."""
    queue = make_queue(*JOBS)
    assert columns_of(queue) is columns_of(queue)


def test_empty_queue_has_empty_columns() -> None:
    """No job, no special case."""
    queue = make_queue()
    columns = columns_of(queue)
    assert (len(queue), columns.cpus.shape, columns.qos.map(len).shape, columns.hinted.shape) == (
        0,
        (0,),
        (0,),
        (0,),
    )
