"""slurm_score/placement.py, inventory.py: what is free, and the best fit; most cases are in fit_cases*.py."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_score.gres import GpuCount, GpuRequest
from slurm_score.inventory import inventory_of, places_of
from slurm_score.model import Cluster, Node, Reservation
from slurm_score.node_gres import node_gres
from slurm_score.placement import Fit, fit_now, most_of, ready_now, wanted_rows
from slurm_score.request import Ask, ask_of
from tests.unit.builders import drained, make_cluster, make_job, make_node, typed


def ask(request: GpuRequest, **changes: Any) -> Ask:
    """Return the request of a job in gpu."""
    values: dict[str, Any] = {"partitions": ("gpu",), "gpus": request} | changes
    found = ask_of(make_job(**values))
    assert found is not None
    return found


def cluster_of(*nodes: Node) -> Cluster:
    """Return the cluster with other nodes."""
    return make_cluster(nodes=nodes)


# inventory


def test_inventory_has_a_column_a_node_and_a_row_a_type() -> None:
    """Nodes by name, whole GPUs before slices before shards, whatever order they came in."""
    full = make_node("z1", "v100:2", cpus_used=8)
    cut = make_node("b1", "a40:2", mig=GpuCount(4, {"1g.10gb": 4}), shards=GpuCount(8), mem_mib=100)
    nodes = inventory_of(cluster_of(full, cut))
    assert nodes.names == ("b1", "z1")
    assert nodes.types == ("a40", "v100", "1g.10gb", "shard")
    assert nodes.total.tolist() == [[2, 0], [0, 2], [4, 0], [8, 0]]
    assert nodes.free.tolist() == [[2, 0], [0, 0], [4, 0], [8, 0]]
    assert (nodes.cpus.tolist(), nodes.cpus_free.tolist(), nodes.mem.tolist()) == ([8, 8], [8, 0], [100, 0])


def test_inventory_is_made_once_for_a_cluster() -> None:
    """Every job's fit reads the same one."""
    cluster = make_cluster()
    assert inventory_of(cluster) is inventory_of(cluster)


@pytest.mark.parametrize(
    ("has", "used", "free"),
    [
        pytest.param(
            "gpu:a40:2,shard:8", "gpu:a40:0(IDX:N/A),shard:a40:0(0/4,0/4)", [2, 8], id="none in use"
        ),
        pytest.param("gpu:a40:2,shard:8", "gpu:a40:0(IDX:N/A),shard:a40:3(3/4,0/4)", [1, 5], id="three lent"),
        pytest.param(
            "gpu:a40:2,shard:8", "gpu:a40:0(IDX:N/A),shard:a40:2(1/4,1/4)", [0, 6], id="of two GPUs"
        ),
        pytest.param(
            "gpu:a40:2,shard:8", "gpu:a40:1(IDX:0),shard:a40:0(-/4,0/4)", [1, 4], id="one held whole"
        ),
        pytest.param("gpu:a40:2,shard:8", "gpu:a40:1(IDX:0),shard:a40:3(-/4,3/4)", [0, 1], id="and one lent"),
    ],
)
def test_what_is_free_is_what_slurm_tells_of_a_shared_node(has: str, used: str, free: list[int]) -> None:
    """Shards of a GPU that a job holds are not free, nor is a GPU of which a shard is lent."""
    node = replace(make_node("s1"), **node_gres(has, used)._asdict())
    nodes = inventory_of(cluster_of(node))
    assert nodes.types == ("a40", "shard")
    assert nodes.free[:, 0].tolist() == free


@pytest.mark.parametrize(
    ("states", "inside"),
    [
        (("IDLE", "RESERVED"), True),
        (("IDLE", "MAINTENANCE", "RESERVED"), True),
        (("IDLE", "DRAIN", "RESERVED"), False),
        (("DOWN", "RESERVED"), False),
        (("RESERVED",), False),
        (("DOWN",), False),
    ],
)
def test_reservation_opens_nodes_that_nothing_else_closes(states: tuple[str, ...], inside: bool) -> None:
    """A drained node stays closed; of one state nobody knows the base."""
    nodes = inventory_of(cluster_of(make_node("g1", "a100:1", states=states, usable=False)))
    assert nodes.inside.tolist() == [inside]


# places


def test_place_is_a_partition_and_an_alternative() -> None:
    """Two partitions times two alternatives, r2 being g2 in both; all of them are `there` and `usable`."""
    nodes = (
        make_node("g1", "a100:2", features=("r1",)),
        make_node("g2", "v100:2", features=("r2",), partitions=("gpu", "far")),
        make_node("g3", "t4:2"),
    )
    cluster = drained(cluster_of(*nodes), "g1")
    places = places_of(ask(GpuRequest(1), partitions=("gpu", "far"), features="[r1|r2]"), cluster)
    assert [site.nodes.tolist() for site in places.sites] == [
        [True, False, False],
        [False, True, False],
        [False, False, False],
    ]
    assert not places.sites[0].open.any()
    assert (places.there.tolist(), places.usable.tolist()) == ([True, False, True], [0, 0, 2])


def test_constraints_that_mean_the_same_nodes_share_a_site() -> None:
    """However users write it, the snapshot keeps it once."""
    cluster = cluster_of(make_node("g1", "a100:2", features=("f", "g")), make_node("g2", "v100:2"))
    texts = ("f", "g", "f&g", "g,f", "[f|g]", "f|g")
    found = {site for text in texts for site in places_of(ask(GpuRequest(1), features=text), cluster).sites}
    assert len(found) == 1


def test_reservation_without_nodes_leaves_the_partition() -> None:
    """One for licences, say, names none."""
    cluster = make_cluster(reservations={"lic": Reservation(name="lic", active=True)})
    assert fit_now(ask(GpuRequest(8), reservation="lic"), cluster).ready == 1.0


