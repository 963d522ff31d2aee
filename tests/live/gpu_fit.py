"""The cluster of the GPU fit tests, and what must be read of it: worked out by hand.

    node  GPUs                   what RUNNING leaves of it
    a1    4 a100                 3 a100, 3 CPUs, 3000 MiB
    m1    2 MIG 3g, 4 MIG 1g     2 3g, 2 1g, 7 CPUs
    s1    2 a100, 8 shards       1 a100, 5 shards, 7 CPUs, 3900 MiB
    v1    4 v100                 2 v100, 2 CPUs, 3400 MiB
    x1    2 h100, 2 v100         1 h100, 2 v100, 7 CPUs, 3900 MiB

A type's contention with WAITING, whose jobs can't start: a100 3 x 4 of 6 = 2, h100 2 of 2 and 4 of 4 = 2,
v100 4 of 4 = 1, 1g 4 of 4 = 1, shards 4 of 8 = 1/2, 3g 0. Scarcity is s / (1 + s).
"""

from __future__ import annotations

from typing import NamedTuple

from .topology import Gres, Node, Partition, Topology, load

MIG_3G, MIG_1G = "nvidia_a100_3g.40gb", "1g.10gb"
SLURM_CONF = {
    "SelectTypeParameters": "CR_Core_Memory",
    "DefMemPerCPU": "100",
    "ReturnToService": "1",  # a node that an admin sets down stays down
}


def shape() -> Topology:
    """Return three GPU types on five nodes: x1 has two of them, m1 MIG slices, s1 shards."""
    size = {"cpus": 8, "memory_mib": 4000}
    nodes = {
        "a1": Node(**size, gpu_type="a100", gpus=4, features=("nvlink",)),
        "m1": Node(**size, gpu_type=MIG_3G, gpus=2, more_gres=(Gres(type=MIG_1G, count="4"),)),
        "s1": Node(**size, gpu_type="a100", gpus=2, more_gres=(Gres(name="shard", count="8"),)),
        "v1": Node(**size, gpu_type="v100", gpus=4),
        "x1": Node(**size, gpu_type="h100", gpus=2, more_gres=(Gres(type="v100", count="2"),)),
    }
    partitions = {
        "main": Partition(nodes=tuple(nodes), default=True, max_time="7-0"),
        "pair": Partition(nodes=("v1", "x1"), max_time="7-0"),
    }
    return load().model_copy(update={"nodes": nodes, "partitions": partitions})


class Supply(NamedTuple):
    """One type in one partition, as `slurm-score gpus` tells it; no contention where nothing is usable."""

    total: int
    used: int
    free: int
    broken: int
    largest: int
    block: tuple[int, int]
    asked: int = 0
    flexible: int = 0
    contention: float | None = 0.0


Supplies = dict[tuple[str, str], Supply]

IDLE: Supplies = {
    ("main", "a100"): Supply(6, 0, 6, 0, 4, (1, 4)),
    ("main", "h100"): Supply(2, 0, 2, 0, 2, (1, 2)),
    ("main", "v100"): Supply(6, 0, 6, 0, 4, (1, 4)),
    ("main", MIG_1G): Supply(4, 0, 4, 0, 4, (1, 4)),
    ("main", MIG_3G): Supply(2, 0, 2, 0, 2, (1, 2)),
    ("main", "shard:a100"): Supply(8, 0, 8, 0, 4, (1, 4)),
    ("pair", "h100"): Supply(2, 0, 2, 0, 2, (1, 2)),
    ("pair", "v100"): Supply(6, 0, 6, 0, 4, (1, 4)),
}

