"""What squeue prints of jobs, and what scontrol says of updates, read. Pure."""

import re
from collections.abc import Callable, Iterator, Set
from itertools import zip_longest

from slurm_score.gres import GresRequest, gres_request, least_cpus
from slurm_score.hints import parse_hints
from slurm_score.jobid import parse_job_id
from slurm_score.model import Job
from slurm_score.slurm.reading import NOT_SET, Reading, lines, text_of, whole
from slurm_score.units import parse_mem_mib, parse_time_limit, parse_timestamp

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
    "MaxNodes",
    "NumCPUs",
    "NumTasks",
    "cpus-per-tres",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "tres-per-socket",
    "tres-per-task",
    "MinMemory",
    "mem-per-tres",
    "Feature",
    "Prefer",
    "ReqNodes",
    "ExcNodes",
    "Reservation",
    "NodeList",
    "RestartCnt",
    "Dependency",
    "Origin",
    "Name",
    "Comment",
)
USER_TEXTS = ("Name", "Comment")
"""The last two fields: users' own words, with any character in them."""
LATE_FIELDS = frozenset({"Prefer", "ExcNodes"})
"""Fields that old releases don't know: Prefer came with 22.05, ExcNodes after it (observed)."""
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
_NO_MEMORY = NOT_SET | {"0", "0M"}
_REJECTED = re.compile(r"Invalid job format specification: (\S+)")
_LINE_END = "\n"  # of the record before
_NO_ORIGIN = "NA"  # squeue outside a federation
_FAILED_JOB = re.compile(r"(?P<what>.+) for job (?P<id>\d[\d_,\[\]+-]*)")
_FAILED_TASKS = re.compile(r"(?P<id>\d+_[\d,\[\]-]+): (?P<what>.+)")


def squeue_format(separator: str, end: str, lacks: Set[str] = frozenset()) -> str:
    """Return the -O argument that prints JOB_FIELDS, `separator` behind each and `end` behind USER_TEXTS.

    `lacks` are those of LATE_FIELDS that this squeue doesn't know.
    """
    ends = ((name, end if name in USER_TEXTS else separator) for name in _fields(lacks))
    return ",".join(f"{name}:{behind}" for name, behind in ends)


def rejected_fields(stderr: str) -> Set[str]:
    """Return the fields that squeue said it doesn't know, none for any other complaint."""
    return frozenset(_REJECTED.findall(stderr))


def parse_squeue(text: str, separator: str, end: str, lacks: Set[str] = frozenset()) -> Reading[Job]:
    """Return the jobs that `squeue -h -O` printed with `squeue_format`.

    USER_TEXTS stand last and `end` must be unguessable: then no name and no comment, whatever it holds,
    can break its record or forge another.
    """
    fields, pieces = _fields(lacks), text.split(end)
    pairs = zip_longest(pieces[::2], pieces[1::2], fillvalue="")
    records = (f"{known.removeprefix(_LINE_END)}{end}{comment}" for known, comment in pairs if known.strip())
    return Reading[Job]().read_each(records, lambda r: _job(r, separator, end, fields))


def _fields(lacks: Set[str]) -> tuple[str, ...]:
    return tuple(name for name in JOB_FIELDS if name not in lacks)


