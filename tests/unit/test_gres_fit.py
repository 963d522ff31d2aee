"""slurm_score/factors/gres_fit.py: who needs the contended GPU type, and what is free of it.

The cluster has four a100 (two nodes of two) and four v100 (one node) in partition gpu, none in main.
"""

from typing import Any

import pytest

from slurm_score.factors.gres_fit import GresFitParams, compute, describe
from slurm_score.gres import GpuCount, gpu_request
from slurm_score.model import Cluster, Job
from tests.unit.builders import drained, make_cluster, make_gpu_job, make_job, make_node, make_queue


def terms(*jobs: Job, cluster: Cluster | None = None, **params: Any) -> list[tuple[float, float, float]]:
    """Return (value, scarcity, ready) for each job of a queue."""
    term = compute(make_queue(*jobs, cluster=cluster), GresFitParams(**params))
    columns = (term.values, term.details["scarcity"], term.details["ready"])
    return [(float(v), float(s), float(r)) for v, s, r in zip(*columns, strict=True)]


def test_contended_type_comes_first() -> None:
    """12 a100 asked of 4: s = 3, s / (1 + s) = 0.75; 4 v100 of 4: s = 1, 0.5 (score-research 4)."""
    assert terms(make_gpu_job(1, "gpu:a100:12"), make_gpu_job(2, "gpu:v100:4")) == [
        (0.75, 0.75, pytest.approx(1 / 3)),
        (0.5, 0.5, 1.0),
    ]


def test_flexible_job_is_as_contended_as_its_least_contended_type() -> None:
    """a100: 10/4 + 4/8 = 3; v100: 4/8 = 0.5, so the untyped job has 0.5 / 1.5 and the typed one 3 / 4."""
    assert [
        scarcity for _, scarcity, _ in terms(make_gpu_job(1, "gpu:a100:10"), make_gpu_job(2, "gpu:4"))
    ] == [
        0.75,
        pytest.approx(1 / 3),
    ]


def test_types_that_only_drained_nodes_have_are_scarcest() -> None:
    """Ready 0, scarcity 1: nobody can have them now, and they must not be given away when they return."""
    assert terms(make_gpu_job(1, "gpu:v100:1"), cluster=drained(make_cluster(), "g3")) == [(1.0, 1.0, 0.0)]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(), id="CPUs only"),
        pytest.param(make_gpu_job(1, "gpu:h100:1"), id="a type that nobody has"),
        pytest.param(make_job(gpus=gpu_request(per_job="gpu:a100:1")), id="a partition without GPUs"),
        pytest.param(make_gpu_job(1, "gpu:a100:1,gpu:h100:1"), id="two types, one missing"),
    ],
)
def test_job_that_no_gpu_can_serve_has_0(job: Job) -> None:
    """No gain from asking for nothing, or for what is not there."""
    assert terms(job, scarcity=1)[0][:2] == (0.0, 0.0)


def test_job_without_gpus_is_not_ready_either() -> None:
    """Its fit is not a matter of GPUs."""
    assert terms(make_job(), scarcity=0, ready=1) == [(0.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("texts", "ready"),
    [
        pytest.param({"per_job": "gpu:a100:2"}, 1.0, id="two of three free"),
        pytest.param({"per_job": "gpu:a100:4"}, 0.75, id="three of four"),
        pytest.param({"per_node": "gpu:a100:2", "nodes": 2}, 0.5, id="groups of two: only g2 has two"),
        pytest.param({"per_node": "gpu:a100:1", "nodes": 2}, 1.0, id="one on each of two nodes"),
        pytest.param({"per_node": "gpu:a100:4"}, 0.0, id="no node has four"),
        pytest.param({"per_job": "gpu:7"}, 1.0, id="any type: 3 a100 + 4 v100"),
        pytest.param({"per_job": "gpu:14"}, 0.5, id="any type, twice what is free"),
    ],
)
def test_ready_is_the_share_that_could_be_had_now(texts: dict[str, Any], ready: float) -> None:
    """One a100 of g1 is in use; case 15: GPUs for each node must stand on one node together."""
    busy = make_node("g1", "a100:2", cpus_used=1, gpus_used=GpuCount(1, {"a100": 1}))
    cluster = make_cluster(nodes=(busy, make_node("g2", "a100:2"), make_node("g3", "v100:4")))
    job = make_job(partitions=("gpu",), gpus=gpu_request(**texts))
    assert terms(job, cluster=cluster)[0][2] == ready


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


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (make_job(), "asks for no GPU"),
        (make_gpu_job(1, "gpu:h100:1"), "asks for GPUs that its partition doesn't have"),
        (
            make_gpu_job(1, "gpu:a100:2"),
            "2 of the 2 GPUs are ready; a100: 4 usable, 0.5 asked for per usable GPU",
        ),
        (
            make_gpu_job(1, "gpu:4"),
            "4 of the 4 GPUs are ready; a100|v100: 8 usable, 0.5 asked for per usable GPU",
        ),
    ],
)
def test_fit_is_described_in_words(job: Job, text: str) -> None:
    """What is ready is shown, though it doesn't count: good to know, harmful in the order."""
    assert describe(make_queue(job), GresFitParams(), 0) == text


def test_drained_type_is_described_in_words() -> None:
    """An infinite ratio is said in words."""
    queue = make_queue(make_gpu_job(1, "gpu:v100:1"), cluster=drained(make_cluster(), "g3"))
    assert describe(queue, GresFitParams(), 0) == (
        "0 of the 1 GPUs are ready; v100: 0 usable, none is usable"
    )
