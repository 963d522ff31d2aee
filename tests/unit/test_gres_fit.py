"""slurm_score/factors/gres_fit.py: who needs the contended GPU type, and what is free of it.

The cluster has four a100 (two nodes of two) and four v100 (one node) in partition gpu, none in main.
"""

from typing import Any

import pytest
from pydantic import ValidationError

from slurm_score.factors.gres_fit import TERMS, GresFitParams, compute, describe, detail
from slurm_score.gres import GpuCount, gpu_request
from slurm_score.model import Cluster, Job
from tests.unit.builders import drained, make_cluster, make_gpu_job, make_job, make_node, make_queue


def terms(*jobs: Job, cluster: Cluster | None = None, **params: Any) -> list[tuple[float, ...]]:
    """Return for each job the factor and the sub-terms that weigh something, in their order."""
    term = compute(make_queue(*jobs, cluster=cluster), GresFitParams(**params))
    return list(zip(term.values.tolist(), *(v.tolist() for v in term.details.values()), strict=True))


BOTH: dict[str, Any] = {"scarcity": 1.0, "ready": 1.0}


def test_contended_type_comes_first() -> None:
    """12 a100 asked of 4: s = 3, s / (1 + s) = 0.75; 4 v100 of 4: s = 1, 0.5 (score-research 4)."""
    tasks = make_gpu_job(1, "gpu:a100:4", tasks="0-2")
    assert terms(tasks, make_gpu_job(2, "gpu:v100:4")) == [(0.75, 0.75), (0.5, 0.5)]


def test_flexible_job_is_as_contended_as_its_least_contended_type() -> None:
    """a100: 10/4 + 4/8 = 3; v100: 4/8 = 0.5, so the untyped job has 0.5 / 1.5 and the typed one 3 / 4."""
    tasks = make_gpu_job(1, "gpu:a100:2", tasks="0-4")
    assert terms(tasks, make_gpu_job(2, "gpu:4")) == [(0.75, 0.75), pytest.approx((1 / 3, 1 / 3))]


def test_types_that_only_drained_nodes_have_are_scarcest() -> None:
    """Ready 0, scarcity 1: nobody can have them now, and they must not be given away when they return."""
    cluster = drained(make_cluster(), "g3")
    assert terms(make_gpu_job(1, "gpu:v100:1"), cluster=cluster, **BOTH) == [(0.5, 1.0, 0.0)]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(), id="CPUs only"),
        pytest.param(make_gpu_job(1, "gpu:h100:1"), id="a type that nobody has"),
        pytest.param(make_gpu_job(1, "gpu:a100:5"), id="more than exist"),
        pytest.param(make_job(gpus=gpu_request(per_job="gpu:a100:1")), id="a partition without GPUs"),
        pytest.param(make_gpu_job(1, "gpu:a100:1,gpu:h100:1"), id="two types, one missing"),
        pytest.param(make_job(gpus=gpu_request(per_job="gpu:a100:1"), partitions=()), id="no partition"),
    ],
)
def test_job_that_no_gpu_can_serve_has_0(job: Job) -> None:
    """No gain from asking for nothing, or for what is not there."""
    weights: dict[str, Any] = dict.fromkeys(TERMS, 1.0)
    assert terms(job, **weights) == [(0.0,) * 6]
    assert detail(make_queue(job), GresFitParams(), 0) == dict.fromkeys(TERMS, 0.0)


