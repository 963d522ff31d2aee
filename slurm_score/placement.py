"""How a request fits what is free now: what explain and advice speak of. Pure.

Slurm places jobs, not we: this is a best fit over the nodes, by their free GPUs, CPUs and memory. A
request for so many GPUs on each node takes nodes whole-handed, one group each; one that leaves the
grouping to Slurm takes GPUs wherever they are, with their share of the job's CPUs and memory.
"""

import math
from dataclasses import dataclass

import numpy as np

from slurm_score.inventory import SHARD, Bools, Ints, Inventory, Site, inventory_of, places_of
from slurm_score.model import Cluster
from slurm_score.request import Ask

Wanted = tuple[tuple[tuple[int, ...], int], ...]
"""The rows of types that can serve each part of a request, and how many it asks of them."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How a request fits what is there, each in [0, 1].

    `ready` is the share that could start now. The others are 0 unless it is 1: `packing` is asked over
    free on the nodes that a best fit takes, `spread` is 1 where one leaf switch serves it all.
    """

    ready: float = 0.0
    packing: float = 0.0
    spread: float = 0.0


NO_FIT = Fit()
SHARDS = 2
"""The place of shards among a request's three parts: GPUs, slices, shards."""


@dataclass(frozen=True, slots=True)
class Room:
    """The nodes of a site that have anything of what is asked, one value a node, CPUs included.

    `parts` has a row for each part of the request, `units` is their sum. `some` are the site's.
    """

    parts: Ints
    units: Ints
    cpus: Ints
    mem: Ints
    switch: Ints
    some: tuple[tuple[Bools, int], ...]


def fit_now(ask: Ask, cluster: Cluster) -> Fit:
    """Return how a request fits what is free, in the best of its partitions and alternatives."""
    key = ("fit", ask)
    found: Fit | None = cluster.memo.get(key)
    if found is None:
        wanted = wanted_rows(ask, inventory_of(cluster))
        fits = (_fit(ask, wanted, room) for room in rooms_now(ask, wanted, cluster))
        best = max(fits, key=lambda fit: (fit.ready, fit.packing, fit.spread), default=NO_FIT)
        found = cluster.memo[key] = best
    return found


def ready_now(ask: Ask, cluster: Cluster) -> bool:
    """Return whether all of a request could start now."""
    wanted = wanted_rows(ask, inventory_of(cluster))
    rooms = rooms_now(ask, wanted, cluster)
    return any(_ready(ask, wanted, room, capacity_of(ask, wanted, room)) >= 1.0 for room in rooms)


def wanted_rows(ask: Ask, nodes: Inventory) -> Wanted:
    """Return the rows that can serve each part of a request; none for a type that no node has.

    Where Slurm adds up more than the types that it names, each of them is asked for so much more often.
    """
    found: list[tuple[tuple[int, ...], int]] = []
    requests = (ask.gpus, ask.slices, ask.shards)
    for i, (request, rows, kind) in enumerate(zip(requests, nodes.rows, nodes.kinds, strict=True)):
        if not request.total:
            continue
        named = sum(count for _, count in request.types)
        for name, count in request.types:
            row = rows.get(name if i != SHARDS else f"{SHARD}:{name}" if name else SHARD)
            found.append((() if row is None else (row,), math.ceil(count * request.total / named)))
        if not request.types:
            found.append((tuple(range(kind.start, kind.stop)), request.total))
    return tuple(found)


def rooms_now(ask: Ask, wanted: Wanted, cluster: Cluster) -> tuple[Room, ...]:
    """Return what is free at each site."""
    return _rooms("free", ask, wanted, cluster)


def rooms_ever(ask: Ask, wanted: Wanted, cluster: Cluster) -> tuple[Room, ...]:
    """Return what each site would offer, were the whole cluster up and empty."""
    return _rooms("total", ask, wanted, cluster)


def _rooms(what: str, ask: Ask, wanted: Wanted, cluster: Cluster) -> tuple[Room, ...]:
    rows = tuple(rows for rows, _ in wanted)
    if not rows or not all(rows):
        return ()
    return tuple(_room(what, site, rows, cluster) for site in places_of(ask, cluster).sites)


def _room(what: str, site: Site, rows: tuple[tuple[int, ...], ...], cluster: Cluster) -> Room:
    key = (what, site, rows)
    found: Room | None = cluster.memo.get(key)
    if found is None:
        found = cluster.memo[key] = _offered(site, rows, inventory_of(cluster), now=what == "free")
    return found


def _offered(site: Site, rows: tuple[tuple[int, ...], ...], nodes: Inventory, *, now: bool) -> Room:
    gpus, cpus, mem = (
        (nodes.free, nodes.cpus_free, nodes.mem_free) if now else (nodes.total, nodes.cpus, nodes.mem)
    )
    cap = nodes.shards_free_cap if now else nodes.shards_cap
    parts = np.stack([_offer(gpus, part, cap, nodes.kinds[SHARDS].start) for part in rows])
    units = parts.sum(axis=0)
    mine = np.flatnonzero((site.open if now else site.nodes) & (units > 0) & (cpus > 0))
    some = tuple((nodes[mine], count) for nodes, count in site.some)
    return Room(parts[:, mine], units[mine], cpus[mine], mem[mine], nodes.switch[mine], some)


