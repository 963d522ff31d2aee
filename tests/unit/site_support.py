"""Small clusters and what jobs ask of them, for the simulator's tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slurm_score.sim.cluster import Site, parse_site
from slurm_score.sim.engine import Options
from slurm_score.sim.hetero import ClusterSchedule, simulate_cluster
from slurm_score.sim.node_events import NodeEvent, Requeue
from slurm_score.sim.policies import QueuePolicy, named
from slurm_score.sim.scheduler import Scheduler
from slurm_score.sim.workload import Asked, Workload

SITE = """
nodes:
  - {names: "n[1-2]", cores: 4, mem_mb: 1000, features: [IB], weight: 10}
  - {names: "a1", cores: 4, mem_mb: 1000, gres: "gpu:A100:2", features: [IB, big], weight: 30}
  - {names: "v[1-2]", cores: 4, mem_mb: 1000, gres: "gpu:v100:2", weight: 20}
partitions:
  all: {nodes: "n[1-2],a1,v[1-2]", default: true}
  gpus: {nodes: "a1,v[1-2]"}
qos: {low: 0, normal: 10, high: 20}
preempts: {high: [low]}
"""
EVERY_EVENT = Options(
    backfill="slurm", scheduler=Scheduler(batch_sched_delay_s=0, bf_interval_s=0, bf_resolution_s=1)
)


class Job(NamedTuple):
    """One job: what it asks for on each node, times in s."""

    submit_s: int
    run_s: int
    nodes: int = 1
    cores: int = 1
    mem_mib: int = 0
    gpus: int = 0
    types: tuple[str, ...] = ()
    request_s: int = 0
    exclusive: bool = False
    partition: str = ""
    features: str = ""
    qos: str = ""
    user: int = 0


def site(text: str = SITE) -> Site:
    """Return the small cluster, or that of a text."""
    return parse_site(text, "small.yaml")


def jobs(rows: Sequence[Job]) -> Workload:
    """Return jobs as a workload, numbered from 1; the limit is the run time where none is given."""
    sets, features = sorted({row.types for row in rows}), sorted({row.features for row in rows})
    partitions, qos = sorted({row.partition for row in rows}), sorted({row.qos for row in rows})
    asked = Asked(
        nodes=np.array([row.nodes for row in rows]),
        cores=np.array([row.cores for row in rows]),
        mem_mib=np.array([row.mem_mib for row in rows]),
        gpus=np.array([row.gpus for row in rows]),
        exclusive=np.array([row.exclusive for row in rows]),
        partition=np.array([partitions.index(row.partition) for row in rows]),
        gpu_set=np.array([sets.index(row.types) for row in rows]),
        feature=np.array([features.index(row.features) for row in rows]),
        partitions=tuple(partitions),
        gpu_sets=tuple(sets),
        features=tuple(features),
    )
    return Workload(
        name="small",
        job_id=np.arange(1, len(rows) + 1),
        submit_s=np.array([row.submit_s for row in rows]),
        run_s=np.array([row.run_s for row in rows]),
        procs=asked.nodes * asked.cores,
        request_s=np.array([max(row.run_s, row.request_s) for row in rows]),
        user=np.array([row.user for row in rows]),
        gpus=asked.nodes * asked.gpus,
        qos=np.array([qos.index(row.qos) for row in rows]),
        qos_names=tuple(qos),
        asked=asked,
    )


def ran(
    rows: Sequence[Job],
    where: Site | None = None,
    policy: QueuePolicy | None = None,
    options: Options = EVERY_EVENT,
    *,
    happens: Sequence[NodeEvent] = (),
    requeue: Requeue | None = None,
) -> ClusterSchedule:
    """Return the schedule of some jobs on the small cluster, first come, first served."""
    return simulate_cluster(
        jobs(rows), where or site(), policy or named("fcfs"), options,
        happens=happens, requeue=requeue or Requeue(),
    )  # fmt: skip


def placed(schedule: ClusterSchedule) -> dict[int, list[str]]:
    """Return on which nodes each job ran, by its place, whatever the run."""
    found: dict[int, list[str]] = {}
    for row, node in zip(schedule.use.row.tolist(), schedule.use.node.tolist(), strict=True):
        found.setdefault(row, []).append(schedule.site.node_names[node])
    return {row: sorted(names) for row, names in sorted(found.items())}
