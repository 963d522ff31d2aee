"""What Slurm's commands print, read. Pure.

Every reader keeps what it can read: a record that it can't comes back as a sentence in `problems`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from slurm_score.errors import ParseError, shown
from slurm_score.gres import GpuRequest, count_gpus, gpu_request, gpus_in_use, least_cpus, parse_gres
from slurm_score.hints import parse_hints
from slurm_score.jobid import parse_job_id
from slurm_score.model import EndedRun, Job, Node, Partition, PastRun, SlurmConfig
from slurm_score.nodestate import parse_node_state
from slurm_score.predict.sources import Reading as RunReading
from slurm_score.predict.sources import sacct_run
from slurm_score.units import parse_time_limit, parse_timestamp

T = TypeVar("T")

JOB_FIELDS = (
    "JobID",
    "JobArrayID",
    "HetJobID",
    "Partition",
    "UserName",
    "Account",
    "QOS",
    "State",
    "Reason",
    "PriorityLong",
    "SubmitTime",
    "EligibleTime",
    "StartTime",
    "TimeLimit",
    "NumNodes",
    "NumCPUs",
    "NumTasks",
    "cpus-per-tres",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "tres-per-socket",
    "tres-per-task",
    "RestartCnt",
    "Dependency",
    "Origin",
    "Comment",
)
ACTIVE_STATES = (
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "RESIZING",
    "SIGNALING",
    "STOPPED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
)
"""The states of jobs that wait, hold resources, or will run again, in squeue's words.

A job has one base state and may have flags. `squeue --states` takes a flag for every job that has it,
but a base state only for jobs without any flag: `PENDING,RUNNING` alone leaves out a job whose nodes
still boot, or one that was stopped.

Source: slurm src/squeue/print.c, _filter_job; squeue(1), JOB STATE CODES.
"""
SACCT_FIELDS = ("JobIDRaw", "State", "Submit", "Eligible", "Start")
PRIORITY_WEIGHTS = {
    "age": "PriorityWeightAge",
    "assoc": "PriorityWeightAssoc",
    "fairshare": "PriorityWeightFairShare",
    "job_size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition",
    "qos": "PriorityWeightQOS",
}

_NOT_SET = frozenset({"", "N/A", "(null)", "NONE", "None"})
_ONE_LINE_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z_:/]*)=")
_NO_ORIGIN = "NA"  # squeue outside a federation
_NOT_ENDED = ("PENDING", "RUNNING", "SUSPENDED")
_FAILED_JOB = re.compile(r"(?P<what>.+) for job (?P<id>\d[\d_,\[\]+-]*)")
_FAILED_TASKS = re.compile(r"(?P<id>\d+_[\d,\[\]-]+): (?P<what>.+)")


@dataclass(slots=True)
class Reading(Generic[T]):
    """What could be read, and a sentence for each record that couldn't."""

    items: list[T] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read_each(self, records: Iterator[str], read: Callable[[str], T]) -> "Reading[T]":
        """Read the records one by one, and return self."""
        for record in records:
            try:
                self.items.append(read(record))
            except (ValueError, KeyError) as error:
                self.problems.append(f"{error} in {shown(record, 200)}")
        return self


def squeue_format(separator: str, end: str) -> str:
    """Return the -O argument that prints JOB_FIELDS with `separator` between and `end` behind."""
    return ",".join(f"{name}:{separator}" for name in JOB_FIELDS[:-1]) + f",{JOB_FIELDS[-1]}:{end}"


def parse_squeue(text: str, separator: str, end: str) -> Reading[Job]:
    """Return the jobs that `squeue -h -O` printed with `squeue_format`.

    The comment is the last field and `end` must be unguessable: then no comment, whatever it holds,
    can break its record or forge another.
    """
    records = (record.removeprefix("\n") for record in text.split(end))
    return Reading[Job]().read_each((r for r in records if r.strip()), lambda r: _job(r, separator))


