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


class Gres(_Strict):
    """One GRES of a node; a GPU gets its device files, anything else is only counted."""

    name: str = "gpu"
    type: str = ""
    count: str
    no_consume: bool = False

    def __str__(self) -> str:
        """The item as slurm.conf writes it."""
        words = [self.name, self.type, "no_consume" if self.no_consume else "", self.count]
        return ":".join(word for word in words if word)

    def gres_conf(self, first_device: int) -> str:
        """The line of gres.conf, less its NodeName."""
        text = f"Name={self.name}" + (f" Type={self.type}" if self.type else "")
        if self.name == "gpu":
            return f"{text} File=/dev/nvidia[{first_device}-{first_device + int(self.count) - 1}]"
        return f"{text} Count={self.count}"


class Node(_Strict):
    """One compute node: its size as slurm.conf claims it, its GPUs, and what else it may have."""

    cpus: int
    memory_mib: int
    gpu_type: str = ""
    gpus: int = 0
    more_gres: tuple[Gres, ...] = ()
    features: tuple[str, ...] = ()  # beside its GPU type

    @property
    def all_gres(self) -> tuple[Gres, ...]:
        """The node's GRES, the GPUs of gpu_type first."""
        own = (Gres(type=self.gpu_type, count=str(self.gpus)),) if self.gpus else ()
        return (*own, *self.more_gres)

    @property
    def gres(self) -> str:
        """The node's Gres as slurm.conf and sinfo write it; empty where it has none."""
        return ",".join(map(str, self.all_gres))

    @property
    def own_gres(self) -> str:
        """What is in sinfo's Gres once the node has its GPUs; empty where it has no GRES."""
        return self.gres.partition(",")[0]

    @property
    def devices(self) -> int:
        """How many GPU device files the node needs."""
        return sum(int(gres.count) for gres in self.all_gres if gres.name == "gpu")

    @property
    def gres_conf(self) -> list[str]:
        """The node's lines of gres.conf, less their NodeName."""
        lines, device = [], 0
        for gres in self.all_gres:
            lines.append(gres.gres_conf(device))
            device += int(gres.count) if gres.name == "gpu" else 0
        return lines

    @property
    def all_features(self) -> str:
        """The node's features as slurm.conf writes them."""
        return ",".join(word for word in (self.gpu_type, *self.features) if word)


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
    """The whole cluster: one controller, named nodes, partitions, QOS priorities, accounts and users.

    backup is the host of a second controller, which shares StateSaveLocation with the first, empty for none;
    more_lines go to the end of slurm.conf: nodes without a container, and what else a test needs there.
    """

    cluster: str
    controller: str
    backup: str = ""
    nodes: dict[str, Node]
    partitions: dict[str, Partition]
    qos: dict[str, int]
    default_qos: str
    accounts: tuple[str, ...]
    users: dict[str, User]
    more_lines: tuple[str, ...] = ()

    @property
    def controllers(self) -> list[str]:
        """The hosts of the controllers, the primary first."""
        return [host for host in (self.controller, self.backup) if host]

    @property
    def gpu_types(self) -> list[str]:
        """The GPU types of all nodes, sorted, each once."""
        gres = (item for node in self.nodes.values() for item in node.all_gres)
        return sorted({item.type for item in gres if item.name == "gpu" and item.type})

    @property
    def gres_names(self) -> list[str]:
        """The names of all GRES, sorted, gpu among them."""
        gres = (item for node in self.nodes.values() for item in node.all_gres)
        return sorted({"gpu", *(item.name for item in gres)})


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