RUNNING = (
    "-w a1 -c5 --mem=1000 --gres=gpu:a100:1",
    "-w m1 --gres=gpu:1g.10gb:2",
    "-w s1 --gres=shard:3",
    "-w v1 -c6 --gpus=v100:2",
    "-w x1 --gres=gpu:h100:1",
)
WAITING = (
    "--array=0-2 --gres=gpu:a100:4",  # a1 has 3 left
    "--gres=gpu:h100:2",
    "-C h100 --gres=gpu:4",
    "--gres=gpu:1g.10gb:4",
    "-c8 --gres=shard:4",  # s1 has 7 CPUs left
)
OCCUPIED: Supplies = {
    ("main", "a100"): Supply(6, 2, 4, 0, 3, (1, 3), asked=12, contention=2.0),  # one is lent by shards
    ("main", "h100"): Supply(2, 1, 1, 0, 1, (1, 1), asked=2, flexible=4, contention=2.0),
    ("main", "v100"): Supply(6, 2, 4, 0, 2, (2, 2), flexible=4, contention=1.0),
    ("main", MIG_1G): Supply(4, 2, 2, 0, 2, (1, 2), asked=4, contention=1.0),
    ("main", MIG_3G): Supply(2, 0, 2, 0, 2, (1, 2)),
    ("main", "shard:a100"): Supply(8, 3, 5, 0, 4, (1, 4), asked=4, contention=0.5),
    ("pair", "h100"): Supply(2, 1, 1, 0, 1, (1, 1), contention=2.0),
    ("pair", "v100"): Supply(6, 2, 4, 0, 2, (2, 2), contention=1.0),
}
OCCUPIED_22_05: Supplies = {
    # It tells on which GPUs shards are in use, not how many: all 4 of that GPU count.
    ("main", "shard:a100"): Supply(8, 4, 4, 0, 4, (1, 4), asked=4, contention=0.5),
}

BROKEN: Supplies = {  # a1 reserved, v1 draining with a job on it, x1 down, one of s1's GPUs in use
    ("main", "a100"): Supply(6, 1, 1, 4, 1, (1, 1)),
    ("main", "h100"): Supply(2, 0, 0, 2, 0, (0, 0), contention=None),
    ("main", "v100"): Supply(6, 0, 0, 6, 0, (0, 0), contention=None),
    ("main", MIG_1G): Supply(4, 0, 4, 0, 4, (1, 4)),
    ("main", MIG_3G): Supply(2, 0, 2, 0, 2, (1, 2)),
    ("main", "shard:a100"): Supply(8, 4, 4, 0, 4, (1, 4)),
    ("pair", "h100"): Supply(2, 0, 0, 2, 0, (0, 0), contention=None),
    ("pair", "v100"): Supply(6, 0, 0, 6, 0, (0, 0), contention=None),
}
PLANNED: Supplies = {  # x1 is empty and planned for a job that waits for v1
    ("pair", "h100"): Supply(2, 0, 2, 0, 2, (1, 2)),
    ("pair", "v100"): Supply(6, 1, 5, 0, 3, (2, 2)),
}


class Fit(NamedTuple):
    """A request as explain shows it: the types that it accepts, how many are usable, its sub-terms."""

    accepts: str
    usable: int
    scarcity: float
    ready: float
    match: float
    packing: float
    spread: float


ANY = "a100|h100|v100"
NO_GPU = Fit("", 0, 0, 0, 0, 0, 0)
V100_IN_A100 = 16 / 80  # memory of the least capable type over that of the type that is free

