"""What scontrol prints of nodes, partitions, switches and reservations, read. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_score.hosts import parse_hosts
from slurm_score.model import Node, Partition, Reservation
from slurm_score.node_gres import node_gres
from slurm_score.nodestate import parse_node_state
from slurm_score.slurm.reading import NOT_SET, Reading, lines, names, one_line, whole
from slurm_score.units import parse_time_limit

_NONE = "No reservations in the system"
_ACCESS = {"AllowGroups": "ALL", "DenyAccounts": "", "DenyQos": "", "RootOnly": "NO", "ReqResv": "NO"}
"""What limits who may use a partition, beside accounts and QOS, each with what limits nobody."""
_LEAF = re.compile(
    r"^(?:SwitchName=(?P<switch>\S+) Level=0 |BlockName=(?P<block>\S+) )(?:.* )?Nodes=(?P<nodes>\S+)",
    re.MULTILINE,
)


def parse_nodes(text: str) -> Reading[Node]:
    """Return the nodes that `scontrol show node -o -d` printed."""
    return Reading[Node]().read_each(lines(text), _node)


def _node(line: str) -> Node:
    values = one_line(line)
    get, state = values.get, parse_node_state(values.get("State", "UNKNOWN"))
    return Node(
        name=values["NodeName"],
        states=(state.base, *state.flags),
        usable=state.usable is True,
        cpus=whole(get("CPUEfctv") or get("CPUTot", ""), 0),
        cpus_used=whole(get("CPUAlloc", ""), 0),
        mem_mib=whole(get("RealMemory", ""), 0),
        mem_used_mib=whole(get("AllocMem", ""), 0),
        **node_gres(get("Gres", ""), get("GresUsed", ""))._asdict(),
        partitions=names(get("Partitions", "")),
        features=names(get("ActiveFeatures", "")),
        weight=whole(get("Weight", ""), 1),
    )


def parse_partitions(text: str) -> Reading[Partition]:
    """Return the partitions that `scontrol show partition -o` printed."""
    return Reading[Partition]().read_each(lines(text), _partition)


def _partition(line: str) -> Partition:
    values = one_line(line)
    return Partition(
        name=values["PartitionName"],
        default=values.get("Default") == "YES",
        up=values.get("State") == "UP",
        default_time_s=parse_time_limit(values.get("DefaultTime", "")),
        max_time_s=parse_time_limit(values.get("MaxTime", "")),
        cpus=whole(values.get("TotalCPUs", ""), 0),
        priority_tier=whole(values.get("PriorityTier", ""), 1),
        accounts=_allowed(values.get("AllowAccounts", "")),
        qos=_allowed(values.get("AllowQos", "")),
        access=" ".join(f"{k}={values[k]}" for k, usual in _ACCESS.items() if _limits(values, k, usual)),
    )


def _allowed(text: str) -> tuple[str, ...]:
    return () if text == "ALL" else names(text)


def _limits(values: Mapping[str, str], key: str, usual: str) -> bool:
    return values.get(key, usual) not in NOT_SET | {usual}


def parse_switches(text: str) -> dict[str, str]:
    """Return the leaf switch, or the block, of each node that `scontrol show topology` names one for.

    Without a topology it prints nothing; with several (25.05 and later) the default one.

    Raises:
        ParseError: a list of nodes can't be read.
    """
    leaves = ((m["switch"] or m["block"], m["nodes"]) for m in _LEAF.finditer(text))
    return {node: leaf for leaf, nodes in reversed(list(leaves)) for node in parse_hosts(nodes)}


def with_switches(nodes: Iterable[Node], switches: Mapping[str, str]) -> tuple[Node, ...]:
    """Return the nodes with their switches."""
    return tuple(
        replace(node, switch=switches[node.name]) if node.name in switches else node for node in nodes
    )


def parse_reservations(text: str) -> Reading[Reservation]:
    """Return the reservations that `scontrol show reservation -o` printed."""
    return Reading[Reservation]().read_each((s for s in lines(text) if s != _NONE), _reservation)


def _reservation(line: str) -> Reservation:
    values = one_line(line)
    return Reservation(
        name=values["ReservationName"],
        active=values.get("State") == "ACTIVE",
        nodes=parse_hosts(values.get("Nodes", "")),
    )
