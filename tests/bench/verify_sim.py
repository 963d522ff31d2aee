"""python -m tests.bench.verify_sim: the simulator against published figures; exit 1 if one fails.

Job by job: schedules of Gaussier et al., SC'15. By their printed digits: RLScheduler's Table V (SC'20)
and a grid of six policies. By bounds: the default policy with the predictor `recent`. The data is not
part of the project.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from slurm_score.policy import Policy
from slurm_score.sim.engine import Options, Schedule, simulate
from slurm_score.sim.jit import has_numba
from slurm_score.sim.metrics import bounded_slowdowns, littles_law
from slurm_score.sim.policies import Pool, QueuePolicy, named
from slurm_score.sim.swf import read_swf
from slurm_score.sim.workload import Workload, rows_of

DATA = Path(__file__).parents[2].parent / "shared" / "data"
LOGS = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE")

SCHEDULES = {
    "easy.swf.gz": Options(order="pyss"),
    "easy-clairvoyant.swf.gz": Options(order="pyss", plan="clairvoyant"),
    "easy-sjbf-clairvoyant.swf.gz": Options(order="pyss", plan="clairvoyant", backfill="easy-sjbf"),
    "easypp-tsafrir.swf.gz": Options(order="pyss", plan="tsafrir", backfill="easy++"),
    "easy-batch.waits.txt.gz": Options(order="batch"),
}
"""Published schedules by the end of their files' names, and how they come about."""

SJBF_REQUEST = {"KTH-SP2": "69.4054", "CTC-SP2": "30.0411", "SDSC-SP2": "84.8889", "SDSC-BLUE": "19.8260"}

GRID = {
    "fcfs": ("92.7 6835 262k", "48.8 13943 304k", "87.8 20571 460k", "37.4 7870 429k"),
    "wfp3": ("54.3 5157 338k", "32.6 13201 538k", "51.7 16479 703k", "18.4 4935 730k"),
    "unicep": ("49.5 4960 323k", "25.3 10477 651k", "53.7 17650 760k", "15.3 4295 877k"),
    "sjf": ("42.3 4599 679k", "50.1 26134 4.5M", "71.3 33953 8.7M", "25.6 4703 2.9M"),
    "saf": ("39.1 5651 4.2M", "36.7 16301 27.6M", "100.8 65143 44M", "33.8 6776 18.7M"),
    "f1": ("58.9 6388 2.6M", "21.6 10695 12M", "166.4 100859 34M", "34.4 7700 18M"),
}
"""Average bounded slowdown, mean wait in s, longest wait in s; batch order, EASY, requested times."""

STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
LENGTH = 1024
COMPILED = has_numba()
TABLE_V_POLICIES = ("fcfs", "sjf", "saf", "wfp3", "unicep-rl", "f1", "f2", "f3", "f4")
TABLE_V = {
    ("lublin-1", "none"): "7273.77 277.35 292.88 337.34 381.71 258.37 268.5 341.8 289.6",
    ("lublin-2", "none"): "7842.47 787.89 714.26 807.25 830.49 698.34 669.0 1158.8 732.7",
    ("lublin-1", "easy"): "235.82 73.31 54.00 126.50 103.10 75.07 58.2 58.5 53.6",
    ("lublin-2", "easy"): "247.61 91.99 100.33 135.12 111.19 148.25 112.1 90.7 105.8",
}
"""Mean of ten sequences' average bounded slowdowns, for the policies above."""

BOUNDS = {"KTH-SP2": 1.00, "CTC-SP2": 1.06, "SDSC-SP2": 1.30, "SDSC-BLUE": 0.95}
LONGEST = 1.25
"""The default policy: slowdown over the better of WFP3's and UNICEP's; longest wait over FCFS's."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the answer."""

    name: str
    expected: str
    got: str
    holds: bool

    def __str__(self) -> str:
        """Return the line."""
        return f"{'ok  ' if self.holds else 'FAIL'} {self.name}: expected {self.expected}, got {self.got}"


def checks(logs: tuple[str, ...] = LOGS) -> Iterator[Check]:
    """Yield all checks, one log after the other."""
    for log in logs:
        yield from (identity(log, file) for file in SCHEDULES)
        yield printed(f"{log} EASY-SJBF request", SJBF_REQUEST[log], slowdown(sjbf_by_request(log)))
        yield from grid(log)
        yield from default_policy(log)
    for name, backfill in TABLE_V:
        yield from table_v(name, backfill)


@cache
def workload(log: str) -> Workload:
    """Return a log, whose first job is submitted at 0 s: F1's order depends on that."""
    read = read_swf(DATA / "workloads" / f"{log}.swf.gz")
    return replace(read, submit_s=read.submit_s - read.submit_s.min())


