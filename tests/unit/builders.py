"""A small cluster and jobs for it, at one time; every test names only what it is about.

Partition main (the default): c1 and c2 with 12 CPUs each. Partition gpu: g1 and g2 with two a100 each,
g3 with four v100, 8 CPUs each. QOS normal has priority 0, high 1,000, low 250.
"""

from dataclasses import replace
from typing import Any

from slurm_score.contention import gpu_pressure
from slurm_score.gres import GpuCount, GpuRequest, gpu_request
from slurm_score.model import Cluster, Job, Node, Partition, Queue, SlurmConfig
from slurm_score.policy import Policy, load_policy

NOW = 1_700_000_000
MINUTE, HOUR, DAY = 60, 3600, 86400


def make_job(job_id: int = 1, *, wait_s: float = 0, **changes: Any) -> Job:
    """Return a pending job of alice in main: one CPU, one hour, eligible since `wait_s`."""
    since = int(NOW - wait_s)
    values: dict[str, Any] = {
        "label": str(job_id),
        "update_id": str(job_id),
        "user": "alice",
        "account": "physics",
        "qos": "normal",
        "partitions": ("main",),
        "submit_s": since,
        "eligible_s": since,
        "time_limit_s": 3600.0,
        "site_factor": 0,
    }
    return Job(job_id=job_id, **values | changes)


def make_gpu_job(job_id: int, gres: str, **changes: Any) -> Job:
    """Return a pending job in gpu that asks for `gres` as --gpus does."""
    return make_job(job_id, partitions=("gpu",), gpus=gpu_request(per_job=gres), **changes)


def make_node(name: str, gpus: str = "", **changes: Any) -> Node:
    """Return an idle node with 8 CPUs; `gpus` is `type:count` or empty."""
    gpu_type, _, count = gpus.partition(":")
    has = GpuCount(int(count), {gpu_type: int(count)}) if gpus else GpuCount()
    values: dict[str, Any] = {"cpus": 8, "gpus": has, "partitions": ("gpu" if gpus else "main",)}
    return Node(name=name, **values | changes)


def make_cluster(**changes: Any) -> Cluster:
    """Return the cluster that the module's docstring describes."""
    values: dict[str, Any] = {
        "time_s": float(NOW),
        "config": SlurmConfig(
            cluster="test", slurm_user="slurm", priority_type="priority/multifactor", release="24.11.5"
        ),
        "partitions": {
            "main": Partition(name="main", default=True, max_time_s=7.0 * DAY, cpus=24),
            "gpu": Partition(name="gpu", default_time_s=2.0 * HOUR, max_time_s=2.0 * DAY, cpus=24),
        },
        "nodes": (
            make_node("c1", cpus=12),
            make_node("c2", cpus=12),
            make_node("g1", "a100:2"),
            make_node("g2", "a100:2"),
            make_node("g3", "v100:4"),
        ),
        "qos": {"normal": 0, "high": 1000, "low": 250},
    }
    return Cluster(**values | changes)


def drained(cluster: Cluster, *names: str) -> Cluster:
    """Return the cluster with some of its nodes drained."""
    return replace(
        cluster,
        nodes=tuple(
            replace(node, usable=False, states=("IDLE", "DRAIN")) if node.name in names else node
            for node in cluster.nodes
        ),
    )


def make_queue(*jobs: Job, cluster: Cluster | None = None, now_s: float = NOW) -> Queue:
    """Return a queue of the jobs, with the GPU pressure that they make."""
    at = cluster or make_cluster()
    return Queue(jobs=jobs, cluster=at, now_s=now_s, pressure=gpu_pressure(jobs, at))


def make_policy(**changes: Any) -> Policy:
    """Return the default policy with some settings changed; durations are seconds."""
    return load_policy(Policy().stored() | changes)


def typed(gpu_type: str, count: int, per_node: int = 0) -> GpuRequest:
    """Return a request for GPUs of one type."""
    return GpuRequest(count, ((gpu_type, count),), per_node)
