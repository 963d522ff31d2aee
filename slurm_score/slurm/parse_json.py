"""What `squeue --json` and `scontrol show node --json` print, read: for where their text can't be. Pure.

Tolerant by shape, not by version. A number is an integer, null, `{"set", "infinite", "number"}` or a
word such as "Infinity"; a list is a list or one text with commas; a field that isn't there is not
known; fields that nobody asks for may hold anything. The words are read by the same grammars as those
of squeue's text, so that a job comes out equal whichever way it was read. Only the tasks of an array
that were split off and still wait differ: squeue's text puts them back into the array, JSON doesn't.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from slurm_score.errors import ParseError, shown
from slurm_score.gres import GresRequest, gres_request, least_cpus
from slurm_score.hints import parse_hints
from slurm_score.jobid import parse_job_id
from slurm_score.model import Job, Node
from slurm_score.node_gres import node_gres
from slurm_score.nodestate import parse_node_state
from slurm_score.slurm.parse import ACTIVE_STATES, mem_asked_mib
from slurm_score.slurm.reading import Reading
from slurm_score.units import MINUTE_S

T = TypeVar("T")

_FLAGS = (
    "COMPLETING",
    "STAGE_OUT",
    "CONFIGURING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "STOPPED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
)
"""The flags of a job's state in the order in which squeue's text shows one instead of the base state.

Source: slurm src/common/slurm_protocol_defs.c, job_state_string.
"""
_INFINITE = frozenset({"infinity", "infinite", "unlimited"})


def parse_jobs_json(text: str) -> Reading[Job]:
    """Return the jobs of ACTIVE_STATES that `squeue --json` printed.

    Releases up to 24.05.0 print every job that slurmctld remembers, whatever -t says.

    Raises:
        ParseError: not JSON, or without a list of jobs.
    """
    return _read_each(text, "jobs", "job_id", _active_job)


def parse_nodes_json(text: str) -> Reading[Node]:
    """Return the nodes that `scontrol show node --json` printed.

    Raises:
        ParseError: not JSON, or without a list of nodes.
    """
    return _read_each(text, "nodes", "name", _node)


@dataclass(frozen=True, slots=True)
class _Record:
    """One JSON object and its fields by what they should be; ParseError where one is something else."""

    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a text, empty where there is none."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ParseError(f"{name} is no text", str(value))
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return the items of a list, or of one text with commas."""
        value = self.values.get(name)
        if isinstance(value, list):
            return tuple(map(str, value))
        return tuple(word for word in self.text(name).split(",") if word)

    def number(self, name: str) -> float | None:
        """Return a number, None where it isn't set, `math.inf` where it is infinite."""
        value = self.values.get(name)
        if isinstance(value, Mapping):
            if value.get("infinite"):
                return math.inf
            value = value.get("number") if value.get("set", True) else None
        if isinstance(value, str) and value.lower() in _INFINITE:
            return math.inf
        if value is not None and type(value) not in (int, float):
            raise ParseError(f"{name} is no number", str(value))
        return value

    def whole(self, name: str, otherwise: int) -> int:
        """Return a whole number, `otherwise` where it isn't set or infinite."""
        number = self.number(name)
        return otherwise if number is None or math.isinf(number) else int(number)

    def time_s(self, name: str) -> int | None:
        """Return seconds since the epoch, None for no such time."""
        return self.whole(name, 0) or None


def _read_each(text: str, key: str, name: str, read: Callable[[_Record], T | None]) -> Reading[T]:
    reading = Reading[T]()
    for record in _records(text, key):
        try:
            if not isinstance(record, Mapping):
                raise ParseError("not an object", str(record))
            if (item := read(_Record(record))) is not None:
                reading.items.append(item)
        except ValueError as error:
            which = f"{name} {record.get(name)}" if isinstance(record, Mapping) else key
            reading.problems.append(f"{error} in {shown(which, 200)}")
    return reading


