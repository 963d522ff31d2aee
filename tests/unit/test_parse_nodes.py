"""slurm_score/slurm/parse_nodes.py: nodes, partitions, switches, reservations."""

import math
from typing import Any

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition, Reservation
from slurm_score.slurm.parse_nodes import (
    parse_nodes,
    parse_partitions,
    parse_reservations,
    parse_switches,
    with_switches,
)
from slurm_score.slurm.reading import one_line
from tests.unit.slurm_texts import NODE, PARTITION, RESERVATIONS, TOPOLOGY


def node(text: str = NODE) -> Node:
    """Return the node that is read from one line."""
    reading = parse_nodes(text + "\n")
    assert reading.problems == []
    return reading.items[0]


def test_node_is_read() -> None:
    """Values hold blanks and equals signs, and a reason can't overwrite a field that came before it."""
    assert node() == Node(
        name="g1",
        states=("MIXED", "DRAIN"),
        usable=False,
        cpus=8,
        cpus_used=8,
        mem_mib=4000,
        mem_used_mib=1000,
        gpus=GpuCount(4, {"a100": 4}),
        gpus_used=GpuCount(4, {"a100": 4}),
        partitions=("main", "gpu"),
        features=("nvlink",),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("CPUEfctv=8 ", "", {"cpus": 8}, id="22.05 has CPUTot only"),
        pytest.param("CPUEfctv=8", "CPUEfctv=6", {"cpus": 6}, id="cores kept for the system"),
        pytest.param("Gres=gpu:a100:4", "Gres=(null)", {"gpus": GpuCount()}, id="case 13"),
        pytest.param(
            "Gres=gpu:a100:4", "Gres=gpu:h100:4(S:0-3)", {"gpus": GpuCount(4, {"h100": 4})}, id="case 2"
        ),
        pytest.param(
            "GresUsed=gpu:a100:4(IDX:0-3)",
            "GresUsed=gpu:a100:2(IDX:0,2),shard:a100:2(-/4,2/4,-/4,0/4)",
            {"gpus_used": GpuCount(3, {"a100": 3})},
            id="commas inside the parentheses, and a GPU of which shards are in use",
        ),
        pytest.param(
            "GresUsed=gpu:a100:4(IDX:0-3)",
            "GresUsed=gpu:a100:0(IDX:N/A)",
            {"gpus_used": GpuCount(0, {"a100": 0})},
            id="idle",
        ),
        pytest.param("Partitions=main,gpu  ", "", {"partitions": ()}, id="in no partition"),
        pytest.param(
            "State=MIXED+DRAIN",
            "State=IDLE*",
            {"states": ("IDLE", "NOT_RESPONDING"), "usable": False},
            id="silent",
        ),
    ],
)
def test_field_of_a_node_is_read(old: str, new: str, expected: dict[str, Any]) -> None:
    """What scontrol show node -o -d prints and what it means."""
    read = node(NODE.replace(old, new))
    assert {name: getattr(read, name) for name in expected} == expected


@pytest.mark.parametrize("text", ["Arch=x86_64 State=IDLE", NODE.replace("CPUAlloc=8", "CPUAlloc=x")])
def test_unreadable_node_is_left_out_and_named(text: str) -> None:
    """The other nodes count."""
    reading = parse_nodes(f"{NODE}\n{text}\n{NODE}\n")
    assert (len(reading.items), len(reading.problems)) == (2, 1)


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        (PARTITION, Partition(name="main", default=True, max_time_s=604_800.0, cpus=24)),
        (
            PARTITION.replace("Default=YES", "Default=NO").replace("DefaultTime=NONE", "DefaultTime=2:00:00"),
            Partition(name="main", default_time_s=7200.0, max_time_s=604_800.0, cpus=24),
        ),
        (
            PARTITION.replace("MaxTime=7-00:00:00", "MaxTime=UNLIMITED").replace("State=UP", "State=DOWN"),
            Partition(name="main", default=True, up=False, max_time_s=math.inf, cpus=24),
        ),
    ],
)
def test_partition_is_read(text: str, partition: Partition) -> None:
    """Times in seconds: NONE is not set, UNLIMITED is infinite (cases 17 and 18)."""
    reading = parse_partitions(text + "\n")
    assert (reading.items, reading.problems) == ([partition], [])


def test_unreadable_partition_is_named() -> None:
    """A line without its name is no partition."""
    reading = parse_partitions(f"{PARTITION}\nDefault=YES MaxTime=soon\n")
    assert (len(reading.items), len(reading.problems)) == (1, 1)


