"""The history of ended runs, in an SQLite file: written in chunks, read by user, kept for a time.

A row takes 150 bytes with its indexes. What a user ran last is found through an index: the time for it
doesn't grow with the history.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from secrets import token_bytes
from typing import Any

from slurm_score.audit.store import pragma, remedy, transaction
from slurm_score.errors import HistoryError
from slurm_score.model import EndedRun
from slurm_score.units import DAY_S

VERSION = 1
APPLICATION_ID = 0x736C7368  # "slsh"
FILE_MODE = 0o640
BUSY_S = 1.0
CHUNK = 10_000
KEEP_S = 2.0 * 365 * DAY_S
CACHE_KIB = 32_768

FIELDS = (
    "user", "limit_s", "cpus", "gpus", "gpu_types", "account", "name", "partition", "qos", "claim_s",
    "submit_s", "end_s", "elapsed_s", "job_id", "state", "restarts",
)  # fmt: skip
"""The columns of a run, by their names in EndedRun."""

TABLES = (
    """CREATE TABLE run (
        user TEXT NOT NULL, limit_s REAL NOT NULL, cpus INTEGER NOT NULL, gpus INTEGER NOT NULL,
        gpu_types TEXT NOT NULL, account TEXT NOT NULL, name TEXT NOT NULL, partition TEXT NOT NULL,
        qos TEXT NOT NULL, claim_s REAL, submit_s INTEGER NOT NULL, end_s INTEGER NOT NULL,
        elapsed_s REAL NOT NULL, job_id INTEGER NOT NULL, state TEXT NOT NULL, restarts INTEGER NOT NULL
    )""",
    "CREATE UNIQUE INDEX run_once ON run (job_id, submit_s, end_s)",
    "CREATE INDEX run_of_user ON run (user, end_s)",
    "CREATE INDEX run_by_end ON run (end_s)",
    "CREATE TABLE claim (job_id INTEGER PRIMARY KEY, claim_s REAL NOT NULL, seen_s REAL NOT NULL)",
    "CREATE TABLE imported (source TEXT PRIMARY KEY, until_s INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE secret (key BLOB NOT NULL)",
)

_INSERT = f"INSERT OR IGNORE INTO run ({', '.join(FIELDS)}) VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608
_SELECT = f"SELECT {', '.join(FIELDS)} FROM run"  # noqa: S608
_RIGHTS = "its folder and the file must be there and open to the user who runs this"


class HistoryStore:
    """An open history; `open_history` makes one."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def add(
        self, runs: Iterable[EndedRun], source: str = "", until_s: int = 0, anonymise: bool = False
    ) -> int:
        """Add runs in one transaction and return how many are new.

        With a source, remember that it is imported up to `until_s`: it is so, or nothing was added.
        """
        name_of = self._digest() if anonymise else None
        before = self._connection.total_changes
        with transaction(self._connection):
            self._connection.executemany(_INSERT, (_row(run, name_of) for run in runs))
            added = self._connection.total_changes - before
            if source:
                known = "INSERT INTO imported VALUES (?, ?) ON CONFLICT (source) DO UPDATE SET until_s = ?"
                self._connection.execute(known, (source, until_s, until_s))
        return added

    def imported_until(self, source: str) -> int | None:
        """Return up to when a source is imported, None where it never was."""
        found = self._connection.execute(
            "SELECT until_s FROM imported WHERE source = ?", (source,)
        ).fetchone()
        return int(found[0]) if found else None

    def count(self) -> int:
        """Return how many runs there are."""
        return int(self._connection.execute("SELECT count(*) FROM run").fetchone()[0])

    def last_of_user(self, user: str, most: int) -> list[EndedRun]:
        """Return the last runs of a user, latest first."""
        query = f"{_SELECT} WHERE user = ? ORDER BY end_s DESC LIMIT ?"
        return [_run(row) for row in self._connection.execute(query, (user, most))]

    def recent(self, since_s: float, most_each: int) -> list[EndedRun]:
        """Return the last runs of each user who ran something since a time, the earliest first."""
        query = "SELECT DISTINCT user FROM run WHERE end_s > ?"
        users = [user for (user,) in self._connection.execute(query, (since_s,))]
        runs = [run for user in users for run in self.last_of_user(user, most_each)]
        return sorted(runs, key=lambda run: run.end_s)

    def each(self) -> Iterator[EndedRun]:
        """Yield all runs in the order of their ends."""
        return map(_run, self._connection.execute(f"{_SELECT} ORDER BY end_s, rowid"))

    def keep_claims(self, claims: Mapping[int, float], now_s: float) -> None:
        """Replace what waiting jobs claim, by job id: after a restart it is known again."""
        with transaction(self._connection):
            self._connection.execute("DELETE FROM claim")
            rows = ((job_id, claim_s, now_s) for job_id, claim_s in claims.items())
            self._connection.executemany("INSERT INTO claim VALUES (?, ?, ?)", rows)

    def claims(self) -> dict[int, float]:
        """Return what waiting jobs claimed when it was kept last."""
        return {int(i): float(s) for i, s in self._connection.execute("SELECT job_id, claim_s FROM claim")}

    def forget(self, before_s: float) -> int:
        """Delete what ended before a time, and return how many runs that were."""
        with transaction(self._connection):
            return self._connection.execute("DELETE FROM run WHERE end_s < ?", (before_s,)).rowcount

    @property
    def anonymous(self) -> bool:
        """Whether users stand in it by digests."""
        return self._connection.execute("SELECT 1 FROM secret").fetchone() is not None

    def _digest(self) -> Callable[[str], str]:
        """A digest that nobody without this file can repeat, the same for every import into it."""
        if not self.anonymous:
            if self.count():
                raise HistoryError(f"{self._path}: holds real names already; anonymise into a new file")
            self._connection.execute("INSERT INTO secret VALUES (?)", (token_bytes(32),))
        (key,) = self._connection.execute("SELECT key FROM secret").fetchone()
        return lambda text: blake2b(text.encode(), key=key, digest_size=6).hexdigest() if text else ""


