"""Plots of simulated schedules, as PNG."""

import base64
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slurm_score.columns import Ints
from slurm_score.model import Floats
from slurm_score.sim.engine import Schedule
from slurm_score.sim.gpu_metrics import gpus_stranded, gpus_used
from slurm_score.sim.hetero import ClusterSchedule
from slurm_score.sim.metrics import bounded_slowdowns, by_size, queue_over_time, used_over_time
from slurm_score.units import DAY_S, HOUR_S

logging.getLogger("matplotlib").setLevel(logging.WARNING)

MOST_POINTS = 400
"""A line over time has at most so many points: means over equal spans."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: what it shows, the name of its file, the picture."""

    title: str
    file: str
    png: bytes

    @property
    def source(self) -> str:
        """The picture as the source of an HTML image."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


def plots(schedules: Sequence[Schedule]) -> list[Plot]:
    """Return the plots that compare the schedules of one workload."""
    draw: dict[str, tuple[str, Callable[[Axes, Schedule], None]]] = {
        "waits": ("Waits: share of jobs that wait longer", _waits),
        "slowdowns": ("Bounded slowdown: share of jobs above", _slowdowns),
        "queue": ("Jobs that wait", _queue),
        "used": ("Processors in use", _used),
        "sizes": ("Mean wait by size", _sizes),
    }
    if all(isinstance(one, ClusterSchedule) and one.site.gpus.any() for one in schedules):
        draw |= {
            "gpus": ("GPUs in use", _gpus),
            "stranded": ("Free GPUs on nodes where others of the type are taken", _stranded),
        }
    name = "".join(c if c.isalnum() or c in "-_" else "_" for c in schedules[0].workload.name)
    return [Plot(title, f"{name}-{kind}.png", _png(schedules, one)) for kind, (title, one) in draw.items()]


def _png(schedules: Sequence[Schedule], draw: Callable[[Axes, Schedule], None]) -> bytes:
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for schedule in schedules:
        draw(axes, schedule)
    axes.grid(alpha=0.3)
    axes.legend()
    out = BytesIO()
    figure.savefig(out, format="png", dpi=100, metadata={"Software": None})
    return out.getvalue()


def _above(axes: Axes, values: Floats, schedule: Schedule) -> None:
    """Draw which share of the jobs lies above each value."""
    ordered = np.sort(values)
    share = 1.0 - np.arange(len(ordered)) / len(ordered)
    axes.step(ordered, share, where="pre", label=schedule.policy.name)
    axes.set_yscale("log")
    axes.set_ylabel("share of jobs")


def _waits(axes: Axes, schedule: Schedule) -> None:
    _above(axes, schedule.wait_s / HOUR_S, schedule)
    axes.set_xlabel("wait in hours")
    axes.set_xscale("symlog", linthresh=0.1)


def _slowdowns(axes: Axes, schedule: Schedule) -> None:
    _above(axes, bounded_slowdowns(schedule), schedule)
    axes.set_xlabel("bounded slowdown")
    axes.set_xscale("log")


def _queue(axes: Axes, schedule: Schedule) -> None:
    _over_time(axes, *queue_over_time(schedule), schedule)
    axes.set_ylabel("jobs")


def _used(axes: Axes, schedule: Schedule) -> None:
    _over_time(axes, *used_over_time(schedule), schedule)
    axes.set_ylabel(f"processors of {schedule.pool.procs}")


def _gpus(axes: Axes, schedule: Schedule) -> None:
    if isinstance(schedule, ClusterSchedule):
        _over_time(axes, *gpus_used(schedule), schedule)
        axes.set_ylabel(f"GPUs of {int(schedule.site.gpus.sum())}")


def _stranded(axes: Axes, schedule: Schedule) -> None:
    if isinstance(schedule, ClusterSchedule):
        _over_time(axes, *gpus_stranded(schedule), schedule)
        axes.set_ylabel("GPUs")


def _over_time(axes: Axes, at_s: Ints, values: Ints, schedule: Schedule) -> None:
    days, means = resampled(at_s, values)
    axes.plot(days, means, label=schedule.policy.name, linewidth=1)
    axes.set_xlabel("days since the first submission")


def resampled(at_s: Ints, values: Ints) -> tuple[Floats, Floats]:
    """Return a step function's means over equal spans, with their middles in days."""
    edges = np.linspace(at_s[0], at_s[-1], min(MOST_POINTS, max(2, len(at_s))) + 1)
    area = np.r_[0.0, np.cumsum(values[:-1] * np.diff(at_s))]
    means = np.diff(np.interp(edges, at_s, area)) / np.maximum(np.diff(edges), 1e-9)
    return ((edges[:-1] + edges[1:]) / 2 - at_s[0]) / DAY_S, means


def _sizes(axes: Axes, schedule: Schedule) -> None:
    rows: list[Any] = by_size(schedule)
    axes.plot(
        [row.name for row in rows],
        [row.mean_wait_s / HOUR_S for row in rows],
        "o-",
        label=schedule.policy.name,
    )
    axes.set_xlabel("processors")
    axes.set_ylabel("mean wait in hours")
