"""slurm_score/supply.py: what there is of each GPU type, in what blocks, who wants it, when more comes free.

Partition gpu: g1 and g2 with two a100 each, g3 with four v100.
"""

from dataclasses import replace
from typing import Any

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Cluster, Job, Node, Releases
from slurm_score.request import ask_of
from slurm_score.supply import TypeSupply, free_by, releases_of, supply_of
from tests.unit.builders import (
    HOUR,
    NOW,
    drained,
    make_cluster,
    make_gpu_job,
    make_job,
    make_node,
    make_queue,
)

A100_OF_GPU: dict[str, Any] = {
    "partition": "gpu",
    "gpu_type": "a100",
    "total": 4,
    "used": 0,
    "free": 4,
    "broken": 0,
    "largest": 2,
    "block": (2, 2),
    "asked": 0,
    "flexible": 0,
}


def a100(cluster: Cluster, *jobs: Job) -> TypeSupply:
    """Return what there is of a100 in partition gpu."""
    (found,) = (row for row in supply_of(make_queue(*jobs, cluster=cluster)) if row.gpu_type == "a100")
    return found


def busy(name: str, used: int) -> Node:
    """Return a node with two a100, some in use."""
    return make_node(name, "a100:2", cpus_used=1, gpus_used=GpuCount(used, {"a100": used}))


@pytest.mark.parametrize(
    ("cluster", "changes"),
    [
        pytest.param(make_cluster(), {}, id="all free"),
        pytest.param(
            make_cluster(nodes=(busy("g1", 1), make_node("g2", "a100:2"))),
            {"used": 1, "free": 3, "block": (1, 2)},
            id="one in use: two on g2 are as many as one on each",
        ),
        pytest.param(
            drained(make_cluster(), "g1"), {"free": 2, "broken": 2, "block": (1, 2)}, id="one node drained"
        ),
        pytest.param(
            drained(make_cluster(nodes=(busy("g1", 2), make_node("g2", "a100:2"))), "g1"),
            {"free": 2, "broken": 2, "block": (1, 2)},
            id="a drained node is broken, its jobs included",
        ),
        pytest.param(
            make_cluster(nodes=(busy("g1", 2), busy("g2", 2))),
            {"used": 4, "free": 0, "largest": 0, "block": (0, 0)},
            id="nothing free",
        ),
        pytest.param(
            make_cluster(nodes=(make_node("g1", "a100:2", cpus_used=8), make_node("g2", "a100:2"))),
            {"used": 2, "free": 2, "block": (1, 2)},
            id="a node without a free CPU has no free GPU",
        ),
    ],
)
def test_every_gpu_is_used_free_or_broken(cluster: Cluster, changes: dict[str, Any]) -> None:
    """The three add up to the total, and blocks are of free ones."""
    found = a100(cluster)
    assert found == TypeSupply(**A100_OF_GPU | changes)
    assert found.used + found.free + found.broken == found.total


def test_largest_block_is_in_equal_parts() -> None:
    """4, 3 and 1 free: two nodes with three each are six, more than one with four or three with one."""
    nodes = (make_node("g1", "a100:4"), make_node("g2", "a100:3"), make_node("g3", "a100:1"))
    found = a100(make_cluster(nodes=nodes))
    assert (found.largest, found.block) == (4, (2, 3))


def test_demand_tells_jobs_that_need_the_type_from_those_that_take_any() -> None:
    """Tasks count; held jobs and jobs that can never start don't."""
    jobs = (
        make_gpu_job(1, "gpu:a100:2"),
        make_gpu_job(2, "gpu:a100:1", label="2_[0-2]", tasks="0-2"),
        make_gpu_job(3, "gpu:3"),
        make_gpu_job(4, "gpu:v100:4"),
        make_gpu_job(5, "gpu:a100:2", priority=0),
        make_gpu_job(6, "gpu:a100:5"),
    )
    found = a100(make_cluster(), *jobs)
    assert (found.asked, found.flexible) == (5, 3)


def test_supply_is_by_partition_and_type_in_order_of_name() -> None:
    """A node in two partitions counts in both; CPU partitions have no line."""
    both = make_node("g9", "h100:1", partitions=("gpu", "fast"))
    cluster = make_cluster(nodes=(*make_cluster().nodes, both))
    found = [(row.partition, row.gpu_type, row.total) for row in supply_of(make_queue(cluster=cluster))]
    assert found == [("fast", "h100", 1), ("gpu", "a100", 4), ("gpu", "h100", 1), ("gpu", "v100", 4)]


RUNNING: dict[str, Any] = {"state": "RUNNING", "start_s": NOW - HOUR, "time_limit_s": 2.0 * HOUR}


@pytest.mark.parametrize(
    ("job", "releases"),
    [
        pytest.param(make_gpu_job(1, "gpu:a100:2", **RUNNING), {"a100": ((NOW + HOUR, 2),)}, id="typed"),
        pytest.param(
            make_gpu_job(1, "gpu:3", node_list="g3", **RUNNING),
            {"v100": ((NOW + HOUR, 3),)},
            id="the type of its node",
        ),
        pytest.param(make_gpu_job(1, "gpu:3", node_list="g[1,3]", **RUNNING), {}, id="nodes of two types"),
        pytest.param(make_gpu_job(1, "gpu:3", node_list="g[", **RUNNING), {}, id="a list that can't be read"),
        pytest.param(
            make_gpu_job(1, "gpu:a100:1", **RUNNING | {"time_limit_s": float("inf")}), {}, id="no limit"
        ),
        pytest.param(make_gpu_job(1, "gpu:a100:1"), {}, id="pending"),
        pytest.param(make_job(1, **RUNNING), {}, id="no GPU"),
    ],
)
def test_running_jobs_give_back_at_their_limit(job: Job, releases: Releases) -> None:
    """What can't be told isn't."""
    assert releases_of((job,), make_cluster()) == releases


def test_releases_are_earliest_first_and_added_up() -> None:
    """Two jobs that end in the same second are one entry."""
    jobs = (
        make_gpu_job(1, "gpu:a100:2", **RUNNING | {"start_s": NOW}),
        make_gpu_job(2, "gpu:a100:1", **RUNNING),
        make_gpu_job(3, "gpu:a100:1", **RUNNING),
    )
    assert releases_of(jobs, make_cluster()) == {"a100": ((NOW + HOUR, 2), (NOW + 2 * HOUR, 2))}


@pytest.mark.parametrize(
    ("gpus", "by_s"),
    [
        pytest.param(2, NOW, id="free now"),
        pytest.param(3, NOW + 60, id="the first release is enough"),
        pytest.param(5, NOW + 600, id="the second as well"),
        pytest.param(6, None, id="more than comes free"),
    ],
)
def test_free_by_counts_releases_in_order(gpus: int, by_s: float | None) -> None:
    """Two of four a100 are free; one comes back after a minute, two after ten."""
    off = make_node("g4", "a100:4", usable=False)
    cluster = make_cluster(nodes=(busy("g1", 2), make_node("g2", "a100:2"), off))
    releases: Releases = {"a100": ((NOW + 60, 1), (NOW + 600, 2))}
    ask = ask_of(make_gpu_job(1, f"gpu:a100:{gpus}"))
    assert ask is not None
    assert free_by(ask, ("a100",), replace(make_queue(cluster=cluster), releases=releases)) == by_s
