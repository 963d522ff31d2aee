"""Job ids: plain jobs, arrays and heterogeneous jobs, and the id to name in an update. Pure."""

import re
from dataclasses import dataclass

from slurm_score.errors import ParseError

_FORM = re.compile(
    r"(?P<id>\d{1,10})"
    r"(?:\+(?P<offset>\d{1,4})|_(?P<task>\d{1,10})|_\[(?P<tasks>[\d,:-]+)(?:%(?P<throttle>\d{1,10}))?\])?",
    re.ASCII,
)
_SPAN = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class JobId:
    """A job id as squeue prints it: `12`, `12_3`, `12_[0-9%3]` or `12+1`."""

    job_id: int
    task: int | None = None
    tasks: str = ""
    throttle: int | None = None
    het_offset: int | None = None

    @property
    def update_id(self) -> str:
        """The id for `scontrol update`: neither splits an array nor leaves out a het component.

        Source: slurm src/slurmctld/job_mgr.c, update_job_str: a list that covers the pending tasks
        of an array record updates that record alone; a het leader's id stands for all components.
        """
        if self.tasks:
            return f"{self.job_id}_[{self.tasks}]"
        return str(self.job_id) if self.task is None else f"{self.job_id}_{self.task}"

    def __str__(self) -> str:
        """Return the id as squeue prints it."""
        if self.tasks:
            limit = "" if self.throttle is None else f"%{self.throttle}"
            return f"{self.job_id}_[{self.tasks}{limit}]"
        if self.het_offset is not None:
            return f"{self.job_id}+{self.het_offset}"
        return self.update_id


def parse_job_id(text: str) -> JobId:
    """Return the job id of a text such as `12`, `12_3`, `12_[0-9%3]`, `12+1`.

    Raises:
        ParseError: none of these forms; a task list that was cut off (`12_[0-9,...]`) is one.
    """
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise ParseError("not a job id", text, "12, 12_3, 12_[0-9%3] or 12+1")
    if match["tasks"]:
        count_tasks(match["tasks"])
    number = {name: None if match[name] is None else int(match[name]) for name in ("task", "throttle")}
    offset = None if match["offset"] is None else int(match["offset"])
    return JobId(int(match["id"]), number["task"], match["tasks"] or "", number["throttle"], offset)


def count_tasks(tasks: str) -> int:
    """Return how many tasks a list such as `0-9,12,20-30:5` names.

    Raises:
        ParseError: not such a list.
    """
    total = 0
    for part in tasks.split(","):
        match = _SPAN.fullmatch(part)
        if not match:
            raise ParseError("not a list of array tasks", tasks, "0-9,12,20-30:5")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        total += len(range(first, last + 1, max(1, step)))
    return total
