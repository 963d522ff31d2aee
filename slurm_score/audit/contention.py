"""How contended the GPU types were and how long the queue, by the hour, in the audit's file.

A row an hour, and a row an hour and type that was asked for: with five types 2,016 rows in the 14 days
that are kept. An hour is that of the queue's own time, so a clock that jumps loses what is old by it.
"""

import sqlite3
from collections import defaultdict
from pathlib import Path

from slurm_score.audit.decisions import text
from slurm_score.audit.store import CONTENTION_SINCE, pragma, reading
from slurm_score.errors import AuditError
from slurm_score.model import Queue
from slurm_score.tuning import DAY_H, Extent, Hour, extent_of, hour_of, split_pressure

KEEP_H = 14 * DAY_H

_HOUR = (
    "INSERT INTO hour VALUES (?, 1, ?, ?, ?) ON CONFLICT (hour) DO UPDATE SET cycles = cycles + 1,"
    " entries = max(entries, excluded.entries), limit_s = max(limit_s, excluded.limit_s),"
    " unlimited = max(unlimited, excluded.unlimited)"
)
_TYPE = (
    "INSERT INTO contention VALUES (?, ?, ?, ?) ON CONFLICT (hour, type) DO UPDATE SET"
    " pressure = pressure + excluded.pressure, unusable = unusable + excluded.unusable"
)


def note_contention(connection: sqlite3.Connection, queue: Queue) -> None:
    """Add what one cycle saw to its hour, and forget the hours that are too old; in a transaction."""
    hour, extent = hour_of(queue.now_s), extent_of(queue)
    connection.execute(_HOUR, (hour, extent.entries, extent.limit_s, extent.unlimited))
    rows = ((hour, text(name), asked, unusable) for name, asked, unusable in split_pressure(queue.pressure))
    connection.executemany(_TYPE, rows)
    for table in ("hour", "contention"):
        connection.execute(f"DELETE FROM {table} WHERE hour <= ?", (hour - KEEP_H,))  # noqa: S608 - ours


def read_contention(path: Path) -> tuple[Hour, ...]:
    """Return the hours that were recorded, oldest first.

    Raises:
        AuditError: the audit can't be read, or is of a release that didn't record them.
    """
    with reading(path) as connection:
        if pragma(connection, "user_version") < CONTENTION_SINCE:
            raise AuditError(
                f"{path}: of a release that didn't record contention; "
                "the first cycle of this one brings it up to date"
            )
        connection.execute("BEGIN")  # both tables as of one moment
        hours = connection.execute("SELECT * FROM hour ORDER BY hour").fetchall()
        pressure: dict[int, dict[str, float]] = defaultdict(dict)
        unusable: dict[int, dict[str, int]] = defaultdict(dict)
        for hour, gpu_type, asked, cycles in connection.execute("SELECT * FROM contention"):
            pressure[hour][gpu_type] = asked
            if cycles:
                unusable[hour][gpu_type] = cycles
    return tuple(
        Hour(
            hour=hour,
            cycles=cycles,
            extent=Extent(entries, limit_s, bool(unlimited)),
            pressure=pressure.get(hour, {}),
            unusable=unusable.get(hour, {}),
        )
        for hour, cycles, entries, limit_s, unlimited in hours
    )
