"""slurm_score/service/sockets.py: one instance, the right owner and mode, nothing of others removed."""

import os
import socket
import stat
from pathlib import Path

import pytest

from slurm_score.errors import ServiceError
from slurm_score.service.sockets import ClaimedSocket, listen_tcp


def fault(path: Path) -> str:
    """Return why a socket can't be had."""
    with pytest.raises(ServiceError) as caught:
        ClaimedSocket(path, 0o600)
    return str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o666])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_socket_has_its_owner_and_mode_before_anyone_can_connect(
    tmp_path: Path, mode: int, umask: int
) -> None:
    """Whatever the umask is; until the server listens, connecting fails."""
    path = tmp_path / "s"
    before = os.umask(umask)
    try:
        claimed = ClaimedSocket(path, mode)
    finally:
        os.umask(before)
    found = path.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (mode, os.geteuid())
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
        client.connect(str(path))
    claimed.release()


def test_released_socket_leaves_no_socket_file(tmp_path: Path) -> None:
    """And the next instance may have it."""
    path = tmp_path / "s"
    for _ in range(2):
        ClaimedSocket(path, 0o600).release()
        assert not path.exists()


def test_second_instance_is_told_so_and_harms_nothing(tmp_path: Path) -> None:
    """The first one goes on listening on the same file."""
    path = tmp_path / "s"
    first = ClaimedSocket(path, 0o600)
    first.socket.listen()
    holder = f"'pid {os.getpid()} on {socket.gethostname()}'"
    assert fault(path) == f"{path}: another instance serves it, {holder}; stop that one first"
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    first.release()


def test_socket_of_a_killed_instance_is_replaced(tmp_path: Path) -> None:
    """A file without a lock belongs to nobody."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    claimed = ClaimedSocket(path, 0o600)
    claimed.socket.listen()
    with socket.socket(socket.AF_UNIX) as client:
        assert client.connect_ex(str(path)) == 0
    claimed.release()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A wrong --socket must not delete somebody's file."""
    path, other = tmp_path / "s", tmp_path / "other"
    other.write_text("precious")
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(other)
    assert fault(path) == f"{path}: is not a socket and is left alone; remove it or name another path"
    assert (path.exists(), other.read_text()) == (True, "precious")


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    """Else they could put their own socket in the place of ours."""
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    assert fault(folder / "s") == (
        f"{folder}: others may write to the socket's folder, got mode {mode:04o}; 0755 is right"
    )


def test_missing_folder_is_named(tmp_path: Path) -> None:
    """As on a host where the unit's RuntimeDirectory is missing."""
    assert fault(tmp_path / "none" / "s") == (
        f"{tmp_path / 'none'}: can't be used for the socket: No such file or directory"
    )


def test_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    """A unix socket's path has 107 bytes at most."""
    path = tmp_path / ("x" * 120)
    assert fault(path) == f"{path}: can't make the socket: AF_UNIX path too long"
    assert fault(path) == f"{path}: can't make the socket: AF_UNIX path too long"  # the lock is free again


def test_file_that_is_not_ours_any_more_is_not_removed(tmp_path: Path) -> None:
    """Somebody replaced it while we ran."""
    path = tmp_path / "s"
    claimed = ClaimedSocket(path, 0o600)
    other = tmp_path / "other"
    other.write_text("theirs")
    other.replace(path)
    claimed.release()
    assert path.read_text() == "theirs"


def test_port_that_is_taken_is_named() -> None:
    """One sentence with address and reason."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServiceError, match=rf"127.0.0.1:{port}: can't listen: Address already in use"):
            listen_tcp("127.0.0.1", port)
