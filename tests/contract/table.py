"""What a situation is: how it is prepared on a cluster, and what must be read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_score.model import Job, Node


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where a job may run and its memory; the defaults are those of a job that says nothing."""

    max_nodes: int = 0
    mem_mib: int = 0
    features: str = ""
    prefer: str = ""
    req_nodes: str = ""
    exc_nodes: str = ""
    reservation: str = ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What must be read of one job record; the defaults are those of a plain pending job.

    `update` is the id to name in an update, without the job id in front; `site` is None where Slurm
    doesn't rank the job. Durations are seconds. `where` and `name` are None in rows that aren't about them.
    """

    state: str = "PENDING"
    update: str = ""
    partitions: tuple[str, ...] = ("main",)
    qos: str = "normal"
    limit_s: float | None = 3600
    nodes: int = 1
    cpus: int = 1
    gpus: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    per_node: int = 0
    slices: Mapping[str, int] = field(default_factory=dict)
    shards: int = 0
    shard_types: Mapping[str, int] = field(default_factory=dict)
    where: Where | None = None
    tasks: int = 1
    held: bool = False
    pinned: bool = False
    eligible: bool = True
    site: int | None = 0
    restarts: int = 0
    follows_leader: bool = False
    est_s: float | None = None
    left_s: float | None = None
    problems: int = 0
    name: str | None = None


Records = Mapping[str, Reading]
"""The records of one submission, by what stands behind the job id in their label: `_[0-9%3]`, `+1`."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One job to prepare and what must be read of it.

    `options` are sbatch's, `then` are commands of root's once it is in the queue, with {id} for its
    job id. `starts` waits until it runs before the next one is submitted. `reads` is empty for a job
    that must not be read, and None for one that is only recorded. `on` has the releases that read
    otherwise, `refused` those that don't take such a job, with the reason.
    """

    name: str
    options: tuple[str, ...] = ()
    reads: Records | None = None
    user: str = "alice"
    time: str | None = "60"
    command: str = "sleep 1000"
    then: tuple[str, ...] = ()
    starts: bool = False
    on: Mapping[str, Records] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def reads_on(self, release: str) -> Records | None:
        """Return what must be read on a release."""
        return self.on.get(release, self.reads)


@dataclass(frozen=True, kw_only=True)
class NodeReading:
    """What must be read of one node: GPUs it has and uses, in all and by type; idle types left out.

    MIG slices stand by profile, shards in all. `usable` is None where no one answer is right.
    """

    has: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    used: int = 0
    used_types: Mapping[str, int] = field(default_factory=dict)
    mig: Mapping[str, int] = field(default_factory=dict)
    mig_used: Mapping[str, int] = field(default_factory=dict)
    shards: int = 0
    shards_used: int = 0
    usable: bool | None = True


def reading_of(job: Job, now_s: float, expected: Reading | None) -> Reading:
    """Return what slurm-score read of a job, in the words of the table and as far as it says."""
    return Reading(
        state=job.state,
        update=job.update_id.lstrip("0123456789"),
        partitions=job.partitions,
        qos=job.qos,
        limit_s=job.time_limit_s,
        nodes=job.nodes,
        cpus=job.cpus,
        gpus=job.gpus.total,
        types=dict(job.gpus.types),
        per_node=job.gpus.per_node,
        slices=dict(job.slices.types),
        shards=job.shards.total,
        shard_types=dict(job.shards.types),
        where=None if expected is None or expected.where is None else _where(job),
        tasks=job.task_count,
        held=job.held,
        pinned=job.pinned,
        eligible=job.eligible(now_s),
        site=job.site_factor,
        restarts=job.restarts,
        follows_leader=job.follows_leader,
        est_s=job.hints.est_s,
        left_s=job.hints.left_s,
        problems=len(job.hints.problems),
        name=None if expected is None or expected.name is None else job.name,
    )


def _where(job: Job) -> Where:
    return Where(
        max_nodes=job.max_nodes,
        mem_mib=job.mem_mib,
        features=job.features,
        prefer=job.prefer,
        req_nodes=job.req_nodes,
        exc_nodes=job.exc_nodes,
        reservation=job.reservation,
    )


def node_reading_of(node: Node, expected: NodeReading) -> NodeReading:
    """Return what slurm-score read of a node, in the words of the table."""
    return NodeReading(
        has=node.gpus.total,
        types=dict(node.gpus.types),
        used=node.gpus_used.total,
        used_types={name: count for name, count in node.gpus_used.types.items() if count},
        mig=dict(node.mig.types),
        mig_used={name: count for name, count in node.mig_used.types.items() if count},
        shards=node.shards.total,
        shards_used=node.shards_used.total,
        usable=None if expected.usable is None else node.usable,
    )
