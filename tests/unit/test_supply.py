"""slurm_score/supply.py: what there is of each GPU type, in what blocks, who wants it, when more comes free.

Partition gpu: g1 and g2 with two a100 each, g3 with four v100.
"""

import math
from typing import Any

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Cluster, Job, Node, Predicted, Release, Releases
from slurm_score.request import ask_of
from slurm_score.supply import TypeSupply, comes_free, comes_free_in_words, releases_of, supply_of
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
        pytest.param(
            make_gpu_job(1, "gpu:a100:2", **RUNNING), {"a100": (Release(NOW + HOUR, 2),)}, id="typed"
        ),
        pytest.param(
            make_gpu_job(1, "gpu:3", node_list="g3", **RUNNING),
            {"v100": (Release(NOW + HOUR, 3),)},
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
    assert releases_of((job,), make_cluster(), {}) == releases


@pytest.mark.parametrize(
    ("changes", "run_s", "release"),
    [
        pytest.param({}, HOUR + 600.0, Release(NOW + 600, 1, True), id="predicted to end in ten minutes"),
        pytest.param({}, 3.0 * HOUR, Release(NOW + HOUR, 1), id="never later than its limit"),
        pytest.param({}, 2.0 * HOUR, Release(NOW + HOUR, 1), id="the limit itself tells nothing"),
        pytest.param({}, 600.0, Release(NOW + HOUR, 1), id="it has run for longer than predicted"),
        pytest.param(
            {"time_limit_s": math.inf}, HOUR + 600.0, Release(NOW + 600, 1, True), id="predicted, no limit"
        ),
        pytest.param({"state": "SUSPENDED"}, HOUR + 600.0, Release(NOW + HOUR, 1), id="its clock stands"),
    ],
)
def test_running_jobs_give_back_at_their_predicted_end(
    changes: dict[str, Any], run_s: float, release: Release
) -> None:
    """An hour has gone of two; what earlier runs tell counts as long as it can be true."""
    job = make_gpu_job(1, "gpu:a100:1", **RUNNING | changes)
    assert releases_of((job,), make_cluster(), {1: Predicted(run_s, "runs like it")}) == {"a100": (release,)}


def test_releases_are_earliest_first_and_added_up() -> None:
    """Two jobs that end in the same second are one entry."""
    jobs = (
        make_gpu_job(1, "gpu:a100:2", **RUNNING | {"start_s": NOW}),
        make_gpu_job(2, "gpu:a100:1", **RUNNING),
        make_gpu_job(3, "gpu:a100:1", **RUNNING),
    )
    found = releases_of(jobs, make_cluster(), {})
    assert found == {"a100": (Release(NOW + HOUR, 2), Release(NOW + 2 * HOUR, 2))}


@pytest.mark.parametrize(
    ("gpus", "last", "words"),
    [
        pytest.param(2, None, "", id="free now"),
        pytest.param(
            3, Release(NOW + 60, 1), "within 00:01:00 by the running jobs' limits", id="the first is enough"
        ),
        pytest.param(
            5,
            Release(NOW + 600, 2, True),
            "within 00:10:00 by what is known of the running jobs",
            id="the second as well",
        ),
        pytest.param(6, None, "", id="more than comes free"),
    ],
)
def test_releases_count_in_order_until_enough_is_free(gpus: int, last: Release | None, words: str) -> None:
    """Two of four a100 are free; one comes back after a minute, two after ten, as their runs tell."""
    off = make_node("g4", "a100:4", usable=False)
    cluster = make_cluster(nodes=(busy("g1", 2), make_node("g2", "a100:2"), off))
    releases: Releases = {"a100": (Release(NOW + 60, 1), Release(NOW + 600, 2, True))}
    ask = ask_of(make_gpu_job(1, f"gpu:a100:{gpus}"))
    assert ask is not None
    found = comes_free(ask, ("a100",), cluster, releases)
    assert found == last
    assert words == ("" if found is None else comes_free_in_words(found, NOW))
