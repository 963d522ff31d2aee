"""The service's sockets: one instance at a time, owner and mode right before anyone can connect."""

import os
import socket
import stat
from pathlib import Path

from slurm_score.errors import ServiceError
from slurm_score.lock import FileLock

HOOK_MODE = 0o600
"""The hook asks as SlurmUser, and so does the service run: nobody else needs this socket."""

READERS_MODE = 0o666


class ClaimedSocket:
    """A listening unix socket that is ours alone.

    A lock file beside it, held as long as this process lives, tells a second instance from a socket
    that a killed one left behind.

    Raises:
        ServiceError: another instance has it, the folder isn't safe, or it can't be made.
        LockedError: its lock file can't be had at all.
    """

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path
        _require_safe_folder(path)
        self._lock = _lock(path)
        try:
            self.socket = _bind(path, mode)
        except BaseException:
            self._lock.release()
            raise
        self._inode = path.stat().st_ino

    def release(self) -> None:
        """Close the socket, and remove its file if it is still ours."""
        self.socket.close()
        try:
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()
        except FileNotFoundError:
            pass  # somebody cleaned up before us
        self._lock.release()


def listen_tcp(host: str, port: int) -> socket.socket:
    """Return a bound TCP socket.

    Raises:
        ServiceError: it can't be bound.
    """
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64
        )
    except OSError as error:
        raise ServiceError(f"{host}:{port}: can't listen: {error.strerror or error}") from error


def _require_safe_folder(path: Path) -> None:
    """Others could replace a socket in a folder that they may write to."""
    try:
        found = path.parent.stat()
    except OSError as error:
        raise ServiceError(f"{path.parent}: can't be used for the socket: {error.strerror}") from error
    open_to_all = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    if open_to_all:
        mode = stat.S_IMODE(found.st_mode)
        raise ServiceError(
            f"{path.parent}: others may write to the socket's folder, got mode {mode:04o}; 0755 is right"
        )
    if found.st_uid not in (0, os.geteuid()):
        raise ServiceError(
            f"{path.parent}: the socket's folder belongs to uid {found.st_uid}; "
            f"it must be ours (uid {os.geteuid()}) or root's"
        )


def _lock(path: Path) -> FileLock:
    lock = FileLock(path.with_name(f".{path.name}.lock"), socket.gethostname())
    if holder := lock.take():
        raise ServiceError(f"{path}: another instance serves it, {holder}; stop that one first")
    return lock


def _bind(path: Path, mode: int) -> socket.socket:
    """Bind, set the mode, check it: nobody can connect before the server listens."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        made.bind(str(path))
        path.chmod(mode)
        found = path.lstat()
    except OSError as error:
        made.close()
        raise ServiceError(f"{path}: can't make the socket: {error.strerror or error}") from error
    except ServiceError:
        made.close()
        raise
    if (found.st_uid, stat.S_IMODE(found.st_mode)) != (os.geteuid(), mode):
        made.close()
        raise ServiceError(
            f"{path}: owner and mode are {found.st_uid} and {stat.S_IMODE(found.st_mode):04o}, "
            f"not {os.geteuid()} and {mode:04o}"
        )
    return made


def _remove_stale(path: Path) -> None:
    """Remove what a killed instance left: the lock says that nobody serves it."""
    if not path.is_symlink() and not path.exists():
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise ServiceError(f"{path}: is not a socket and is left alone; remove it or name another path")
    path.unlink()
