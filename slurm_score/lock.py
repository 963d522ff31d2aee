"""A lock that a process holds as long as it lives: flock on a file that says who holds it."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_score.errors import LockedError, shown

POLL_S = 0.1


class FileLock:
    """A file under flock. It stays when it is let go: taking it away would let two processes in."""

    def __init__(self, path: Path, host: str) -> None:
        self.path = path
        self._host = host
        self._file: int | None = None

    def take(self) -> str:
        """Take the lock, which may be ours already; return who holds it instead, empty if we do.

        Raises:
            LockedError: the file can't be opened.
        """
        if self._file is not None:
            return ""
        file, writable = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 200).decode("utf-8", "replace").strip()
            os.close(file)
            return shown(holder, 120) if holder else "another process"
        except OSError as error:
            os.close(file)
            raise LockedError(f"{self.path}: can't be locked: {error.strerror}") from error
        self._file = file
        if writable:
            os.truncate(file, 0)
            os.pwrite(file, f"pid {os.getpid()} on {self._host}\n".encode(), 0)
        return ""

    def release(self) -> None:
        """Let the lock go; harmless where we don't hold it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextmanager
    def held(self, timeout_s: float, stop: threading.Event) -> Iterator[None]:
        """Hold the lock for a while.

        Raises:
            LockedError: another process kept it for longer than the time-out, or we are to stop.
        """
        latest_s = time.monotonic() + timeout_s
        while holder := self.take():
            if time.monotonic() >= latest_s or stop.wait(POLL_S):
                raise LockedError(f"{self.path}: held by {holder}; one writer at a time")
        try:
            yield
        finally:
            self.release()

    def _open(self) -> tuple[int, bool]:
        """Open the file, for reading only where it is another user's: that is enough to lock it."""
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self.path, flags | os.O_RDWR | os.O_CREAT, 0o644), True
        except PermissionError:
            pass
        except OSError as error:
            raise LockedError(f"{self.path}: can't be opened: {error.strerror}") from error
        try:
            return os.open(self.path, flags | os.O_RDONLY), False
        except OSError as error:
            raise LockedError(f"{self.path}: can't be opened: {error.strerror}") from error
