"""What a job asks of nodes, apart from who asks: equal for all jobs that ask for the same. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from slurm_score.gres import GpuRequest
from slurm_score.model import Job


class Where(NamedTuple):
    """Which nodes a job accepts, as Slurm prints it."""

    partitions: tuple[str, ...] = ()
    features: str = ""
    req_nodes: str = ""
    exc_nodes: str = ""
    reservation: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """One job's (one array task's) request.

    `cpus` and `mem_mib` are those of all its nodes, `max_nodes` is 0 for no limit. `prefer` is sbatch's
    --prefer, `order` the types that its user would take, best first, and `vram_gib` the memory that he
    needs on each GPU: Slurm knows of none of the three when it places the job (of --prefer only while
    it starts jobs at once), so they are wishes.
    """

    where: Where
    gpus: GpuRequest
    slices: GpuRequest
    shards: GpuRequest
    nodes: int
    max_nodes: int
    cpus: int
    mem_mib: int
    prefer: str
    order: tuple[str, ...]
    vram_gib: float | None

    @property
    def units(self) -> int:
        """How many GPUs, MIG slices and shards it asks for together."""
        return self.gpus.total + self.slices.total + self.shards.total

    @property
    def groups(self) -> int:
        """On how many nodes it stands in equal groups, 0 where Slurm may group it as it likes."""
        for request in (self.gpus, self.slices, self.shards):
            if request.per_node:
                return math.ceil(request.total / request.per_node)
        return 1 if self.max_nodes == 1 else 0

    @property
    def most_nodes(self) -> int:
        """On how many nodes it can stand at most; each of them gives at least one unit."""
        return min(self.max_nodes or self.units, self.units)


_READ = attrgetter(
    "partitions",
    "features",
    "req_nodes",
    "exc_nodes",
    "reservation",
    "nodes",
    "max_nodes",
    "cpus",
    "mem_mib",
    "prefer",
    "hints.gpu",
    "hints.vram_gib",
)


def ask_of(job: Job) -> Ask | None:
    """Return what a job asks for, None where it asks for nothing of a GPU."""
    return None if _asks_nothing(job) else _ask(job)


def code_asks(jobs: Sequence[Job]) -> tuple[list[int], tuple[Ask | None, ...]]:
    """Return which request each job has, as an index into the different ones.

    Equal requests for GPUs are mostly one object, and an object's id is a quicker key.
    """
    seen: dict[Any, int] = {}
    table: dict[Ask | None, int] = {}
    codes: list[int] = []
    for job in jobs:
        if _asks_nothing(job):
            codes.append(table.setdefault(None, len(table)))
            continue
        key = (id(job.gpus), id(job.slices), id(job.shards), _READ(job))
        code = seen.get(key)
        if code is None:
            code = seen[key] = table.setdefault(_ask(job), len(table))
        codes.append(code)
    return codes, tuple(table)


def _asks_nothing(job: Job) -> bool:
    return not (job.gpus.total or job.slices.total or job.shards.total)


def _ask(job: Job) -> Ask:
    return Ask(
        where=Where(job.partitions, job.features, job.req_nodes, job.exc_nodes, job.reservation),
        gpus=job.gpus,
        slices=job.slices,
        shards=job.shards,
        nodes=max(1, job.nodes),
        max_nodes=job.max_nodes,
        cpus=job.cpus,
        mem_mib=job.mem_mib,
        prefer=job.prefer,
        order=job.hints.gpu,
        vram_gib=job.hints.vram_gib,
    )