FORMS: dict[str, Fit] = {
    # -- how many, of what, in what groups
    "--gpus=2": Fit(ANY, 14, 1 / 2, 1, 1, 2 / 2, 1),  # on v1
    "--gpus=a100:2": Fit("a100", 6, 2 / 3, 1, 1, 2 / 3, 1),  # on a1
    "--gpus=v100:5": Fit("v100", 6, 1 / 2, 4 / 5, 0, 0, 0),
    "-N1 --gpus=2": Fit(ANY, 14, 1 / 2, 1, 1, 2 / 2, 1),  # on v1
    "-N1 --gpus=3": Fit(ANY, 14, 1 / 2, 1, V100_IN_A100, 3 / 3, 1),  # on a1: no node has 3 v100
    "-N1 --gpus-per-node=v100:2": Fit("v100", 6, 1 / 2, 1, 1, 2 / 2, 1),
    "--gpus-per-node=a100:4": Fit("a100", 6, 2 / 3, 0, 0, 0, 0),  # a whole group or nothing
    "-n3 --gpus-per-task=v100:1": Fit("v100", 6, 1 / 2, 1, 1, 3 / 4, 1),  # 2 on v1, 1 on x1
    "-n4 --ntasks-per-node=2 --gpus-per-task=v100:1": Fit("v100", 6, 1 / 2, 1, 1, 4 / 4, 1),
    "--sockets-per-node=1 --gpus-per-socket=1": Fit(ANY, 14, 1 / 2, 1, 1, 1, 1),
    "--gres=gpu:2": Fit(ANY, 14, 1 / 2, 1, 1, 2 / 2, 1),
    "-N2 --gres=gpu:a100:2": Fit("a100", 6, 2 / 3, 1 / 2, 0, 0, 0),  # a1 has two, s1 one
    "--gres=gpu:h100:1,gpu:v100:2": Fit("h100|v100", 8, 1 / 2, 1, 1, 3 / 3, 1),
    "--array=0-3 --gres=gpu:1": Fit(ANY, 14, 1 / 2, 1, 1, 1, 1),  # a task, on s1
    "-c2": NO_GPU,
    # -- on which nodes
    "-C a100|v100 --gres=gpu:1": Fit("a100|v100", 10, 1 / 2, 1, 1, 1, 1),
    "-C a100&nvlink --gres=gpu:2": Fit("a100", 4, 2 / 3, 1, 1, 2 / 3, 1),
    "-N2 -C [a100|v100] --gres=gpu:1": Fit("a100|v100", 10, 1 / 2, 1, V100_IN_A100, 2 / 4, 1),  # a1 and s1
    "-N2 -C [a100*1&v100*1] --gres=gpu:2": Fit("a100|v100", 10, 1 / 2, 1, 0, 4 / 5, 1),
    "-w v1 --gpus=2": Fit("v100", 4, 1 / 2, 1, 1, 2 / 2, 1),
    "-w a1,s1 --gres=gpu:1": Fit("a100", 6, 2 / 3, 1, 1, 2 / 4, 1),
    "-x x1 --gpus=v100:3": Fit("v100", 4, 1 / 2, 2 / 3, 0, 0, 0),
    "-x m1 --gpus=11": Fit(ANY, 14, 1 / 2, 9 / 11, 0, 0, 0),
    "-p pair --gpus=1": Fit("h100|v100", 8, 1 / 2, 1, 1, 1 / 2, 1),
    "-p main,pair --gpus=1": Fit(ANY, 14, 1 / 2, 1, 1, 1, 1),
    # -- with what CPUs and memory
    "-c4 --gres=gpu:a100:1": Fit("a100", 6, 2 / 3, 1, 1, 1, 1),  # on s1: a1 has 3 CPUs
    "-n2 --gpus=2 --cpus-per-gpu=2": Fit(ANY, 14, 1 / 2, 1, 1, 2 / 3, 1),  # on x1
    "--gpus=v100:1 --mem=3500": Fit("v100", 6, 1 / 2, 1, 1, 1 / 2, 1),  # on x1
    "--gres=gpu:a100:1 --mem=3500": Fit("a100", 6, 2 / 3, 1, 1, 1, 1),  # on s1
    "--gpus=a100:2 --mem-per-gpu=2000": Fit("a100", 6, 2 / 3, 1, 1, 2 / 4, 1),  # one on a1, one on s1
    # -- MIG slices and shards
    "--gres=gpu:1g.10gb:2": Fit(MIG_1G, 4, 1 / 2, 1, 1, 2 / 2, 1),
    "--gres=gpu:1g.10gb:3": Fit(MIG_1G, 4, 1 / 2, 0, 0, 0, 0),
    "--gpus=1g.10gb:3": Fit(MIG_1G, 4, 1 / 2, 2 / 3, 0, 0, 0),
    "--gpus=nvidia_a100_3g.40gb:1": Fit(MIG_3G, 2, 0, 1, 1, 1 / 2, 1),
    "--gres=shard:2": Fit("shard:a100", 8, 1 / 3, 1, 1, 2 / 4, 1),
    "--gres=shard:a100:4": Fit("shard:a100", 8, 1 / 3, 1, 1, 4 / 4, 1),
    # -- wishes, which move match only
    "--prefer=a100 --gpus=1": Fit(ANY, 14, 1 / 2, 1, V100_IN_A100, 1, 1),
    "--gpus=2 --comment='score: gpu=h100|v100'": Fit(ANY, 14, 1 / 2, 1, 1 / 2, 2 / 2, 1),  # one h100 is free
    "--gpus=1 --comment='score: vram=40'": Fit(ANY, 14, 1 / 2, 1, 40 / 80, 1, 1),
}
FORMS_22_05: dict[str, Fit] = {
    "--gres=shard:2": Fit("shard:a100", 8, 1 / 3, 1, 1, 2 / 4, 1),
    "--gres=shard:a100:4": Fit("shard:a100", 8, 1 / 3, 1, 1, 4 / 4, 1),
}
BROKEN_FORMS: dict[str, Fit] = {  # nobody waits, so that scarcity is 0, unless nothing is usable
    "--reservation=lab --gres=gpu:4": Fit("a100", 4, 0, 1, 1, 4 / 4, 1),
    "--gpus=a100:2": Fit("a100", 2, 0, 1 / 2, 0, 0, 0),
    "--gpus=1": Fit(ANY, 2, 0, 1, V100_IN_A100, 1, 1),
    "--gpus=v100:1": Fit("v100", 0, 1, 0, 0, 0, 0),
}


