"""Reports, made in a worker beside the answers to the hook: a long queue must not delay a submission."""

import ctypes
import gc
import multiprocessing
import signal
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from slurm_score.service import handlers
from slurm_score.service.handlers import Scored
from slurm_score.snapshot import read_snapshot
from slurm_score.watch import Watched

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def process_worker() -> Executor:
    """Return a worker in a process of its own, which ends with this one."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)


def dump_jobs(snapshot: Path) -> bytes:
    """Return all pending jobs of a snapshot file, best first, as JSON.

    Raises:
        SnapshotError: there is none that can be read.
    """
    return handlers.dump_jobs(_watched(snapshot).current())


def explain_job(snapshot: Path, job_id: str) -> dict[str, Any] | None:
    """Return one pending job of a snapshot file, explained; None where it isn't pending.

    Raises:
        SnapshotError: there is none that can be read.
    """
    scored = _watched(snapshot).current()
    i = handlers.find_job(scored, job_id)
    return None if i is None else handlers.explain(scored, i)


def _begin() -> None:
    """In the worker's process: the parent decides when it ends, and nothing outlives the parent."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@lru_cache(maxsize=4)
def _watched(snapshot: Path) -> Watched[Scored]:
    return Watched(snapshot, _read)


def _read(path: Path) -> Scored:
    """A snapshot with its jobs, scored; so many new objects hold no garbage to be looked for."""
    gc.disable()
    try:
        return handlers.score_snapshot(read_snapshot(path))
    finally:
        gc.enable()
