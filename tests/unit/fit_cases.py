"""A cluster, jobs as sbatch makes them, and what a case of tests/unit/test_fit_cases.py consists of.

Partition gpu: a1 and a2 with four a100 each on switch s1; v1 with four v100 and x1 with two of each on
switch s2; c1 has CPUs only. Partition debug: t1 with two t4. mig: m1 with two h100 and four slices of
another. share: s1 with two a40, cut into eight shards. plain: u1 with four GPUs that have no type.

In gpu that is ten a100 and six v100. A job alone that asks for n of N usable GPUs has P = n / N and
scarcity P / (1 + P) = n / (N + n). Memory by the shipped table: a100 and h100 80 GiB, a40 48, v100 and
t4 16; the slice has 10 in its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slurm_score.gres import GpuCount, gres_request
from slurm_score.hints import parse_hints
from slurm_score.model import Cluster, Job, Node, Partition, Reservation
from slurm_score.nodestate import parse_node_state
from tests.unit.builders import NOW

GIB = 1024
PARTITIONS = ("gpu", "debug", "mig", "share", "plain")
Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request against one inventory: the command, the reason for the numbers, and the numbers.

    `terms` are (scarcity, ready, match, packing, spread); `cluster` changes nodes by name, partitions
    and reservations; `others` wait beside the job.
    """

    sbatch: str
    why: str
    job: Spec
    terms: tuple[float, float, float, float, float] = (0, 0, 0, 0, 0)
    never: str = ""
    cluster: Mapping[str, Spec] = field(default_factory=dict)
    others: tuple[Spec, ...] = ()

    def __str__(self) -> str:
        """Return the command and the reason, the id of its test."""
        return f"{self.sbatch}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two jobs that wait together, the one that stands first under some inner weights first."""

    why: str
    weights: Mapping[str, float]
    first: Spec
    second: Spec
    cluster: Mapping[str, Spec] = field(default_factory=dict)
    others: tuple[Spec, ...] = ()

    def __str__(self) -> str:
        """Return the reason, the id of its test."""
        return self.why


def make_job(job_id: int, spec: Spec) -> Job:
    """Return a pending job in gpu; `per_job`, `per_node`, `per_task`, `per_socket`, `total` are GRES texts.

    Of CPUs it has one for each node or task, unless it says more.
    """
    values = dict(spec)
    texts = {key: values.pop(key) for key in tuple(values) if key.startswith("per_") or key == "total"}
    nodes, tasks = values.get("nodes", 1), values.pop("ntasks", 1)
    asked = gres_request(**texts, nodes=nodes, tasks=tasks)
    values["hints"] = parse_hints(f"score: {values.pop('hint', '')}")
    return Job(
        job_id=job_id,
        **{"partitions": ("gpu",), "eligible_s": NOW, "cpus": max(nodes, tasks)}
        | {"gpus": asked.gpus, "slices": asked.slices, "shards": asked.shards}
        | values,
    )


def _node(name: str, gpus: Mapping[str, int], cpus: int, mem_gib: int, switch: str, *features: str) -> Node:
    return Node(
        name=name,
        cpus=cpus,
        mem_mib=mem_gib * GIB,
        gpus=GpuCount(sum(gpus.values()), gpus),
        features=features,
        switch=switch,
        partitions=("gpu",),
    )


NODES = (
    _node("a1", {"a100": 4}, 32, 256, "s1", "a100", "rack1"),
    _node("a2", {"a100": 4}, 32, 256, "s1", "a100", "rack1"),
    _node("v1", {"v100": 4}, 16, 128, "s2", "v100", "rack2"),
    _node("x1", {"a100": 2, "v100": 2}, 16, 128, "s2", "mixed", "rack2"),
    _node("c1", {}, 128, 512, "s2", "rack2"),
    replace(_node("t1", {"t4": 2}, 8, 64, "s1"), partitions=("debug",)),
    replace(_node("m1", {"h100": 2}, 16, 128, "s1"), partitions=("mig",), mig=GpuCount(4, {"1g.10gb": 4})),
    replace(
        _node("s1", {"a40": 2}, 16, 128, "s1"),
        partitions=("share",),
        shards=GpuCount(8),
        shards_of_gpu=4,
        shards_free_of_gpu=4,
    ),
    replace(_node("u1", {}, 8, 64, "s1"), partitions=("plain",), gpus=GpuCount(4)),
)


def make_cluster(changes: Mapping[str, Spec]) -> Cluster:
    """Return the cluster with changes by name: of nodes, of partitions (`up`), of reservations (`active`)."""
    nodes = {node.name for node in NODES}
    return Cluster(
        time_s=NOW,
        nodes=tuple(_changed(node, changes.get(node.name, {})) for node in NODES),
        partitions={name: Partition(name=name, **changes.get(name, {})) for name in PARTITIONS},
        reservations={
            name: Reservation(name=name, **spec)
            for name, spec in changes.items()
            if name not in nodes and name not in PARTITIONS
        },
    )


def _changed(node: Node, changes: Spec) -> Node:
    """Return a node in a state as scontrol writes it, with so many GPUs of each type in use."""
    values = dict(changes)
    if "state" in values:
        state = parse_node_state(values.pop("state"))
        values |= {"states": (state.base, *state.flags), "usable": state.usable is True}
    for kind in ("gpus_used", "mig_used", "shards", "shards_used"):
        if kind in values:
            used = values[kind]
            values[kind] = GpuCount(used) if isinstance(used, int) else GpuCount(sum(used.values()), used)
    return replace(node, **values)


def busy(*names: str) -> dict[str, Spec]:
    """Return the change that puts all GPUs of some nodes in use, with a CPU each."""
    has = {node.name: node.gpus for node in NODES}
    return {name: {"gpus_used": dict(has[name].types), "cpus_used": has[name].total} for name in names}


def drain(*names: str) -> dict[str, Spec]:
    """Return the change that drains some nodes."""
    return {name: {"state": "IDLE+DRAIN"} for name in names}
