"""The SQLite file of the audit: its tables, how it is opened, and what to do where that fails."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from slurm_score.errors import AuditError

VERSION = 2
CONTENTION_SINCE = 2
APPLICATION_ID = 0x736C7363  # "slsc"
FILE_MODE = 0o640
BUSY_S = 1.0

CONTENTION_TABLES = (
    """CREATE TABLE hour (
        hour INTEGER PRIMARY KEY, cycles INTEGER NOT NULL, entries INTEGER NOT NULL,
        limit_s REAL NOT NULL, unlimited INTEGER NOT NULL
    )""",
    """CREATE TABLE contention (
        hour INTEGER NOT NULL, type TEXT NOT NULL, pressure REAL NOT NULL, unusable INTEGER NOT NULL,
        PRIMARY KEY (hour, type)
    ) WITHOUT ROWID""",
)
TABLES = (
    """CREATE TABLE policy (
        hash TEXT PRIMARY KEY, stored TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE cycle (
        id INTEGER PRIMARY KEY AUTOINCREMENT, start_s REAL NOT NULL, policy TEXT, mode TEXT NOT NULL,
        weights TEXT NOT NULL,
        pending INTEGER NOT NULL, planned INTEGER NOT NULL, sent INTEGER NOT NULL, failed INTEGER NOT NULL,
        left_over INTEGER NOT NULL, rpcs INTEGER NOT NULL, read_s REAL NOT NULL, score_s REAL NOT NULL,
        plan_s REAL NOT NULL, write_s REAL NOT NULL,
        halted TEXT NOT NULL, error TEXT NOT NULL
    )""",
    """CREATE TABLE decision (
        cycle INTEGER NOT NULL, job_id INTEGER NOT NULL, array_id INTEGER NOT NULL, label TEXT NOT NULL,
        user TEXT NOT NULL, partition TEXT NOT NULL, old INTEGER, new INTEGER NOT NULL,
        score REAL NOT NULL, guarded INTEGER NOT NULL, parts TEXT NOT NULL, why TEXT NOT NULL,
        PRIMARY KEY (cycle, job_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX decision_of_job ON decision (array_id, job_id)",
    "CREATE INDEX decision_of_task ON decision (job_id) WHERE job_id <> array_id",
    *CONTENTION_TABLES,
)
"""Schema 2. `weights` are by factor, as JSON, in the order of the numbers of `parts`, a JSON list."""
MIGRATIONS = {1: CONTENTION_TABLES}
"""What makes a file of one schema one of the next; cycles and decisions are read in each of them."""

_MOVE_AWAY = "move it away with its -wal and -shm, and a new one is made"
_RIGHTS = "its folder and the file must be there and open to the user who runs this"
REMEDIES = {
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_IOERR: "see whether its disk is full or failing",
    sqlite3.SQLITE_READONLY: _RIGHTS,
    sqlite3.SQLITE_CANTOPEN: _RIGHTS,
    sqlite3.SQLITE_PERM: _RIGHTS,
    sqlite3.SQLITE_BUSY: "another program holds it; find it with fuser and end it",
    sqlite3.SQLITE_LOCKED: "another program holds it; find it with fuser and end it",
    sqlite3.SQLITE_CORRUPT: f"it is damaged: {_MOVE_AWAY}",
    sqlite3.SQLITE_NOTADB: f"{_MOVE_AWAY}",
}
"""What to do, by SQLite's primary result code. Source: sqlite.org/rescode.html."""


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the audit to write, and make it where there is none; nothing is in a transaction yet.

    Raises:
        AuditError: it can't be opened or written, by SQLite or in the block, or isn't ours.
    """
    with _explained(path, "can't write the audit"):
        _create(path)
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as connection:
            _prepare(connection, path)
            yield connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the audit to read, while somebody may be writing.

    Raises:
        AuditError: there is none, it can't be read, or isn't ours.
    """
    with _explained(path, "can't read the audit"):
        if not path.exists():
            raise AuditError(f"{path}: no audit yet; is the reprioritizer running, with this file?")
        with closing(_open_to_read(path)) as connection:
            if _is_empty(connection):
                raise AuditError(f"{path}: nothing is recorded yet")
            _require_ours(connection, path)
            yield connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all that happens in the block, or nothing."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AuditError(f"{path}: {what}: {error.strerror}; {_RIGHTS}") from error
    except sqlite3.Error as error:
        raise AuditError(f"{path}: {what}: {error}; {remedy(error)}") from error


def remedy(error: sqlite3.Error) -> str:
    """Return what an admin can do about an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest is detail
    return REMEDIES.get(code, f"if it stays so, {_MOVE_AWAY}")


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
    empty = _is_empty(connection)
    if empty:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before there are tables
    else:
        _require_ours(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if empty:
        with transaction(connection):
            for table in TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
    elif pragma(connection, "user_version") < VERSION:
        _migrate(connection)


def _migrate(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for version in range(pragma(connection, "user_version"), VERSION):
            for statement in MIGRATIONS[version]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _open_to_read(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S)
    try:
        _is_empty(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        # between two cycles there is no -wal, and who may not write into the folder can't make one;
        # but then all there is to read stands in the file itself
        denied = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
        if not denied or path.with_name(f"{path.name}-wal").exists():
            raise
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    if pragma(connection, "application_id") != APPLICATION_ID:
        raise AuditError(f"{path}: a database, but not an audit of slurm-score; name another file")
    version = pragma(connection, "user_version")
    if version not in {*MIGRATIONS, VERSION}:
        raise AuditError(
            f"{path}: an audit of another release, got schema {version}; this one reads and writes "
            f"schema {VERSION}: {_MOVE_AWAY}"
        )


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return the number that a pragma tells."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
