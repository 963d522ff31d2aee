"""An audit that can't be written: one error in the log, the loop goes on, and later so does the audit."""

import logging
import resource
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from slurm_score.audit import read_cycles
from slurm_score.audit.store import APPLICATION_ID, MIGRATIONS, VERSION, remedy
from slurm_score.audit.trail import RETRY_S
from slurm_score.errors import AuditError

from .audit_support import Clock, cycle_of, trail_at, without_rights
from .builders import make_job

OLDEST = min(MIGRATIONS)
MOVE_AWAY = "move it away with its -wal and -shm, and a new one is made"
RIGHTS = "its folder and the file must be there and open to the user who runs this"
Trouble = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """Let no file grow beyond what the audit has now and a little more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let another connection be in the middle of writing."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def replaced_by(path: Path, content: bytes) -> Iterator[None]:
    """Let something else stand in the audit's place for a while."""
    kept = path.rename(path.with_name("kept"))
    path.write_bytes(content)
    yield
    assert path.read_bytes() == content
    kept.rename(path)


def garbage(path: Path) -> AbstractContextManager[None]:
    """Let the file be no database."""
    return replaced_by(path, b"not a database, but long enough to look like one\n" * 100)


def damaged(path: Path) -> AbstractContextManager[None]:
    """Let all pages but the first be overwritten."""
    content = path.read_bytes()
    return replaced_by(path, content[:4096] + b"\xff" * (len(content) - 4096))


def changed(path: Path, *statements: str) -> AbstractContextManager[None]:
    """Let the file be what it is after some SQL."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy, isolation_level=None)) as other:
        for statement in statements:
            other.execute(statement)
    content = copy.read_bytes()
    copy.unlink()
    return replaced_by(path, content)


def newer(path: Path) -> AbstractContextManager[None]:
    """Let it be of a later release."""
    return changed(path, f"PRAGMA user_version = {VERSION + 1}")


def older(path: Path) -> AbstractContextManager[None]:
    """Let it be of a release before the first one that can be brought up to date."""
    return changed(path, f"PRAGMA user_version = {OLDEST - 1}")


def foreign(path: Path) -> AbstractContextManager[None]:
    """Let it be another program's database."""
    return changed(path, f"PRAGMA application_id = {APPLICATION_ID + 1}")


@contextmanager
def closed_folder(path: Path) -> Iterator[None]:
    """Let the folder and the file be read-only for us."""
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        with without_rights():
            yield
    finally:
        path.parent.chmod(0o755)
        path.chmod(0o644)


@contextmanager
def missing_folder(path: Path) -> Iterator[None]:
    """Let the folder be away."""
    kept = path.parent.rename(path.parent.with_name("away"))
    yield
    kept.rename(path.parent)


@contextmanager
def nothing(path: Path) -> Iterator[None]:
    """Let all be well."""
    yield


@pytest.fixture
def path() -> Iterator[Path]:
    """Where the audit stands: in a folder that everybody can enter, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "var"
        folder.mkdir()
        for each in (Path(name), folder):
            each.chmod(0o755)
        yield folder / "audit.sqlite"


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (full_disk, "can't write the audit: disk I/O error; see whether its disk is full or failing"),
        (
            locked,
            "can't write the audit: database is locked; another program holds it; "
            "find it with fuser and end it",
        ),
        (garbage, f"can't write the audit: file is not a database; {MOVE_AWAY}"),
        (
            damaged,
            f"can't write the audit: database disk image is malformed; it is damaged: {MOVE_AWAY}",
        ),
        (
            newer,
            f"an audit of another release, got schema {VERSION + 1}; this one reads and writes "
            f"schema {VERSION}: {MOVE_AWAY}",
        ),
        (
            older,
            f"an audit of another release, got schema {OLDEST - 1}; this one reads and writes "
            f"schema {VERSION}: {MOVE_AWAY}",
        ),
        (foreign, "a database, but not an audit of slurm-score; name another file"),
        (
            closed_folder,
            f"can't write the audit: attempt to write a readonly database; {RIGHTS}",
        ),
        (missing_folder, f"can't write the audit: No such file or directory; {RIGHTS}"),
    ],
)
def test_trouble_is_logged_once_and_the_audit_goes_on_when_it_is_over(
    path: Path, caplog: pytest.LogCaptureFixture, trouble: Trouble, sentence: str
) -> None:
    """No cycle fails for it; ten minutes later it is tried again, in silence while nothing is new."""
    clock = Clock()
    trail = trail_at(path, clock)
    trail.record(cycle_of(*(make_job(i, priority=0) for i in range(1, 200))))
    more = cycle_of(*(make_job(i, user="u" * 100) for i in range(1, 1000)))
    with trouble(path):
        for _ in range(3):
            trail.record(more)
        clock.now_s += RETRY_S
        trail.record(more)
    logged = [(record.levelno, record.getMessage()) for record in caplog.records]
    told = f"the audit stops and is tried again every 10 minutes: {path}: {sentence}"
    assert logged == [(logging.ERROR, told)]
    trail.record(more)
    assert len(read_cycles(path, 10)) == 1
    clock.now_s += RETRY_S
    trail.record(more)
    assert caplog.messages[1:] == [f"{path}: the audit goes on; 5 cycles were not recorded"]
    assert [(cycle.cycle, cycle.sent) for cycle in read_cycles(path, 10)] == [(1, 0), (2, 999)]


def test_another_trouble_is_another_error(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who made room on the disk and then meets a lock must hear of it."""
    clock = Clock()
    trail = trail_at(path, clock)
    trail.record(cycle_of(make_job(1)))
    for trouble in (garbage, locked, nothing, locked):
        with trouble(path):
            trail.record(cycle_of(make_job(1)))
        clock.now_s += RETRY_S
    words = [message.partition(f"{path}: ")[2].partition(";")[0] for message in caplog.messages]
    assert words == [
        "can't write the audit: file is not a database",
        "can't write the audit: database is locked",
        "the audit goes on",
        "can't write the audit: database is locked",
    ]


