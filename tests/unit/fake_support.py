"""Small clusters of the fake Slurm, and short words for what a test asks of them."""

from typing import Any

from slurm_score.gres import GpuCount
from slurm_score.model import Job, Node, Partition
from slurm_score.slurm.fake import START_S, FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate

T0 = START_S
A100, V100 = "a100-40gb", "v100-16gb"
QOS = {"normal": 0, "high": 50, "urgent": 100}


def gpu_node(name: str, gpu_type: str, gpus: int = 2, cpus: int = 8, partitions: str = "gpu") -> Node:
    types = {gpu_type: gpus} if gpus else {}
    return Node(name=name, cpus=cpus, gpus=GpuCount(gpus, types), partitions=tuple(partitions.split(",")))


def two_nodes(*, access: Access = Access.ENFORCE, **options: Any) -> FakeSlurm:
    """Node a with two A100, node v with two V100, one partition."""
    partition = Partition(name="gpu", default=True, max_time_s=86400)
    slurm = FakeSlurm([gpu_node("a", A100), gpu_node("v", V100)], [partition], QOS, **options)
    slurm.guard.access = access
    return slurm


def one_node(cpus: int = 1, **options: Any) -> FakeSlurm:
    """One node without GPUs: with one CPU, one job at a time."""
    slurm = FakeSlurm([gpu_node("n", "", 0, cpus)], [Partition(name="gpu", default=True)], QOS, **options)
    slurm.guard.access = Access.ENFORCE
    return slurm


def job_of(slurm: FakeSlurm, job_id: int) -> Job:
    return next(job for job in slurm.read_jobs() if job.job_id == job_id)


def labels(slurm: FakeSlurm) -> list[str]:
    return [job.label for job in slurm.read_jobs()]


def reasons(slurm: FakeSlurm) -> dict[str, str]:
    return {job.label: job.reason for job in slurm.read_jobs() if job.pending}


def starts(slurm: FakeSlurm) -> dict[str, int]:
    """When each label last started, in seconds after T0."""
    return {run.label: run.start_s - T0 for run in slurm.started.values() if run.start_s is not None}


def write(slurm: FakeSlurm, update_id: str, value: int) -> tuple[str, ...]:
    """Send one update; return the sentences of those that failed."""
    failures = slurm.write_site_factors([SiteFactorUpdate(0, update_id, value)])
    return tuple(failure.message for failure in failures)


def fill(slurm: FakeSlurm, run_time_s: int = 600, **fields: Any) -> int:
    """Let a job take the whole of one_node until T0 + run_time_s."""
    job_id = slurm.submit(Submission(run_time_s=run_time_s, **fields))
    slurm.schedule()
    return job_id


def two_components() -> tuple[Submission, Submission]:
    return (
        Submission(gres=f"gpu:{A100}:2", run_time_s=30),
        Submission(gres=f"gpu:{V100}:2", run_time_s=999),
    )
