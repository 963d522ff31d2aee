"""What happens to nodes, and what a job keeps that loses its nodes. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from slurm_score.sim import nodes

HAPPENS = {"fail": nodes.FAIL, "drain": nodes.DRAIN, "resume": nodes.RESUME}


class NodeEvent(NamedTuple):
    """What happens to a node at a time in s: `fail` ends its jobs, `drain` keeps new ones away, `resume`."""

    time_s: int
    node: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """What a job keeps that has to wait again after a failure or a preemption: its wait, its progress.

    Slurm keeps neither by itself; programs that write checkpoints keep their progress.
    """

    keeps_wait: bool = False
    checkpoints: bool = False


KEEPS_NOTHING = Requeue()
"""As Slurm does by itself."""
