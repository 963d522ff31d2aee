"""SchedulerParameters for Slurm: as far-sighted as the site's limits, as deep as its queue. Pure.

Source: slurm.conf(5), SchedulerParameters; src/plugins/sched/backfill/backfill.c, _load_config. The
expected gains are those of simulations of Slurm's backfill over five logs (see README.md).
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_score.model import Partition, SlurmConfig
from slurm_score.tuning import Extent
from slurm_score.units import MINUTE_S, format_duration

WINDOW, DEPTH, QUICK_DEPTH = "bf_window", "bf_max_job_test", "default_queue_depth"
RESERVE, CONTINUE = "bf_job_part_count_reserve", "bf_continue"


@dataclass(frozen=True, slots=True)
class _Number:
    """A parameter that is a number: Slurm's value where it isn't set or out of range, and its range."""

    default: int
    least: int
    most: int


NUMBERS: Mapping[str, _Number] = {
    RESERVE: _Number(0, 0, 100_000),
    WINDOW: _Number(1440, 1, 43_200),
    DEPTH: _Number(500, 1, 1_000_000),
    QUICK_DEPTH: _Number(100, 0, 2**31 - 1),
}
"""By name, as of Slurm 22.05 to 26.05."""

ALL_GAIN = (
    "expected of all of them with the default score: slowdown × 0.46 and mean wait × 0.61 of Slurm's "
    "defaults with FCFS, simulated over five logs with one pool of equal processors and one partition"
)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One parameter: its value now and the better one, the measured reason and the expected gain."""

    name: str
    now: str
    then: str
    why: str
    gain: str


@dataclass(frozen=True, slots=True)
class SchedulerAdvice:
    """The changes, the line for slurm.conf with everything else that the site has set, and remarks."""

    changes: tuple[SettingChange, ...]
    line: str
    notes: tuple[str, ...]


def advise_scheduler(
    config: SlurmConfig, partitions: Iterable[Partition], reached: Extent
) -> SchedulerAdvice:
    """Return what to set, given how far the site's queue reached; the line is empty if all is well."""
    now, sites = config.scheduler_parameters, tuple(partitions)
    found = (_reserve(now), _window(now, sites, reached), *_depths(now, reached), _continue(now))
    changes = tuple(change for change in found if change is not None)
    notes = tuple(_notes(changes, sites, reached))
    return SchedulerAdvice(changes, new_line(now, changes) if changes else "", notes)


def value_of(parameters: Sequence[str], name: str) -> int:
    """Return the number that Slurm works with: the first one set, its default where that is no good.

    Slurm looks for `name=` in whatever case, and reads digits as far as they go.
    """
    known = NUMBERS[name]
    for parameter in parameters:
        if parameter.strip().lower().startswith(f"{name}="):
            digits = re.match(r"\s*[+-]?\d+", parameter.strip()[len(name) + 1 :], re.ASCII)
            value = int(digits[0]) if digits else 0
            return value if known.least <= value <= known.most else known.default
    return known.default


def new_line(parameters: Sequence[str], changes: Iterable[SettingChange]) -> str:
    """Return the line for slurm.conf: what is set now, in its order, with the changes made.

    What stands twice is set once; a parameter with a space in it, which slurm.conf takes in quotes
    only, keeps it.
    """
    new = {c.name: c.name if c.name == CONTINUE else f"{c.name}={c.then}" for c in changes}
    words: list[str] = []
    for parameter in filter(None, map(str.strip, parameters)):
        name = parameter.partition("=")[0].strip().lower()
        word = new.get(name, parameter)
        if name not in new or word not in words:
            words.append(word)
    text = ",".join([*words, *(word for word in new.values() if word not in words)])
    quote = '"' if re.search(r"\s", text) else ""
    return f"SchedulerParameters={quote}{text}{quote}"


def rounded_up(count: int) -> int:
    """Return a count rounded up to two digits of which the second is 0 or 5, and to 50 at least."""
    step = max(50, 5 * int(10 ** (len(str(count)) - 2)))
    return math.ceil(count / step) * step