@contextmanager
def open_history(path: Path, *, create: bool = True) -> Iterator[HistoryStore]:
    """Open the history, and make it where there is none and `create` says so.

    Raises:
        HistoryError: it can't be opened, read or written, by SQLite or in the block, or isn't ours.
    """
    try:
        if create:
            _create(path)
        elif not path.exists():
            raise HistoryError(f"{path}: no history yet; slurm-score history import makes one")
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as connection:
            _prepare(connection, path)
            yield HistoryStore(connection, path)
    except OSError as error:
        raise HistoryError(f"{path}: can't use the history: {error.strerror}; {_RIGHTS}") from error
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: can't use the history: {error}; {remedy(error)}") from error


def add_in_chunks(
    store: HistoryStore,
    runs: Iterable[EndedRun],
    progress: Callable[[int], None] = lambda _: None,
    anonymise: bool = False,
) -> int:
    """Add any number of runs, a transaction for each chunk; return how many are new."""
    added, seen, left = 0, 0, iter(runs)
    while chunk := list(islice(left, CHUNK)):
        added += store.add(chunk, anonymise=anonymise)
        seen += len(chunk)
        progress(seen)
    return added


def _create(path: Path) -> None:
    """An empty file is a database without tables; made here for owner and group only."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return
    try:
        os.fchmod(handle, FILE_MODE)
    finally:
        os.close(handle)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        if pragma(connection, "application_id") != APPLICATION_ID:
            raise HistoryError(f"{path}: a database, but not a history of slurm-score; name another file")
        version = pragma(connection, "user_version")
        if version != VERSION:
            raise HistoryError(f"{path}: a history of another release, got schema {version}, not {VERSION}")
        return
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        for table in TABLES:
            connection.execute(table)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _row(run: EndedRun, name_of: Callable[[str], str] | None) -> tuple[object, ...]:
    row = [getattr(run, field) for field in FIELDS]
    if name_of is not None:
        for i, field in enumerate(FIELDS):
            row[i] = name_of(row[i]) if field in {"user", "account", "name"} else row[i]
    return tuple(row)


def _run(row: Sequence[Any]) -> EndedRun:
    return EndedRun(**dict(zip(FIELDS, row, strict=True)))