@pytest.mark.parametrize(
    ("texts", "ready"),
    [
        pytest.param({"per_job": "gpu:a100:2"}, 1.0, id="two of three free"),
        pytest.param({"per_job": "gpu:a100:4"}, 0.75, id="three of four"),
        pytest.param({"per_node": "gpu:a100:2", "nodes": 2}, 0.5, id="groups of two: only g2 has two"),
        pytest.param({"per_node": "gpu:a100:1", "nodes": 2}, 1.0, id="one on each of two nodes"),
        pytest.param({"per_node": "gpu:v100:4"}, 1.0, id="four on one node: g3"),
        pytest.param({"per_job": "gpu:7"}, 1.0, id="any type: 3 a100 + 4 v100"),
        pytest.param({"per_job": "gpu:8"}, 7 / 8, id="any type, all there are"),
    ],
)
def test_ready_is_the_share_that_could_be_had_now(texts: dict[str, Any], ready: float) -> None:
    """One a100 of g1 is in use; case 15: GPUs for each node must stand on one node together."""
    busy = make_node("g1", "a100:2", cpus_used=1, gpus_used=GpuCount(1, {"a100": 1}))
    cluster = make_cluster(nodes=(busy, make_node("g2", "a100:2"), make_node("g3", "v100:4")))
    job = make_job(partitions=("gpu",), gpus=gpu_request(**texts))
    assert terms(job, cluster=cluster, **BOTH)[0][2] == ready


@pytest.mark.parametrize(
    ("params", "fit"),
    [
        ({}, 1 / 3),
        ({"scarcity": 0, "ready": 1}, 1.0),
        ({"scarcity": 1, "ready": 1}, 2 / 3),
        ({"scarcity": 3, "ready": 1}, 0.5),
    ],
)
def test_factor_is_the_weighted_mean_of_its_terms(params: dict[str, Any], fit: float) -> None:
    """2 of 4 a100 asked: scarcity 0.5 / 1.5 = 1/3, ready 1; by default scarcity alone counts."""
    assert terms(make_gpu_job(1, "gpu:a100:2"), **params)[0][0] == pytest.approx(fit)


def test_sub_terms_of_weight_0_are_left_out_of_the_factor_and_shown_of_one_job() -> None:
    """They cost time for every job, and explain asks for one."""
    queue = make_queue(make_gpu_job(1, "gpu:a100:4"))
    assert set(compute(queue, GresFitParams()).details) == {"scarcity"}
    assert detail(queue, GresFitParams(), 0) == {"scarcity": 0.5} | dict.fromkeys(tuple(TERMS)[1:], 1.0)


@pytest.mark.parametrize(
    ("weights", "share"),
    [
        pytest.param({}, 0.0, id="scarcity alone, the default"),
        pytest.param({"scarcity": 3.0, "ready": 1.0}, 0.25, id="one of four"),
        pytest.param({"scarcity": 0.0, "spread": 2.0}, 1.0, id="all"),
    ],
)
def test_share_of_free_is_what_hangs_on_free_gpus(weights: dict[str, float], share: float) -> None:
    """What check warns of above a third."""
    assert GresFitParams(**weights).share_of_free == share


def test_weights_that_are_all_0_are_refused() -> None:
    """A mean over nothing is no number."""
    with pytest.raises(ValidationError, match="are all 0; one must be above 0"):
        GresFitParams(scarcity=0)


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (make_job(), "asks for no GPU"),
        (make_gpu_job(1, "gpu:h100:1"), "can never start: it asks for 1 h100, there are 0"),
        (
            make_gpu_job(1, "gpu:a100:2"),
            "accepts a100: 4 usable, 0.5 asked for per usable one; fits now, on a100",
        ),
        (
            make_gpu_job(1, "gpu:4"),
            "accepts a100|v100: 8 usable, 0.5 asked for per usable one; fits now, on v100",
        ),
        (
            make_gpu_job(1, "gpu:8"),
            "accepts a100|v100: 8 usable, 1 asked for per usable one; fits now",
        ),
    ],
)
def test_fit_is_described_in_words(job: Job, text: str) -> None:
    """What is ready is shown, though it doesn't count: good to know, harmful in the order."""
    assert describe(make_queue(job), GresFitParams(), 0) == text


def test_drained_type_is_described_in_words() -> None:
    """An infinite ratio is said in words."""
    queue = make_queue(make_gpu_job(1, "gpu:v100:1"), cluster=drained(make_cluster(), "g3"))
    assert describe(queue, GresFitParams(), 0) == ("accepts v100: 0 usable, none is usable; 0% of it is free")
