"""Node weights for Slurm: the least contended nodes first. Pure.

Slurm fills nodes of the lowest Weight first, so a job that accepts several types leaves alone the type
that others wait for. Source: slurm.conf(5), Weight; simulations of GPU placement (see README.md).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_score.gres import is_mig_type
from slurm_score.hosts import fold_hosts
from slurm_score.inventory import SHARD, inventory_of
from slurm_score.model import Cluster, Node
from slurm_score.tuning import Contention

STEP = 10
CLOSE = 0.2
LEAST = 0.05
"""Levels closer than a fifth of the greater one, or than 0.05, don't change today's order."""

GAIN = (
    "expected: in simulations the least contended type first took 39, 24 and 7 % off the mean wait at loads "
    "0.9, 1.0 and 1.1 on one GPU trace and nothing on another; the most capable first cost 15 to 41 %. "
    "Only jobs that accept several types can gain. Part of the traces' labels and limits was synthetic."
)
KEPT = (
    "scontrol's weights are lost when slurmctld restarts or is reconfigured: "
    "write the same Weight= into the NodeName lines of slurm.conf"
)


@dataclass(frozen=True, slots=True)
class WeightChange:
    """One line for scontrol: these hosts, with the weights that they have now, get a weight, and why."""

    hosts: str
    now: tuple[int, ...]
    weight: int
    why: str

    @property
    def command(self) -> str:
        """The line, ready to paste."""
        return f"scontrol update NodeName={self.hosts} Weight={self.weight}"


@dataclass(frozen=True, slots=True)
class _Class:
    """Nodes that weigh alike: those whose most contended type is the same, or that have no GPUs."""

    gpu_type: str
    mixed: bool
    nodes: tuple[Node, ...]
    contention: Contention

    @property
    def level(self) -> float:
        """How contended they are; nodes without GPUs come before everything."""
        return self.contention.level if self.gpu_type else -math.inf

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights that the nodes have now, each once."""
        return tuple(sorted({node.weight for node in self.nodes}))

    @property
    def today(self) -> tuple[float, str]:
        """Where they stand in today's order."""
        return sum(node.weight for node in self.nodes) / len(self.nodes), self.gpu_type


def advise_weights(cluster: Cluster, contention: Mapping[str, Contention]) -> tuple[WeightChange, ...]:
    """Return the weights to change, in the order in which Slurm would use the nodes; none if all is well.

    All is well where every class of nodes that is clearly less contended than another has lower
    weights than that. Otherwise each class gets a weight of its own, except that classes which are
    close and weigh the same today go on doing so.
    """
    classes = _classes(cluster, contention)
    if all(a.weights[-1] < b.weights[0] for a in classes for b in classes if clearly_less(a.level, b.level)):
        return ()
    return tuple(
        WeightChange(fold_hosts(n.name for n in wrong), _weights(wrong), rank * STEP, _why(nodes))
        for rank, together in enumerate(_ranks(_ordered(classes)), 1)
        for nodes in together
        if (wrong := [node for node in nodes.nodes if node.weight != rank * STEP])
    )


def clearly_less(a: float, b: float) -> bool:
    """Return whether one level is below another by more than chance; it is a strict partial order."""
    return a < (1 - CLOSE) * b and a < b - LEAST


def _classes(cluster: Cluster, contention: Mapping[str, Contention]) -> list[_Class]:
    inventory, found = inventory_of(cluster), dict[str, list[Node]]()
    held = {
        name: [t for t, count in zip(inventory.types, column, strict=True) if count]
        for name, column in zip(inventory.names, inventory.total.T.tolist(), strict=True)
    }
    none = Contention()
    for node in sorted(cluster.nodes, key=lambda node: node.name):
        types = sorted(held[node.name], key=lambda t: (contention.get(t, none).level, t))
        found.setdefault(types[-1] if types else "", []).append(node)
    return [
        _Class(t, any(len(held[n.name]) > 1 for n in nodes), tuple(nodes), contention.get(t, none))
        for t, nodes in sorted(found.items())
    ]


def _ordered(classes: Iterable[_Class]) -> list[_Class]:
    """Return the classes so that whoever is clearly less contended is first, else as they stand today."""
    left, placed = sorted(classes, key=lambda c: c.today), list[_Class]()
    while left:
        first = next(c for c in left if not any(clearly_less(other.level, c.level) for other in left))
        left.remove(first)
        placed.append(first)
    return placed


def _ranks(ordered: Sequence[_Class]) -> list[list[_Class]]:
    """Return classes that are to weigh the same together: close ones that do so today."""
    ranks: list[list[_Class]] = []
    for c in ordered:
        same = ranks and all(o.weights == c.weights and _close(o, c) for o in ranks[-1])
        if same:
            ranks[-1].append(c)
        else:
            ranks.append([c])
    return ranks


def _close(a: _Class, b: _Class) -> bool:
    return not (clearly_less(a.level, b.level) or clearly_less(b.level, a.level))


def _weights(nodes: Iterable[Node]) -> tuple[int, ...]:
    return tuple(sorted({node.weight for node in nodes}))


def _why(nodes: _Class) -> str:
    name, level = nodes.gpu_type, nodes.contention
    if not name:
        return "no GPUs: jobs that need none fill these first"
    many = "; nodes of several types count by their most contended one" if nodes.mixed else ""
    if math.isinf(level.level):
        return f"{name}: asked for while none was usable{many}"
    if not level.level:
        return f"{name}: nobody waited for it in the last week{many}"
    unit = "slices" if is_mig_type(name) else "shards" if name.startswith(SHARD) else "GPUs"
    return (
        f"{name}: {_shown(level.week)} {unit} asked for per usable one over the last week, "
        f"{_shown(level.day)} over the last 24 hours{many}"
    )


def _shown(level: float) -> str:
    return f"{level:.1f}" if level >= 0.1 or not level else "less than 0.1"
