"""slurm_score/never.py: what is called impossible is impossible; most cases stand in fit_cases_rest.py."""

from typing import Any

import pytest

from slurm_score.gres import GpuRequest
from slurm_score.never import could_fit, why_never
from slurm_score.request import ask_of
from tests.unit.builders import drained, make_cluster, make_job, make_node

CLUSTER = make_cluster(
    nodes=(
        make_node("g1", "a100:2", mem_mib=1000),
        make_node("g2", "a100:2", mem_mib=1000),
        make_node("g3", "a100:4", cpus=4, mem_mib=500),
    )
)


def why(**changes: Any) -> str:
    """Return why a request can never start, having looked at both answers."""
    ask = ask_of(make_job(partitions=("gpu",), **changes))
    assert ask is not None
    said = why_never(ask, CLUSTER)
    assert could_fit(ask, CLUSTER) is (not said)
    return said


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"gpus": GpuRequest(8)}, id="all there are"),
        pytest.param({"gpus": GpuRequest(3), "cpus": 20}, id="CPUs of three nodes"),
        pytest.param({"gpus": GpuRequest(3), "mem_mib": 2500}, id="memory of three nodes"),
        pytest.param({"gpus": GpuRequest(4, (), 2), "nodes": 2, "cpus": 16}, id="two groups, all CPUs"),
        pytest.param({"gpus": GpuRequest(3), "nodes": 3}, id="a GPU on each node"),
        pytest.param(
            {"gpus": GpuRequest(6, (), 2), "nodes": 3, "cpus": 20},
            id="more tasks on one node than on another",
        ),
        pytest.param({"gpus": GpuRequest(6), "max_nodes": 2}, id="four and two"),
        pytest.param(
            {"gpus": GpuRequest(2), "req_nodes": "g3", "cpus": 12}, id="a node beside the named one"
        ),
    ],
)
def test_request_that_some_layout_serves_can_start(changes: dict[str, Any]) -> None:
    """Each limit by itself, with the nodes that are best for it."""
    assert why(**changes) == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"gpus": GpuRequest(3), "cpus": 21},
            "it asks for 21 CPUs, the 3 largest with its GPUs have 20",
            id="one CPU more than all",
        ),
        pytest.param(
            {"gpus": GpuRequest(2), "cpus": 17},
            "it asks for 17 CPUs, the 2 largest with its GPUs have 16",
            id="two GPUs, two nodes at most",
        ),
        pytest.param(
            {"gpus": GpuRequest(3), "mem_mib": 2501},
            "it asks for 2501 MiB of memory, the 3 largest with its GPUs have 2500",
            id="one MiB more than all",
        ),
        pytest.param(
            {"gpus": GpuRequest(4, (), 4), "cpus": 5},
            "it asks for 5 CPUs on one node, the largest with its GPUs has 4",
            id="others have the CPUs, and no four GPUs",
        ),
        pytest.param(
            {"gpus": GpuRequest(6, (), 2), "nodes": 3, "cpus": 21},
            "it asks for 21 CPUs, the 3 largest with its GPUs have 20",
            id="one CPU more than all",
        ),
        pytest.param(
            {"gpus": GpuRequest(6, (), 2), "nodes": 3, "max_nodes": 2},
            "it asks for 3 nodes with 2 GPUs each, on at most 2",
            id="more groups than nodes allowed",
        ),
        pytest.param(
            {"gpus": GpuRequest(4, (), 2), "nodes": 2, "req_nodes": "g1,zz"},
            "it asks for 4 GPUs, there are 2",
            id="one of the named nodes is not there",
        ),
        pytest.param(
            {"gpus": GpuRequest(3), "req_nodes": "g[1-3]", "max_nodes": 2},
            "it asks for 3 nodes that its constraint or node list names, 2 can serve it",
            id="more named than nodes allowed",
        ),
        pytest.param(
            {"gpus": GpuRequest(1), "slices": GpuRequest(1, (("1g.10gb", 1),))},
            "it asks for 1 1g.10gb, there are 0",
            id="the GPU is there, the slice not",
        ),
        pytest.param(
            {"shards": GpuRequest(2, (("a100", 2),))},
            "it asks for 2 shards of a100, there are 0",
            id="typed shards",
        ),
    ],
)
def test_request_that_no_layout_serves_is_told_the_limit(changes: dict[str, Any], said: str) -> None:
    """One sentence, with what is asked and what there is."""
    assert why(**changes) == said


def test_nearest_partition_is_spoken_of() -> None:
    """Debug has no a100 at all, gpu has too few CPUs beside them."""
    nodes = (make_node("g1", "a100:2"), make_node("d1", "t4:2", cpus=64, partitions=("debug",)))
    ask = ask_of(make_job(partitions=("debug", "gpu"), gpus=GpuRequest(2, (("a100", 2),), 2), cpus=9))
    assert ask is not None
    assert why_never(ask, make_cluster(nodes=nodes)) == (
        "it asks for 9 CPUs on one node, the largest with its GPUs has 8"
    )


def test_drained_cluster_could_still_serve() -> None:
    """Up and empty is meant: nodes come back."""
    ask = ask_of(make_job(partitions=("gpu",), gpus=GpuRequest(8)))
    assert ask is not None
    assert could_fit(ask, drained(make_cluster(), "g1", "g2", "g3"))


def test_node_without_a_cpu_serves_nobody() -> None:
    """A job has a CPU wherever it has a GPU."""
    ask = ask_of(make_job(partitions=("gpu",), gpus=GpuRequest(1, (), 1), cpus=0))
    assert ask is not None
    assert why_never(ask, make_cluster(nodes=(make_node("g1", "a100:2", cpus=0),))) == (
        "it asks for 1 GPUs, there are 0"
    )


def test_partition_that_nobody_knows_has_no_node() -> None:
    """Nothing to compare numbers with."""
    ask = ask_of(make_job(partitions=("gone",), gpus=GpuRequest(1)))
    assert ask is not None
    assert why_never(ask, CLUSTER) == "no node of gone meets its constraint, node list and reservation"
