"""When a profile of the policy applies: hours, weekdays and load, as an admin writes them. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from slurm_score.factors import STORED, Weight
from slurm_score.settings import Section, meant
from slurm_score.units import DAY_S, HOUR_S, MINUTE_S

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EPOCH_DAY = DAYS.index("thu")
"""The weekday of the day on which the epoch began."""

STICKINESS = 0.25
"""A load condition that names no way out is left when the load is this share past its limit."""

_RANGE = re.compile(r"(\d{1,2}):([0-5]\d)\s*-\s*(\d{1,2}):([0-5]\d)", re.ASCII)
_NUMBER = r"(\d{1,9}(?:\.\d{1,6})?)"
_LIMITS = re.compile(rf"([<>])\s*{_NUMBER}(?:\s*([<>])\s*{_NUMBER})?", re.ASCII)
_HOURS_FORM = "such as 20:00-06:00 or [08:00-12:00, 14:00-18:00]"
_DAYS_FORM = "such as mon-fri or [sat, sun]"
_LIMITS_FORM = "in quotes, such as '>2', or '>2 <1' to be left only below 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How busy the cluster is: jobs that could start, and the GPUs that they ask for over the free ones.

    An array counts once for each task. `pending_per_free_gpu` is infinite where no GPU is free.
    """

    pending_jobs: float
    pending_per_free_gpu: float


@dataclass(frozen=True, slots=True)
class Limits:
    """A load condition: from `enter` on it holds until the load is past `leave`."""

    above: bool
    enter: float
    leave: float

    def holds(self, value: float, held: bool) -> bool:
        """Return whether it holds now, given whether it did before."""
        limit = self.leave if held else self.enter
        return value > limit if self.above else value < limit


def parse_hours(text: str) -> tuple[tuple[int, int], ...]:
    """Return (start, end) pairs in s since midnight; the end is before the start over midnight.

    Raises:
        ValueError: not hours of the day.
    """
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if not match:
            raise ValueError(f"not hours; {_HOURS_FORM}")
        numbers = [int(number) for number in match.groups()]
        start, end = (numbers[i] * HOUR_S + numbers[i + 1] * MINUTE_S for i in (0, 2))
        if start >= DAY_S or end > DAY_S:
            raise ValueError("not hours: a day ends at 24:00")
        if start == end:
            raise ValueError("not hours: begins and ends at the same time")
        found.append((start, end))
    return tuple(found)


def parse_days(text: str) -> frozenset[int]:
    """Return weekdays, 0 for Monday.

    Raises:
        ValueError: not weekdays.
    """
    found: set[int] = set()
    for part in text.lower().split(","):
        names = [name.strip() for name in part.split("-")]
        if len(names) > 2 or not set(names) <= set(DAYS):
            raise ValueError(f"not days of the week; {_DAYS_FORM}")
        first, last = DAYS.index(names[0]), DAYS.index(names[-1])
        found.update(day % 7 for day in range(first, first + (last - first) % 7 + 1))
    return frozenset(found)


def parse_limits(text: str) -> Limits:
    """Return the limits of a load condition.

    Raises:
        ValueError: not a load condition.
    """
    match = _LIMITS.fullmatch(text.strip())
    if not match or match[3] == match[1]:
        raise ValueError(f"not a load condition; {_LIMITS_FORM}")
    above, enter = match[1] == ">", float(match[2])
    leave = float(match[4]) if match[4] else enter * (1 - STICKINESS if above else 1 + STICKINESS)
    if (leave > enter) if above else (leave < enter):
        raise ValueError("can never be entered and kept: the second limit is on the wrong side of the first")
    return Limits(above, enter, leave)


def _written(form: str, canonical: Callable[[str], str]) -> BeforeValidator:
    """A text in a form; YAML takes an unquoted >2 for an empty text, so that only a stored one may be."""

    def check(value: object, info: ValidationInfo) -> str:
        if value == "" and info.context == STORED:
            return ""
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = ",".join(value)
        if not isinstance(value, str) or not value:
            raise ValueError(f"text is needed; {form}")
        return canonical(value)

    return BeforeValidator(check)


