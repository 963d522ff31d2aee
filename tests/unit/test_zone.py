"""slurm_score/zone.py: a site's clock, summer time included."""

import time

import pytest

from slurm_score.units import HOUR_S
from slurm_score.zone import clock_text, instant, zone_of

WINTER, SUMMER = 1_796_068_800, 1_783_000_000  # 2026-11-30 20:00 and 2026-07-02 13:46:40, UTC


def test_clock_of_a_zone_knows_summer_time() -> None:
    """One hour before UTC in winter, two in summer, none in UTC."""
    zurich, utc = zone_of("Europe/Zurich"), zone_of("UTC")
    assert [zurich(WINTER), zurich(SUMMER), utc(SUMMER)] == [HOUR_S, 2 * HOUR_S, 0]


def test_no_name_is_the_machines_own_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As localtime(3) has it."""
    monkeypatch.setenv("TZ", "EST5EDT")
    time.tzset()
    try:
        assert [zone_of("")(WINTER), zone_of("")(SUMMER)] == [-5 * HOUR_S, -4 * HOUR_S]
        assert instant("2026-11-30T15:00", "") == WINTER
        assert clock_text(WINTER, "") == "2026-11-30 15:00 -0500"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["2026-11-30T21:00", "2026-11-30 21:00", "2026-11-30T20:00Z", "2026-11-30T15:00:00-05:00"]
)
def test_time_is_read_by_the_clock_of_the_zone(text: str) -> None:
    """Unless it names its own distance from UTC."""
    assert instant(text, "Europe/Zurich") == WINTER
    assert clock_text(WINTER, "Europe/Zurich") == "2026-11-30 21:00 +0100"


@pytest.mark.parametrize("text", ["soon", "20:00", "2026-13-01", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    """With the form that is allowed."""
    with pytest.raises(ValueError, match="not a time; such as 2026-12-01T20:00"):
        instant(text, "UTC")
