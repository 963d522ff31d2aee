"""What `scontrol show config` says, as a frozen value. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConfig:
    """What `scontrol show config` says, as far as it matters here; the first controller is the primary.

    `operators` are the users whom PrivateData doesn't bind, read only where it has `jobs`.
    """

    cluster: str = ""
    release: str = ""
    slurm_user: str = ""
    priority_type: str = ""
    priority_flags: tuple[str, ...] = ()
    priority_weights: Mapping[str, int] = field(default_factory=dict)
    site_factor_plugin: str = ""
    scheduler_parameters: tuple[str, ...] = ()
    slurmctld_parameters: tuple[str, ...] = ()
    select_type_parameters: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    job_submit_plugins: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] = ()
    slurm_conf: str = ""
    boot_time_s: int | None = None
    private_data: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()

    @property
    def jobs_are_private(self) -> bool:
        """Whether ordinary users are shown their own jobs only."""
        return "jobs" in self.private_data

    @property
    def submits_to_lua(self) -> bool:
        """Whether slurmctld shows job_submit.lua each new job."""
        return "lua" in self.job_submit_plugins

    @property
    def shards_of_one_gpu(self) -> bool:
        """Whether a job gets the shards of a node from one of its GPUs only, as it does by default."""
        return "MULTIPLE_SHARING_GRES_PJ" not in self.select_type_parameters

    @property
    def rate_limited(self) -> bool:
        """Whether slurmctld limits the RPCs of every user but root and SlurmUser (23.02 and later)."""
        return "rl_enable" in self.slurmctld_parameters

    @property
    def backfill_continues(self) -> bool:
        """Whether a backfill cycle survives a job update that comes while it yields its locks."""
        return "bf_continue" in self.scheduler_parameters

    @property
    def updates_young_jobs(self) -> bool:
        """Whether an update never waits for a job's accounting record: from 24.11 on (trap 22)."""
        numbers = self.release.split(".")[:2]
        return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= (24, 11)

    @property
    def priority_range(self) -> int:
        """The most that Slurm's own factors can add up to."""
        return sum(self.priority_weights.values())
