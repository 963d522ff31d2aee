"""Queues on the fake Slurm for the tests of the cycle."""

from dataclasses import replace
from pathlib import Path

from slurm_score.brakes import Brakes
from slurm_score.gres import GpuCount
from slurm_score.model import Cluster, Node, Partition, SlurmConfig
from slurm_score.policy import Mode, Policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.slurm.fake import FakeSlurm, Submission

ENFORCE = Policy(mode=Mode.ENFORCE)
NODES = [Node(name="g1", cpus=8, gpus=GpuCount(4, {"a100": 4}), partitions=("main",))]


def busy_slurm(slurm: FakeSlurm | None = None) -> FakeSlurm:
    """Return a cluster whose only node is taken for an hour, so that what comes next waits."""
    slurm = slurm or FakeSlurm(
        NODES, [Partition(name="main", default=True, cpus=8)], {"normal": 0, "high": 100}
    )
    slurm.submit(Submission(gres="gpu:4", cpus_per_task=8, time_limit_s=3600, run_time_s=3600))
    slurm.schedule()
    return slurm


def reprioritizer_of(
    slurm: FakeSlurm, folder: Path, policy: Policy = ENFORCE, brakes: Brakes | None = None
) -> Reprioritizer:
    """Return a reprioritizer with its snapshot in a folder."""
    return Reprioritizer(slurm, lambda: policy, folder / "snapshot.jsonl", brakes)


def sites_of(slurm: FakeSlurm) -> dict[int, int | None]:
    """Return the SiteFactors of the pending jobs by job id."""
    return {job.job_id: job.site_factor for job in slurm.read_jobs() if job.pending}


class ConfiguredSlurm(FakeSlurm):
    """A Slurm with a configuration of the test's own."""

    config = SlurmConfig()

    def read_cluster(self) -> Cluster:
        """Return the cluster with that configuration."""
        cluster = super().read_cluster()
        return replace(cluster, config=self.config)


def waiting(slurm: FakeSlurm, count: int) -> list[int]:
    """Return the ids of so many jobs that all want another SiteFactor."""
    jobs = [slurm.submit(Submission(gres="gpu:1", time_limit_s=600 + 600 * i)) for i in range(count)]
    slurm.schedule()
    return jobs


def settled(slurm: FakeSlurm, folder: Path) -> dict[int, int | None]:
    """Return the SiteFactors after one cycle of a new process, which must leave nothing to do."""
    reprioritizer_of(slurm, folder).cycle()
    assert reprioritizer_of(slurm, folder).cycle().planned == 0
    return sites_of(slurm)
