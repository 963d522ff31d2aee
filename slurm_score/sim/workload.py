"""A workload: jobs in columns, as a file or a generator gives them. Pure."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from slurm_score.columns import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs, one row each in the order of the file; columns are int64[n_jobs], times in s.

    `request_s` is the time limit, never below `run_s`. `user`, `gpu_type` and `qos` are places in
    `users`, `gpu_types` and `qos_names`; a gpu_type of -1 means any. `procs_total` is the size of the
    machine by the file's header, 0 if it doesn't say. `remarks` say what was left out and why.
    """

    name: str
    job_id: Ints
    submit_s: Ints
    run_s: Ints
    procs: Ints
    request_s: Ints
    user: Ints
    users: tuple[str, ...] = ()
    gpus: Ints | None = None
    gpu_type: Ints | None = None
    gpu_types: tuple[str, ...] = ()
    qos: Ints | None = None
    qos_names: tuple[str, ...] = ()
    procs_total: int = 0
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.job_id)


def rows_of(workload: Workload, rows: slice | Bools) -> Workload:
    """Return some jobs of a workload, in their order."""
    columns = (f.name for f in fields(workload))
    taken: dict[str, Any] = {
        name: value[rows] for name in columns if isinstance(value := getattr(workload, name), np.ndarray)
    }
    return replace(workload, **taken)