def _job(record: str, separator: str) -> Job:
    values = record.split(separator, len(JOB_FIELDS) - 1)
    get = dict(zip(JOB_FIELDS, values, strict=True)).__getitem__
    label = parse_job_id(get("JobArrayID"))
    nodes, gpus = _whole(get("NumNodes").partition("-")[0], 1), _gpus(get)
    return Job(
        job_id=int(get("JobID")),
        label=str(label),
        update_id=label.update_id,
        tasks=label.tasks,
        het_job_id=_het_job_id(get("HetJobID")),
        user=get("UserName"),
        account=_set(get("Account")),
        qos=_set(get("QOS")),
        partitions=tuple(get("Partition").split(",")),
        state=get("State"),
        reason=get("Reason"),
        priority=int(get("PriorityLong")),
        submit_s=parse_timestamp(get("SubmitTime")) or 0,
        eligible_s=parse_timestamp(get("EligibleTime")),
        start_s=parse_timestamp(get("StartTime")),
        time_limit_s=parse_time_limit(get("TimeLimit")),
        nodes=nodes,
        cpus=least_cpus(_whole(get("NumCPUs").partition("-")[0], 1), nodes, gpus, get("cpus-per-tres")),
        gpus=gpus,
        restarts=_whole(get("RestartCnt"), 0),
        dependency="" if get("Dependency") in _NOT_SET else get("Dependency"),
        hints=parse_hints(get("Comment")),
        origin="" if get("Origin") == _NO_ORIGIN else _set(get("Origin")),
    )


def _gpus(get: Callable[[str], str]) -> GpuRequest:
    return gpu_request(
        per_job=get("tres-per-job"),
        per_node=get("tres-per-node"),
        per_socket=get("tres-per-socket"),
        per_task=get("tres-per-task"),
        total=get("tres-alloc"),
        nodes=_whole(get("NumNodes").partition("-")[0], 1),
        tasks=_whole(get("NumTasks"), 1),
    )


def parse_nodes(text: str) -> Reading[Node]:
    """Return the nodes that `scontrol show node -o -d` printed."""
    return Reading[Node]().read_each(lines(text), _node)


def _node(line: str) -> Node:
    values = one_line(line)
    get, state = values.get, parse_node_state(values.get("State", "UNKNOWN"))
    return Node(
        name=values["NodeName"],
        states=(state.base, *state.flags),
        usable=state.usable is True,
        cpus=_whole(get("CPUEfctv") or get("CPUTot", ""), 0),
        cpus_used=_whole(get("CPUAlloc", ""), 0),
        mem_mib=_whole(get("RealMemory", ""), 0),
        mem_used_mib=_whole(get("AllocMem", ""), 0),
        gpus=count_gpus(parse_gres(get("Gres", ""))),
        gpus_used=gpus_in_use(get("Gres", ""), get("GresUsed", "")),
        partitions=_names(get("Partitions", "")),
        features=_names(get("ActiveFeatures", "")),
    )


def parse_partitions(text: str) -> Reading[Partition]:
    """Return the partitions that `scontrol show partition -o` printed."""
    return Reading[Partition]().read_each(lines(text), _partition)


def _partition(line: str) -> Partition:
    values = one_line(line)
    return Partition(
        name=values["PartitionName"],
        default=values.get("Default") == "YES",
        up=values.get("State") == "UP",
        default_time_s=parse_time_limit(values.get("DefaultTime", "")),
        max_time_s=parse_time_limit(values.get("MaxTime", "")),
        cpus=_whole(values.get("TotalCPUs", ""), 0),
    )


def parse_qos(text: str) -> dict[str, int]:
    """Return QOS priorities by name from `scontrol show assoc_mgr flags=qos`."""
    priorities: dict[str, int] = {}
    name = ""
    for line in lines(text):
        if match := re.match(r"QOS=(.+)\(\d+\)", line):
            name = match[1]
        if name and (match := re.search(r"(?:^|\s)Priority=(\d+)", line)):
            priorities.setdefault(name, int(match[1]))
    return priorities


def parse_admin_level(text: str, user: str) -> str:
    """Return the AdminLevel of a user from `scontrol show assoc_mgr flags=users`, None where unknown."""
    match = re.search(rf"^\s*UserName={re.escape(user)}\(\d+\).*?AdminLevel=(\w+)", text, re.MULTILINE)
    return match[1] if match else "None"


