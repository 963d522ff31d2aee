"""A queue in columns: what scoring and planning read of its jobs, one numpy array each. Pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_score.hints import NO_HINTS
from slurm_score.jobid import count_tasks
from slurm_score.model import Floats, Job, Queue
from slurm_score.request import Ask, code_asks

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
K = TypeVar("K", bound=Hashable)

_NAMES = (
    "job_id",
    "state",
    "priority",
    "submit_s",
    "eligible_s",
    "time_limit_s",
    "cpus",
    "site_factor",
    "pinned",
    "hides_tasks",
    "het_job_id",
    "tasks",
    "qos",
    "origin",
    "partitions",
    "hints",
    "past_runs",
)
_READ = {name: attrgetter(name) for name in _NAMES}


@dataclass(frozen=True, slots=True)
class Coded(Generic[K]):
    """A column with few different values: `values` holds each once, `codes` int64[n_jobs] which it is."""

    codes: Ints
    values: tuple[K, ...]

    def map(self, value: Callable[[K], float]) -> Floats:
        """Return one number a job, float64[n_jobs], worked out once for each different value."""
        return np.array([value(k) for k in self.values], np.float64)[self.codes]

    def mask(self, holds: Callable[[K], bool]) -> Bools:
        """Return bool[n_jobs], worked out once for each different value."""
        return np.array([holds(k) for k in self.values], np.bool_)[self.codes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The jobs of a queue, row i being `queue.jobs[i]`; times in s, NaN where a job has none.

    `since_s` is from when a job could start: the later of submission and eligibility. `site` is what
    Slurm holds. `requests` pairs GPUs with partitions. `hinted` and `retried` are the rows, in order,
    of the jobs with a hint and of those with an earlier run.
    """

    job_id: Ints
    submit_s: Floats
    since_s: Floats
    eligible: Bools
    limit_s: Floats
    cpus: Floats
    gpus: Floats
    tasks: Floats
    site: Floats
    held: Bools
    pinned: Bools
    follows: Bools
    hides: Bools
    qos: Coded[str]
    origin: Coded[str]
    partitions: Coded[tuple[str, ...]]
    asks: Coded[Ask | None]
    hinted: Ints
    retried: Ints


def columns_of(queue: Queue) -> Columns:
    """Return a queue's columns, made once for each queue."""
    found: Columns | None = queue.memo.get("columns")
    if found is None:
        found = queue.memo["columns"] = _columns(queue.jobs, queue.now_s)
    return found


def _columns(jobs: Sequence[Job], now_s: float) -> Columns:
    read: dict[str, list[Any]] = {name: list(map(get, jobs)) for name, get in _READ.items()}
    submit, eligible = _floats(read["submit_s"]), _floats(read["eligible_s"])
    job_id = np.array(read["job_id"], np.int64)
    leader = _floats(read["het_job_id"])
    held = np.array(read["priority"], np.int64) == 0
    pending = np.fromiter((state == "PENDING" for state in read["state"]), np.bool_, len(jobs))
    codes, table = code_asks(jobs)
    asks = Coded(np.array(codes, np.int64), table)
    return Columns(
        job_id=job_id,
        submit_s=submit,
        since_s=np.maximum(submit, eligible),
        eligible=pending & ~held & (eligible <= now_s),
        limit_s=_floats(read["time_limit_s"]),
        cpus=_floats(read["cpus"]),
        gpus=asks.map(lambda ask: ask.gpus.total if ask else 0),
        tasks=_coded(read["tasks"]).map(lambda tasks: count_tasks(tasks) if tasks else 1),
        site=_floats(read["site_factor"]),
        held=held,
        pinned=np.array(read["pinned"], np.bool_),
        follows=~np.isnan(leader) & (leader != job_id),
        hides=np.array(read["hides_tasks"], np.bool_),
        qos=_coded(read["qos"]),
        origin=_coded(read["origin"]),
        partitions=_coded(read["partitions"]),
        asks=asks,
        hinted=_rows(hints is not NO_HINTS and hints != NO_HINTS for hints in read["hints"]),
        retried=_rows(bool(runs) for runs in read["past_runs"]),
    )


def _floats(values: Sequence[Any]) -> Floats:
    return np.array(values, np.float64)  # None becomes NaN


def _rows(marks: Iterable[bool]) -> Ints:
    return np.array([i for i, mark in enumerate(marks) if mark], np.int64)


def _coded(values: Sequence[K]) -> Coded[K]:
    table: dict[K, int] = {}
    codes = [table.setdefault(value, len(table)) for value in values]
    return Coded(np.array(codes, np.int64), tuple(table))
