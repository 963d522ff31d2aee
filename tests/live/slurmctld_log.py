"""What slurmctld's log tells of its scheduling: SlurmctldDebug=debug and DebugFlags=Backfill."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

SETTINGS = {"SlurmctldDebug": "debug", "DebugFlags": "Backfill"}

_LINE = re.compile(r"\[(\S+)\] (.*)")
_SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) ")
_BY_MAIN = re.compile(r"sched: Allocate JobId=(\d+) ")
_BY_BACKFILL = re.compile(r"sched/backfill: _start_job: Started JobId=(\d+) ")
_ENDED = re.compile(r"_job_complete: JobId=(\d+) done")
_MAIN, _BACKFILL = "sched: Running job scheduler", "_attempt_backfill: beginning"


class Scheduling(NamedTuple):
    """When each job was submitted, the pass that started it, and its end, by job id; when each loop ran.

    Whole seconds times 1000, as Slurm reckons, plus the place among what happened in the same second.
    """

    submit: dict[int, int]
    start: dict[int, int]
    end: dict[int, int]
    main: list[int]
    backfill: list[int]


def read_scheduling(text: str) -> Scheduling:
    """Return what a log tells."""
    found = Scheduling({}, {}, {}, [], [])
    times = []
    for line in filter(None, map(_LINE.match, text.splitlines())):
        times.append(_milliseconds(line[1]))
        _note(found, times[-1], line[2])
    place = dict(_places(times))
    submit, start, end = ({job_id: place[t] for job_id, t in column.items()} for column in found[:3])
    main, backfill = (sorted({place[t] for t in column}) for column in found[3:])
    return Scheduling(submit, start, end, main, backfill)


def _note(found: Scheduling, t: int, line: str) -> None:
    """Take note of a line."""
    if match := _SUBMITTED.match(line):
        found.submit[int(match[1])] = t
    elif match := _BY_MAIN.match(line):
        found.start[int(match[1])] = found.main[-1]
    elif match := _BY_BACKFILL.match(line):
        found.start[int(match[1])] = found.backfill[-1]
    elif match := _ENDED.match(line):
        found.end[int(match[1])] = t
    elif _MAIN in line:
        found.main.append(t)
    elif _BACKFILL in line:
        found.backfill.append(t)


def _milliseconds(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp() * 1000)


def _places(times: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Yield for each moment its second and its place among that second's moments, as one number."""
    second, count = -1, 0
    for t in sorted(set(times)):
        second, count = (second, count + 1) if t // 1000 == second else (t // 1000, 0)
        yield t, second * 1000 + count
