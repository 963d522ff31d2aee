"""A file that is read again when it changes; what was last read well stays in force."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from slurm_score.errors import PolicyError, Problem, SlurmScoreError
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy

T = TypeVar("T")
Stamp = tuple[int, int, int]

log = logging.getLogger(__name__)


class Watched(Generic[T]):
    """The value of a file, kept up to date by its time stamp, size and inode.

    `error` is the sentence of the last failed reading, empty when the file in force is the newest.
    """

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        self.path = path
        self.error = ""
        self._read = read
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._value: T | None = None

    def current(self) -> T:
        """Return the newest value that could be read.

        Raises:
            SlurmScoreError: it never could.
        """
        with self._lock:
            stamp = self._look()
            if stamp != self._stamp or self._value is None:
                self._reload(stamp)
            if self._value is None:
                raise AssertionError("a reading that fails before any was good raises")
            return self._value

    def latest(self) -> T:
        """Return what was last read well, without a look at the file; read it if nothing was.

        Raises:
            SlurmScoreError: it never could be read.
        """
        value = self._value
        return self.current() if value is None else value

    def _reload(self, stamp: Stamp | None) -> None:
        self._stamp = stamp
        try:
            self._value = self._read(self.path)
        except SlurmScoreError as error:
            self.error = str(error)
            if self._value is None:
                raise
            log.error("%s is not used, the one before stays in force: %s", self.path, error)
        else:
            self.error = ""

    def _look(self) -> Stamp | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino)


def read_policy(path: Path) -> Policy:
    """Return the policy of a YAML file.

    Raises:
        PolicyError: it can't be read, or holds problems.
    """
    try:
        return parse_policy(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise PolicyError([Problem(str(path), f"can't read the policy: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise PolicyError([Problem(str(path), f"not UTF-8 text at byte {error.start}")]) from error


def is_there(path: Path) -> bool:
    """Return whether there is a file of any kind, or whether we are kept from seeing that there is none."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
