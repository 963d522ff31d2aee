"""A cluster's nodes in columns, and on which of them a job could run. Pure.

A *type* here is what a request can name: a type of whole GPUs (`gpu` for those without one), a MIG
profile, or `shard`. Whole GPUs, slices and shards never stand in for each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slurm_score.constraint import ANY_NODE, Alternative, parse_constraint
from slurm_score.errors import ParseError
from slurm_score.gres import GpuCount
from slurm_score.hosts import parse_hosts
from slurm_score.model import Cluster, Node
from slurm_score.nodestate import parse_node_state
from slurm_score.request import Ask, Where

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNTYPED = "gpu"
SHARD = "shard"
NO_CAP = 2**31
_RESERVATION = frozenset({"RESERVED", "MAINTENANCE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The nodes, sorted by name; arrays have one value a node, `total` and `free` one row a type.

    `free` is what a job could take now if it may run there: nothing on a node without a free CPU.
    `types` holds whole GPUs, then MIG profiles, then shards, each kind sorted; `rows` finds the row of a
    type among those of its kind, `kinds` are the rows of the three. `usable` leaves out reserved nodes,
    `inside` counts those for the jobs of their reservation. `shards_cap` and `shards_free_cap` bound what
    one job can have of a node's shards, up and empty and now. `switch` is the code of the leaf switch,
    one for all nodes that Slurm names none for.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[Mapping[str, int], ...]
    kinds: tuple[slice, slice, slice]
    total: Ints
    free: Ints
    cpus: Ints
    cpus_free: Ints
    mem: Ints
    mem_free: Ints
    usable: Bools
    inside: Bools
    shards_cap: Ints
    shards_free_cap: Ints
    switch: Ints
    partitions: Mapping[str, Bools]
    features: tuple[tuple[frozenset[str], Bools], ...]

    def admits(self, way: Alternative) -> Bools:
        """Return which nodes one alternative of a constraint admits, bool[n_nodes]."""
        found = np.zeros(len(self.names), np.bool_)
        for features, nodes in self.features:
            if way.admits(features):
                found |= nodes
        return found


def inventory_of(cluster: Cluster) -> Inventory:
    """Return the cluster's nodes in columns, made once for each cluster."""
    found: Inventory | None = cluster.memo.get("inventory")
    if found is None:
        nodes = sorted(cluster.nodes, key=lambda node: node.name)
        found = _inventory(nodes, one_gpu=cluster.config.shards_of_one_gpu)
        cluster.memo["inventory"] = found
    return found


def _inventory(nodes: Sequence[Node], *, one_gpu: bool) -> Inventory:
    held = [_held(node) for node in nodes]
    kinds = [sorted({name for has in held for name in has[kind]}) for kind in range(3)]
    ends = [0, *np.cumsum([len(kind) for kind in kinds]).tolist()]
    types = tuple(name for kind in kinds for name in kind)
    rows = tuple({name: ends[k] + i for i, name in enumerate(kind)} for k, kind in enumerate(kinds))
    total, free = np.zeros((2, len(types), len(nodes)), np.int64)
    for i, (node, has) in enumerate(zip(nodes, held, strict=True)):
        for row, kind in zip(rows, has, strict=True):
            for name, (there, used) in kind.items():
                total[row[name], i] = there
                free[row[name], i] = max(0, there - used) if node.cpus_used < node.cpus else 0
    cpus, cpus_used = _column(nodes, "cpus"), _column(nodes, "cpus_used")
    mem, mem_used = _column(nodes, "mem_mib"), _column(nodes, "mem_used_mib")
    capped = (_column(nodes, "shards_of_gpu") > 0) & one_gpu
    switches = {name: code for code, name in enumerate(sorted({node.switch for node in nodes}))}
    return Inventory(
        names=tuple(node.name for node in nodes),
        types=types,
        rows=rows,
        kinds=(slice(ends[0], ends[1]), slice(ends[1], ends[2]), slice(ends[2], ends[3])),
        total=total,
        free=free,
        cpus=cpus,
        cpus_free=np.maximum(0, cpus - cpus_used),
        mem=mem,
        mem_free=np.maximum(0, mem - mem_used),
        usable=np.array([node.usable for node in nodes], np.bool_),
        inside=np.array([node.usable or _usable_inside(node) for node in nodes], np.bool_),
        shards_cap=np.where(capped, _column(nodes, "shards_of_gpu"), NO_CAP),
        shards_free_cap=np.where(capped, _column(nodes, "shards_free_of_gpu"), NO_CAP),
        switch=np.array([switches[node.switch] for node in nodes], np.int64),
        partitions=_masks([node.partitions for node in nodes]),
        features=_feature_sets(nodes),
    )