def test_a_clock_that_was_set_back_does_not_silence_the_audit(path: Path) -> None:
    """A retry is due then too."""
    clock = Clock()
    trail = trail_at(path, clock)
    with missing_folder(path):
        trail.record(cycle_of(make_job(1)))
    clock.now_s -= 86400
    trail.record(cycle_of(make_job(1)))
    assert len(read_cycles(path, 10)) == 1


def test_what_is_decided_while_the_audit_stops_shows_afterwards(path: Path) -> None:
    """A reason that changed meanwhile is told as of the first cycle that is recorded again."""
    clock = Clock()
    trail = trail_at(path, clock)
    trail.record(cycle_of(make_job(1, priority=0)))
    with locked(path):
        trail.record(cycle_of(make_job(1, pinned=True)))
    clock.now_s += RETRY_S
    trail.record(cycle_of(make_job(1, pinned=True)))
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT cycle, why FROM decision ORDER BY cycle").fetchall()
    assert rows == [(1, "held"), (2, "pinned")]


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (garbage, f"can't read the audit: file is not a database; {MOVE_AWAY}"),
        (
            newer,
            f"an audit of another release, got schema {VERSION + 1}; this one reads and writes "
            f"schema {VERSION}: {MOVE_AWAY}",
        ),
        (foreign, "a database, but not an audit of slurm-score; name another file"),
    ],
)
def test_a_reader_says_what_is_wrong(path: Path, trouble: Trouble, sentence: str) -> None:
    """One sentence with the path, SQLite's words and the remedy."""
    trail_at(path).record(cycle_of(make_job(1)))
    with trouble(path), pytest.raises(AuditError) as caught:
        read_cycles(path, 10)
    assert str(caught.value) == f"{path}: {sentence}"


def test_a_reader_without_the_right_to_read_says_so(path: Path) -> None:
    """The file is for owner and group."""
    trail_at(path).record(cycle_of(make_job(1)))
    path.chmod(0)
    with ExitStack() as stack:
        stack.enter_context(without_rights())
        caught = stack.enter_context(pytest.raises(AuditError))
        read_cycles(path, 10)
    assert str(caught.value) == f"{path}: can't read the audit: unable to open database file; {RIGHTS}"


def test_a_disk_without_room_is_told_from_a_failing_one(path: Path) -> None:
    """SQLite has a word of its own for it, here because the file may have two pages only."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA max_page_count = 2")
        connection.execute("CREATE TABLE t (x)")
        with pytest.raises(sqlite3.OperationalError, match="database or disk is full") as caught:
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    assert remedy(caught.value) == "make room on its disk"


def test_an_error_without_a_remedy_of_its_own_has_a_general_one() -> None:
    """An error that the sqlite3 module raises by itself has no code."""
    assert remedy(sqlite3.ProgrammingError("closed")) == f"if it stays so, {MOVE_AWAY}"
