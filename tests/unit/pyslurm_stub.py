"""A pyslurm without Slurm: a module with the names and the quirks of pyslurm 25.11.

Source: pyslurm 25.11.2, core/job/job.pyx, core/node.pyx, core/partition.pyx, core/error.pyx,
xcollections.pyx.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from slurm_score.slurm.gateway import Access, Gateway
from slurm_score.slurm.pyslurm_gateway import PyslurmGateway
from tests.unit.commands_support import Slurm, gateway
from tests.unit.slurm_texts import CONFIG, NODE, PARTITION, RESERVATIONS, TOPOLOGY, USERS

JOB: dict[str, Any] = {
    "id": 812,
    "array_id": None,
    "array_task_id": None,
    "array_tasks_parallel": None,
    "array_tasks_waiting": None,
    "heterogeneous_id": None,
    "heterogeneous_offset": None,
    "user_name": "bob",
    "account": "research",
    "qos": "normal",
    "partition": "main",
    "state": "PENDING",
    "state_reason": "Priority",
    "priority": 1200,
    "submit_time": 1_699_990_000,
    "eligible_time": 1_699_990_000,
    "start_time": None,
    "time_limit": 60,
    "num_nodes": 1,
    "max_nodes": None,
    "allocated_nodes": None,
    "required_nodes": None,
    "excluded_nodes": None,
    "constraints": [],
    "reservation": None,
    "memory": None,
    "cpus": 1,
    "ntasks": 1,
    "gres": {},
    "gres_per_node": {},
    "tres_per_task": None,
    "requeue_count": 0,
    "dependencies": None,
    "name": "train-1",
    "comment": None,
    "federation_origin": None,
}
"""The job of slurm_texts with the attributes of pyslurm 25.11's Job."""

NODE_RECORD: dict[str, Any] = {
    "name": "g1",
    "state": "MIXED+DRAIN",
    "effective_cpus": 8,
    "total_cpus": 8,
    "allocated_cpus": 8,
    "real_memory": 4000,
    "allocated_memory": 1000,
    "configured_gres": {"gpu:a100": 4},
    "allocated_gres": {"gpu": 4, "gpu:a100": 4},
    "partitions": ["main", "gpu"],
    "active_features": ["nvlink"],
    "weight": 1,
}
PARTITION_RECORD: dict[str, Any] = {
    "name": "main",
    "is_default": True,
    "state": "UP",
    "default_time": None,
    "max_time": 7 * 24 * 60,
    "total_cpus": 24,
}
"""The node and the partition of slurm_texts, with pyslurm's attributes."""


class PyslurmError(Exception):
    """pyslurm's root of the tree."""


class RPCError(PyslurmError):
    """What pyslurm raises when slurmctld doesn't do what it is asked."""


@dataclass
class Stub:
    """A pyslurm without Slurm: the module, and what it answers."""

    jobs: list[Mapping[str, Any]] = field(default_factory=lambda: [JOB])
    nodes: list[Mapping[str, Any]] = field(default_factory=lambda: [NODE_RECORD])
    partitions: list[Mapping[str, Any]] = field(default_factory=lambda: [PARTITION_RECORD])
    tres: list[str] = field(default_factory=lambda: ["cpu", "gres/gpu", "gres/gpu:A100"])
    version: str = "25.11.2"
    error: str = ""
    inits: list[str | None] = field(default_factory=list)

    def module(self) -> ModuleType:
        """Return the module, with the names of the real one."""
        module = ModuleType("pyslurm")
        config = SimpleNamespace(accounting_storage_tres=self.tres)
        names = {
            "__version__": self.version,
            "slurm_init": lambda: self.inits.append(os.environ.get("SLURM_BITSTR_LEN")),
            "PyslurmError": PyslurmError,
            "RPCError": RPCError,
            "Jobs": SimpleNamespace(load=self.load(lambda: self.jobs)),
            "Nodes": SimpleNamespace(load=self.load(lambda: self.nodes)),
            "Partitions": SimpleNamespace(load=self.load(lambda: self.partitions)),
            "slurmctld": SimpleNamespace(Config=SimpleNamespace(load=lambda: config)),
        }
        module.__dict__.update(names)
        return module

    def load(self, records: Callable[[], list[Mapping[str, Any]]]) -> Callable[[], Any]:
        """Return the load of a collection; its values are records with attributes."""

        def load() -> Any:
            if self.error:
                raise RPCError(self.error)
            return SimpleNamespace(values=lambda: [SimpleNamespace(**record) for record in records()])

        return load


def install(monkeypatch: pytest.MonkeyPatch, stub: Stub) -> None:
    """Put a pyslurm where import finds it, in an environment that is put back afterwards."""
    monkeypatch.setenv("SLURM_BITSTR_LEN", "64")
    monkeypatch.setenv("PYSLURM_DISABLE_AUTO_INIT", "")
    monkeypatch.setitem(sys.modules, "pyslurm", stub.module())


def commands(**answers: str) -> Slurm:
    """Return the Slurm behind the commands: its node and its jobs are others than pyslurm's."""
    known = {
        "squeue": "",
        "sprio": "812|1200|700|500|0|0|0|0|0|0|\n",
        "sacct": "7|NODE_FAIL|1000|1000|1500\n",
        "scontrol": "",
        "scontrol_show_config": CONFIG,
        "scontrol_show_partition": PARTITION,
        "scontrol_show_topology": TOPOLOGY,
        "scontrol_show_reservation": RESERVATIONS,
        "scontrol_show_node": NODE.replace("g1", "n1"),
        "scontrol_show_assoc_mgr_flags=qos": "QOS=high(2)\n    Priority=1000",
        "scontrol_show_assoc_mgr_flags=users": USERS,
    }
    return Slurm(**known | answers)


def door(slurm: Slurm, access: Access = Access.READ_ONLY) -> Gateway:
    """Return a gateway through the installed pyslurm."""
    return PyslurmGateway(gateway(slurm, access))
