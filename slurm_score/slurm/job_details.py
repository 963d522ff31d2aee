"""What `scontrol show job -o` tells of waiting jobs and squeue doesn't. Pure.

squeue's MaxNodes is never below NumNodes: `--gpus=2`, which Slurm may spread over two nodes, looks like
`--nodes=1 --gpus=2`, which it may not. scontrol writes `NumNodes=1` for one and `NumNodes=1-1` for the
other. And squeue of 22.05 has no field for `--exclude`.

From 24.11 on that holds for jobs that the scheduler has looked at. Of one that is held, or waits for a
dependency or a reservation, the second number is the first, whatever was asked; and after a restart of
slurmctld there is none until the next look.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from slurm_score.model import Job
from slurm_score.slurm.reading import text_of, whole
from slurm_score.units import MINUTE_S

_DETAIL = re.compile(
    r"^JobId=(?P<id>\d+) .*? ExcNodeList=(?P<exc>\S*) .*? NumNodes=\w+(?:-(?P<max>\w+))? NumCPUs=",
    re.MULTILINE,
)
_RECORD = re.compile(r"^JobId=(\d+) ", re.MULTILINE)


PAUSE_S = 5 * MINUTE_S
"""How long scontrol isn't asked again, whatever is missing."""


@dataclass(frozen=True, slots=True)
class JobDetail:
    """The most nodes that a job may get, 0 for no limit, and those that it must not."""

    max_nodes: int = 0
    exc_nodes: str = ""


def parse_details(text: str) -> dict[int, JobDetail]:
    """Return the details by job id.

    Names and comments may hold line ends, and so lines that look like another job's. A job that has
    more than one line is left out: nobody can change what is read of another's job, only hide it.

    Raises:
        ParseError: a number of nodes can't be read.
    """
    lines = Counter(_RECORD.findall(text))
    return {
        int(match["id"]): JobDetail(whole(match["max"] or "", 0), text_of(match["exc"]))
        for match in _DETAIL.finditer(text)
        if lines[match["id"]] == 1
    }


class Details:
    """The details that were told last, and whether to ask again.

    scontrol's listing costs slurmctld as much as squeue's and us more, and what it adds matters little to
    the order: it is asked for where a job needs it that wasn't there the last time, and every five minutes
    at most.
    """

    def __init__(self) -> None:
        self._known: Mapping[int, JobDetail] = {}
        self._asked_s = -math.inf

    def missing(self, wanted: Iterable[int], now_s: float) -> bool:
        """Return whether to ask again."""
        if 0 <= now_s - self._asked_s < PAUSE_S:
            return False
        return any(job_id not in self._known for job_id in wanted)

    def learn(self, known: Mapping[int, JobDetail], now_s: float) -> None:
        """Remember what was told of all jobs."""
        self._known, self._asked_s = known, now_s

    def add_to(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs, those that wait with what their details add."""
        known = self._known
        return [
            _with_detail(job, known[job.job_id]) if job.pending and job.job_id in known else job
            for job in jobs
        ]


def wanting_details(jobs: Iterable[Job], *, all_waiting: bool = False) -> list[int]:
    """Return the ids of waiting jobs whose GPUs may have to stand on one node, for all that squeue tells.

    `all_waiting`: of all jobs that wait.
    """
    return [job.job_id for job in jobs if (job.pending if all_waiting else _may_be_bound(job))]


def _may_be_bound(job: Job) -> bool:
    asked = (job.gpus, job.slices, job.shards)
    if not job.pending or not _looked_at(job) or job.max_nodes:
        return False
    return sum(request.total for request in asked) > 1 and not any(request.per_node for request in asked)


def _looked_at(job: Job) -> bool:
    return not job.held and job.eligible_s is not None


def _with_detail(job: Job, detail: JobDetail) -> Job:
    max_nodes = job.max_nodes or (detail.max_nodes if _looked_at(job) else 0)
    exc_nodes = job.exc_nodes or detail.exc_nodes
    if (max_nodes, exc_nodes) == (job.max_nodes, job.exc_nodes):
        return job
    return replace(job, max_nodes=max_nodes, exc_nodes=exc_nodes)