def _column(nodes: Sequence[Node], name: str) -> Ints:
    return np.array([getattr(node, name) for node in nodes], np.int64)


def _usable_inside(node: Node) -> bool:
    """Whether nothing but its reservation keeps jobs from a node."""
    others = "+".join(word for word in node.states if word not in _RESERVATION)
    return others != "+".join(node.states) and bool(others) and parse_node_state(others).usable is True


def _held(node: Node) -> tuple[dict[str, tuple[int, int]], ...]:
    """What a node has of each kind: (there, not to be had) by type."""
    shards = {
        f"{SHARD}:{name}" if name else SHARD: pair for name, pair in _pairs(node.shards, node.shards_used)
    }
    whole = {name or UNTYPED: pair for name, pair in _pairs(node.gpus, node.gpus_used)}
    return whole, dict(_pairs(node.mig, node.mig_used)), shards


def _pairs(has: GpuCount, used: GpuCount) -> Iterable[tuple[str, tuple[int, int]]]:
    """Yield (there, used) by type, the untyped rest under an empty name.

    What is used of a type that the node doesn't name, or of none, may be of any type that it has.
    """
    if not has.total:
        return
    unnamed = max(0, used.total - sum(used.types.get(name, 0) for name in has.types))
    for name, there in has.types.items():
        yield name, (there, used.types.get(name, 0) + unnamed)
    rest = has.total - sum(has.types.values())
    if rest > 0:
        yield "", (rest, unnamed)


def _masks(names: Sequence[tuple[str, ...]]) -> dict[str, Bools]:
    found: dict[str, Bools] = {}
    for i, mine in enumerate(names):
        for name in mine:
            if name not in found:
                found[name] = np.zeros(len(names), np.bool_)
            found[name][i] = True
    return found


def _feature_sets(nodes: Sequence[Node]) -> tuple[tuple[frozenset[str], Bools], ...]:
    found: dict[frozenset[str], Bools] = {}
    for i, node in enumerate(nodes):
        key = frozenset(node.features)
        if key not in found:
            found[key] = np.zeros(len(nodes), np.bool_)
        found[key][i] = True
    return tuple(found.items())


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One partition and one alternative of a constraint: the nodes where a job could run, bool[n_nodes].

    `nodes` counts drained ones too, since they come back; on `open` nodes it could start now. `some`
    pairs nodes with how many of them must be among the job's.
    """

    nodes: Bools
    open: Bools
    some: tuple[tuple[Bools, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The sites where a job could run; `there` and `usable` have one value a type.

    `there` are the types on any of their nodes, `usable` is how many units stand on open ones.
    """

    sites: tuple[Site, ...]
    there: Bools
    usable: Ints


def places_of(ask: Ask, cluster: Cluster) -> Places:
    """Return the places where a job could run, worked out once for each cluster.

    A constraint or a node list that can't be read is taken as none: Slurm, which can, decides.
    """
    nodes = inventory_of(cluster)
    required = hosts_named(ask.where.req_nodes)
    key = ("places", ask.where, bool(required) and _enough(ask, required, nodes))
    found: Places | None = cluster.memo.get(key)
    if found is None:
        found = cluster.memo[key] = _places(ask.where, required, cluster, only_required=key[2])
    return found