def published_waits(log: str, file: str) -> dict[int, int]:
    """Return the waits in s of a published schedule by job."""
    with gzip.open(DATA / "schedules" / f"{log}.{file}", "rt") as lines:
        rows = [line.split() for line in lines if not line.startswith(";")]
    column = 1 if file.endswith(".txt.gz") else 2
    return {int(row[0]): int(row[column]) for row in rows}


def differing(log: str, file: str, numba: bool | None = None) -> tuple[int, int]:
    """Return how many jobs have another wait than in a published schedule, and how many jobs there are."""
    options = SCHEDULES[file]
    schedule = run(log, named("fcfs"), replace(options, numba=numba))
    published = published_waits(log, file)
    ours = dict(zip(schedule.workload.job_id.tolist(), schedule.wait_s.tolist(), strict=True))
    jobs = ours.keys() | published.keys()
    return sum(ours.get(job) != published.get(job) for job in jobs), len(jobs)


def run(log: str, policy: QueuePolicy, options: Options) -> Schedule:
    """Return the schedule of a whole log."""
    work = workload(log)
    return simulate(work, Pool(procs=work.procs_total), policy, options)


def slowdown(schedule: Schedule) -> float:
    """Return the average bounded slowdown."""
    return float(bounded_slowdowns(schedule).mean())


def sjbf_by_request(log: str) -> Schedule:
    """Return the schedule of EASY-SJBF with the users' requests."""
    return run(log, named("fcfs"), Options(order="pyss", backfill="easy-sjbf"))


def identity(log: str, file: str) -> Check:
    """Check a published schedule job by job."""
    wrong, jobs = differing(log, file)
    return Check(f"{log} {file}", f"0 of {jobs} waits differ", str(wrong), wrong == 0)


def printed(name: str, expected: str, got: float) -> Check:
    """Check a number by its printed digits; k and M stand for thousand and million."""
    text = expected
    if expected[-1] in "kM":
        got, text = got / {"k": 1e3, "M": 1e6}[expected[-1]], expected[:-1]
    digits = len(text.partition(".")[2])
    shown = f"{got:.{digits}f}" + (expected[-1] if expected[-1] in "kM" else "")
    return Check(name, expected, shown, shown == expected)


def grid(log: str) -> Iterator[Check]:
    """Check the reference grid."""
    for name, cells in GRID.items():
        schedule = run(log, named(name), Options())
        wait_s = schedule.wait_s
        got = (slowdown(schedule), float(wait_s.mean()), float(wait_s.max()))
        what = ("slowdown", "mean wait", "longest wait")
        for label, expected, value in zip(what, cells[LOGS.index(log)].split(), got, strict=True):
            yield printed(f"{log} {name} {label}", expected, value)
        length, arrived = littles_law(schedule)
        yield Check(f"{log} {name} Little's law", f"a mean queue of {arrived:.6f}", f"{length:.6f}",
                    abs(length - arrived) <= 1e-9 * arrived)  # fmt: skip


def default_policy(log: str) -> Iterator[Check]:
    """Check the default policy's bounds."""
    ours = run(log, QueuePolicy("default", Policy(), "recent"), Options())
    others = {name: run(log, named(name), Options()) for name in ("fcfs", "wfp3", "unicep")}
    ratio = slowdown(ours) / min(slowdown(others["wfp3"]), slowdown(others["unicep"]))
    longest = float(ours.wait_s.max() / others["fcfs"].wait_s.max())
    yield Check(f"{log} default policy, slowdown / min(WFP3, UNICEP)", f"at most {BOUNDS[log]:.2f}",
                f"{ratio:.4f}", ratio <= BOUNDS[log])  # fmt: skip
    yield Check(f"{log} default policy, longest wait / FCFS's", f"at most {LONGEST}",
                f"{longest:.4f}", longest <= LONGEST)  # fmt: skip


def table_v(name: str, backfill: str) -> Iterator[Check]:
    """Check RLScheduler's table: an empty machine for each sequence."""
    log = read_swf(DATA / "workloads" / f"{name}.swf.gz")
    options = Options(backfill=backfill, order="rlscheduler", numba=COMPILED)
    for policy, expected in zip(TABLE_V_POLICIES, TABLE_V[name, backfill].split(), strict=True):
        means = [
            slowdown(simulate(part, Pool(procs=log.procs_total), named(policy), options))
            for part in (rows_of(log, slice(start, start + LENGTH)) for start in STARTS)
        ]
        yield printed(f"{name} {policy}, backfill {backfill}", expected, float(np.mean(means)))


def main() -> int:
    """Print the checks; return 1 if one doesn't hold."""
    failed = 0
    for check in checks():
        failed += not check.holds
        sys.stdout.write(f"{check}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
