"""The cluster of docker/topology.yaml, and the files that its containers need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import jinja2
import yaml
from pydantic import BaseModel, ConfigDict

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"

# template -> where the containers look for it
TARGETS = {
    "slurm.conf.j2": "/etc/slurm/slurm.conf",
    "gres.conf.j2": "/etc/slurm/gres.conf",
    "slurmdbd.conf.j2": "/etc/slurm/slurmdbd.conf",
    "accounting.j2": "/etc/slurm-score-test/accounting",
    "associations.j2": "/etc/slurm-score-test/associations",
    "users.j2": "/etc/slurm-score-test/users",
}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Node(_Strict):
    """One compute node: its size as slurm.conf claims it, and its GPUs, all of one type."""

    cpus: int
    memory_mib: int
    gpu_type: str
    gpus: int

    @property
    def gres(self) -> str:
        """The node's Gres as slurm.conf and sinfo write it."""
        return f"gpu:{self.gpu_type}:{self.gpus}"


class Partition(_Strict):
    """One partition; max_time in Slurm's own notation."""

    nodes: tuple[str, ...]
    default: bool = False
    max_time: str


class User(_Strict):
    """One ordinary user; admin_level is Slurm's None, Operator or Administrator."""

    uid: int
    account: str
    admin_level: str = "None"


class Topology(_Strict):
    """The whole cluster: one controller, named nodes, partitions, QOS priorities, accounts and users."""

    cluster: str
    controller: str
    nodes: dict[str, Node]
    partitions: dict[str, Partition]
    qos: dict[str, int]
    default_qos: str
    accounts: tuple[str, ...]
    users: dict[str, User]

    @property
    def gpu_types(self) -> list[str]:
        """The GPU types of all nodes, sorted, each once."""
        return sorted({node.gpu_type for node in self.nodes.values()})


def load() -> Topology:
    """Returns the topology of docker/topology.yaml."""
    return Topology.model_validate(yaml.safe_load((DOCKER / "topology.yaml").read_text()))


def render(topology: Topology, release: str, slurm_conf: Mapping[str, str | None]) -> dict[str, str]:
    """Returns path -> text of every configuration file, slurm.conf with the given parameters replaced."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCKER / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    version = tuple(int(part) for part in release.split("."))
    files = {
        target: environment.get_template(name).render(topology=topology, release=version)
        for name, target in TARGETS.items()
    }
    files["/etc/slurm/slurm.conf"] = replace_parameters(files["/etc/slurm/slurm.conf"], slurm_conf)
    return files


def replace_parameters(text: str, parameters: Mapping[str, str | None]) -> str:
    """Returns slurm.conf's text with each parameter set once; None takes a parameter out.

    Slurm compares names without regard to case, takes the last of two lines and logs an error about them.
    """
    names = {name.lower() for name in parameters}
    kept = [line for line in text.splitlines() if _parameter(line) not in names]
    return "\n".join([*_assignments(parameters), *kept]) + "\n"


def _assignments(parameters: Mapping[str, str | None]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in parameters.items() if value is not None)


def _parameter(line: str) -> str:
    match = re.match(r"\s*(\w+)\s*=", line)
    return match[1].lower() if match else ""
