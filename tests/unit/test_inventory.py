"""slurm_score/inventory.py: which GPUs a request accepts, how contended they are, how many are free.

The cluster has four a100 (two nodes of two) and four v100 (one node) in partition gpu, none in main.
"""

import math

import pytest

from slurm_score.gres import NO_GPUS, GpuCount, GpuRequest
from slurm_score.inventory import accepted_types, contention, gpu_pressure, ready_gpus, usable_gpus
from slurm_score.model import Job, Node
from tests.unit.builders import drained, make_cluster, make_gpu_job, make_job, make_node, typed

GPU = ("gpu",)


@pytest.mark.parametrize(
    ("request_", "partitions", "types"),
    [
        pytest.param(typed("a100", 1), GPU, ("a100",), id="its own type"),
        pytest.param(GpuRequest(1), GPU, ("a100", "v100"), id="any type"),
        pytest.param(typed("h100", 1), GPU, (), id="a type that nobody has"),
        pytest.param(typed("a100", 1), ("main",), (), id="a partition without GPUs"),
        pytest.param(typed("a100", 1), ("main", "gpu"), ("a100",), id="the other partition has it"),
        pytest.param(GpuRequest(2, (("a100", 1), ("v100", 1))), GPU, ("a100", "v100"), id="both types"),
        pytest.param(GpuRequest(2, (("a100", 1), ("h100", 1))), GPU, (), id="one of two is missing"),
    ],
)
def test_accepted_types_are_those_that_could_serve(
    request_: GpuRequest, partitions: tuple[str, ...], types: tuple[str, ...]
) -> None:
    """A typed request takes its types if they are all there; an untyped one takes what there is."""
    assert accepted_types(request_, partitions, make_cluster()) == types


def test_drained_nodes_count_as_types_but_not_as_supply() -> None:
    """They come back: a job for them isn't hopeless, but nothing of it can run now."""
    cluster = drained(make_cluster(), "g1", "g2")
    assert accepted_types(typed("a100", 1), GPU, cluster) == ("a100",)
    assert usable_gpus(["a100"], GPU, cluster) == 0
    assert usable_gpus(["a100", "v100"], GPU, cluster) == 4


@pytest.mark.parametrize(
    ("jobs", "pressure"),
    [
        pytest.param([], {}, id="no job"),
        pytest.param([make_gpu_job(1, "gpu:a100:2")], {"a100": 0.5}, id="two of four"),
        pytest.param([make_gpu_job(1, "gpu:4")], {"a100": 0.5, "v100": 0.5}, id="four of eight, any type"),
        pytest.param(
            [make_gpu_job(1, "gpu:a100:6"), make_gpu_job(2, "gpu:4")],
            {"a100": 2.0, "v100": 0.5},
            id="6/4 + 4/8 for a100, 4/8 for v100",
        ),
        pytest.param([make_gpu_job(1, "gpu:a100:1", tasks="1-8")], {"a100": 2.0}, id="every task counts"),
        pytest.param([make_gpu_job(1, "gpu:h100:1")], {}, id="a type that nobody has"),
        pytest.param([make_job(1)], {}, id="no GPU asked"),
        pytest.param([make_gpu_job(1, "gpu:a100:2", priority=0)], {}, id="held"),
        pytest.param([make_gpu_job(1, "gpu:a100:2", eligible_s=None)], {}, id="dependency open"),
        pytest.param([make_gpu_job(1, "gpu:a100:2", state="RUNNING")], {}, id="running"),
    ],
)
def test_pressure_is_gpus_asked_over_gpus_usable(jobs: list[Job], pressure: dict[str, float]) -> None:
    """P_t = sum of asked / supply over the eligible jobs that accept t; score-research 4."""
    assert gpu_pressure(jobs, make_cluster()) == pressure


def test_pressure_on_a_type_without_usable_gpu_is_infinite() -> None:
    """Whoever needs it can only wait for the nodes to come back."""
    cluster = drained(make_cluster(), "g3")
    jobs = [make_gpu_job(1, "gpu:v100:1"), make_gpu_job(2, "gpu:a100:2")]
    assert gpu_pressure(jobs, cluster) == {"a100": 0.5, "v100": math.inf}


