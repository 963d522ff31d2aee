"""What slurm-score needs of Slurm, and the guard on everything that writes to it.

`read_*` asks Slurm and changes nothing. `write_site_factors` is the only call that changes
anything, and every implementation lets its `WriteGuard` decide first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from slurm_score.errors import WriteRefusedError
from slurm_score.model import Cluster, EndedRun, Job, PastRun, SlurmConfig
from slurm_score.plan import SiteFactorUpdate

__all__ = [
    "Access",
    "ControllerHost",
    "Gateway",
    "Identity",
    "Patience",
    "SiteFactorUpdate",
    "UpdateFailure",
    "WriteGuard",
]


@dataclass(frozen=True, slots=True)
class UpdateFailure:
    """An update that Slurm did not carry out, with its own sentence."""

    update: SiteFactorUpdate
    message: str


class Access(StrEnum):
    """What a gateway may write: nothing, zeros only (rollback), or any SiteFactor (enforce)."""

    READ_ONLY = "read-only"
    RESET = "reset"
    ENFORCE = "enforce"


@dataclass(slots=True)
class WriteGuard:
    """Decides whether updates may go out; the only such decision in the program."""

    access: Access = Access.READ_ONLY

    def permit(self, updates: Sequence[SiteFactorUpdate]) -> None:
        """Let the updates pass, or raise.

        Raises:
            WriteRefusedError: the access doesn't cover them.
        """
        if self.access is Access.ENFORCE:
            return
        if self.access is Access.RESET and all(update.value == 0 for update in updates):
            return
        raise WriteRefusedError(f"{len(updates)} updates refused: access is {self.access}, not enforce")


@dataclass(slots=True)
class Patience:
    """How long Slurm may take to answer: as long as usual, and never longer than the cycle has left."""

    left_s: Callable[[], float] = lambda: math.inf

    def timeout_s(self, usual_s: float, share: float = 1.0) -> float:
        """Return the time-out of a command that may take a share of what is left, 0 or less if nothing is."""
        return min(usual_s, share * self.left_s())


@dataclass(frozen=True, slots=True)
class ControllerHost:
    """A host with a slurmctld, and whether that answers."""

    host: str
    up: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """Who we are to slurmctld: the user name and what AdminLevel it has there."""

    user: str
    admin_level: str

    def may_set_site_factor(self, slurm_user: str) -> bool:
        """Return whether slurmctld lets this user set SiteFactor.

        Source: slurm src/slurmctld/job_mgr.c, _update_job: validate_operator().
        """
        return self.user in {"root", slurm_user} or self.admin_level in {"Operator", "Administrator"}


class Gateway(Protocol):
    """The door to Slurm."""

    guard: WriteGuard
    patience: Patience

    def read_controllers(self) -> tuple[ControllerHost, ...]:
        """Return the hosts of the controllers, the primary first; the first that is up acts.

        Raises:
            ControllerDownError: none of them answers.
        """
        ...

    def read_config(self) -> SlurmConfig:
        """Return slurmctld's configuration."""
        ...

    def read_cluster(self) -> Cluster:
        """Return configuration, partitions, nodes and QOS; `time_s` is now, by slurmctld's clock."""
        ...

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that wait, run or will run again, with the SiteFactor that Slurm holds."""
        ...

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the earlier runs of requeued jobs, oldest first, from accounting."""
        ...

    def read_ended_runs(self, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
        """Return the runs that ended after `since_s` and not after `until_s`, however, from accounting."""
        ...

    def read_identity(self) -> Identity:
        """Return who we are to slurmctld."""
        ...

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Set SiteFactors, going on after a failure; return the updates that failed.

        Raises:
            WriteRefusedError: the guard doesn't permit it; nothing was sent.
            SlurmError: nothing could be sent, or it can't be told what was.
        """
        ...
