"""slurm_score/tuning.py: what hours of history come to."""

import math

import pytest

from slurm_score.tuning import Contention, Extent, History, Hour, extent_of, hour_of, split_pressure

from .builders import DAY, HOUR, NOW, make_job, make_queue

NOW_H = hour_of(NOW)


def hour(ago_h: int, cycles: int = 60, **pressure: float) -> Hour:
    """Return the hour so many hours ago, with the pressure added up over its cycles."""
    return Hour(hour=NOW_H - ago_h, cycles=cycles, pressure=pressure)


def history(*hours: Hour) -> History:
    """Return a history that ends now."""
    return History(hours, float(NOW))


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ([hour(0, v100=60)], Contention(1.0, 1.0)),
        ([hour(0, v100=60), hour(1)], Contention(0.5, 0.5)),
        ([hour(0, cycles=60, v100=60), hour(1, cycles=1, v100=3)], Contention(2.0, 2.0)),
        ([hour(0, v100=240), hour(24)], Contention(4.0, 2.0)),
        ([hour(23, v100=240), hour(24), hour(167)], Contention(4.0, 4 / 3)),
        ([hour(24, v100=60)], Contention(1.0, 1.0)),
    ],
    ids=[
        "one hour",
        "an hour in which nobody asked for it counts as 0",
        "each hour counts alike, however many cycles it had",
        "the day and the week differ",
        "24 and 168 hours, this one included",
        "nothing in the last 24 hours: the week stands for both",
    ],
)
def test_contention_is_the_mean_of_hourly_means(hours: list[Hour], expected: Contention) -> None:
    """Over the last 24 hours and the last 7 days."""
    assert history(*hours).contention() == {"v100": expected}


def test_what_is_older_than_a_week_does_not_count() -> None:
    """Neither the types nor the hours."""
    assert history(hour(168, v100=60)).contention() == {}


def test_cycles_without_a_usable_gpu_do_not_count() -> None:
    """A type whose only node was down for 50 of 60 cycles: its mean is that of the other 10."""
    both = Hour(hour=NOW_H, cycles=60, pressure={"v100": 20.0}, unusable={"v100": 50})
    assert history(both).contention() == {"v100": Contention(2.0, 2.0)}


def test_a_night_without_a_usable_gpu_does_not_make_a_type_contended() -> None:
    """An hour in which it was never usable is left out of the mean, not counted as infinite."""
    night = Hour(hour=NOW_H - 1, cycles=60, unusable={"v100": 60})
    assert history(night, hour(0, v100=30)).contention() == {"v100": Contention(0.5, 0.5)}


def test_a_type_that_was_never_usable_is_infinitely_contended() -> None:
    """Jobs asked for it all the time."""
    never = Hour(hour=NOW_H, cycles=60, unusable={"v100": 60})
    assert history(never).contention() == {"v100": Contention(math.inf, math.inf)}


@pytest.mark.parametrize(
    ("day", "week", "level"), [(1.0, 1.0, 1.0), (3.0, 1.0, 2.0), (0.0, 0.4, 0.2), (math.inf, 1.0, math.inf)]
)
def test_level_is_the_mean_of_day_and_week(day: float, week: float, level: float) -> None:
    """A load that came up today counts half at once, and one that is over still counts half."""
    assert Contention(day, week).level == level


@pytest.mark.parametrize(
    ("hours", "shortage"),
    [
        (range(24), ""),
        (range(0, 168, 7), ""),
        (range(23, 168), ""),
        (range(23), "23 of the last 168 hours are recorded, 24 are needed"),
        ([0], "1 of the last 168 hours are recorded, 24 are needed"),
        (
            range(24, 168),
            "nothing was recorded in the last 24 hours; is the reprioritizer running?",
        ),
        (
            range(168, 300),
            "nothing was recorded in the last 7 days; is the reprioritizer running, with this audit?",
        ),
        ([], "nothing was recorded in the last 7 days; is the reprioritizer running, with this audit?"),
    ],
)
def test_a_day_of_hours_is_enough(hours: list[int], shortage: str) -> None:
    """24 hours of the last week, and one of the last day; else a sentence says what is missing."""
    assert history(*(hour(ago) for ago in hours)).shortage == shortage


def test_the_extent_of_a_history_is_the_most_of_each() -> None:
    """Also of hours before the last week: a queue that was long once will be long again."""
    hours = (
        Hour(hour=NOW_H - 200, cycles=1, extent=Extent(900, 60.0)),
        Hour(hour=NOW_H, cycles=1, extent=Extent(10, 3600.0, True)),
    )
    assert history(*hours).extent == Extent(900, 3600.0, True)
    assert history().extent == Extent(0, 0.0, False)


def test_the_extent_of_a_queue_is_that_of_the_jobs_that_could_start() -> None:
    """A record counts once for each partition; held jobs, those of tomorrow and running ones do not."""
    queue = make_queue(
        make_job(1, time_limit_s=600.0),
        make_job(2, time_limit_s=7200.0, partitions=("main", "gpu")),
        make_job(3, time_limit_s=None),
        make_job(4, time_limit_s=9e6, priority=0),
        make_job(5, time_limit_s=9e6, eligible_s=NOW + DAY),
        make_job(6, time_limit_s=9e6, eligible_s=None),
        make_job(8, time_limit_s=9e6, state="RUNNING"),
        make_job(7, label="7_[0-9]", tasks="0-9", time_limit_s=60.0),
    )
    assert extent_of(queue) == Extent(5, 7200.0, False)


def test_a_job_without_an_end_is_told_apart_from_the_longest_limit() -> None:
    """UNLIMITED is no number of minutes."""
    queue = make_queue(make_job(1, time_limit_s=math.inf), make_job(2, time_limit_s=60.0))
    assert extent_of(queue) == Extent(2, 60.0, True)


def test_an_empty_queue_reaches_nowhere() -> None:
    """And is no error."""
    assert extent_of(make_queue()) == Extent(0, 0.0, False)


def test_infinite_pressure_is_counted_and_not_added_up() -> None:
    """One cycle with a type that is down would else make every mean infinite."""
    assert list(split_pressure({"h100": math.inf, "v100": 0.5})) == [("h100", 0.0, 1), ("v100", 0.5, 0)]


def test_an_hour_is_counted_from_the_epoch() -> None:
    """A second before the full hour belongs to the hour before."""
    assert (hour_of(0), hour_of(HOUR - 1), hour_of(HOUR)) == (0, 0, 1)
