"""Job ids: plain jobs, arrays, heterogeneous jobs and steps, and the id to name in an update. Pure."""

import re
from dataclasses import dataclass
from typing import Literal

from slurm_score.errors import ParseError

Kind = Literal["job", "array", "task", "het", "step"]

_FORM = re.compile(
    r"(?P<id>\d{1,10})"
    r"(?:\+(?P<offset>\d{1,4})|_(?P<task>\d{1,10})|_\[(?P<tasks>\d[\d,:-]*|)(?P<cut>\.{3})?"
    r"(?:%(?P<throttle>\d{1,10}))?(?:\]|(?<=\.{3})))?"
    r"(?:\.(?P<step>\d{1,10}|batch|extern|interactive|TBD))?",
    re.ASCII,
)
_SPAN = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)
_FORMS = "12, 12_3, 12_[0-9%3], 12+1 or 12.batch"


@dataclass(frozen=True, slots=True)
class JobId:
    """A job id as squeue prints it: `12`, `12_3`, `12_[0-9%3]`, `12+1`, `12.0`.

    `tasks` is the list inside the brackets, without what Slurm cut off where `truncated` is set.
    """

    job_id: int
    task: int | None = None
    tasks: str = ""
    throttle: int | None = None
    het_offset: int | None = None
    truncated: bool = False
    step: str = ""

    @property
    def kind(self) -> Kind:
        """What the id names; a step of whatever job is a step."""
        if self.step:
            return "step"
        if self.tasks or self.truncated:
            return "array"
        if self.het_offset is not None:
            return "het"
        return "job" if self.task is None else "task"

    @property
    def update_id(self) -> str:
        """The id for `scontrol update`: neither splits an array nor leaves out a het component.

        A list that covers the pending tasks of an array record updates that record alone; part of
        one would split it. So a list that was cut off can't be named: the plain array id stands for
        it, which reaches tasks that run or have ended as well. A het leader's id stands for all
        components.

        Source: slurm src/slurmctld/job_mgr.c, update_job_str.
        """
        if self.truncated:
            return str(self.job_id)
        if self.tasks:
            return f"{self.job_id}_[{self.tasks}]"
        return str(self.job_id) if self.task is None else f"{self.job_id}_{self.task}"

    @property
    def task_count(self) -> int:
        """How many jobs it stands for; of a list that was cut off, those that can be seen."""
        return count_tasks(self.tasks) if self.tasks else 1

    def __str__(self) -> str:
        """Return the id as squeue prints it."""
        step = f".{self.step}" if self.step else ""
        if self.tasks or self.truncated:
            limit = "" if self.throttle is None else f"%{self.throttle}"
            return f"{self.job_id}_[{self.tasks}{'...' if self.truncated else ''}{limit}]{step}"
        if self.het_offset is not None:
            return f"{self.job_id}+{self.het_offset}{step}"
        return f"{self.job_id}{'' if self.task is None else f'_{self.task}'}{step}"


def parse_job_id(text: str) -> JobId:
    """Return the job id of a text such as `12`, `12_3`, `12_[0-9%3]`, `12+1`, `12_4.batch`.

    squeue cuts task lists at 64 characters and puts `...` there, unless SLURM_BITSTR_LEN says else;
    the last number before that may be cut as well and is left out.

    Raises:
        ParseError: none of these forms.
    """
    match = _FORM.fullmatch(text.strip())
    if not match or (match["tasks"] == "" and not match["cut"]):
        raise ParseError("not a job id", text, _FORMS)
    number = {key: None if match[key] is None else int(match[key]) for key in ("task", "throttle", "offset")}
    tasks, cut = match["tasks"] or "", match["cut"] is not None
    if cut:
        tasks = tasks.rpartition(",")[0]
    if tasks:
        count_tasks(tasks)
    return JobId(
        job_id=int(match["id"]),
        task=number["task"],
        tasks=tasks,
        throttle=number["throttle"],
        het_offset=number["offset"],
        truncated=cut,
        step=match["step"] or "",
    )


def count_tasks(tasks: str) -> int:
    """Return how many tasks a list such as `0-9,12,20-30:5` names.

    Raises:
        ParseError: not such a list.
    """
    return sum(len(span) for span in _spans(tasks))


def has_task(tasks: str, task: int) -> bool:
    """Return whether a list such as `0-9,12,20-30:5` names a task.

    Raises:
        ParseError: not such a list.
    """
    return any(task in span for span in _spans(tasks))


def _spans(tasks: str) -> list[range]:
    spans = []
    for part in tasks.split(","):
        match = _SPAN.fullmatch(part)
        if not match:
            raise ParseError("not a list of array tasks", tasks, "0-9,12,20-30:5")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        spans.append(range(first, last + 1, max(1, step)))
    return spans
