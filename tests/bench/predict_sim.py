"""python -m tests.bench.predict_sim [LOG ...]: what predictions are worth in a schedule, on four logs.

EASY++ with Tsafrir's predictor and with ours; the default policy under EASY with time limits, the median of
the last five, ours, and perfect knowledge, beside first come, first served. Batch order. Of some
also five copies of each log whose submissions are 0-120 s later (seeded): a single schedule moves by several
percent with a second. Prints a table for each log; the last line is JSON. The logs aren't
part of the project.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import numpy as np

from slurm_score.policy import Policy
from slurm_score.report.table import format_table
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.metrics import measure
from slurm_score.sim.policies import Pool, QueuePolicy, named
from slurm_score.sim.workload import Workload
from slurm_score.units import HOUR_S
from tests.bench.verify_sim import LOGS, workload

EASYPP = {p: (named("fcfs"), Options(backfill="easy++", plan=p)) for p in ("tsafrir", "recent", "similar")}
OURS = {
    p: (QueuePolicy("default", Policy(), p), Options())
    for p in ("request", "recent", "similar", "clairvoyant")
}
ROWS = {
    "fcfs": (named("fcfs"), Options()),
    **{f"easy++ {p}": row for p, row in EASYPP.items()},
    **{f"default {p}": row for p, row in OURS.items()},
}
"""What is simulated by the name of its row."""
COPIED = ("fcfs", "default recent", "default similar")
COPIES, LATEST_S = 5, 120


class Task(NamedTuple):
    """One simulation: of a copy of a log, 0 for the log itself."""

    log: str
    row: str
    copy: int


class Found(NamedTuple):
    """What one simulation brought; times in s."""

    slowdown: float
    mean_wait_s: float
    p99_wait_s: float
    max_wait_s: float
    jobs_per_s: float


def copy_of(log: str, copy: int) -> Workload:
    """Return a log, or a copy of it whose jobs are submitted a little later, each by a time of its own."""
    work = workload(log)
    if not copy:
        return work
    later_s = np.random.Generator(np.random.PCG64(copy)).integers(0, LATEST_S, len(work), endpoint=True)
    return replace(work, submit_s=work.submit_s + later_s)


def simulated(task: Task) -> Found:
    """Return what one simulation brought."""
    policy, options = ROWS[task.row]
    work = copy_of(task.log, task.copy)
    began = time.perf_counter()
    schedule = simulate(work, Pool(procs=work.procs_total), policy, options)
    took_s = time.perf_counter() - began
    m = measure(schedule, 48 * HOUR_S)
    return Found(m.slowdown, m.mean_wait_s, m.p99_wait_s, m.max_wait_s, len(work) / took_s)


def tasks(logs: tuple[str, ...]) -> Iterator[Task]:
    """Yield all simulations of some logs, the longest first."""
    for log in reversed(logs):
        yield from (Task(log, row, copy) for row in reversed(COPIED) for copy in range(1, COPIES + 1))
        yield from (Task(log, row, 0) for row in ROWS)


def mean_of(found: list[Found]) -> Found:
    """Return the means of some simulations."""
    return Found(*map(fmean, zip(*found, strict=True)))


def compared(ours: Found, theirs: Found) -> dict[str, float]:
    """Return ours over theirs."""
    return {
        "slowdown": round(ours.slowdown / theirs.slowdown, 4),
        "mean_wait": round(ours.mean_wait_s / theirs.mean_wait_s, 4),
        "p99_wait": round(ours.p99_wait_s / theirs.p99_wait_s, 4),
    }


def told(log: str, found: dict[Task, Found]) -> dict[str, object]:
    """Return the figures of a log and what they come to."""
    one = {row: found[Task(log, row, 0)] for row in ROWS}
    copies = {row: [found[Task(log, row, i)] for i in range(1, COPIES + 1)] for row in COPIED}
    many = {row: mean_of(rows) for row, rows in copies.items()}
    recent, ours = copies["default recent"], copies["default similar"]
    return {
        "easypp_ours_over_tsafrir": compared(one["easy++ similar"], one["easy++ tsafrir"]),
        "default_ours_over_limits": compared(one["default similar"], one["default request"]),
        "default_ours_over_recent": compared(many["default similar"], many["default recent"]),
        "by_copy": [round(a.slowdown / b.slowdown, 4) for a, b in zip(ours, recent, strict=True)],
        "longest_over_fcfs": round(one["default similar"].max_wait_s / one["fcfs"].max_wait_s, 4),
        "longest_over_fcfs_by_copy": [
            round(a.max_wait_s / b.max_wait_s, 4) for a, b in zip(ours, copies["fcfs"], strict=True)
        ],
        "jobs_per_s": round(one["default similar"].jobs_per_s),
    }


def table(log: str, found: dict[Task, Found]) -> str:
    """Return the figures of a log as a table."""
    named_rows = [(row, found[Task(log, row, 0)]) for row in ROWS]
    named_rows += [
        (f"{row}, {COPIES} copies", mean_of([found[Task(log, row, i)] for i in range(1, COPIES + 1)]))
        for row in COPIED
    ]
    return format_table(
        [log, "SLOWDOWN", "WAIT_S", "P99_S", "LONGEST_S"],
        [
            [row, f"{f.slowdown:.2f}", f"{f.mean_wait_s:.0f}", f"{f.p99_wait_s:.0f}", f"{f.max_wait_s:.0f}"]
            for row, f in named_rows
        ],
    )


def main(words: list[str]) -> None:
    """Print the tables, the last line as JSON."""
    logs = tuple(words) or LOGS
    wanted = list(tasks(logs))
    with ProcessPoolExecutor() as pool:
        found = dict(zip(wanted, pool.map(simulated, wanted), strict=True))
    answer = {log: told(log, found) for log in logs}
    for log in logs:
        sys.stdout.write(table(log, found) + "\n\n")
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