def _enough(ask: Ask, required: frozenset[str], nodes: Inventory) -> bool:
    """Whether the nodes that -w names are all that a job takes: Slurm adds others only as needed."""
    if len(required) < ask.nodes:
        return False
    if ask.groups or 0 < ask.max_nodes <= len(required):
        return True
    mine = _among(required, nodes)
    parts = zip((ask.gpus, ask.slices, ask.shards), nodes.kinds, strict=True)
    has = [(int(nodes.total[kind, mine].sum()), request.total) for request, kind in parts]
    has += [(int(nodes.cpus[mine].sum()), ask.cpus), (int(nodes.mem[mine].sum()), ask.mem_mib)]
    return all(there >= asked for there, asked in has)


def _among(names: frozenset[str], nodes: Inventory) -> Bools:
    found = np.zeros(len(nodes.names), np.bool_)
    found[[i for i, name in enumerate(nodes.names) if name in names] if names else []] = True
    return found


def _places(where: Where, required: frozenset[str], cluster: Cluster, *, only_required: bool) -> Places:
    nodes = inventory_of(cluster)
    found = _sites(where, required, cluster, only_required=only_required)
    sites = tuple(dict.fromkeys(_shared(site, cluster) for site in found))
    there, startable = np.zeros((2, len(nodes.names)), np.bool_)
    for site in sites:
        there |= site.nodes
        startable |= site.open
    types = np.array(nodes.total[:, there].any(axis=1), np.bool_)
    return Places(sites, types, np.array(nodes.total[:, startable].sum(axis=1), np.int64))


def _shared(site: Site, cluster: Cluster) -> Site:
    """Return the one site with these nodes: users may write a constraint in a thousand ways."""
    some = tuple((nodes.tobytes(), count) for nodes, count in site.some)
    shared: Site = cluster.memo.setdefault(("site", site.nodes.tobytes(), site.open.tobytes(), some), site)
    return shared


def _sites(
    where: Where, required: frozenset[str], cluster: Cluster, *, only_required: bool
) -> Iterable[Site]:
    nodes = inventory_of(cluster)
    allowed, startable = _allowed(where, cluster, nodes), _startable(where, cluster, nodes)
    must = _among(required, nodes)
    if only_required:
        allowed &= must
    for name in where.partitions:
        mine, partition = nodes.partitions.get(name), cluster.partitions.get(name)
        if mine is None:
            continue
        for way in _ways(where.features):
            there = mine & allowed & nodes.admits(way)
            some = [(nodes.admits(Alternative(part.part)), part.count) for part in way.some]
            some += [(must, len(required))] if required else []
            up = partition is None or partition.up
            yield Site(there, there & startable & up, tuple(some))


def _ways(features: str) -> tuple[Alternative, ...]:
    try:
        return parse_constraint(features)
    except ParseError:
        return ANY_NODE


@lru_cache(maxsize=1024)
def hosts_named(text: str) -> frozenset[str]:
    """Return the hosts of a list that Slurm printed, none where it can't be read."""
    try:
        return frozenset(parse_hosts(text))
    except ParseError:
        return frozenset()


def _allowed(where: Where, cluster: Cluster, nodes: Inventory) -> Bools:
    """The nodes that -x doesn't exclude and that are in the job's reservation, if it has one."""
    allowed = ~_among(hosts_named(where.exc_nodes), nodes)
    reservation = cluster.reservations.get(where.reservation)
    if reservation is not None and reservation.nodes:
        allowed &= _among(frozenset(reservation.nodes), nodes)
    return allowed


def _startable(where: Where, cluster: Cluster, nodes: Inventory) -> Bools:
    if not where.reservation:
        return nodes.usable
    reservation = cluster.reservations.get(where.reservation)
    active = reservation is not None and reservation.active
    return nodes.inside & active
