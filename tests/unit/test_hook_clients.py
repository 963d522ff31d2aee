"""slurm_score/service/hook_server.py: clients that leave, dawdle or don't listen; the end of the service."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from slurm_score.service import hook_server
from slurm_score.service.background import running_service
from slurm_score.service.hook_server import MAX_CONNECTIONS
from slurm_score.service.server import Addresses
from tests.unit import service_support
from tests.unit.hook_wire import BODY, MOMENT_S, TIMEOUT_S, connect, post, replies
from tests.unit.service_support import Service

# pytest finds fixtures by their names in the module.
service = service_support.service


@pytest.fixture
def connection(service: Service) -> Iterator[socket.socket]:
    """A connection to the hook's socket."""
    with connect(service) as made:
        yield made


# Clients that leave, dawdle or don't listen


@pytest.mark.parametrize("sent", [0, 1, 30, len(post()) - 1])
def test_client_that_leaves_midway_costs_nothing(
    service: Service, caplog: pytest.LogCaptureFixture, sent: int
) -> None:
    """No line in the log, and no connection that is kept."""
    for _ in range(MAX_CONNECTIONS + 1):
        with connect(service) as connection:
            connection.sendall(post()[:sent])
    assert service.score(qos="high")["reason"] == ""
    assert caplog.text == ""


def test_client_that_closes_its_side_is_answered(connection: socket.socket) -> None:
    """What came before the end of its stream is whole."""
    connection.sendall(post())
    connection.shutdown(socket.SHUT_WR)
    assert replies(connection, 1) == [200]
    assert connection.recv(1) == b""


def test_request_that_takes_too_long_is_408(
    service: Service, connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However steadily it drips: the time is that of the whole request."""
    monkeypatch.setattr(hook_server, "REQUEST_S", MOMENT_S)
    connection.settimeout(0.02)
    got, request = b"", post(b" " * 10_000)
    for byte in request:
        connection.sendall(bytes([byte]))
        with contextlib.suppress(TimeoutError):
            got = connection.recv(65536)
            break
    assert got.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert service.ask("POST", "/v1/score", BODY)[0] == 200


def test_connection_that_rests_too_long_is_closed(
    connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook asks anew where it finds its connection closed."""
    monkeypatch.setattr(hook_server, "KEEP_ALIVE_S", MOMENT_S)
    connection.sendall(post())
    assert replies(connection, 1) == [200]
    assert connection.recv(1) == b""


def test_client_that_fetches_no_reply_is_cut_off(
    service: Service, connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It isn't read from meanwhile, so that its replies can't fill the memory."""
    monkeypatch.setattr(hook_server, "REQUEST_S", MOMENT_S)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        connection.sendall(post() * 300_000)
    assert service.ask("POST", "/v1/score", BODY)[0] == 200


# The end


@contextlib.contextmanager
def second_service(service: Service, connection: socket.socket) -> Iterator[None]:
    """A service of its own that ends with the context; the connection, to it, has been used."""
    folder = service.folder / "second"
    folder.mkdir(mode=0o755)
    addresses = Addresses(hook=folder / "hook", readers=folder / "readers")
    with running_service(service.state, addresses):
        connection.settimeout(TIMEOUT_S)
        connection.connect(str(addresses.hook))
        connection.sendall(post())
        assert replies(connection, 1) == [200]
        yield


def test_resting_connection_is_closed_at_the_end(service: Service) -> None:
    """Nobody waits on it."""
    with socket.socket(socket.AF_UNIX) as connection:
        with second_service(service, connection):
            pass
        assert connection.recv(1) == b""


def test_request_of_the_last_moment_is_answered(service: Service) -> None:
    """What has come when the service is told to stop is not lost."""
    with socket.socket(socket.AF_UNIX) as connection:
        with second_service(service, connection):
            connection.sendall(post())
        assert replies(connection, 1) == [200]
        assert connection.recv(1) == b""


def test_request_that_never_ends_does_not_hold_up_the_end(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a grace period it is cut off."""
    monkeypatch.setattr(hook_server, "SHUTDOWN_S", MOMENT_S)
    with socket.socket(socket.AF_UNIX) as connection:
        with second_service(service, connection):
            connection.sendall(post()[:-1])
        assert connection.recv(1) == b""