def test_values_of_one_line_may_hold_blanks_and_equals_signs() -> None:
    """A key begins with a capital after a blank; the first of two equal keys counts."""
    assert one_line("A=1 Reason=x y z CfgTRES=cpu=8,mem=1 A=2 B_c/D=") == {
        "A": "1",
        "Reason": "x y z",
        "CfgTRES": "cpu=8,mem=1",
        "B_c/D": "",
    }


def test_slices_and_shards_of_a_node_are_read() -> None:
    """Beside its whole GPUs, with what nobody can get of them."""
    had, has = "Gres=gpu:a100:4", "Gres=gpu:a100:2,gpu:1g.10gb:2,shard:a100:8"
    used = "GresUsed=gpu:a100:1(IDX:0),gpu:1g.10gb:1(IDX:2),shard:a100:1(-/4,1/4)"
    read = node(NODE.replace(had, has).replace("GresUsed=gpu:a100:4(IDX:0-3)", used))
    assert (read.gpus.total, read.gpus_used.total) == (2, 2)
    assert (read.mig, read.mig_used) == (GpuCount(2, {"1g.10gb": 2}), GpuCount(1, {"1g.10gb": 1}))
    assert (read.shards, read.shards_used) == (GpuCount(8, {"a100": 8}), GpuCount(5, {"a100": 5}))


@pytest.mark.parametrize(
    ("text", "switches"),
    [
        pytest.param(TOPOLOGY, {"g1": "s1", "g2": "s1", "c1": "s2", "g3": "s2", "g4": "s2"}, id="tree"),
        pytest.param(
            "BlockName=b1 BlockIndex=0 Nodes=g[1-2] BlockSize=2\n"
            "BlockName=b2 BlockIndex=1 Nodes=g[3-4] BlockSize=2\n",
            {"g1": "b1", "g2": "b1", "g3": "b2", "g4": "b2"},
            id="block, from 23.11 on",
        ),
        pytest.param(
            "SwitchName=top Level=1 LinkSpeed=0 Nodes=g[1-4] Switches=s[1-2]\n"
            "SwitchName=s1 Level=0 LinkSpeed=0 Nodes=g[1-2]\n"
            "SwitchName=s2 Level=0 LinkSpeed=0 Nodes=g[3-4]\n",
            {"g1": "s1", "g2": "s1", "g3": "s2", "g4": "s2"},
            id="26.05, the first of topology.yaml",
        ),
        pytest.param(
            "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=g1\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=g[1-2]\n",
            {"g1": "s1", "g2": "s2"},
            id="a node under two switches belongs to the first",
        ),
        pytest.param("", {}, id="topology/flat"),
        pytest.param("Ring=r1 Nodes=g[1-4]\n", {}, id="another kind"),
    ],
)
def test_leaf_switch_of_each_node_is_read(text: str, switches: dict[str, str]) -> None:
    """scontrol show topology, as observed; a block is to topology/block what a leaf switch is to a tree."""
    assert parse_switches(text) == switches


def test_nodes_get_their_switches() -> None:
    """One that Slurm names no switch for keeps none."""
    nodes = with_switches((Node(name="g1"), Node(name="x")), {"g1": "s1", "g2": "s1"})
    assert [(node.name, node.switch) for node in nodes] == [("g1", "s1"), ("x", "")]


def test_reservations_are_read() -> None:
    """Their nodes, and whether they are active now."""
    assert parse_reservations(RESERVATIONS).items == [
        Reservation(name="later", active=False, nodes=("g2",)),
        Reservation(name="course", active=True, nodes=("g3", "g4")),
    ]


def test_no_reservation_is_a_sentence() -> None:
    """Observed on every release; exit code 0."""
    reading = parse_reservations("No reservations in the system\n")
    assert (reading.items, reading.problems) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "nodes"),
    [("Nodes=g2", "Nodes=(null)", ()), ("Nodes=g2", "Nodes=rack[0-1]n1", ("rack0n1", "rack1n1"))],
)
def test_reservation_of_licenses_has_no_nodes(old: str, new: str, nodes: tuple[str, ...]) -> None:
    """Nodes=(null)."""
    assert parse_reservations(RESERVATIONS.replace(old, new)).items[0].nodes == nodes


def test_unreadable_reservation_is_left_out_and_named() -> None:
    """The others are kept."""
    reading = parse_reservations(RESERVATIONS.replace("Nodes=g2", "Nodes=g[2"))
    assert [reservation.name for reservation in reading.items] == ["course"]
    assert "not a host list" in reading.problems[0]