def _job(record: str, separator: str, end: str, fields: tuple[str, ...]) -> Job:
    known, comment = record.split(end)
    values = (*known.split(separator, len(fields) - len(USER_TEXTS)), comment)
    get = (dict.fromkeys(LATE_FIELDS, "") | dict(zip(fields, values, strict=True))).__getitem__
    label = parse_job_id(get("JobArrayID"))
    nodes, asked = _nodes(get), _gres(get)
    max_nodes = whole(get("MaxNodes"), 0)
    return Job(
        job_id=int(get("JobID")),
        label=str(label),
        update_id=label.update_id,
        tasks=label.tasks,
        het_job_id=_het_job_id(get("HetJobID")),
        user=get("UserName"),
        account=text_of(get("Account")),
        qos=text_of(get("QOS")),
        partitions=tuple(get("Partition").split(",")),
        state=get("State"),
        reason=get("Reason"),
        priority=int(get("PriorityLong")),
        submit_s=parse_timestamp(get("SubmitTime")) or 0,
        eligible_s=parse_timestamp(get("EligibleTime")),
        start_s=parse_timestamp(get("StartTime")),
        time_limit_s=parse_time_limit(get("TimeLimit")),
        nodes=nodes,
        max_nodes=max_nodes if max_nodes > nodes else 0,  # squeue never prints less than NumNodes
        cpus=least_cpus(whole(get("NumCPUs").partition("-")[0], 1), nodes, asked.gpus, get("cpus-per-tres")),
        mem_mib=_mem_mib(get, nodes),
        gpus=asked.gpus,
        slices=asked.slices,
        shards=asked.shards,
        features=text_of(get("Feature")),
        prefer=text_of(get("Prefer")),
        req_nodes=text_of(get("ReqNodes")),
        exc_nodes=text_of(get("ExcNodes")),
        reservation=text_of(get("Reservation")),
        node_list=text_of(get("NodeList")),
        restarts=whole(get("RestartCnt"), 0),
        dependency="" if get("Dependency") in NOT_SET else get("Dependency"),
        hints=parse_hints(get("Comment")),
        origin="" if get("Origin") == _NO_ORIGIN else text_of(get("Origin")),
        name=get("Name"),
    )


def _nodes(get: Callable[[str], str]) -> int:
    return whole(get("NumNodes").partition("-")[0], 1)


def _gres(get: Callable[[str], str]) -> GresRequest:
    return gres_request(
        per_job=get("tres-per-job"),
        per_node=get("tres-per-node"),
        per_socket=get("tres-per-socket"),
        per_task=get("tres-per-task"),
        total=get("tres-alloc"),
        nodes=_nodes(get),
        tasks=whole(get("NumTasks"), 1),
    )


def _mem_mib(get: Callable[[str], str], nodes: int) -> int:
    asks = get("MinMemory") not in _NO_MEMORY or get("mem-per-tres") not in NOT_SET
    if get("State") == "PENDING" and not asks:
        return 0
    return mem_asked_mib(get("tres-alloc"), get("MinMemory"), nodes)


def mem_asked_mib(tres: str, least: str, nodes: int) -> int:
    """Return the memory in a TRES string for all nodes; `least` is what the job asks of each node or CPU.

    Slurm adds TRES up for the fewest nodes, where `nodes` is how many it means to give. A job that asks
    for none must not be read like this: Slurm then writes the memory of whole nodes.

    Raises:
        ParseError: the text can't be read.
    """
    values = dict(item.partition("=")[::2] for item in tres.split(","))
    mem_mib, counted = parse_mem_mib(values.get("mem", "0")), whole(values.get("node", ""), nodes)
    each_mib = parse_mem_mib(least) if least not in NOT_SET else 0
    return each_mib * nodes if each_mib * counted == mem_mib else mem_mib


def parse_first_start(text: str) -> int | None:
    """Return the first of the times that `squeue --start -o %S` printed for a job or its array tasks.

    Raises:
        ParseError: a time can't be read.
    """
    times = (parse_timestamp(line) for line in lines(text))
    return min((time_s for time_s in times if time_s is not None), default=None)


def parse_update_failures(text: str) -> Iterator[tuple[str, str]]:
    """Yield (id, sentence) for each update that scontrol reported as failed; other lines as ("", line).

    scontrol names a job as `<sentence> for job <id>` and array tasks as `<id>_<tasks>: <sentence>`.
    """
    for line in lines(text):
        match = _FAILED_JOB.fullmatch(line) or _FAILED_TASKS.fullmatch(line)
        yield (match["id"], match["what"]) if match else ("", line)


def _het_job_id(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) else None