def parse_config(text: str) -> SlurmConfig:
    """Return what matters here of `scontrol show config`.

    Raises:
        ParseError: the text isn't such a listing.
    """
    pairs = (line.partition("=") for line in lines(text))
    values = {key.strip(): value.strip() for key, equals, value in pairs if equals}
    if "PriorityType" not in values:
        raise ParseError("no PriorityType in scontrol show config", text)
    weights = {name: _whole(values.get(setting, ""), 0) for name, setting in PRIORITY_WEIGHTS.items()}
    return SlurmConfig(
        cluster=values.get("ClusterName", ""),
        release=values.get("SLURM_VERSION", ""),
        slurm_user=values.get("SlurmUser", "").partition("(")[0],
        priority_type=values["PriorityType"],
        priority_flags=_names(values.get("PriorityFlags", "")),
        priority_weights=weights | {"tres": _tres_weight(values.get("PriorityWeightTRES", ""))},
        site_factor_plugin=_set(values.get("PrioritySiteFactorPlugin", "").removeprefix("site_factor/none")),
        scheduler_parameters=_names(values.get("SchedulerParameters", "")),
        slurmctld_parameters=_names(values.get("SlurmctldParameters", "")),
        controllers=tuple(host for key, host in values.items() if key.startswith("SlurmctldHost[")),
        job_submit_plugins=_plugins(values.get("JobSubmitPlugins", "")),
        plugin_dirs=tuple(filter(None, _set(values.get("PluginDir", "")).split(":"))),
        slurm_conf=_set(values.get("SLURM_CONF", "")),
        boot_time_s=int(boot) if (boot := values.get("BOOT_TIME", "")).isdecimal() else None,
    )


def parse_past_runs(text: str) -> dict[int, tuple[PastRun, ...]]:
    """Return the runs that ended in a requeue, oldest first, by job id, from `sacct -D -X -n -P`."""
    runs: dict[int, list[tuple[int, PastRun]]] = {}
    for line in lines(text):
        job_id, state, *times = line.split("|")
        submit, eligible, start = (parse_timestamp(value) for value in times)
        if start is None or submit is None or state.startswith(_NOT_ENDED):
            continue
        wait = max(0, start - max(submit, eligible or submit))
        runs.setdefault(int(job_id), []).append((submit, PastRun(state.split(" ")[0], float(wait))))
    return {
        job_id: tuple(run for _, run in sorted(found, key=lambda pair: pair[0]))
        for job_id, found in runs.items()
    }


def parse_ended_runs(text: str, separator: str, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
    """Return the runs of sacct's fields (predict/sources.py) that ended in (since_s, until_s].

    sacct's own window has both its ends in it: the next question would count a run again. The separator
    must be unguessable: then no name and no comment, whatever line it holds, can forge a run.

    Raises:
        ValueError: there are lines, and none of them is a record.
    """
    reading = RunReading()
    records = [line for line in text.split("\n") if separator in line]
    runs = list(reading.each(records, lambda line: sacct_run(line, separator)))
    if text.strip() and (not records or reading.unreadable == len(records)):
        raise ParseError("no record of sacct", reading.first or text)
    return tuple(run for run in runs if since_s < run.end_s <= until_s)


def parse_update_failures(text: str) -> Iterator[tuple[str, str]]:
    """Yield (id, sentence) for each update that scontrol reported as failed; other lines as ("", line).

    scontrol names a job as `<sentence> for job <id>` and array tasks as `<id>_<tasks>: <sentence>`.
    """
    for line in lines(text):
        match = _FAILED_JOB.fullmatch(line) or _FAILED_TASKS.fullmatch(line)
        yield (match["id"], match["what"]) if match else ("", line)


def one_line(line: str) -> Mapping[str, str]:
    """Return the first value of each key in a `Key=value Key=value` line; values may hold spaces."""
    words = _ONE_LINE_KEY.split(line)
    pairs = zip(words[1::2], words[2::2], strict=True)
    values: dict[str, str] = {}
    for key, value in pairs:
        values.setdefault(key, value.strip())
    return values


def lines(text: str) -> Iterator[str]:
    """Yield the lines that hold something; only a newline ends a line here."""
    return (line.strip() for line in text.split("\n") if line.strip())


def _het_job_id(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) else None


def _tres_weight(text: str) -> int:
    return int(sum(float(item.partition("=")[2]) for item in _names(text)))


def _whole(text: str, otherwise: int) -> int:
    return otherwise if text in _NOT_SET else int(text)


def _set(text: str) -> str:
    return "" if text in _NOT_SET or text.lower() == "none" else text


def _names(text: str) -> tuple[str, ...]:
    return () if text in _NOT_SET else tuple(text.split(","))


def _plugins(text: str) -> tuple[str, ...]:
    return tuple(name.strip().removeprefix("job_submit/") for name in _names(_set(text)))
