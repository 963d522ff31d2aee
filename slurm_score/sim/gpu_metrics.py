"""How GPUs were used in a schedule on a cluster: by type, over time, and how many were stranded. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from slurm_score.columns import Bools, Ints
from slurm_score.sim.hetero import ClusterSchedule
from slurm_score.sim.metrics import steps


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One GPU type, or all of them: how many there are, and shares of them over the time of the schedule.

    `used` are taken by jobs; `stranded` are free on a node whose GPUs are partly taken, so that no job can
    have all GPUs of that node. `fragmentation` is the stranded part of what is free.
    """

    name: str
    gpus: int
    used: float
    stranded: float

    @property
    def fragmentation(self) -> float:
        """The part of the free GPUs that is stranded; 0 where none is free."""
        return self.stranded / (1.0 - self.used) if self.used < 1.0 else 0.0


def by_type(schedule: ClusterSchedule) -> list[GpuRow]:
    """Return a row for each GPU type and, if there are several, one for all; none without GPUs."""
    site = schedule.site
    length_s = int(schedule.end_s.max() - schedule.workload.submit_s.min())
    kinds = [kind for kind in range(len(site.gpu_types)) if site.gpus[:, kind].any()]
    rows = [_row(schedule, site.gpu_types[kind], (kind,), length_s) for kind in kinds]
    return [*rows, _row(schedule, "all", tuple(kinds), length_s)] if len(kinds) > 1 else rows


def _row(schedule: ClusterSchedule, name: str, kinds: tuple[int, ...], length_s: int) -> GpuRow:
    total = int(schedule.site.gpus[:, kinds].sum())
    shares = [
        _area(at_s, values) / (total * length_s) if length_s else 0.0
        for at_s, values in (gpus_used(schedule, kinds), gpus_stranded(schedule, kinds))
    ]
    return GpuRow(name=name, gpus=total, used=shares[0], stranded=shares[1])


def gpus_used(schedule: ClusterSchedule, kinds: tuple[int, ...] = ()) -> tuple[Ints, Ints]:
    """Return how many GPUs of some types are in use, as a step function; of all types if none is given."""
    use, held = schedule.use, _held(schedule, kinds)
    gpus = use.gpus[held]
    return steps(np.r_[use.begin_s[held], use.end_s[held]], np.r_[gpus, -gpus])


def gpus_stranded(schedule: ClusterSchedule, kinds: tuple[int, ...] = ()) -> tuple[Ints, Ints]:
    """Return how many GPUs of some types are free on nodes where others of their type are taken, as steps."""
    times, changes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for at_s, stranded in _stranded_by_node(schedule, kinds):
        times.append(at_s)
        changes.append(np.diff(stranded, prepend=0))
    return steps(np.concatenate(times), np.concatenate(changes))


def _stranded_by_node(schedule: ClusterSchedule, kinds: tuple[int, ...]) -> Iterator[tuple[Ints, Ints]]:
    """For each node and type that jobs had: the stranded GPUs, as a step function."""
    use, held = schedule.use, _held(schedule, kinds)
    pair = use.node * max(1, len(schedule.site.gpu_types)) + use.gpu_type
    order = np.argsort(pair[held], kind="stable")
    rows = np.flatnonzero(held)[order]
    for some in np.split(rows, np.flatnonzero(np.diff(pair[rows])) + 1) if len(rows) else []:
        total = schedule.site.gpus[use.node[some[0]], use.gpu_type[some[0]]]
        at_s, used = steps(np.r_[use.begin_s[some], use.end_s[some]], np.r_[use.gpus[some], -use.gpus[some]])
        yield at_s, np.where(used > 0, total - used, 0)


def _held(schedule: ClusterSchedule, kinds: tuple[int, ...]) -> Bools:
    kind = schedule.use.gpu_type
    held: Bools = np.isin(kind, kinds) if kinds else kind >= 0
    return held


def _area(at_s: Ints, values: Ints) -> float:
    return float((values[:-1] * np.diff(at_s)).sum())
