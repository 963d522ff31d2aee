"""What Slurm's commands printed on real clusters, with other names."""

from collections.abc import Set

from slurm_score.slurm.parse import JOB_FIELDS, USER_TEXTS

SEP, END = "\x1f", "\x1f0123456789abcdef"
PENDING = {
    "JobID": "812",
    "JobArrayID": "812",
    "HetJobID": "N/A",
    "Partition": "main",
    "UserName": "bob",
    "Account": "research",
    "QOS": "normal",
    "State": "PENDING",
    "Reason": "Priority",
    "PriorityLong": "1200",
    "SubmitTime": "1699990000",
    "EligibleTime": "1699990000",
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
    "Prefer": "(null)",
    "ReqNodes": "",
    "ExcNodes": "",
    "Reservation": "(null)",
    "NodeList": "",
    "RestartCnt": "0",
    "Dependency": "(null)",
    "Origin": "NA",
    "Name": "train-1",
    "Comment": "(null)",
}


def squeue_line(lacks: Set[str] = frozenset(), /, **changes: str) -> str:
    """Return what a squeue that lacks some fields prints for one job; a dash in a name is an underscore."""
    fields = PENDING | {name.replace("_", "-"): value for name, value in changes.items()}
    known = (name for name in JOB_FIELDS if name not in lacks)
    return "".join(fields[name] + (END if name in USER_TEXTS else SEP) for name in known) + "\n"


NODE = (
    "NodeName=g1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=8 CPUEfctv=8 CPUTot=8 CPULoad=0.21 "
    "AvailableFeatures=nvlink,big ActiveFeatures=nvlink Gres=gpu:a100:4 GresDrain=N/A "
    "GresUsed=gpu:a100:4(IDX:0-3) NodeAddr=g1 NodeHostName=g1 Version=24.11.5 "
    "OS=Linux 6.18 #1 SMP @0  RealMemory=4000 AllocMem=1000 FreeMem=N/A Sockets=8 Boards=1 "
    "State=MIXED+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main,gpu  "
    "BootTime=1699000000 SlurmdStartTime=1699000100 CfgTRES=cpu=8,mem=4000M,billing=8,gres/gpu=4 "
    "AllocTRES=cpu=8 Reason=some text with Key=Value State=IDLE [root@2026]"
)
PARTITION = (
    "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED "
    "MaxTime=7-00:00:00 MinNodes=0 LLN=NO Nodes=n[1-3] PriorityJobFactor=1 PriorityTier=1 State=UP "
    "TotalCPUs=24 TotalNodes=3 SelectTypeParameters=NONE JobDefaults=(null) "
    "TRES=cpu=24,mem=12000M,node=3,billing=24"
)
TOPOLOGY = (
    "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=g[1-2]\n"
    "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=c1,g[3-4]\n"
    "SwitchName=top Level=1 LinkSpeed=1 Nodes=c1,g[1-4] Switches=s[1-2]\n"
)
RESERVATIONS = (
    "ReservationName=later StartTime=1700172800 EndTime=1700176400 Duration=01:00:00 Nodes=g2 NodeCnt=1 "
    "CoreCnt=8 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=alice Groups=(null) "
    "Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) MaxStartDelay=(null)\n"
    "ReservationName=course StartTime=1699999000 EndTime=1700002600 Duration=01:00:00 Nodes=g[3-4] NodeCnt=2 "
    "CoreCnt=16 Features=(null) PartitionName=(null) Flags=IGNORE_JOBS,SPEC_NODES TRES=cpu=16 Users=alice "
    "Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) MaxStartDelay=(null)\n"
)
USERS = (
    "User Records\n\nUserName=bobby(1002) DefAccount=x DefWckey= AdminLevel=Administrator\n"
    "UserName=bob(1001) DefAccount=research DefWckey= AdminLevel=None\n"
    "UserName=ops(1003) DefAccount=root DefWckey= AdminLevel=Operator\n"
)
CONFIG = """Configuration data as of 1700000000
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
ClusterName             = test
PriorityParameters      = (null)
PrioritySiteFactorParameters = (null)
PrioritySiteFactorPlugin = (null)
PriorityFlags           = SMALL_RELATIVE_TO_TIME,NO_FAIR_TREE
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 2000
PriorityWeightJobSize   = 0
PriorityWeightPartition = 0
PriorityWeightQOS       = 500
PriorityWeightTRES      = CPU=1000,Mem=2000,GRES/gpu=3000
SchedulerParameters     = bf_continue,bf_window=1440
SlurmctldParameters     = rl_enable
SlurmUser               = slurm(64030)
SLURM_VERSION           = 22.05.8

Slurmctld(primary) at ctl is UP
"""
