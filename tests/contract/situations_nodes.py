"""Nodes with all kinds of GRES and in all kinds of state, the jobs on them, and what must be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.contract.situations_documented import DOCUMENTED_NODES
from tests.contract.situations_gpus import taken
from tests.contract.table import NodeReading, Reading, Situation


def on(node: str, name: str, reading: Reading | None, *options: str) -> Situation:
    """Return a situation of a job that runs on a node."""
    reads = None if reading is None else {"": reading}
    return Situation(name=name, options=(f"--nodelist={node}", *options), starts=True, reads=reads)


RUNS = taken(0, {})


def later(name: str, reading: Reading, *options: str, refused: Mapping[str, str] | None = None) -> Situation:
    """Return a situation of a job that waits for its time to come."""
    return Situation(
        name=name,
        options=("--begin=now+1hour", *options),
        reads={"": replace(reading, eligible=False, site=None)},
        refused=refused or {},
    )


SLICE = "1g.10gb"
MIXED_SLICES = "--gres=gpu:1g.10gb:1,gpu:nvidia_h200_nvl_4g.71gb:2"
INVENTORY_JOBS = (
    on("m1", "two-types", taken(3, {"a100": 1, "v100": 2}, per_node=3), "--gres=gpu:a100:1,gpu:v100:2"),
    on(
        "m2",
        "slice",
        replace(RUNS, slices={"nvidia_h200_nvl_4g.71gb": 1}),
        "--gres=gpu:nvidia_h200_nvl_4g.71gb:1",
    ),
    on("m2", "small-slices", replace(RUNS, slices={SLICE: 2}), "--gres=gpu:1g.10gb:2"),
    on("m3", "shards", replace(RUNS, shards=3), "--gres=shard:3"),
    on("m3", "capitals", taken(1, {"a100-sxm4-40gb": 1}, per_node=1), "--gres=gpu:A100-SXM4-40GB:1"),
    on("m4", "bandwidth", taken(1, {"kepler": 1}, per_node=1), "--gres=bandwidth:lustre:1G,gpu:kepler:1"),
    on("m5", "untyped", taken(1, {}, per_node=1), "--gres=gpu:1"),
    on("m6", "untyped-shards", replace(RUNS, shards=1), "--gres=shard:1"),
    Situation(
        name="waits-for-shards",
        options=("--nodelist=m3", "--gres=gpu:1"),
        reads={"": Reading(gpus=1, per_node=1)},
    ),
    later("slices-of-the-job", Reading(slices={SLICE: 2}), "--gpus=1g.10gb:2"),
    later("slices-of-two-profiles", Reading(slices={SLICE: 1, "nvidia_h200_nvl_4g.71gb": 2}), MIXED_SLICES),
    later("slice-of-each-task", Reading(cpus=2, slices={SLICE: 2}), "-n2", "--gpus-per-task=1g.10gb:1"),
    later("slices-of-each-node", Reading(slices={SLICE: 2}), "--gpus-per-node=1g.10gb:2"),
    later("shards-of-a-node", Reading(shards=4), "--gres=shard:4"),
    later(
        "shards-of-a-type",
        Reading(shards=2, shard_types={"a100-sxm4-40gb": 2}),
        "--gres=shard:A100-SXM4-40GB:2",
    ),
    later("shards-of-two-nodes", Reading(nodes=2, cpus=2, shards=4), "--nodes=2", "--gres=shard:2"),
    later(
        "shard-of-each-task",
        Reading(cpus=3, shards=3),
        "--ntasks=3",
        "--tres-per-task=gres/shard:1",
        refused={"22.05": "sbatch has no --tres-per-task"},
    ),
)
"""m3 has a GPU that is neither asked for as a whole nor free: its shards are in use."""
STATE_JOBS = (
    on("n1", "mixed", taken(1, {"a100": 1}, per_node=1), "--gres=gpu:1"),
    on("n2", "allocated", taken(0, {}, cpus=2), "--ntasks=2"),
    on("n4", "draining", taken(1, {"a100": 1}, per_node=1), "--gres=gpu:1"),
    on("n9", "reboot-requested", RUNS),
    Situation(name="completing", options=("--nodelist=n13",), starts=True, reads={}),
    on("n15", "failing", RUNS),
    Situation(
        name="powering-up",
        options=("--nodelist=cl1",),
        reads={"": replace(RUNS, state="CONFIGURING")},
    ),
    Situation(
        name="planned", options=("--nodelist=n2,n12", "--nodes=2"), reads={"": Reading(nodes=2, cpus=2)}
    ),
)

A100 = {"a100": 1}
IDLE = NodeReading(has=1, types=A100)
UNUSABLE = NodeReading(has=1, types=A100, usable=False)

MIG = {"nvidia_h200_nvl_4g.71gb": 2, SLICE: 2}
SHARED = NodeReading(has=2, types={"a100-sxm4-40gb": 2}, shards=8)

INVENTORY: Mapping[str, NodeReading] = {
    "m1": NodeReading(has=4, types={"a100": 2, "v100": 2}, used=3, used_types={"a100": 1, "v100": 2}),
    # slices are not GPUs: case 4
    "m2": NodeReading(mig=MIG, mig_used={"nvidia_h200_nvl_4g.71gb": 1, SLICE: 2}),
    # one GPU is a job's, and with it four shards; of the other one three of four shards are in use
    "m3": replace(SHARED, used=2, used_types=SHARED.types, shards_used=7),
    "m4": NodeReading(has=2, types={"kepler": 2}, used=1, used_types={"kepler": 1}),
    "m5": NodeReading(has=2, used=1),
    "m6": NodeReading(has=2, used=1, shards=4, shards_used=1),  # a shard of one of them
    "c1": NodeReading(),
    **{f"n{number}": IDLE for number in range(1, 16)},
    "cl1": IDLE,
    "cl2": IDLE,
}
NODE_STATES: Mapping[str, NodeReading] = {
    "m1": NodeReading(has=4, types={"a100": 2, "v100": 2}),
    "m2": NodeReading(mig=MIG),
    "m3": SHARED,
    "m4": NodeReading(has=2, types={"kepler": 2}),
    "m5": NodeReading(has=2),
    "m6": NodeReading(has=2, shards=4),
    "c1": NodeReading(),
    "n1": NodeReading(has=1, types=A100, used=1, used_types=A100),  # MIXED
    "n2": IDLE,  # ALLOCATED, but not its GPU
    "n3": UNUSABLE,  # IDLE+DRAIN
    "n4": NodeReading(has=1, types=A100, used=1, used_types=A100, usable=False),  # MIXED+DRAIN
    "n5": UNUSABLE,  # DOWN, with the reason State=IDLE
    "n6": UNUSABLE,  # IDLE+MAINTENANCE+RESERVED
    "n7": UNUSABLE,  # IDLE+RESERVED
    "n8": UNUSABLE,  # DOWN+DRAIN+REBOOT_ISSUED
    "n9": IDLE,  # MIXED+REBOOT_REQUESTED: jobs still start there
    "n10": UNUSABLE,  # DOWN+NOT_RESPONDING
    "n11": UNUSABLE,  # IDLE+NOT_RESPONDING
    "n12": IDLE,  # IDLE+PLANNED
    "n13": IDLE,  # IDLE+COMPLETING
    "n14": UNUSABLE,  # IDLE+DRAIN+INVALID_REG
    "n15": UNUSABLE,  # MIXED+FAIL
    "cl1": IDLE,  # MIXED+CLOUD+NOT_RESPONDING+POWERING_UP: Slurm places jobs there
    "cl2": IDLE,  # IDLE+CLOUD+POWERED_DOWN: Slurm wakes it up
}
GPUS_RUNNING: Mapping[str, NodeReading] = {
    "g1": NodeReading(has=4, types={"a100": 4}, used=3, used_types={"a100": 3}),
    "g2": NodeReading(has=4, types={"a100": 4}, used=3, used_types={"a100": 3}),
    "g3": NodeReading(has=4, types={"v100": 4}, used=4, used_types={"v100": 4}),
    "g4": NodeReading(has=4, types={"a100": 2, "v100": 2}, used=3, used_types={"a100": 1, "v100": 2}),
    "c1": NodeReading(),
}
GPUS: Mapping[str, NodeReading] = {
    "g1": NodeReading(has=4, types={"a100": 4}, used=4, used_types={"a100": 4}),
    "g2": NodeReading(has=4, types={"a100": 4}, used=4, used_types={"a100": 4}),
    "g3": NodeReading(has=4, types={"v100": 4}, used=4, used_types={"v100": 4}),
    "g4": NodeReading(has=4, types={"a100": 2, "v100": 2}, used=4, used_types={"a100": 2, "v100": 2}),
    "c1": NodeReading(),
}
CLUSTER: Mapping[str, NodeReading] = {
    "g1": NodeReading(has=4, types={"a100": 4}),
    "g2": NodeReading(has=4, types={"a100": 4}),
    "g3": NodeReading(has=4, types={"v100": 4}),
    "g4": NodeReading(has=4, types={"a100": 2, "v100": 2}),
    "c1": NodeReading(),
}
NODES: Mapping[str, Mapping[str, NodeReading]] = {
    "cluster": CLUSTER,
    "documented": DOCUMENTED_NODES,
    "gpus": GPUS,
    "gpus-running": GPUS_RUNNING,
    "inventory": INVENTORY,
    "node-states": NODE_STATES,
}
"""What must be read of each node, by case."""

# 22.05 tells on which GPUs shards are in use, not how many: then all of those GPUs' are
NODES_ON: Mapping[tuple[str, str], Mapping[str, NodeReading]] = {
    ("22.05", "inventory"): {
        "m3": replace(INVENTORY["m3"], shards_used=8),
        "m6": replace(INVENTORY["m6"], shards_used=2),
    }
}
"""Nodes that a release tells otherwise, by release and case."""


def nodes_on(release: str, case: str) -> Mapping[str, NodeReading]:
    """Return what must be read of each node of a case on a release."""
    return {**NODES[case], **NODES_ON.get((release, case), {})}