def _clock(seconds: int) -> str:
    return f"{seconds // HOUR_S:02}:{seconds % HOUR_S // MINUTE_S:02}"


def _same_hours(text: str) -> str:
    return ",".join(f"{_clock(start)}-{_clock(end)}" for start, end in parse_hours(text))


def _same_days(text: str) -> str:
    return ",".join(DAYS[day] for day in sorted(parse_days(text)))


def _same_limits(text: str) -> str:
    limits = parse_limits(text)
    signs = "><" if limits.above else "<>"
    return f"{signs[0]}{limits.enter:.15g} {signs[1]}{limits.leave:.15g}"


Hours = Annotated[str, _written(_HOURS_FORM, _same_hours)]
Days = Annotated[str, _written(_DAYS_FORM, _same_days)]
LoadLimits = Annotated[str, _written(_LIMITS_FORM, _same_limits)]
"""Kept as text in one spelling, so that a policy's hash doesn't depend on how they are written."""


class When(Section):
    """What must hold for a profile to apply: all that is given.

    Hours over midnight belong to the day on which they begin: 20:00-06:00 on fri ends on Saturday.
    """

    hours: Hours = ""
    days: Days = ""
    pending_jobs: LoadLimits = ""
    pending_per_free_gpu: LoadLimits = ""

    @model_validator(mode="after")
    def _something(self) -> "When":
        if not (self.hours or self.days or self.limits):
            raise ValueError(f"says nothing; give {', '.join(When.model_fields)}")
        return self

    @cached_property
    def limits(self) -> Mapping[str, Limits]:
        """The load conditions by what they look at."""
        texts = {name: getattr(self, name) for name in ("pending_jobs", "pending_per_free_gpu")}
        return {name: parse_limits(text) for name, text in texts.items() if text}

    @property
    def timed(self) -> bool:
        """Whether the clock has a say in it."""
        return bool(self.hours or self.days)

    def timely(self, local_s: float) -> bool:
        """Return whether hours and days hold, by the clock on the site's wall in s since the epoch."""
        day, second = divmod(local_s, DAY_S)
        today, yesterday = self._on(day), self._on(day - 1)
        if not self.ranges:
            return today
        return any(
            today and start <= second < end
            if start < end
            else (today and second >= start) or (yesterday and second < end)
            for start, end in self.ranges
        )

    def loaded(self, load: Load, held: bool) -> bool:
        """Return whether the load conditions hold, given whether they did before."""
        return all(limits.holds(getattr(load, name), held) for name, limits in self.limits.items())

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The hours, as parse_hours tells them; none for all day."""
        return parse_hours(self.hours) if self.hours else ()

    @cached_property
    def weekdays(self) -> frozenset[int]:
        """The days of the week, 0 for Monday."""
        return parse_days(self.days) if self.days else frozenset(range(7))

    def _on(self, day: float) -> bool:
        return (int(day) + EPOCH_DAY) % 7 in self.weekdays


class Profile(Section):
    """Weights that stand for the policy's own while something holds; the others stay."""

    when: When
    weights: Mapping[str, Weight] = Field(min_length=1)


BASE = "base"
"""The name of the weights that hold where no profile does."""

PROFILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)


def _timezone(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("the name of a time zone is needed, such as Europe/Zurich")
    if value and value not in _timezones():
        many = "" if _timezones() else "; this machine has no time zone data (tzdata)"
        raise ValueError(f"not a time zone{meant(value, _timezones())}{many}")
    return value


@cache
def _timezones() -> frozenset[str]:
    return frozenset(available_timezones())


TimeZoneName = Annotated[str, BeforeValidator(_timezone)]
"""A name of the IANA time zone database; empty for the machine's own zone."""
