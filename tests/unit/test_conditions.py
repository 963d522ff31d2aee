"""slurm_score/conditions.py: hours, weekdays and load conditions of a profile."""

import pytest

from slurm_score.conditions import Limits, Load, When, parse_days, parse_hours, parse_limits
from slurm_score.units import DAY_S, HOUR_S

MONDAY = 4 * DAY_S
"""The first Monday after the epoch, 5 January 1970."""


def timely(when: When, day: int, hour: float) -> bool:
    """Return whether hours and days hold so many days after a Monday, at an hour."""
    return when.timely(MONDAY + day * DAY_S + hour * HOUR_S)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("20:00-06:00", ((20.0, 6.0),)),
        ("8:30 - 12:00", ((8.5, 12.0),)),
        ("00:00-08:00,18:00-24:00", ((0.0, 8.0), (18.0, 24.0))),
    ],
)
def test_hours_are_ranges_of_the_day(text: str, hours: tuple[tuple[float, float], ...]) -> None:
    """With commas between them; 24:00 is the end of a day."""
    assert parse_hours(text) == tuple((start * HOUR_S, end * HOUR_S) for start, end in hours)


@pytest.mark.parametrize(
    "text", ["20-6", "20:00", "24:00-06:00", "08:00-24:01", "8:60-9:00", "09:00-09:00", ","]
)
def test_what_is_no_range_of_the_day_is_refused(text: str) -> None:
    """Also a range of no length: who means the whole day leaves hours out."""
    with pytest.raises(ValueError, match="not hours"):
        parse_hours(text)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("mon-fri", {0, 1, 2, 3, 4}),
        ("Sat, Sun", {5, 6}),
        ("fri-mon", {4, 5, 6, 0}),
        ("wed", {2}),
        ("sun-sun", {6}),
    ],
)
def test_days_are_names_and_ranges(text: str, days: set[int]) -> None:
    """A range may go over the end of the week."""
    assert parse_days(text) == days


@pytest.mark.parametrize("text", ["monday", "mon-", "mon-wed-fri", "1-5", "mon fri"])
def test_what_is_no_day_is_refused(text: str) -> None:
    """Three letters each."""
    with pytest.raises(ValueError, match="not days of the week"):
        parse_days(text)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (">2", Limits(True, 2.0, 1.5)),
        ("< 0.4", Limits(False, 0.4, 0.5)),
        (">2 <1", Limits(True, 2.0, 1.0)),
        ("<1>3.5", Limits(False, 1.0, 3.5)),
        (">2 <2", Limits(True, 2.0, 2.0)),
        (">0", Limits(True, 0.0, 0.0)),
    ],
)
def test_load_condition_has_a_limit_to_enter_and_one_to_leave(text: str, limits: Limits) -> None:
    """The second is a quarter past the first unless it is given."""
    assert parse_limits(text) == limits


@pytest.mark.parametrize("text", ["2", "=2", ">two", ">2 >1", ">-1", ">1e3", "> 2 <"])
def test_what_is_no_load_condition_is_refused(text: str) -> None:
    """A sign and a number, once or twice."""
    with pytest.raises(ValueError, match="not a load condition"):
        parse_limits(text)


@pytest.mark.parametrize("text", [">2 <3", "<3 >2"])
def test_load_condition_that_is_left_before_it_is_entered_is_refused(text: str) -> None:
    """It would change with every cycle."""
    with pytest.raises(ValueError, match="on the wrong side"):
        parse_limits(text)


@pytest.mark.parametrize(
    ("load", "held", "holds"),
    [(2.0, False, False), (2.1, False, True), (1.6, True, True), (1.5, True, False)],
)
def test_load_condition_that_holds_is_left_later_than_it_is_entered(
    load: float, held: bool, holds: bool
) -> None:
    """ ">2": from above 2 until it is no longer above 1.5."""
    when = When(pending_per_free_gpu=">2")
    assert when.loaded(Load(pending_jobs=0, pending_per_free_gpu=load), held) is holds


def test_all_load_conditions_must_hold() -> None:
    """Many jobs and few free GPUs."""
    when = When(pending_jobs=">100", pending_per_free_gpu=">2")
    loads = [(101.0, 3.0), (101.0, 1.0), (99.0, 3.0)]
    held = [when.loaded(Load(pending_jobs=j, pending_per_free_gpu=g), held=False) for j, g in loads]
    assert held == [True, False, False]


@pytest.mark.parametrize(
    ("day", "hour", "holds"),
    [
        pytest.param(0, 5.99, False, id="Monday's early hours belong to Sunday's night"),
        pytest.param(0, 19.99, False, id="Monday, not yet"),
        pytest.param(0, 20, True, id="Monday, from 20:00"),
        pytest.param(1, 0, True, id="midnight"),
        pytest.param(1, 5.99, True, id="until 06:00"),
        pytest.param(1, 6, False, id="at 06:00 it ends"),
        pytest.param(4, 23, True, id="Friday's night"),
        pytest.param(5, 5, True, id="ends on Saturday"),
        pytest.param(5, 21, False, id="Saturday has none"),
    ],
)
def test_night_belongs_to_the_day_on_which_it_begins(day: int, hour: float, holds: bool) -> None:
    """20:00-06:00 on mon-fri."""
    assert timely(When(hours="20:00-06:00", days="mon-fri"), day, hour) is holds


def test_days_alone_hold_from_midnight_to_midnight() -> None:
    """Saturday and Sunday."""
    when = When(days="sat,sun")
    assert [timely(when, day, 0) for day in range(8)] == [False] * 5 + [True, True, False]
    assert timely(when, 6, 23.99)


def test_hours_alone_hold_on_every_day() -> None:
    """Two ranges, each up to but without its end."""
    when = When(hours="08:00-12:00,13:00-24:00")
    assert [timely(when, 2, hour) for hour in (7.9, 8, 11.9, 12, 13, 23.99)] == [
        False,
        True,
        True,
        False,
        True,
        True,
    ]
