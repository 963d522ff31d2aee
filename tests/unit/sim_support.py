"""Small workloads for the simulator's tests."""

from pathlib import Path

import numpy as np
import pytest

from slurm_score.sim.engine import Options, Schedule, simulate
from slurm_score.sim.policies import Pool, QueuePolicy, named
from slurm_score.sim.workload import Workload

DATA = Path(__file__).parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the logs and schedules in ../shared are not here")

Rows = list[tuple[int, int, int, int]]
"""Jobs as (submit in s, run in s, processors, request in s)."""


def workload(rows: Rows, users: list[int] | None = None, qos: list[str] | None = None) -> Workload:
    """Return a workload of a few jobs, numbered from 1; all of one user where none are given."""
    submit_s, run_s, procs, request_s = np.array(rows, np.int64).reshape(-1, 4).T
    names = tuple(dict.fromkeys(qos or []))
    return Workload(
        name="small",
        job_id=np.arange(1, len(rows) + 1),
        submit_s=submit_s,
        run_s=run_s,
        procs=procs,
        request_s=request_s,
        user=np.array(users or [0] * len(rows), np.int64),
        qos=np.array([names.index(name) for name in qos], np.int64) if qos else None,
        qos_names=names,
    )


def starts(
    rows: Rows, procs: int, policy: QueuePolicy | str = "fcfs", options: Options | None = None
) -> list[int]:
    """Return when each job starts on a machine of so many processors."""
    chosen = named(policy) if isinstance(policy, str) else policy
    start_s: list[int] = schedule(workload(rows), procs, chosen, options).start_s.tolist()
    return start_s


def schedule(
    work: Workload, procs: int, policy: QueuePolicy | None = None, options: Options | None = None
) -> Schedule:
    """Return the schedule of a workload, first come, first served where no policy is given."""
    return simulate(work, Pool(procs=procs), policy or named("fcfs"), options or Options())
