"""Slurm 20.11 by its documentation: what squeue, sprio and scontrol print, and what must be read of it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.contract.situations_gpus import taken
from tests.contract.situations_queue import HELD, PLAIN
from tests.contract.table import NodeReading, Reading, Situation, Where

NOW_S = 1_622_548_800
JOB_IDS = {
    "running": 1,
    "gres": 2,
    "gres-type": 3,
    "gpus": 4,
    "gpus-per-node": 5,
    "gpus-per-task": 6,
    "array": 7,
    "het": 8,
    "held": 10,
    "pinned": 11,
    "hinted": 12,
}
ROWS: Mapping[str, Mapping[str, str]] = {
    "running": {
        "JobID": "1",
        "JobArrayID": "1",
        "State": "RUNNING",
        "Reason": "None",
        "StartTime": str(NOW_S - 30),
        "tres-alloc": "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=1",
        "tres-per-node": "gpu:v100:1",
    },
    "gres": {
        "JobID": "2",
        "JobArrayID": "2",
        "tres-alloc": "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=2",
        "tres-per-node": "gpu:2",
    },
    "gres-type": {
        "JobID": "3",
        "JobArrayID": "3",
        "tres-alloc": "cpu=1,mem=500M,node=1,billing=1,gres/gpu=1",
        "tres-per-node": "gpu:a100",
        "MinMemory": "500M",
        "Feature": "nvlink&big",
        "ReqNodes": "g[2-3]",
        "Reservation": "course",
    },
    "gpus": {
        "JobID": "4",
        "JobArrayID": "4",
        "tres-alloc": "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=3",
        "tres-per-job": "gres:gpu:a100:3",
    },
    "gpus-per-node": {
        "JobID": "5",
        "JobArrayID": "5",
        "NumNodes": "2",
        "NumCPUs": "2",
        "NumTasks": "2",
        "tres-alloc": "cpu=2,mem=8000M,node=2,billing=2,gres/gpu=4",
        "tres-per-node": "gres:gpu:v100:2",
    },
    "gpus-per-task": {
        "JobID": "6",
        "JobArrayID": "6",
        "NumCPUs": "3",
        "NumTasks": "3",
        "tres-alloc": "cpu=3,mem=4000M,node=1,billing=3,gres/gpu=3",
        "tres-per-task": "gres:gpu:1",
    },
    "array": {"JobID": "7", "JobArrayID": "7_[0-9%3]", "PriorityLong": "5"},
    "het-leader": {"JobID": "8", "JobArrayID": "8+0", "HetJobID": "8"},
    "het-follower": {"JobID": "9", "JobArrayID": "8+1", "HetJobID": "8", "TimeLimit": "30:00"},
    "held": {"JobID": "10", "JobArrayID": "10", "PriorityLong": "0", "Reason": "JobHeldAdmin"},
    "pinned": {"JobID": "11", "JobArrayID": "11", "PriorityLong": "5000", "TimeLimit": "UNLIMITED"},
    "hinted": {"JobID": "12", "JobArrayID": "12", "Comment": "score: est=20m\nsecond line"},
}
DETAILS: Mapping[str, tuple[str, str]] = {
    "gpus": ("g[1-2],g7", "1-1"),
}
"""ExcNodeList and NumNodes of scontrol show job, where squeue doesn't tell them."""
SPRIO_ROWS = (
    *(f"{job_id}|1|0|0|0|0|0|0|0|0|(null)" for job_id in (2, 3, 4, 5, 6, 8, 9, 12)),
    "7|5|5|0|0|0|0|0|0|0|(null)",
    "11|5000|0|0|0|0|0|0|0|0|(null)",
)
DOCUMENTED_JOBS = (
    Situation(name="running", reads={"": taken(1, {"v100": 1}, per_node=1)}),
    Situation(name="gres", reads={"": Reading(gpus=2, per_node=2)}),
    Situation(
        name="gres-type",
        reads={
            "": Reading(
                gpus=1,
                types={"a100": 1},
                per_node=1,
                where=Where(mem_mib=500, features="nvlink&big", req_nodes="g[2-3]", reservation="course"),
            )
        },
    ),
    Situation(
        name="gpus",
        reads={"": Reading(gpus=3, types={"a100": 3}, where=Where(max_nodes=1, exc_nodes="g[1-2],g7"))},
    ),
    Situation(
        name="gpus-per-node", reads={"": Reading(nodes=2, cpus=2, gpus=4, types={"v100": 4}, per_node=2)}
    ),
    Situation(name="gpus-per-task", reads={"": Reading(cpus=3, gpus=3)}),
    Situation(name="array", reads={"_[0-9%3]": Reading(update="_[0-9]", tasks=10, site=5)}),
    Situation(name="het", reads={"+0": PLAIN, "+1": Reading(follows_leader=True, limit_s=1800)}),
    Situation(name="held", reads={"": HELD}),
    Situation(name="pinned", reads={"": Reading(pinned=True, limit_s=float("inf"))}),
    Situation(name="hinted", reads={"": Reading(est_s=1200)}),
)


def _node(name: str, gres: str, used: str, state: str, cpus_used: int = 0) -> str:
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=1  CPUAlloc={cpus_used} CPUTot=8 CPULoad=0.01 "
        f"AvailableFeatures=(null) ActiveFeatures=(null) Gres={gres} GresDrain=N/A GresUsed={used} "
        f"NodeAddr={name} NodeHostName={name} Version=20.11.9 OS=Linux 6.1.0 #1 SMP  RealMemory=4000 "
        f"AllocMem=0 FreeMem=N/A Sockets=8 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 "
        "Owner=N/A MCS_label=N/A Partitions=main  BootTime=2021-06-01T00:00:00 "
        "SlurmdStartTime=2021-06-01T00:01:00 CfgTRES=cpu=8,mem=4000M,billing=8,gres/gpu=4 AllocTRES= "
        "CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s\n"
    )


NODES_TEXT = "".join(
    (
        _node("g1", "gpu:v100:4(S:0-1)", "gpu:v100:1(IDX:0)", "MIXED", 1),
        _node("g2", "gpu:a100:2(S:0),gpu:v100:2(S:1)", "gpu:a100:0(IDX:N/A),gpu:v100:0(IDX:N/A)", "IDLE"),
        _node("g3", "gpu:a100:4", "gpu:a100:0", "IDLE+DRAIN"),
        _node("g4", "gpu:a100:4", "gpu:a100:0", "DOWN*"),
        _node("g5", "gpu:a100:4", "gpu:a100:0", "IDLE*"),
        _node("g6", "(null)", "gpu:0", "ALLOCATED+COMPLETING", 8),
        _node("g7", "gpu:a100:4", "gpu:a100:0", "IDLE+CLOUD+POWER"),
    )
)
DOCUMENTED_NODES: Mapping[str, NodeReading] = {
    "g1": NodeReading(has=4, types={"v100": 4}, used=1, used_types={"v100": 1}),
    "g2": NodeReading(has=4, types={"a100": 2, "v100": 2}),
    "g3": NodeReading(has=4, types={"a100": 4}, usable=False),
    "g4": NodeReading(has=4, types={"a100": 4}, usable=False),
    "g5": NodeReading(has=4, types={"a100": 4}, usable=False),
    "g6": NodeReading(),
    "g7": NodeReading(has=4, types={"a100": 4}),  # powered down: Slurm wakes it up
}
