"""A site's clock: the one place that asks the time zone database and the machine's own zone."""

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from slurm_score.profiles import Zone


@lru_cache(maxsize=8)
def zone_of(name: str) -> Zone:
    """Return the clock of a time zone by its name, of the machine's own zone for an empty one.

    Raises:
        ZoneInfoNotFoundError: no such zone; a policy that was read names none of those.
    """
    zone = ZoneInfo(name) if name else None

    def offset_s(at_s: float) -> float:
        return (
            datetime.fromtimestamp(at_s, zone).astimezone(zone).utcoffset() or timedelta()
        ).total_seconds()

    return offset_s


def instant(text: str, name: str) -> float:
    """Return a time such as 2026-12-01T20:00, by the clock of a time zone, in s since the epoch.

    Raises:
        ValueError: not a time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("not a time; such as 2026-12-01T20:00 or 2026-12-01") from None
    zone = ZoneInfo(name) if name else None
    return (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()


def clock_text(at_s: float, name: str) -> str:
    """Return a time as people read it, by the clock of a time zone and with its distance from UTC."""
    zone = ZoneInfo(name) if name else None
    return datetime.fromtimestamp(at_s, zone).astimezone(zone).strftime("%Y-%m-%d %H:%M %z")