def _records(text: str, key: str) -> list[Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON ({error})", text) from error
    records = answer.get(key) if isinstance(answer, Mapping) else None
    if not isinstance(records, list):
        raise ParseError(f"no list of {key} in the JSON", text)
    return records


def _active_job(record: _Record) -> Job | None:
    states = record.words("job_state")
    if not states:
        raise ParseError("no job_state", "")
    state = next((flag for flag in _FLAGS if flag in states), states[0])
    return _job(record, state) if state in ACTIVE_STATES else None


def _job(record: _Record, state: str) -> Job:
    label = parse_job_id(_label(record))
    nodes, asked = _nodes(record), _gres(record)
    return Job(
        job_id=record.whole("job_id", 0),
        label=str(label),
        update_id=label.update_id,
        tasks=label.tasks,
        het_job_id=record.whole("het_job_id", 0) or None,
        user=record.text("user_name") or str(record.whole("user_id", 0)),
        account=record.text("account"),
        qos=record.text("qos"),
        partitions=record.words("partition"),
        state=state,
        reason=record.text("state_description") or record.text("state_reason") or "None",
        priority=record.whole("priority", 0 if record.values.get("hold") else 1),
        submit_s=record.whole("submit_time", 0),
        eligible_s=record.time_s("eligible_time"),
        start_s=record.time_s("start_time"),
        time_limit_s=_time_limit_s(record),
        nodes=nodes,
        max_nodes=0 if _unlooked_at(record, nodes) else record.whole("max_nodes", 0),
        cpus=least_cpus(record.whole("cpus", 1), nodes, asked.gpus, record.text("cpus_per_tres")),
        mem_mib=_mem_mib(record, state, nodes),
        gpus=asked.gpus,
        slices=asked.slices,
        shards=asked.shards,
        features=record.text("features"),
        prefer=record.text("prefer"),
        req_nodes=record.text("required_nodes"),
        exc_nodes=record.text("excluded_nodes"),
        reservation=record.text("resv_name"),
        node_list=record.text("nodes"),
        restarts=record.whole("restart_cnt", 0),
        dependency=record.text("dependency"),
        hints=parse_hints(_comment(record)),
        origin=record.text("federation_origin"),
        name=record.text("name"),
    )


def _label(record: _Record) -> str:
    """Return the id as squeue's JobArrayID prints it; an array_job_id of 0 means that there is none."""
    job_id, array, het = (record.whole(name, 0) for name in ("job_id", "array_job_id", "het_job_id"))
    if not job_id:
        raise ParseError("no job_id", str(record.values.get("job_id")))
    if array and (tasks := record.text("array_task_string")):
        return f"{array}_[{tasks}]"
    if array and record.number("array_task_id") is not None:
        return f"{array}_{record.whole('array_task_id', 0)}"
    return f"{het}+{record.whole('het_job_offset', 0)}" if het else str(job_id)


def _time_limit_s(record: _Record) -> float | None:
    """Return the time limit: null is UNLIMITED, since slurmctld sends no job without any limit.

    A job that has none of its own is sent with the most that its partition allows.
    """
    if "time_limit" in record.values and record.values["time_limit"] is None:
        return math.inf
    minutes = record.number("time_limit")
    return None if minutes is None else minutes * MINUTE_S


def _nodes(record: _Record) -> int:
    return record.whole("node_count", 1)


def _unlooked_at(record: _Record, nodes: int) -> bool:
    """Return whether max_nodes may be no request but node_count, as from 24.11 on: see job_details.py."""
    waits = record.whole("priority", 1) == 0 or record.time_s("eligible_time") is None
    return waits and record.whole("max_nodes", 0) == nodes


def _gres(record: _Record) -> GresRequest:
    return gres_request(
        per_job=record.text("tres_per_job"),
        per_node=record.text("tres_per_node"),
        per_socket=record.text("tres_per_socket"),
        per_task=record.text("tres_per_task"),
        total=_tres(record),
        nodes=_nodes(record),
        tasks=record.whole("tasks", 1),
    )


def _tres(record: _Record) -> str:
    return record.text("tres_alloc_str") or record.text("tres_req_str")


def _mem_mib(record: _Record, state: str, nodes: int) -> int:
    least = record.whole("memory_per_node", 0) or record.whole("memory_per_cpu", 0)
    if state == "PENDING" and not least and not record.text("memory_per_tres"):
        return 0
    return mem_asked_mib(_tres(record), str(least), nodes)


def _comment(record: _Record) -> str:
    """Return the job's own comment, which some releases keep beside the administrator's."""
    value = record.values.get("comment")
    return _Record(value).text("job") if isinstance(value, Mapping) else record.text("comment")


def _node(record: _Record) -> Node:
    words = (*record.words("state"), *record.words("state_flags"))
    state = parse_node_state("+".join(words) or "UNKNOWN")
    name = record.text("name")
    if not name:
        raise ParseError("no name", "")
    return Node(
        name=name,
        states=(state.base, *state.flags),
        usable=state.usable is True,
        cpus=record.whole("effective_cpus", record.whole("cpus", 0)),
        cpus_used=record.whole("alloc_cpus", 0),
        mem_mib=record.whole("real_memory", 0),
        mem_used_mib=record.whole("alloc_memory", 0),
        **node_gres(record.text("gres"), record.text("gres_used"))._asdict(),
        partitions=record.words("partitions"),
        features=record.words("active_features"),
        weight=record.whole("weight", 1),
    )
