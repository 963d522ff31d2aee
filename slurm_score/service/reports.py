"""Reports, made in a worker beside the answers to the hook: a long queue must not delay a submission."""

import ctypes
import gc
import multiprocessing
import signal
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from slurm_score.service import handlers, listing
from slurm_score.service.handlers import Scored
from slurm_score.service.listing import ALL, Selection
from slurm_score.service.viewers import viewer_of
from slurm_score.snapshot import read_snapshot
from slurm_score.watch import Watched

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def process_worker() -> Executor:
    """Return a worker in a process of its own, which ends with this one."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who asks, by uid, and for what: which jobs, and which columns of them, none for whole rows.

    `in_force` is the hash of the policy that the next cycle will score by.
    """

    uid: int | None = None
    wanted: Selection = ALL
    columns: tuple[str, ...] = ()
    in_force: str = ""


def dump_jobs(snapshot: Path, asked: Asked) -> bytes:
    """Return pending jobs of a snapshot file, best first, as JSON.

    Raises:
        SnapshotError: there is none that can be read.
        ParseError: there is no such column.
    """
    scored = _watched(snapshot).current()
    wanted = replace(asked.wanted, viewer=_viewer(scored, asked.uid))
    if asked.columns:
        told = listing.list_columns(scored, asked.columns, wanted)
    else:
        told = listing.list_jobs(scored, wanted)
    return listing.dump(told | {"policy_in_force": asked.in_force or told["policy"]})


def explain_job(snapshot: Path, uid: int | None, job_id: str) -> dict[str, Any] | None:
    """Return one pending job of a snapshot file, explained; None where it isn't pending, or isn't to be seen.

    Raises:
        SnapshotError: there is none that can be read.
    """
    scored = _watched(snapshot).current()
    i = listing.find_job(scored, job_id, _viewer(scored, uid))
    return None if i is None else handlers.explain(scored, i)


def prepare(snapshot: Path) -> None:
    """Read and score a snapshot file before anybody asks.

    Raises:
        SnapshotError: there is none that can be read.
    """
    listing.prepare(_watched(snapshot).current())


def _viewer(scored: Scored, uid: int | None) -> str | None:
    return viewer_of(uid, scored.snapshot.cluster.config)


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