@pytest.mark.parametrize(
    ("request_", "partitions", "value"),
    [
        pytest.param(typed("a100", 1), GPU, 2.0, id="its type"),
        pytest.param(GpuRequest(1), GPU, 0.5, id="any type: the least contended"),
        pytest.param(GpuRequest(2, (("a100", 1), ("v100", 1))), GPU, 0.5, id="two types: the least"),
        pytest.param(typed("h100", 1), GPU, 0.0, id="a type that nobody has"),
        pytest.param(NO_GPUS, GPU, 0.0, id="no GPU"),
        pytest.param(typed("a100", 1), (), 0.0, id="no partition"),
    ],
)
def test_contention_is_that_of_the_least_contended_type(
    request_: GpuRequest, partitions: tuple[str, ...], value: float
) -> None:
    """A flexible job goes where there is room, so it is as contended as that."""
    assert contention(request_, partitions, make_cluster(), {"a100": 2.0, "v100": 0.5}) == value


def test_contention_is_infinite_where_all_accepted_types_are_drained() -> None:
    """Also for a job whose own demand the pressure doesn't hold."""
    assert contention(typed("v100", 1), GPU, drained(make_cluster(), "g3"), {}) == math.inf


@pytest.mark.parametrize(
    ("request_", "ready"),
    [
        pytest.param(typed("a100", 3), 3, id="three of four, wherever they stand"),
        pytest.param(typed("a100", 6), 4, id="no more than there are"),
        pytest.param(typed("a100", 4, per_node=2), 4, id="two on each of two nodes"),
        pytest.param(typed("a100", 4, per_node=4), 0, id="four on one node, but nodes have two"),
        pytest.param(typed("v100", 4, per_node=4), 4, id="four on one node, and g3 has four"),
        pytest.param(GpuRequest(8), 8, id="any type"),
        pytest.param(GpuRequest(8, (), 4), 4, id="any type, four on a node: only g3"),
        pytest.param(GpuRequest(3, (("a100", 2), ("v100", 1))), 3, id="two types"),
        pytest.param(typed("h100", 1), 0, id="a type that nobody has"),
        pytest.param(NO_GPUS, 0, id="no GPU"),
    ],
)
def test_ready_gpus_could_be_had_now(request_: GpuRequest, ready: int) -> None:
    """A node serves a group of k GPUs with k or with none."""
    assert ready_gpus(request_, GPU, make_cluster()) == ready


def test_gpus_in_use_are_not_ready() -> None:
    """g1 has one a100 left and g2 two: a group of two stands on g2 alone."""
    busy = make_node("g1", "a100:2", cpus_used=1, gpus_used=GpuCount(1, {"a100": 1}))
    cluster = make_cluster(nodes=(busy, make_node("g2", "a100:2")))
    assert ready_gpus(typed("a100", 4), GPU, cluster) == 3
    assert ready_gpus(typed("a100", 4, per_node=2), GPU, cluster) == 2


def test_ready_gpus_stand_in_one_partition() -> None:
    """A job runs in one of its partitions, not across two of them."""
    far = make_node("f1", "a100:3", partitions=("far",))
    cluster = make_cluster(nodes=(make_node("g1", "a100:2"), far))
    assert ready_gpus(typed("a100", 5), ("gpu", "far"), cluster) == 3


def test_job_without_partition_has_no_ready_gpus() -> None:
    """There is nowhere to look."""
    assert ready_gpus(typed("a100", 1), (), make_cluster()) == 0


def test_drained_node_has_no_ready_gpus() -> None:
    """Free is not enough: the node must take jobs."""
    assert ready_gpus(typed("v100", 1), GPU, drained(make_cluster(), "g3")) == 0


def test_a_type_without_a_usable_gpu_does_not_make_a_flexible_job_look_relaxed() -> None:
    """With v100 drained a job that takes any type competes for a100: (8 + 1) / 4 a100 = 2.25."""
    cluster = drained(make_cluster(), "g3")
    jobs = (make_gpu_job(1, "gpu:a100:8"), make_gpu_job(2, "gpu:1"))
    pressure = gpu_pressure(jobs, cluster)
    assert contention(jobs[1].gpus, ("gpu",), cluster, pressure) == 2.25
    assert pressure.get("v100", 0.0) < 2.25


def test_gpus_without_a_type_are_one_type_of_their_own() -> None:
    """A site may write Gres=gpu:4 and no type: 2 asked of 4 usable."""
    node = Node(name="u1", cpus=8, partitions=("gpu",), gpus=GpuCount(4, {}))
    cluster = make_cluster(nodes=(node,))
    job = make_gpu_job(1, "gpu:2")
    assert accepted_types(job.gpus, ("gpu",), cluster) == ("gpu",)
    assert gpu_pressure((job,), cluster) == {"gpu": 0.5}
    assert ready_gpus(job.gpus, ("gpu",), cluster) == 2