def _offer(gpus: Ints, rows: tuple[int, ...], cap: Ints, first_shard: int) -> Ints:
    """What each node has of some types for one job: of shards no more than a single GPU has."""
    units: Ints = gpus[list(rows)].sum(axis=0)
    return np.minimum(units, cap) if rows[0] >= first_shard else units


def capacity_of(ask: Ask, wanted: Wanted, room: Room) -> Ints:
    """Return what each node could give: 1 for a whole group, else GPUs (slices, shards), int64[n_nodes]."""
    return _groups_at(ask, wanted, room) if ask.groups else _units_at(ask, wanted, room)


def _groups_at(ask: Ask, wanted: Wanted, room: Room) -> Ints:
    groups = ask.groups
    holds = (room.cpus >= math.ceil(ask.cpus / groups)) & (room.mem >= math.ceil(ask.mem_mib / groups))
    for part, (_, count) in zip(room.parts, wanted, strict=True):
        holds &= part >= math.ceil(count / groups)
    return holds.astype(np.int64)


def _units_at(ask: Ask, wanted: Wanted, room: Room) -> Ints:
    asked = sum(count for _, count in wanted)
    counts = np.array([[count] for _, count in wanted], np.int64)
    capacity: Ints = np.minimum(room.parts, counts).sum(axis=0)
    if ask.cpus:
        capacity = np.minimum(capacity, room.cpus * asked // ask.cpus)
    if ask.mem_mib:
        capacity = np.minimum(capacity, room.mem * asked // ask.mem_mib)
    return capacity


def most_of(values: Ints, limit: int, some: tuple[tuple[Bools, int], ...] = ()) -> int:
    """Return the largest sum over `limit` nodes, so many of some nodes among them; each rule by itself."""
    if limit >= values.size:
        return int(values.sum())
    order = np.argsort(-values, kind="stable")
    sums = [int(values[order[:limit]].sum())]
    for nodes, count in some:
        first = order[nodes[order]][: min(count, limit)]
        others = order[~np.isin(order, first)][: limit - first.size]
        sums.append(int(values[first].sum() + values[others].sum()))
    return min(sums)


def _ready(ask: Ask, wanted: Wanted, room: Room, capacity: Ints) -> float:
    """The share of what is asked that the nodes can give, with so many nodes and such nodes among them."""
    asked = ask.groups or sum(count for _, count in wanted)
    limit = ask.max_nodes or capacity.size
    shares: list[float] = [most_of(capacity, limit, room.some) / asked]
    if ask.nodes > 1:
        shares.append(min(limit, int(np.count_nonzero(capacity))) / min(ask.nodes, asked))
    shares += [min(limit, int(np.count_nonzero(capacity[nodes]))) / count for nodes, count in room.some]
    if len(wanted) > 1 and not ask.groups:
        parts = zip(room.parts.sum(axis=1).tolist(), wanted, strict=True)
        shares.append(sum(min(there, count) for there, (_, count) in parts) / asked)
    return min(1.0, *shares)


def _fit(ask: Ask, wanted: Wanted, room: Room) -> Fit:
    capacity = capacity_of(ask, wanted, room)
    ready = _ready(ask, wanted, room, capacity)
    if ready < 1.0:
        return Fit(ready)
    asked = sum(count for _, count in wanted)
    taken = int(room.units[_best_nodes(ask, ask.groups or asked, room, capacity)].sum())
    return Fit(1.0, asked / max(asked, taken), float(_under_one_switch(ask, wanted, room, capacity)))


def _best_nodes(ask: Ask, asked: int, room: Room, capacity: Ints) -> list[int]:
    """The nodes that a best fit takes: those that must be among them, then the smallest that suffice.

    As long as one node can't hold the rest it takes the largest; where there must be several nodes, the
    smallest that holds an equal share. Of equal nodes that with the least free.
    """
    size = capacity * (int(room.units.max()) + 1) + room.units
    left, taken = capacity.copy(), list[int]()

    def take(node: int) -> int:
        given = int(left[node])
        left[node] = 0
        taken.append(node)
        return given

    for nodes, count in room.some:
        missing = count - int(np.count_nonzero(nodes[taken]))
        for node in np.argsort(np.where(nodes & (left > 0), -size, 0))[: max(0, missing)].tolist():
            asked -= take(node)
    while left.any() and (asked > 0 or len(taken) < ask.nodes):
        share = math.ceil(asked / max(1, ask.nodes - len(taken)))
        enough = np.flatnonzero(left >= max(1, min(share, int(left.max()))))
        asked -= take(int(enough[size[enough].argmin()]))
    return taken


def _under_one_switch(ask: Ask, wanted: Wanted, room: Room, capacity: Ints) -> bool:
    if room.switch.min() == room.switch.max():
        return True
    asked = ask.groups or sum(count for _, count in wanted)
    candidates = np.flatnonzero(np.bincount(room.switch, weights=capacity) >= asked)
    return any(_ready_under(int(switch), ask, wanted, room) for switch in candidates)


def _ready_under(switch: int, ask: Ask, wanted: Wanted, room: Room) -> bool:
    mine = np.flatnonzero(room.switch == switch)
    some = tuple((nodes[mine], count) for nodes, count in room.some)
    under = Room(
        room.parts[:, mine], room.units[mine], room.cpus[mine], room.mem[mine], room.switch[mine], some
    )
    return _ready(ask, wanted, under, capacity_of(ask, wanted, under)) >= 1.0