class Situation(NamedTuple):
    """Two jobs for which one filler gives its GPUs up, the one submitted first and the one to start first.

    `first` and `second` pair their options with gres_fit; without it the one submitted first would start.
    """

    name: str
    frees: str
    first: tuple[str, float]
    second: tuple[str, float]
    sub_term: str = "scarcity"


FILLERS = {  # what is left: 2 v100 on x1, one 1g and both 3g slices on m1
    "a-rest": "-w a1 --gres=gpu:a100:3",
    "a-one": "-w a1 --gres=gpu:a100:1",
    "s-rest": "-w s1 --gres=gpu:a100:1",
    "s-one": "-w s1 --gres=gpu:a100:1",
    "v-all": "-w v1 --gres=gpu:v100:4",
    "x-h100": "-w x1 --gres=gpu:h100:2",
    "m-most": "-w m1 --gres=gpu:1g.10gb:3",
}
SITUATIONS = (
    # a100: 1/6 + 1/10, v100: 1/10. The flexible job can wait for a v100.
    Situation(
        "flexible and typed",
        "a-one",
        ("-C a100|v100 --gres=gpu:1", 1 / 11),
        ("--gres=gpu:a100:1", 4 / 19),
    ),
    # h100: 2/2 + 3/4, v100: 3/4. The flexible job would take one h100 at least.
    Situation(
        "two types in one node",
        "x-h100",
        ("-w x1 --gres=gpu:3", 3 / 7),
        ("--gres=gpu:h100:2", 7 / 11),
    ),
    # a100: 1/6, shards: 4/8. The GPU that is freed is wanted whole or for its shards.
    Situation("a GPU or its shards", "s-one", ("--gres=gpu:a100:1", 1 / 7), ("--gres=shard:4", 1 / 3)),
    # One slice is free.
    Situation("MIG slices", "m-most", ("--gpus=1g.10gb:4", 1 / 4), ("--gpus=1g.10gb:2", 1 / 2), "ready"),
    # x1 has a group of two, nobody one of four.
    Situation(
        "groups on nodes", "v-all", ("--gres=gpu:v100:4", 0), ("-N2 --gres=gpu:v100:2", 1 / 2), "ready"
    ),
)
