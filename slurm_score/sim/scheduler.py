"""Slurm's scheduler as it is set up: what SchedulerParameters says of both its loops. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_score.errors import Problem, SimulationError, shown
from slurm_score.settings import meant
from slurm_score.units import MINUTE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The main loop, which stops at a partition's first blocked job, and the backfill loop.

    What happened is seen by the main loop in the next second at the earliest, and `batch_sched_delay_s`
    after its last run; 0 means in the same second. `bf_interval_s` of 0 means a backfill at every
    submission and end. `bf_max_job_user` and
    `bf_job_part_count_reserve` of 0 mean no limit. On a cluster the ends of running jobs are looked at in
    groups, the first of `end_window_s` (in Slurm always 30), the next twice as long or `bf_window_linear_s`
    longer; 0 means one by one. Source: Slurm 24.11, slurm.conf(5),
    SchedulerParameters, whose defaults these are.
    """

    queue_depth: int = 100
    batch_sched_delay_s: int = 3
    bf_interval_s: int = 30
    bf_max_job_test: int = 500
    bf_max_job_user: int = 0
    bf_job_part_count_reserve: int = 0
    bf_resolution_s: int = 60
    bf_window_s: int = 1440 * MINUTE_S
    bf_window_linear_s: int = 0
    end_window_s: int = 30


ONE_RESERVATION = Scheduler(
    queue_depth=1 << 31,
    batch_sched_delay_s=0,
    bf_interval_s=0,
    bf_max_job_test=1 << 31,
    bf_job_part_count_reserve=1,
    bf_resolution_s=1,
    bf_window_s=1 << 40,
    end_window_s=0,
)
"""What makes EASY of Slurm's backfill: at every event, a reservation for the first blocked job only."""

_LIMITS: Mapping[str, tuple[str, int, int, int]] = {
    "default_queue_depth": ("queue_depth", 1, 1, 1 << 31),
    "batch_sched_delay": ("batch_sched_delay_s", 1, 0, 3600),
    "bf_interval": ("bf_interval_s", 1, 0, 10800),
    "bf_max_job_test": ("bf_max_job_test", 1, 1, 1_000_000),
    "bf_max_job_user": ("bf_max_job_user", 1, 0, 1_000_000),
    "bf_job_part_count_reserve": ("bf_job_part_count_reserve", 1, 0, 100_000),
    "bf_resolution": ("bf_resolution_s", 1, 1, 3600),
    "bf_window": ("bf_window_s", MINUTE_S, 1, 43200),
    "bf_window_linear": ("bf_window_linear_s", 1, 0, 3600),
}
"""Slurm's name: field, what one is worth, least, most. Source: slurm.conf(5)."""

SIMULATED = tuple(_LIMITS)
_NO_MATTER = ("bf_continue",)
"""Parameters that change nothing here: a simulated cycle takes no time."""


def parse_scheduler(text: str, where: str = "SchedulerParameters") -> Scheduler:
    """Return the scheduler of a text such as `bf_window=4320,bf_max_job_test=1000,bf_continue`.

    Raises:
        SimulationError: with every part that can't be read or can't be simulated.
    """
    values: dict[str, int] = {}
    problems: list[Problem] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name in _NO_MATTER:
            continue
        if name not in _LIMITS:
            what = f"{name} isn't simulated{meant(name, SIMULATED)}"
            problems.append(Problem(where, what, shown(part), f"(known: {', '.join(SIMULATED)})"))
            continue
        field, unit, least, most = _LIMITS[name]
        if not (value.isascii() and value.isdecimal() and least <= int(value) <= most):
            problems.append(Problem(where, f"{name} is wrong", shown(value), f"from {least} to {most}"))
            continue
        values[field] = int(value) * unit
    if problems:
        raise SimulationError(problems)
    return Scheduler(**values)
