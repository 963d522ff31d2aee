"""slurm_score/tuning_weights.py: which nodes Slurm is to fill first."""

import math
from dataclasses import replace

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Node
from slurm_score.tuning import Contention
from slurm_score.tuning_weights import WeightChange, advise_weights, clearly_less

from .builders import make_cluster, make_node


def contended(**levels: float) -> dict[str, Contention]:
    """Return types that were as contended over the day as over the week."""
    return {name: Contention(level, level) for name, level in levels.items()}


def advice(nodes: list[Node], **levels: float) -> list[tuple[str, int]]:
    """Return the hosts and the weight of each recommendation."""
    found = advise_weights(make_cluster(nodes=tuple(nodes)), contended(**levels))
    return [(change.hosts, change.weight) for change in found]


def node(name: str, gpus: str = "", weight: int = 1) -> Node:
    """Return a node with a weight."""
    return make_node(name, gpus, weight=weight)


H, V, T = node("h1", "h100:4"), node("v1", "v100:4"), node("t1", "t4:4")


def test_weights_ascend_with_contention_and_nodes_without_gpus_come_first() -> None:
    """Slurm uses the lowest weight first, so that h100 is left for who needs it."""
    nodes = [node("h1", "h100:4"), node("h2", "h100:8"), node("v1", "v100:4"), node("c1"), node("c2")]
    assert advise_weights(
        make_cluster(nodes=tuple(nodes)), {"h100": Contention(2.1, 2.4), "v100": Contention(0.14, 0.2)}
    ) == (
        WeightChange("c[1-2]", (1,), 10, "no GPUs: jobs that need none fill these first"),
        WeightChange(
            "v1",
            (1,),
            20,
            "v100: 0.2 GPUs asked for per usable one over the last week, 0.1 over the last 24 hours",
        ),
        WeightChange(
            "h[1-2]",
            (1,),
            30,
            "h100: 2.4 GPUs asked for per usable one over the last week, 2.1 over the last 24 hours",
        ),
    )


def test_a_recommendation_is_a_line_for_scontrol() -> None:
    """Ready to paste, hosts folded."""
    change = WeightChange("g[1-8]", (1, 5), 30, "")
    assert change.command == "scontrol update NodeName=g[1-8] Weight=30"


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"h100": 2.0, "v100": 1.0, "t4": 0.5}, [("t1", 10), ("v1", 20), ("h1", 30)]),
        ({"h100": 0.5, "v100": 1.0, "t4": 2.0}, [("h1", 10), ("v1", 20), ("t1", 30)]),
        ({"h100": 2.0, "v100": 0.0, "t4": 0.0}, [("t1", 10), ("v1", 10), ("h1", 20)]),
        ({"h100": 2.0}, [("t1", 10), ("v1", 10), ("h1", 20)]),
        ({"h100": 2.0, "v100": 1.9, "t4": 0.1}, [("t1", 10), ("h1", 20), ("v1", 20)]),
        ({"h100": math.inf, "v100": 100.0, "t4": math.inf}, [("v1", 10), ("h1", 20), ("t1", 20)]),
        ({"h100": 1.0, "v100": 1.1, "t4": 1.2}, []),
        ({}, []),
        ({"a100": 9.0}, []),
        ({"h100": 0.04, "v100": 0.0, "t4": 0.02}, []),
    ],
    ids=[
        "three levels",
        "the capable ones are idle",
        "a tie at zero",
        "types that nobody asked for are at zero",
        "a tie above",
        "two that were never usable",
        "all close",
        "nobody waited",
        "only for a type that is not here",
        "next to nothing",
    ],
)
def test_types_that_are_close_and_weigh_the_same_go_on_doing_so(
    levels: dict[str, float], expected: list[tuple[str, int]]
) -> None:
    """All weights are 1 today: an order is made only where the contention differs clearly."""
    assert advice([H, V, T], **levels) == expected


@pytest.mark.parametrize(
    ("h", "v", "levels", "expected"),
    [
        (20, 10, {"h100": 1.0, "v100": 1.2}, []),
        (20, 10, {"h100": 1.0, "v100": 1.3}, [("h1", 10), ("v1", 20)]),
        (10, 20, {"h100": 1.0, "v100": 1.3}, []),
        (10, 20, {"h100": 1.0, "v100": 0.85}, []),
        (10, 20, {"h100": 1.0, "v100": 0.7}, [("v1", 10), ("h1", 20)]),
        (5, 900, {"h100": 0.1, "v100": 3.0}, []),
        (900, 5, {"h100": 0.1, "v100": 3.0}, [("h1", 10), ("v1", 20)]),
        (20, 10, {"h100": 3.0, "v100": 0.1}, []),
    ],
    ids=[
        "close: today's order stays",
        "a quarter more: it turns",
        "it is as it should be",
        "back within a fifth: it does not turn again",
        "clearly below: it turns again",
        "any numbers will do if their order is right",
        "the wrong way round gets new numbers",
        "the most contended is the last already",
    ],
)
def test_todays_order_stays_unless_the_contention_says_clearly_otherwise(
    h: int, v: int, levels: dict[str, float], expected: list[tuple[str, int]]
) -> None:
    """Hysteresis: means that differ by less than a fifth of the greater one turn nothing round."""
    assert advice([node("h1", "h100:4", h), node("v1", "v100:4", v)], **levels) == expected


def test_close_types_keep_their_order_while_others_move() -> None:
    """t4 has to come first; h100 is before v100 today and stays so, though v100 is a bit less contended."""
    nodes = [node("h1", "h100:4", 1), node("v1", "v100:4", 2), node("t1", "t4:4", 3)]
    assert advice(nodes, h100=2.0, v100=1.9, t4=0.1) == [("t1", 10), ("h1", 20), ("v1", 30)]


