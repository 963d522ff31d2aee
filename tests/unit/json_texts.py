"""What squeue and scontrol printed with --json on real clusters, with other names."""

import json
from collections.abc import Mapping
from typing import Any

PLAIN: dict[str, Any] = {
    "account": "research",
    "array_job_id": 0,
    "array_task_id": None,
    "array_max_tasks": 0,
    "array_task_string": "",
    "comment": "",
    "dependency": "",
    "eligible_time": 1_699_990_000,
    "het_job_id": 0,
    "het_job_offset": 0,
    "job_id": 812,
    "job_state": "PENDING",
    "name": "train-1",
    "cpus": 1,
    "node_count": 1,
    "tasks": 1,
    "partition": "main",
    "priority": 1200,
    "qos": "normal",
    "restart_cnt": 0,
    "start_time": 0,
    "state_description": "",
    "state_reason": "Priority",
    "submit_time": 1_699_990_000,
    "time_limit": 60,
    "tres_alloc_str": "",
    "tres_req_str": "cpu=1,mem=4000M,node=1,billing=1",
    "tres_per_job": "",
    "tres_per_node": "",
    "tres_per_socket": "",
    "tres_per_task": "",
    "user_id": 1001,
    "user_name": "bob",
}
"""What 22.05 prints of the job of slurm_texts."""

OBJECTS = (
    "array_job_id",
    "array_max_tasks",
    "array_task_id",
    "cpus",
    "eligible_time",
    "het_job_id",
    "het_job_offset",
    "node_count",
    "priority",
    "start_time",
    "submit_time",
    "tasks",
    "time_limit",
)
"""Numbers that 24.11 and 26.05 print as an object."""


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as 22.05 prints it: no number for infinity."""
    return {name: None if value == "Infinity" else value for name, value in fields.items()}


def objects(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as 24.11 and 26.05 print it."""
    values = {**fields, "job_state": [fields["job_state"]], "hold": fields["priority"] == 0}
    for name in OBJECTS:
        value, infinite = values[name], values[name] == "Infinity"
        number = 0 if infinite or value is None else value
        values[name] = {"set": value is not None and not infinite, "infinite": infinite, "number": number}
    return values


def complexes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as 24.11 and 26.05 print it with `+complex`."""
    values = {name: None if value == "" else value for name, value in fields.items()}
    return {**values, "job_state": [fields["job_state"]]}


def answer(*records: object, key: str = "jobs") -> str:
    """Return what a command prints with --json."""
    return json.dumps({"meta": {"slurm": {"release": "24.11.5"}}, key: records, "errors": []})


JSON_NODE: dict[str, Any] = {
    "name": "g1",
    "state": ["MIXED", "DRAIN"],
    "cpus": 8,
    "effective_cpus": 8,
    "alloc_cpus": 8,
    "real_memory": 4000,
    "alloc_memory": 1000,
    "gres": "gpu:a100:4",
    "gres_used": "gpu:a100:4(IDX:0-3)",
    "partitions": ["main", "gpu"],
    "features": ["nvlink", "big"],
    "active_features": ["nvlink"],
    "free_mem": {"set": False, "infinite": False, "number": 0},
}
"""What 24.11 and 26.05 print of the node of slurm_texts."""
