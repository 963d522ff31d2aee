"""slurm_score/advice.py: what a user is told at submission, and when nothing is."""

import math
from dataclasses import replace
from typing import Any

import pytest

from slurm_score.advice import advise, demand_by_type, gpus_ahead
from slurm_score.gres import gpu_request
from slurm_score.hints import parse_hints
from slurm_score.model import Demand, Job, Predicted, Release, Releases, RunTimes
from slurm_score.score import score_queue
from tests.unit.builders import (
    DAY,
    HOUR,
    NOW,
    drained,
    make_cluster,
    make_gpu_job,
    make_job,
    make_policy,
    make_queue,
)

BUSY: dict[str, Demand] = {"a100": ((900, 30), (500, 11), (100, 7))}
ALICE = {"alice": RunTimes(20, 1800.0)}


def lines(job: Job, site: int = 400, advice: dict[str, bool] | None = None, **known: Any) -> tuple[str, ...]:
    """Return what the job's user is told, the prefix left out."""
    policy = make_policy(advice=advice or {})
    nothing: dict[str, Any] = {"demand": {}, "run_times": {}, "releases": {}}
    values: dict[str, Any] = nothing | {"cluster": make_cluster()} | known
    told = advise(job, site, policy, **values)
    assert all(line.startswith("slurm-score: ") for line in told)
    return tuple(line.removeprefix("slurm-score: ") for line in told)


def hinted(comment: str, **changes: Any) -> Job:
    """Return a job for one a100 with a comment."""
    return make_gpu_job(1, "gpu:a100:1", hints=parse_hints(f"score: {comment}"), **changes)


# demand


def test_demand_counts_what_is_asked_of_one_type_alone() -> None:
    """By SiteFactor, highest first; arrays by their tasks; who takes any type, or waits for a hold, not."""
    jobs = (
        make_gpu_job(1, "gpu:a100:2", qos="high"),
        make_gpu_job(2, "gpu:a100:1", label="2_[0-2]", tasks="0-2"),
        make_gpu_job(3, "gpu:4"),
        make_gpu_job(4, "gpu:v100:4"),
        make_gpu_job(5, "gpu:v100:1", priority=0),
        make_job(6),
    )
    queue = make_queue(*jobs)
    scores = score_queue(queue, make_policy())
    sites = scores.site.tolist()
    assert demand_by_type(queue, scores) == {"a100": ((sites[0], 2), (sites[1], 3)), "v100": ((sites[3], 4),)}


@pytest.mark.parametrize(("site", "ahead"), [(1000, 0), (900, 30), (500, 41), (499, 41), (0, 48)])
def test_equal_scores_stand_ahead_of_a_new_job(site: int, ahead: int) -> None:
    """Ties go by submit time."""
    assert gpus_ahead(BUSY, "a100", site) == ahead
    assert gpus_ahead(BUSY, "v100", site) == 0


# never


def test_a_job_that_can_never_start_is_told_so() -> None:
    """And of no other type beside it: the request itself must change."""
    job = make_gpu_job(1, "gpu:a100:5")
    assert lines(job) == ("this job can never start: it asks for 5 a100, there are 4",)
    assert lines(job, advice={"never": False}) == ()


def test_nothing_is_told_of_a_cluster_that_nobody_knows() -> None:
    """Without a snapshot there are no nodes."""
    assert lines(make_gpu_job(1, "gpu:a100:5"), cluster=make_cluster(nodes=())) == ()


# another type


def test_idle_type_is_named_where_the_asked_one_is_queued() -> None:
    """The sentence that users need: what is free, and what stands before them."""
    assert lines(make_gpu_job(1, "gpu:a100:1"), demand=BUSY) == (
        "v100 is free now, a100 has 41 GPUs ahead of you",
    )


def test_idle_type_is_named_where_the_asked_one_is_taken() -> None:
    """Nobody waits, but of two nodes with two a100 one is drained."""
    job = make_job(1, partitions=("gpu",), gpus=gpu_request(per_node="gpu:a100:2", nodes=2), nodes=2)
    assert lines(job, cluster=drained(make_cluster(), "g1")) == ()
    one = make_job(1, partitions=("gpu",), gpus=gpu_request(per_node="gpu:a100:2"))
    assert lines(one, cluster=drained(make_cluster(), "g1", "g2")) == ("v100 is free now, a100 is not",)


@pytest.mark.parametrize(
    ("job", "demand"),
    [
        (make_gpu_job(1, "gpu:a100:1"), {}),
        (make_gpu_job(1, "gpu:a100:1"), BUSY | {"v100": ((900, 1),)}),
        (make_gpu_job(1, "gpu:a100:4", cpus=9), BUSY),
        (make_gpu_job(1, "gpu:1"), BUSY),
        (make_job(1), BUSY),
        (hinted("gpu=a100|h100"), BUSY),
        (hinted("vram=40"), BUSY),
    ],
    ids=[
        "its own type is free",
        "the other is queued for as well",
        "the other has too few CPUs beside it",
        "any type will do",
        "no GPU",
        "the user accepts no idle one",
        "memory that the other may not have",
    ],
)
def test_no_type_is_named_where_it_would_not_help(job: Job, demand: dict[str, Demand]) -> None:
    """Silence is right more often than not."""
    assert lines(job, demand=demand) == ()


def test_type_that_the_user_accepts_is_named_even_with_a_memory_hint() -> None:
    """`gpu=` says that it fits, in the user's own spelling."""
    job = hinted("gpu=A100|V100 vram=40")
    assert lines(job, demand=BUSY) == ("v100 is free now, a100 has 41 GPUs ahead of you",)