def test_close_types_in_between_do_not_hide_a_clear_difference() -> None:
    """1.0, 1.2 and 1.4: each is close to the next, but the first and the last differ clearly."""
    nodes = [node("h1", "h100:4", 1), node("v1", "v100:4", 2), node("t1", "t4:4", 3)]
    assert advice(nodes, h100=1.4, v100=1.2, t4=1.0) == [("v1", 10), ("t1", 20), ("h1", 30)]


def test_weights_within_a_type_may_differ_as_long_as_the_types_are_in_order() -> None:
    """A site that fills its older v100 nodes first has a reason of its own."""
    nodes = [node("v1", "v100:4", 1), node("v2", "v100:4", 2), node("h1", "h100:4", 3)]
    assert advice(nodes, h100=2.0, v100=0.1) == []


def test_weights_that_overlap_are_made_apart_and_only_wrong_ones_are_named() -> None:
    """v2 comes after h1 today; v1 and h2 have by chance what they are to have."""
    nodes = [
        node("v1", "v100:4", 10),
        node("v2", "v100:4", 30),
        node("h1", "h100:4", 15),
        node("h2", "h100:4", 20),
    ]
    found = advise_weights(make_cluster(nodes=tuple(nodes)), contended(h100=2.0, v100=0.1))
    assert [(c.hosts, c.now, c.weight) for c in found] == [("v2", (30,), 10), ("h1", (15,), 20)]


def test_a_mixed_node_counts_by_its_most_contended_type() -> None:
    """Else the h100 in it would be taken by jobs that any GPU would do for."""
    both = replace(node("m1"), gpus=GpuCount(4, {"h100": 2, "v100": 2}))
    found = advise_weights(make_cluster(nodes=(both, H, V)), contended(h100=2.0, v100=0.1))
    assert [(c.hosts, c.weight) for c in found] == [("v1", 10), ("h1,m1", 20)]
    assert found[1].why.endswith("; nodes of several types count by their most contended one")
    assert "several types" not in found[0].why


def test_gpus_without_a_type_are_a_type_of_their_own() -> None:
    """They count as `gpu`, as in the pressure."""
    untyped = replace(node("u1"), gpus=GpuCount(4, {}))
    assert advice([untyped, H], gpu=3.0, h100=0.5) == [("h1", 10), ("u1", 20)]


def test_mig_slices_count_by_their_profile() -> None:
    """A node that is cut up serves those who ask for slices, and counts by how many do."""
    cut = replace(node("m1"), mig=GpuCount(7, {"1g.10gb": 7}))
    found = advise_weights(make_cluster(nodes=(cut, H)), contended(h100=0.5) | contended(**{"1g.10gb": 2.0}))
    assert [(c.hosts, c.weight) for c in found] == [("h1", 10), ("m1", 20)]
    assert found[1].why.startswith("1g.10gb: 2.0 slices asked for per usable one over the last week")
    assert advice([cut, H], h100=0.5) == [("m1", 10), ("h1", 20)]


def test_shards_count_beside_the_gpus_that_they_are_shares_of() -> None:
    """Nobody asks for whole GPUs of s1, but for its shards."""
    shared = replace(node("s1", "v100:4"), shards=GpuCount(16, {}))
    found = advise_weights(make_cluster(nodes=(shared, H)), contended(h100=0.5, shard=2.0))
    assert [(c.hosts, c.weight) for c in found] == [("h1", 10), ("s1", 20)]
    assert found[1].why.startswith("shard: 2.0 shards asked for per usable one over the last week")


def test_nodes_without_gpus_come_first_whatever_the_contention() -> None:
    """Also where nobody waits: a job without GPUs on a GPU node takes the CPUs that its GPUs need."""
    assert advice([H, node("c1")]) == [("c1", 10), ("h1", 20)]
    assert advice([node("h1", "h100:4", 7), node("c1", "", 3)]) == []


def test_drained_nodes_get_their_weight_too() -> None:
    """They come back."""
    down = replace(node("v2", "v100:4"), usable=False)
    assert advice([H, V, down], h100=2.0, v100=0.1) == [("v[1-2]", 10), ("h1", 20)]


@pytest.mark.parametrize("nodes", [[], [H], [node("c1"), node("c2", "", 5)]])
def test_nodes_of_one_kind_need_no_weights(nodes: list[Node]) -> None:
    """There is nothing to choose from."""
    assert advice(nodes, h100=5.0) == []


@pytest.mark.parametrize(
    ("level", "why"),
    [
        (Contention(0.0, 0.0), "v100: nobody waited for it in the last week"),
        (Contention(math.inf, math.inf), "v100: asked for while none was usable"),
        (
            Contention(0.0, 0.02),
            "v100: less than 0.1 GPUs asked for per usable one over the last week, "
            "0.0 over the last 24 hours",
        ),
    ],
)
def test_the_reason_says_what_was_measured(level: Contention, why: str) -> None:
    """In words where there is no number."""
    found = advise_weights(make_cluster(nodes=(V, node("c1"))), {"v100": level})
    assert found[-1].why == why


@pytest.mark.parametrize(
    ("a", "b", "less"),
    [
        (1.0, 1.25, False),
        (1.0, 1.26, True),
        (0.0, 0.05, False),
        (0.0, 0.06, True),
        (1.26, 1.0, False),
        (1.0, math.inf, True),
        (math.inf, math.inf, False),
        (-math.inf, 0.0, True),
        (-math.inf, -math.inf, False),
    ],
)
def test_levels_are_close_within_a_fifth_of_the_greater_one(a: float, b: float, less: bool) -> None:
    """And within 0.05 where both are next to nothing."""
    assert clearly_less(a, b) is less
