"""A workload: jobs in columns, as a file or a generator gives them. Pure."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from slurm_score.columns import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What jobs ask of a cluster, one row each; cores, memory and GPUs are those of one node.

    `mem_mib` of 0 means that the job doesn't say. `partition`, `gpu_set` and `feature` are places in
    `partitions` ("" is the default one), `gpu_sets` (types that will do; none: any) and `features`
    (Slurm's text, such as `IB&V100` or `V100|A100`).
    """

    nodes: Ints
    cores: Ints
    mem_mib: Ints
    gpus: Ints
    exclusive: Bools
    partition: Ints
    gpu_set: Ints
    feature: Ints
    partitions: tuple[str, ...] = ("",)
    gpu_sets: tuple[tuple[str, ...], ...] = ((),)
    features: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs, one row each in the order of the file; columns are int64[n_jobs], times in s.

    `request_s` is the time limit, never below `run_s`. `user`, `gpu_type` and `qos` are places in
    `users`, `gpu_types` and `qos_names`; a gpu_type of -1 means any. `procs_total` is the size of the
    machine by the file's header, 0 if it doesn't say. `asked` is what jobs ask of a cluster; without it
    each asks for `procs` cores. `remarks` say what was left out and why.
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
    asked: Asked | None = None

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.job_id)


Columned = TypeVar("Columned", Workload, Asked)


def rows_of(columns: Columned, rows: slice | Bools) -> Columned:
    """Return some jobs of a workload, or of what they ask for, in their order."""
    values = {f.name: getattr(columns, f.name) for f in fields(columns)}
    taken: dict[str, Any] = {k: v[rows] for k, v in values.items() if isinstance(v, np.ndarray)}
    if isinstance(asked := values.get("asked"), Asked):
        taken["asked"] = rows_of(asked, rows)
    return replace(columns, **taken)