# time limit


@pytest.mark.parametrize(
    ("limit_s", "told"),
    [
        (2.5 * HOUR, True),
        (2.0 * HOUR, False),
        (math.inf, True),
        (None, False),
    ],
)
def test_limit_far_above_the_usual_run_time_is_told(limit_s: float | None, told: bool) -> None:
    """More than four times what 9 of 10 jobs took, and more than an hour above it."""
    said = lines(make_job(1, time_limit_s=limit_s), run_times=ALICE)
    assert bool(said) is told


def test_limit_is_told_with_both_numbers() -> None:
    """What the jobs took, and what this one asks for."""
    assert lines(make_job(1, time_limit_s=2.0 * DAY), run_times=ALICE) == (
        "9 of 10 of your last 20 jobs ended within 00:30:00, this one asks for 2-00:00:00; "
        "a shorter --time can start sooner",
    )


@pytest.mark.parametrize(
    ("job", "run_times"),
    [
        (make_job(1, time_limit_s=DAY, user="bob"), ALICE),
        (make_job(1, time_limit_s=DAY), {"alice": RunTimes(4, 60.0)}),
        (make_job(1, time_limit_s=DAY, hints=parse_hints("score: est=20h")), ALICE),
    ],
    ids=["nothing is known", "too few runs", "the user says how long"],
)
def test_limit_is_not_told_without_reason(job: Job, run_times: dict[str, RunTimes]) -> None:
    """A guess would be worse than silence."""
    assert lines(job, run_times=run_times) == ()


@pytest.mark.parametrize(("predicted_s", "told"), [(600.0, True), (7 * HOUR, False)])
def test_limit_is_not_told_where_runs_like_the_job_took_long(predicted_s: float, told: bool) -> None:
    """A day, where the user's other jobs end within half an hour: four times seven hours is more."""
    said = lines(make_job(1, time_limit_s=DAY), run_times=ALICE, predicted=Predicted(predicted_s, "its runs"))
    assert any("of your last 20 jobs" in line for line in said) == told


# when enough comes free

FULL = replace(
    make_cluster(),
    nodes=tuple(
        replace(node, cpus_used=1, gpus_used=node.gpus) if node.gpus.types.get("a100") else node
        for node in make_cluster().nodes
    ),
)
SOON: Releases = {"a100": (Release(NOW + 1800, 1), Release(NOW + 7800, 2, True))}


@pytest.mark.parametrize(
    ("job", "demand", "told"),
    [
        pytest.param(
            make_gpu_job(1, "gpu:a100:2"),
            {},
            "enough a100 come free within 02:10:00 by what is known of the running jobs",
            id="two, the second after 130 minutes",
        ),
        pytest.param(
            make_gpu_job(1, "gpu:a100:1"),
            BUSY | {"v100": ((900, 4),)},
            "enough a100 come free within 00:30:00 by the running jobs' limits; "
            "41 are asked for ahead of you",
            id="with what stands ahead",
        ),
    ],
)
def test_when_enough_comes_free_is_told(job: Job, demand: dict[str, Demand], told: str) -> None:
    """A lower bound for the wait, and by what it is known."""
    assert lines(job, cluster=FULL, releases=SOON, demand=demand, advice={"other_type": False}) == (told,)


@pytest.mark.parametrize(
    ("job", "known"),
    [
        pytest.param(make_gpu_job(1, "gpu:a100:1"), {}, id="enough is free now"),
        pytest.param(make_gpu_job(1, "gpu:a100:4"), {"cluster": FULL}, id="not enough is known"),
        pytest.param(make_gpu_job(1, "gpu:a100:5"), {"cluster": FULL}, id="it can never start"),
        pytest.param(make_gpu_job(1, "gpu:1"), {"cluster": FULL}, id="another type is free"),
        pytest.param(make_job(1), {"cluster": FULL}, id="no GPU"),
    ],
)
def test_nothing_is_told_of_the_wait_without_reason(job: Job, known: dict[str, Any]) -> None:
    """Where the job could start, or nobody knows when."""
    assert not any("come free" in line for line in lines(job, releases=SOON, **known))


# hints, and all together


def test_urgency_that_the_qos_does_not_allow_is_told() -> None:
    """It counts for nothing, so the user should know."""
    job = make_job(1, hints=parse_hints("score: urgency=high"))
    assert lines(job) == ("hint 'urgency=high' ignored: not open to QOS normal",)


def test_three_lines_at_most_hints_first() -> None:
    """Five things to say."""
    job = hinted("est=soon ckpt=maybe", time_limit_s=float(DAY))
    told = lines(job, demand=BUSY, run_times=ALICE, cluster=FULL, releases=SOON)
    assert len(told) == 3
    assert [line.partition(" ")[0] for line in told] == ["hint", "hint", "v100"]


@pytest.mark.parametrize(
    ("switch", "left"),
    [
        ("hints", ["v100", "9", "enough"]),
        ("other_type", ["hint", "9", "enough"]),
        ("time_limit", ["hint", "v100", "enough"]),
        ("wait", ["hint", "v100", "9"]),
    ],
)
def test_each_kind_of_line_can_be_switched_off(switch: str, left: list[str]) -> None:
    """advice.hints, advice.other_type, advice.time_limit, advice.wait."""
    job = hinted("ckpt=maybe", time_limit_s=float(DAY))
    told = lines(job, advice={switch: False}, demand=BUSY, run_times=ALICE, cluster=FULL, releases=SOON)
    assert [line.partition(" ")[0] for line in told] == left
