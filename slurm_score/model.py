"""What Slurm holds, as frozen values, and a queue of it in columns. Pure.

Times are seconds since the epoch by slurmctld's clock, durations are seconds, memory is MiB. None
means "not known" or "no such time"; an unlimited duration is `math.inf`.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_score.gpu_types import SHIPPED, GpuTypes
from slurm_score.gres import NO_GPUS, GpuCount, GpuRequest
from slurm_score.hints import NO_HINTS, Hints
from slurm_score.jobid import count_tasks
from slurm_score.slurm_config import SlurmConfig as SlurmConfig

Floats = NDArray[np.float64]

Demand = tuple[tuple[int, int], ...]
"""What is asked of one GPU type: (SiteFactor, GPUs) of the jobs that wait for it, highest first."""


SLURM_PARTS = ("age", "assoc", "fairshare", "job_size", "partition", "qos", "nice", "tres")
"""What Slurm's own priority is made of beside SiteFactor; `nice` is taken off, the rest is added."""


class Release(NamedTuple):
    """When running jobs give back how many GPUs; `predicted` if their earlier runs tell, not their limits."""

    end_s: float
    gpus: int
    predicted: bool = False


Releases = Mapping[str, tuple[Release, ...]]
"""What running jobs give back, by GPU type, earliest first."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """How long a user's jobs run: `usual_s` is what 9 of 10 of the last `runs` ended within."""

    runs: int
    usual_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a job asks for, as far as it tells how long the job runs.

    `name` has its numbers stripped; an empty text is "not known". `gpus` counts GPUs, `gpu_types`
    names them; `limit_s` is infinite where there is none. `claim_s` is how long the job's hints say
    that it will run from its start, None where they say nothing.
    """

    user: str
    limit_s: float
    cpus: int = 1
    gpus: int = 0
    gpu_types: str = ""
    account: str = ""
    name: str = ""
    partition: str = ""
    qos: str = ""
    claim_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun(Asked):
    """A run that ended, as accounting tells it; `state` is its first word, `restarts` as far as known."""

    submit_s: int
    end_s: int
    elapsed_s: float
    job_id: int = 0
    state: str = "COMPLETED"
    restarts: int = 0

    @property
    def start_s(self) -> float:
        """When it started."""
        return self.end_s - self.elapsed_s


@dataclass(frozen=True, slots=True)
class Predicted:
    """How long a job will run from its next start, in s, and in words where that comes from.

    `equivalent_s` is its certainty equivalent: of a job that ran for exactly so long the factor `remaining`
    is what it is of this one on average, over all that may come. None: `seconds` itself.
    """

    seconds: float
    source: str
    equivalent_s: float | None = None

    @property
    def scored_s(self) -> float:
        """The run time that the score goes by."""
        return self.seconds if self.equivalent_s is None else self.equivalent_s


@dataclass(frozen=True, slots=True)
class Offsets:
    """What is added to every score, and to every job past the guard, to make its SiteFactor.

    Only differences between jobs matter to Slurm: as all waits grow alike, the offsets shrink and the
    numbers that Slurm holds stay right (plan.py chooses them).
    """

    score: float = 0.0
    guard: float = 0.0


NO_OFFSETS = Offsets()


@dataclass(frozen=True, slots=True)
class PastRun:
    """An earlier run of a job that was requeued: how it ended and how long it had waited before.

    `state` is accounting's word: NODE_FAIL, PREEMPTED, REQUEUED, …
    """

    state: str
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job record: a job, the tasks of an array that are still one record, or a het component.

    `gpus`, `slices` (MIG), `shards`, `cpus`, `mem_mib` and `nodes` are those of one array task, all
    nodes together; `max_nodes` is 0 where the job sets none. `features`, `prefer`, `req_nodes` and
    `exc_nodes` are as Slurm prints them, `node_list` are the hosts of a job that runs. `site_factor`
    is what Slurm holds, None where Slurm does not tell (sprio leaves out jobs that can't start yet).
    `slurm_parts` are Slurm's own parts of its priority, in the order of SLURM_PARTS, empty where it does
    not tell. `hides_tasks` marks an array in whose row squeue may have merged a task that is held or
    pinned by itself.
    """

    job_id: int
    label: str = ""
    update_id: str = ""
    tasks: str = ""
    het_job_id: int | None = None
    user: str = ""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    state: str = "PENDING"
    reason: str = "None"
    priority: int = 1
    submit_s: int = 0
    eligible_s: int | None = None
    start_s: int | None = None
    time_limit_s: float | None = None
    nodes: int = 1
    max_nodes: int = 0
    cpus: int = 1
    mem_mib: int = 0
    gpus: GpuRequest = NO_GPUS
    slices: GpuRequest = NO_GPUS
    shards: GpuRequest = NO_GPUS
    features: str = ""
    prefer: str = ""
    req_nodes: str = ""
    exc_nodes: str = ""
    reservation: str = ""
    node_list: str = ""
    restarts: int = 0
    past_runs: tuple[PastRun, ...] = ()
    dependency: str = ""
    hints: Hints = NO_HINTS
    site_factor: int | None = None
    slurm_parts: tuple[int, ...] = ()
    pinned: bool = False
    hides_tasks: bool = False
    origin: str = ""
    name: str = ""

    @property
    def pending(self) -> bool:
        """Whether the job waits to start."""
        return self.state == "PENDING"

    @property
    def held(self) -> bool:
        """Whether Slurm holds it at priority 0: by hand, by BadConstraints, after a failed launch."""
        return self.priority == 0

    @property
    def follows_leader(self) -> bool:
        """Whether it is a het component other than the leader."""
        return self.het_job_id is not None and self.het_job_id != self.job_id

    @property
    def task_count(self) -> int:
        """How many jobs the record stands for."""
        return count_tasks(self.tasks) if self.tasks else 1

    @property
    def end_s(self) -> float | None:
        """When a job that runs must end by its time limit, in s since the epoch; None where it needn't."""
        if self.start_s is None or self.time_limit_s is None or math.isinf(self.time_limit_s):
            return None
        return self.start_s + self.time_limit_s

    def eligible(self, now_s: float) -> bool:
        """Return whether the job could start by now, as far as holds, begin time and dependencies go."""
        return self.pending and not self.held and self.eligible_s is not None and self.eligible_s <= now_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: what it has, what is taken, and whether a job could start on it.

    `gpus` are whole GPUs, `mig` the MIG slices of others and `shards` the shares of those that are
    shared; `shards_of_gpu` is how many one GPU has (0: not known), `shards_free_of_gpu` how many are free
    on one. `weight` is Slurm's: the least is used first. `switch` is the leaf switch, empty where
    `scontrol show topology` names none.
    """

    name: str
    states: tuple[str, ...] = ("IDLE",)
    usable: bool = True
    cpus: int = 0
    cpus_used: int = 0
    mem_mib: int = 0
    mem_used_mib: int = 0
    gpus: GpuCount = field(default_factory=GpuCount)
    gpus_used: GpuCount = field(default_factory=GpuCount)
    mig: GpuCount = field(default_factory=GpuCount)
    mig_used: GpuCount = field(default_factory=GpuCount)
    shards: GpuCount = field(default_factory=GpuCount)
    shards_used: GpuCount = field(default_factory=GpuCount)
    shards_of_gpu: int = 0
    shards_free_of_gpu: int = 0
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    weight: int = 1
    switch: str = ""

    def free_gpus(self, gpu_type: str | None) -> int:
        """Return how many GPUs of a type (of any, for None) a job could take here now."""
        if not self.usable or self.cpus_used >= self.cpus:
            return 0
        if gpu_type is None:
            return max(0, self.gpus.total - self.gpus_used.total)
        return max(0, self.gpus.types.get(gpu_type, 0) - self.gpus_used.types.get(gpu_type, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation: its nodes, and whether it is active now."""

    name: str
    active: bool = False
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition: its limits, its size and its tier: jobs of a higher tier are looked at first.

    `accounts` and `qos` are those that may use it, empty for all; `access` is what else limits who may,
    in Slurm's words.
    """

    name: str
    default: bool = False
    up: bool = True
    default_time_s: float | None = None
    max_time_s: float | None = None
    cpus: int = 0
    priority_tier: int = 1
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    access: str = ""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster beside the jobs, at one time. `qos` maps a QOS to its priority.

    `memo` keeps what others work out of it by a key of theirs, as long as this value lives.
    """

    time_s: float
    config: SlurmConfig = field(default_factory=SlurmConfig)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    qos: Mapping[str, int] = field(default_factory=dict)
    reservations: Mapping[str, Reservation] = field(default_factory=dict)

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """What was worked out of this cluster before."""
        return {}

    @property
    def default_partition(self) -> str:
        """The name of the default partition, empty where there is none."""
        return next((p.name for p in self.partitions.values() if p.default), "")


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Jobs to score together, on one cluster at one time; factors read it in columns (columns.py).

    `pressure` maps a GPU type to how contended it is (contention.gpu_pressure), `releases` to when
    running jobs give GPUs back (supply.releases_of), `gpu_types` are the policy's facts about types.
    `memo` keeps what others work out of the queue by a key of theirs, as long as this value lives.
    `offsets` are those of the last plan, `predicted` tells by job id how long jobs will run, as far as
    anything is known.
    """

    jobs: tuple[Job, ...]
    cluster: Cluster
    now_s: float
    pressure: Mapping[str, float] = field(default_factory=dict)
    releases: Releases = field(default_factory=dict)
    gpu_types: GpuTypes = SHIPPED
    offsets: Offsets = NO_OFFSETS
    predicted: Mapping[int, Predicted] = field(default_factory=dict)

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """What was worked out of this queue before."""
        return {}

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.jobs)
