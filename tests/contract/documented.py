"""Slurm 20.11 by its documentation, since no package of it is at hand: nothing here was recorded.

Written by hand from squeue(1), sprio(1) and scontrol(1) of 20.11 and from src/api/node_info.c,
src/common/slurm_opt.c of that time: --gres is shown as it was typed, --gpus and its kin behind `gres:`;
a state that does not respond has a star, a node that is powered down is `+POWER`. --prefer is not there yet,
and squeue has no field for --exclude.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Set

import yaml

from slurm_score.slurm import parse, priorities
from slurm_score.slurm.commands import UNIT_SEPARATOR
from tests.contract.in_container import TOKEN
from tests.contract.recording import DATA
from tests.contract.situations_documented import DETAILS, JOB_IDS, NODES_TEXT, NOW_S, ROWS, SPRIO_ROWS

RELEASE = "20.11"
FOLDER = DATA / RELEASE / "documented"
PLAIN = {
    "HetJobID": "N/A",
    "Partition": "main",
    "UserName": "alice",
    "Account": "research",
    "QOS": "normal",
    "State": "PENDING",
    "Reason": "Priority",
    "PriorityLong": "1",
    "SubmitTime": str(NOW_S - 60),
    "EligibleTime": str(NOW_S - 60),
    "StartTime": "N/A",
    "TimeLimit": "1:00:00",
    "NumNodes": "1",
    "MaxNodes": "1",
    "NumCPUs": "1",
    "NumTasks": "1",
    "cpus-per-tres": "N/A",
    "tres-alloc": "cpu=1,mem=4000M,node=1,billing=1",
    "tres-per-job": "N/A",
    "tres-per-node": "N/A",
    "tres-per-socket": "N/A",
    "tres-per-task": "N/A",
    "MinMemory": "0",
    "mem-per-tres": "N/A",
    "Feature": "(null)",
    "Prefer": "",
    "ReqNodes": "",
    "ExcNodes": "",
    "Reservation": "(null)",
    "NodeList": "",
    "RestartCnt": "0",
    "Dependency": "(null)",
    "Origin": "NA",
    "Name": "test",
    "Comment": "(null)",
}
DETAIL = (
    "JobId={JobID} JobName=test UserId=alice(2001) GroupId=alice(2001) MCS_label=N/A Priority={PriorityLong} "
    "Nice=0 Account=research QOS=normal JobState={State} Reason={Reason} Dependency=(null) Requeue=1 "
    "Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=01:00:00 TimeMin=N/A "
    "Partition=main AllocNode:Sid=ctl:391 ReqNodeList=(null) ExcNodeList={exc_nodes} NodeList=(null) "
    "NumNodes={num_nodes} NumCPUs={NumCPUs} NumTasks={NumTasks} CPUs/Task=1 ReqB:S:C:T=0:0:*:* "
    "TRES={tres-alloc} Socks/Node=* "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0 Features={Feature} "
    "DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) Command=(null) "
    "WorkDir=/tmp StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null Power= NtasksPerTRES:0\n"
)
REJECTED = "".join(
    f"squeue: error: Invalid job format specification: {name}\n" for name in sorted(parse.LATE_FIELDS)
)
REJECTED_NAME = "00-squeue.stderr"
PARTITION = (
    "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED "
    "MaxTime=7-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=g[1-7] PriorityJobFactor=1 "
    "PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP "
    "TotalCPUs=56 TotalNodes=7 SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED "
    "MaxMemPerNode=UNLIMITED\n"
)
CONFIG = """\
Configuration data as of 2021-06-01T12:00:00
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
ClusterName             = lab
PriorityParameters      = (null)
PrioritySiteFactorParameters = (null)
PrioritySiteFactorPlugin = (null)
PriorityDecayHalfLife   = 7-00:00:00
PriorityFlags           =
PriorityType            = priority/multifactor
PriorityWeightAge       = 0
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 0
PriorityWeightJobSize   = 0
PriorityWeightPartition = 0
PriorityWeightQOS       = 0
PriorityWeightTRES      = (null)
SchedulerParameters     = bf_continue
SlurmctldHost[0]        = ctl
SlurmctldParameters     = (null)
SlurmUser               = slurm(64030)
SLURM_VERSION           = 20.11.9

Slurmctld(primary) at ctl is UP
"""
QOS = """\
Current Association Manager state

QOS Records

QOS=normal(1)
    UsageRaw=0.000000
    GrpJobs=N(0) GrpJobsAccrue=N(0) GrpSubmitJobs=N(0) GrpWall=N(0.00)
    Preempt=
    PreemptMode=cluster
    Priority=100
"""


def write() -> None:
    """Write the folder anew, in the order of fields that the product asks for now."""
    end = f"{UNIT_SEPARATOR}{TOKEN}"
    squeue = ("squeue", "-h", "-t", ",".join(parse.ACTIVE_STATES), "-O")
    rejected = (*squeue, parse.squeue_format(UNIT_SEPARATOR, end))
    lacks = parse.LATE_FIELDS
    outputs: Mapping[tuple[str, ...], str] = {
        rejected: "".join(_squeue_line(name, end) for name in ROWS),
        (*squeue, parse.squeue_format(UNIT_SEPARATOR, end, lacks)): "".join(
            _squeue_line(name, end, lacks) for name in ROWS
        ),
        ("scontrol", "show", "job", "-o"): "".join(map(_detail_line, ROWS)),
        ("sprio", "-h", "-o", priorities.SPRIO_FORMAT): "".join(f"{row}\n" for row in SPRIO_ROWS),
        ("scontrol", "show", "partition", "-o"): PARTITION,
        ("scontrol", "show", "config"): CONFIG,
        ("scontrol", "show", "node", "-o", "-d"): NODES_TEXT,
        ("scontrol", "show", "topology"): "",
        ("scontrol", "show", "reservation", "-o"): "No reservations in the system\n",
        ("scontrol", "show", "assoc_mgr", "flags=qos"): QOS,
    }
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    commands = []
    for number, (argv, output) in enumerate(outputs.items(), 1):
        name = f"{number:02}-{argv[0]}.stdout"
        (FOLDER / name).write_text(output)
        commands.append({"user": "scoreop", "argv": list(argv), "writes": 0, "exit": 0, "stdout": name})
        if argv == rejected:
            (FOLDER / REJECTED_NAME).write_text(REJECTED)
            commands[-1]["stderr"] = REJECTED_NAME
    case = {
        "release": RELEASE,
        "slurm": "20.11.9",
        "recorded": None,
        "now_s": NOW_S,
        "about": "Not recorded: written by hand from the documentation of 20.11, see documented.py.",
        "left_out": {},
        "jobs": JOB_IDS,
        "commands": commands,
    }
    text = yaml.safe_dump(case, sort_keys=False, default_flow_style=None, width=110)
    (FOLDER / "case.yaml").write_text(text)


def _squeue_line(name: str, end: str, lacks: Set[str] = frozenset()) -> str:
    values = {**PLAIN, **ROWS[name]}
    asked = [f for f in parse.JOB_FIELDS if f not in lacks]
    return "".join(values[f] + (end if f in parse.USER_TEXTS else UNIT_SEPARATOR) for f in asked) + "\n"


def _detail_line(name: str) -> str:
    values = {**PLAIN, **ROWS[name]}
    exc_nodes, num_nodes = DETAILS.get(name, ("(null)", values["NumNodes"]))
    return DETAIL.format(**values, exc_nodes=exc_nodes, num_nodes=num_nodes)