# best fit


@pytest.mark.parametrize(
    ("counts", "request_", "nodes", "packing"),
    [
        pytest.param((4, 2, 3), typed("a100", 2), 1, 1.0, id="the smallest that holds it"),
        pytest.param((4, 4, 3), typed("a100", 2), 1, 2 / 3, id="or the next"),
        pytest.param((4, 2, 3), typed("a100", 6), 1, 1.0, id="the largest it fills, then one for the rest"),
        pytest.param((4, 2, 3), typed("a100", 5), 1, 5 / 6, id="four and one of two"),
        pytest.param((8, 2, 2), typed("a100", 4), 2, 1.0, id="two nodes: two each"),
        pytest.param((8, 3, 1), typed("a100", 4), 2, 1.0, id="two nodes: three and one"),
        pytest.param((8, 1, 1), typed("a100", 4), 2, 4 / 9, id="two nodes: eight and one"),
        pytest.param((8, 2, 4), typed("a100", 4, 2), 2, 4 / 6, id="groups on the smallest that hold one"),
    ],
)
def test_best_fit_strands_little(
    counts: tuple[int, ...], request_: GpuRequest, nodes: int, packing: float
) -> None:
    """Asked over free on the nodes that it takes."""
    cluster = cluster_of(*(make_node(f"g{i}", f"a100:{n}") for i, n in enumerate(counts)))
    assert fit_now(ask(request_, nodes=nodes), cluster) == Fit(1.0, packing, 1.0)


@pytest.mark.parametrize(
    ("switches", "changes", "spread"),
    [
        pytest.param(("", "", ""), {}, 1.0, id="no topology: one switch"),
        pytest.param(("s1", "s1", "s2"), {}, 1.0, id="two of three under one"),
        pytest.param(("s1", "s2", "s3"), {}, 0.0, id="each under its own"),
        pytest.param(
            ("s1", "s1", "s2"), {"req_nodes": "g2"}, 0.0, id="a node under another must be among them"
        ),
        pytest.param(("s1", "s1", "s2"), {"exc_nodes": "g1"}, 0.0, id="one of the two is excluded"),
        pytest.param(("s1", "s1", "s2"), {"gpus": typed("a100", 5)}, 0.0, id="five: all three"),
    ],
)
def test_spread_is_one_where_a_leaf_switch_suffices(
    switches: tuple[str, ...], changes: dict[str, Any], spread: float
) -> None:
    """Four a100 on two nodes of three with two each."""
    nodes = (make_node(f"g{i}", "a100:2", switch=switch) for i, switch in enumerate(switches))
    request = changes.pop("gpus", typed("a100", 4))
    assert fit_now(ask(request, **{"nodes": 2} | changes), cluster_of(*nodes)).spread == spread


def test_best_partition_counts() -> None:
    """Ready in one of them is ready."""
    nodes = (make_node("g1", "a100:1"), make_node("f1", "a100:2", partitions=("far",)))
    request = ask(typed("a100", 2), partitions=("gpu", "far"))
    assert fit_now(request, cluster_of(*nodes)) == Fit(1.0, 1.0, 1.0)
    assert ready_now(request, cluster_of(*nodes))
    assert not ready_now(ask(typed("a100", 3)), cluster_of(*nodes))


@pytest.mark.parametrize(
    ("request_", "counts"),
    [
        pytest.param(GpuRequest(3), [3], id="any"),
        pytest.param(typed("a100", 2), [2], id="one type"),
        pytest.param(GpuRequest(2, (("a100", 1), ("v100", 1))), [1, 1], id="two types"),
        pytest.param(GpuRequest(4, (("a100", 1), ("v100", 1))), [2, 2], id="on each of two sockets"),
    ],
)
def test_each_type_is_asked_for_by_itself(request_: GpuRequest, counts: list[int]) -> None:
    """Slurm may add up more than the types that it names, as for --gpus-per-socket."""
    assert [count for _, count in wanted_rows(ask(request_), inventory_of(make_cluster()))] == counts


@pytest.mark.parametrize(
    ("limit", "among", "count", "most"),
    [
        pytest.param(9, [], 0, 15, id="all"),
        pytest.param(2, [], 0, 11, id="the two largest"),
        pytest.param(2, [0, 1], 1, 8, id="one of the small ones must be among them"),
        pytest.param(2, [0, 1], 2, 3, id="both small ones"),
        pytest.param(2, [3], 1, 11, id="the largest must be"),
        pytest.param(1, [0, 1], 2, 2, id="more than fit"),
    ],
)
def test_most_of_some_nodes_is_the_largest_sum(limit: int, among: list[int], count: int, most: int) -> None:
    """-N limits the nodes, -w and counts say which must be among them."""
    values = np.array([1, 2, 5, 6, 1])
    must = np.zeros(5, np.bool_)
    must[among] = True
    assert most_of(values, limit, ((must, count),) if count else ()) == most


@pytest.mark.parametrize(("flags", "ready"), [((), False), (("CR_CORE", "MULTIPLE_SHARING_GRES_PJ"), True)])
def test_shards_come_from_one_gpu_unless_slurm_is_told_otherwise(flags: tuple[str, ...], ready: bool) -> None:
    """slurm.conf(5), SelectTypeParameters; six of eight shards on two GPUs."""
    there = node_gres("gpu:a40:2,shard:8", "gpu:a40:0,shard:0(0/4,0/4)")
    node = Node(name="s1", cpus=8, partitions=("gpu",), **there._asdict())
    config = replace(make_cluster().config, select_type_parameters=flags)
    asked = ask(GpuRequest(), shards=GpuRequest(6, (), 6))
    assert ready_now(asked, make_cluster(nodes=(node,), config=config)) is ready