def _reserve(now: Sequence[str]) -> SettingChange | None:
    value = value_of(now, RESERVE)
    if value == 1:
        return None
    many = f"for {value} jobs of a partition" if value else "for every job that it tests"
    return SettingChange(
        RESERVE,
        str(value),
        "1",
        f"backfill reserves {many}, by limits that are mostly too long",
        "slowdown under the default score × 0.76 (0.58 instead of 0.76 of FCFS with EASY backfill); jobs of "
        "several GPU types in one partition share the one reservation",
    )


def _window(now: Sequence[str], partitions: Sequence[Partition], reached: Extent) -> SettingChange | None:
    limit_s, where = _longest(partitions, reached)
    value, wanted = value_of(now, WINDOW), min(math.ceil(limit_s / MINUTE_S), NUMBERS[WINDOW].most)
    if value >= wanted:
        return None
    return SettingChange(
        WINDOW,
        str(value),
        str(wanted),
        f"minutes; the longest limit is {format_duration(limit_s)}, {where}",
        "with limits three times the window the longest wait tripled",
    )


def _longest(partitions: Sequence[Partition], reached: Extent) -> tuple[float, str]:
    """Return the longest finite limit in s and where it is from."""
    limits = [(p.max_time_s or 0.0, f"MaxTime of partition {p.name}") for p in partitions]
    finite = [(limit_s, where) for limit_s, where in limits if math.isfinite(limit_s)]
    return max([*finite, (reached.limit_s, "of a job that waited")], key=lambda found: found[0])


def _depths(now: Sequence[str], reached: Extent) -> Iterator[SettingChange | None]:
    gains = {
        DEPTH: "a depth of 100 on long queues cost a factor of two to three in slowdown",
        QUICK_DEPTH: "on two GPU traces a depth of 30 instead of 500 made the mean wait 40 and 167 % longer",
    }
    for name, gain in gains.items():
        value, wanted = value_of(now, name), min(rounded_up(reached.entries), NUMBERS[name].most)
        if value < min(reached.entries, wanted):
            why = f"the longest queue had {reached.entries} entries, one for each partition of a job"
            yield SettingChange(name, str(value), str(wanted), why, gain)


def _continue(now: Sequence[str]) -> SettingChange | None:
    if any(CONTINUE in parameter.lower() for parameter in now):
        return None
    return SettingChange(
        CONTINUE,
        "not set",
        "set",
        "job updates, ours too, end a backfill pass that yields its locks",
        "measured on Slurm 25.11 with 2,500 jobs and bursts of 1,500 updates: without it 1 of 5 passes ended "
        "early, with it none of 6",
    )


def _notes(
    changes: Iterable[SettingChange], partitions: Sequence[Partition], reached: Extent
) -> Iterator[str]:
    names = {change.name for change in changes}
    limit_s, _ = _longest(partitions, reached)
    endless = [p.name for p in partitions if p.max_time_s is not None and math.isinf(p.max_time_s)]
    if limit_s > NUMBERS[WINDOW].most * MINUTE_S:
        yield f"bf_window: Slurm takes {NUMBERS[WINDOW].most} minutes at most, less than the longest limit"
    if endless:
        none = "; some had none, and no window reaches their end" if reached.unlimited else ""
        names_of = ", ".join(sorted(endless))
        yield f"bf_window: no MaxTime in {names_of}, so there the limits of jobs that waited count{none}"
    if WINDOW in names:
        yield (
            "bf_window: slurm.conf(5) advises a coarser bf_resolution (60 s by default) with it; "
            "watch the backfill cycle times of sdiag"
        )
    if names & {DEPTH, QUICK_DEPTH}:
        yield (
            "depth: a backfill pass ends after bf_max_time (by default bf_interval, 30 s) all the same; "
            "sdiag tells how deep it gets"
        )
