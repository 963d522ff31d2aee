"""What a schedule was worth: slowdown and waits, in the mean and in the tail, by user and by size. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slurm_score.columns import Ints
from slurm_score.model import Floats
from slurm_score.sim.engine import Schedule

SHORTEST_S = 10
"""Run times below count as this in the bounded slowdown."""

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Where the classes of the table by size begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures of one schedule; times in s, shares from 0 to 1.

    `slowdown` is the average bounded slowdown, `slowdown_gini` how unequally users fare by it (0: all
    alike), `starved` the share of jobs that waited longer than asked about.
    """

    jobs: int
    slowdown: float
    mean_wait_s: float
    p95_wait_s: float
    p99_wait_s: float
    max_wait_s: int
    utilisation: float
    makespan_s: int
    starved: float
    slowdown_gini: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of the jobs of one user, QOS or size."""

    name: str
    jobs: int
    slowdown: float
    mean_wait_s: float
    max_wait_s: int


def bounded_slowdowns(schedule: Schedule) -> Floats:
    """Return max(1, (wait + run) / max(run, 10 s)) of each job, float64[n_jobs].

    Source: Feitelson and Rudolph, Metrics and benchmarking for parallel job scheduling, 1998.
    """
    run_s = schedule.workload.run_s
    flow_s = schedule.wait_s + run_s
    slowdowns: Floats = np.maximum(1.0, flow_s / np.maximum(run_s, SHORTEST_S))
    return slowdowns


def measure(schedule: Schedule, starved_after_s: float) -> Metrics:
    """Return the figures of a schedule."""
    wait_s, slowdowns = schedule.wait_s, bounded_slowdowns(schedule)
    work = schedule.workload
    makespan_s = int(schedule.end_s.max() - work.submit_s.min())
    used = float((work.procs.astype(np.float64) * work.run_s).sum())
    p95, p99 = np.percentile(wait_s, [95, 99]).tolist()
    return Metrics(
        jobs=len(work),
        slowdown=float(slowdowns.mean()),
        mean_wait_s=float(wait_s.mean()),
        p95_wait_s=p95,
        p99_wait_s=p99,
        max_wait_s=int(wait_s.max()),
        utilisation=used / (makespan_s * schedule.pool.procs) if makespan_s else 0.0,
        makespan_s=makespan_s,
        starved=float((wait_s > starved_after_s).mean()),
        slowdown_gini=gini(_means(slowdowns, work.user)),
    )


def gini(values: Floats) -> float:
    """Return the Gini coefficient of numbers that are not negative: 0 where all are equal, below 1."""
    ordered = np.sort(values)
    count, total = len(ordered), float(ordered.sum())
    if count == 0 or total == 0:
        return 0.0
    ranks = np.arange(1, count + 1)
    return float((2 * ranks - count - 1) @ ordered / (count * total))


def by_user(schedule: Schedule) -> list[Row]:
    """Return a row for each user, most jobs first."""
    work = schedule.workload
    names = work.users or tuple(map(str, range(int(work.user.max()) + 1)))
    return sorted(_rows(schedule, work.user, dict(enumerate(names))), key=lambda row: (-row.jobs, row.name))


def by_qos(schedule: Schedule) -> list[Row]:
    """Return a row for each QOS, in the order of the workload; none where it has no QOS."""
    work = schedule.workload
    return [] if work.qos is None else list(_rows(schedule, work.qos, dict(enumerate(work.qos_names))))


def by_gpu_type(schedule: Schedule) -> list[Row]:
    """Return a row for each GPU type that jobs ask for, and for those that take any; none without types.

    Where jobs may name several types, a row for each such set.
    """
    work = schedule.workload
    if work.asked is not None and work.asked.gpus.any():
        sets = dict(enumerate(["|".join(names) or "any" for names in work.asked.gpu_sets]))
        without = len(sets)
        code = np.where(work.asked.gpus > 0, work.asked.gpu_set, without)
        return list(_rows(schedule, code, sets | {without: "no GPU"}))
    if work.gpu_type is None or work.gpus is None:
        return []
    names = dict(enumerate((*work.gpu_types, "any", "no GPU")))
    any_type = len(work.gpu_types)
    code = np.where(work.gpus == 0, any_type + 1, np.where(work.gpu_type < 0, any_type, work.gpu_type))
    return list(_rows(schedule, code, names))


def by_size(schedule: Schedule) -> list[Row]:
    """Return a row for each class of size, from one power of two to the next."""
    tops = [f"{low}" if high - low == 1 else f"{low}-{high - 1}" for low, high in pairwise(SIZES)]
    names = dict(enumerate([*tops, f"{SIZES[-1]}+"], 1))
    return list(_rows(schedule, np.searchsorted(SIZES, schedule.workload.procs, "right"), names))


def _rows(schedule: Schedule, code: Ints, names: Mapping[int, str]) -> Iterator[Row]:
    slowdowns, wait_s = bounded_slowdowns(schedule), schedule.wait_s
    for value in np.unique(code).tolist():
        mask = code == value
        yield Row(
            name=names[value],
            jobs=int(mask.sum()),
            slowdown=float(slowdowns[mask].mean()),
            mean_wait_s=float(wait_s[mask].mean()),
            max_wait_s=int(wait_s[mask].max()),
        )


def _means(values: Floats, code: Ints) -> Floats:
    counts = np.bincount(code)
    means: Floats = (np.bincount(code, values)[counts > 0]) / counts[counts > 0]
    return means


def steps(times_s: Ints, changes: Ints) -> tuple[Ints, Ints]:
    """Return a step function as (times in s, values from then on), from changes at times in any order."""
    at, place = np.unique(times_s, return_inverse=True)
    total = np.zeros(len(at), np.int64)
    np.add.at(total, place, changes)
    return at, np.cumsum(total)


def queue_over_time(schedule: Schedule) -> tuple[Ints, Ints]:
    """Return how many jobs wait, as a step function."""
    ones = np.ones(len(schedule.start_s), np.int64)
    return steps(np.r_[schedule.workload.submit_s, schedule.start_s], np.r_[ones, -ones])


def used_over_time(schedule: Schedule) -> tuple[Ints, Ints]:
    """Return how many processors are in use, as a step function."""
    return steps(*schedule.taken)


def mean_over_time(at_s: Ints, values: Ints) -> float:
    """Return the time mean of a step function over its whole length."""
    lengths = np.diff(at_s)
    return float((values[:-1] * lengths).sum() / lengths.sum()) if lengths.sum() else 0.0


def littles_law(schedule: Schedule) -> tuple[float, float]:
    """Return both sides of Little's law for the queue: its mean length, and arrival rate × mean wait.

    The first comes from the schedule's step function, the second from the waits.
    """
    at_s, waiting = queue_over_time(schedule)
    length_s = int(at_s[-1] - at_s[0])
    rate = len(schedule.start_s) / length_s if length_s else 0.0
    return mean_over_time(at_s, waiting), rate * float(schedule.wait_s.mean())
