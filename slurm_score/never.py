"""Whether a request could ever start, were the whole cluster up and empty, and why not. Pure.

Each limit is looked at by itself: what is called impossible must be impossible, however Slurm lays the
job out.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from slurm_score.inventory import Bools, inventory_of, places_of
from slurm_score.model import Cluster
from slurm_score.placement import Room, Wanted, most_of, rooms_ever, wanted_rows
from slurm_score.request import Ask


class _Fault(NamedTuple):
    """What is asked beyond what a site has: how far the checks got, how much there is, a sentence."""

    step: int
    there: int
    sentence: str


def could_fit(ask: Ask, cluster: Cluster) -> bool:
    """Return whether a request could ever start, were the whole cluster up and empty."""
    key = ("ever", ask)
    found: bool | None = cluster.memo.get(key)
    if found is None:
        wanted = wanted_rows(ask, inventory_of(cluster))
        rooms = rooms_ever(ask, wanted, cluster)
        found = cluster.memo[key] = any(not any(_faults(ask, wanted, room)) for room in rooms)
    return found


def why_never(ask: Ask, cluster: Cluster) -> str:
    """Return why a request can never start, empty where it can.

    Of several partitions and alternatives it speaks of the one that comes nearest.
    """
    if could_fit(ask, cluster):
        return ""
    if not ask.units:
        return "it asks for no GPU"
    if not any(site.nodes.any() for site in places_of(ask, cluster).sites):
        named = ",".join(ask.where.partitions)
        return f"no node of {named} meets its constraint, node list and reservation"
    wanted = wanted_rows(ask, inventory_of(cluster))
    for (rows, count), name in zip(wanted, _names(ask), strict=True):
        if not rows:
            return f"it asks for {count} {name}, there are 0"
    rooms = rooms_ever(ask, wanted, cluster)
    return max(next(_faults(ask, wanted, room)) for room in rooms).sentence


def _faults(ask: Ask, wanted: Wanted, room: Room) -> Iterator[_Fault]:
    for i, (part, (_, count)) in enumerate(zip(room.parts, wanted, strict=True)):
        shared = _names(ask)[i].startswith("shard")  # the parts are what one job can have of them
        if count > (there := int(part.sum())) and not shared:
            yield _Fault(1, there, f"it asks for {count} {_names(ask)[i]}, there are {there}")
    yield from _group_faults(ask, wanted, room) if ask.groups else _loose_faults(ask, wanted, room)
    serving = _holds(ask, wanted, room) if ask.groups else room.units
    for nodes, count in room.some:
        there = min(ask.max_nodes or count, int(np.count_nonzero(serving[nodes])))
        if count > there:
            asked = f"it asks for {count} nodes that its constraint or node list names"
            yield _Fault(5, there, f"{asked}, {there} can serve it")


def _group_faults(ask: Ask, wanted: Wanted, room: Room) -> Iterator[_Fault]:
    """Of CPUs and memory only the sum counts: Slurm may give one node more of the tasks than another."""
    groups, holds = ask.groups, _holds(ask, wanted, room)
    each = [math.ceil(count / groups) for _, count in wanted]
    for part, n, name in zip(room.parts, each, _names(ask), strict=True):
        if n > (most := int(part.max(initial=0))):
            shared = name.startswith("shard")
            limit = "a job gets those of one GPU only, at most" if shared else "the largest has"
            yield _Fault(2, most, f"it asks for {n} {name} on one node, {limit} {most}")
    for asked, has, unit in ((ask.cpus, room.cpus, "CPUs"), (ask.mem_mib, room.mem, "MiB of memory")):
        if holds.any() and asked > (there := most_of(has[holds], groups)):
            one = f"{unit} on one node, the largest with its GPUs has {there}"
            several = f"{unit}, {_largest(groups, int(holds.sum()))} {there}"
            yield _Fault(3, there, f"it asks for {asked} {one if groups == 1 else several}")
    there = int(holds.sum())
    if groups > there or 0 < ask.max_nodes < groups:
        gpus = " and ".join(f"{n} {name}" for n, name in zip(each, _names(ask), strict=True))
        short = f"there are {there}" if groups > there else f"on at most {ask.max_nodes}"
        yield _Fault(4, there, f"it asks for {groups} nodes with {gpus} each, {short}")


def _holds(ask: Ask, wanted: Wanted, room: Room) -> Bools:
    """Which nodes have the GPUs of a whole group."""
    holds = np.ones(room.units.size, np.bool_)
    for part, (_, count) in zip(room.parts, wanted, strict=True):
        holds &= part >= math.ceil(count / ask.groups)
    return holds


def _loose_faults(ask: Ask, wanted: Wanted, room: Room) -> Iterator[_Fault]:
    limit, size = ask.most_nodes, room.units.size
    for i, (part, (_, count)) in enumerate(zip(room.parts, wanted, strict=True)):
        if count > (there := most_of(part, limit)):
            yield _Fault(2, there, f"it asks for {count} {_names(ask)[i]}, {_largest(limit, size)} {there}")
    for asked, has, unit in ((ask.cpus, room.cpus, "CPUs"), (ask.mem_mib, room.mem, "MiB of memory")):
        if asked > (there := most_of(has, limit)):
            yield _Fault(3, there, f"it asks for {asked} {unit}, {_largest(limit, size)} {there}")
    nodes = min(ask.nodes, sum(count for _, count in wanted))
    if nodes > min(size, limit):
        yield _Fault(4, size, f"it asks for {nodes} nodes, {size} have its GPUs")


def _largest(limit: int, size: int) -> str:
    most = min(limit, size)
    return "the largest node with its GPUs has" if most == 1 else f"the {most} largest with its GPUs have"


def _names(ask: Ask) -> list[str]:
    """What each part of a request is called, in the order of `wanted_rows`."""
    found: list[str] = []
    for request, unit in ((ask.gpus, ""), (ask.slices, ""), (ask.shards, "shards of ")):
        found += [f"{unit}{name}" for name, _ in request.types]
        if request.total and not request.types:
            found.append("shards" if unit else "GPUs")
    return found
