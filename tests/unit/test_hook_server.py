"""slurm_score/service/hook_server.py: HTTP on the hook's socket, whatever comes."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from slurm_score.service import hook_server
from slurm_score.service.hook import Hook
from slurm_score.service.hook_server import (
    MAX_CONNECTIONS,
    MAX_HEAD,
    MAX_KNOWN_REQUEST,
    MAX_UNFINISHED,
    PATH,
    HookServer,
    Request,
)
from tests.unit import service_support
from tests.unit.hook_wire import BODY, MOMENT_S, TIMEOUT_S, connect, last_reply, post, replies
from tests.unit.service_support import Service

# pytest finds fixtures by their names in the module.
service = service_support.service


@pytest.fixture
def connection(service: Service) -> Iterator[socket.socket]:
    """A connection to the hook's socket."""
    with connect(service) as made:
        yield made


# Requests in pieces, and several at once


@pytest.mark.parametrize("size", [1, 7, 60])
def test_request_in_pieces_is_answered_when_it_is_whole(connection: socket.socket, size: int) -> None:
    """A stream has no message boundaries: any split is the same request."""
    request = post() * 2
    for at in range(0, len(request), size):
        connection.sendall(request[at : at + size])
    assert replies(connection, 2) == [200, 200]


def test_pipelined_requests_are_answered_in_order(connection: socket.socket) -> None:
    """Also where the end of one comes with the beginning of the next. Source: RFC 9112, 9.3.2."""
    requests = post() + post(path="/") + post(b"no JSON") + post()
    connection.sendall(requests[:-20])
    assert replies(connection, 3) == [200, 404, 422]
    connection.sendall(requests[-20:] + post() + post(b"{}"))
    assert replies(connection, 3) == [200, 200, 200]


def test_beginning_that_follows_a_request_is_not_lost(connection: socket.socket) -> None:
    """However often the same comes in the same pieces."""
    for _ in range(2):
        connection.sendall(post() + post()[:20])
        assert replies(connection, 1) == [200]
        connection.sendall(post()[20:])
        assert replies(connection, 1) == [200]


def test_empty_lines_before_a_request_are_no_request(connection: socket.socket) -> None:
    """RFC 9112, 2.2; and a request that was seen before is known behind them too."""
    for _ in range(2):
        connection.sendall(b"\r\n")
        connection.sendall(post())
        assert replies(connection, 1) == [200]


def test_seen_bytes_inside_a_body_are_no_request(connection: socket.socket) -> None:
    """Only what begins a request can be a request that was seen before."""
    connection.sendall(post())
    assert replies(connection, 1) == [200]
    around = post(b" " + post())
    at = around.index(b" POST") + 1
    connection.sendall(around[:at])
    time.sleep(MOMENT_S)  # so that the rest is read by itself
    connection.sendall(around[at:])
    assert replies(connection, 1) == [422]


def test_end_of_a_request_is_not_taken_for_a_request(service: Service) -> None:
    """What completed a request isn't whole by itself, however often it comes."""
    request = post(BODY, "X: y")
    at = request.index(b"X: y")
    with connect(service) as connection:
        connection.sendall(request[:at])
        time.sleep(MOMENT_S)  # so that the rest is read by itself
        connection.sendall(request[at:])
        assert replies(connection, 1) == [200]
        connection.sendall(request[at:])
        assert last_reply(connection)[0] == 400


@pytest.mark.parametrize(
    ("request_bytes", "reply"),
    [
        (post(BODY, "Connection: close"), 200),
        (post(version="1.0"), 200),
        (post(BODY, "Connection: keep-alive", version="1.0"), 200),
        (b"GET /v1/score HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x00\x01", 405),
    ],
)
def test_connection_that_ends_with_its_request_is_closed_after_the_answer(
    connection: socket.socket, request_bytes: bytes, reply: int
) -> None:
    """The client says so, knows no better, or wants another protocol; what it sends behind isn't read."""
    connection.sendall(request_bytes + post())
    status, ends, _ = last_reply(connection)
    assert (status, ends) == (reply, "close")


@pytest.mark.parametrize("path", ["/v1/score?x=1", "http://slurm-score/v1/score"])
def test_every_form_of_the_path_is_known(connection: socket.socket, path: str) -> None:
    """RFC 9112, 3.2.2: a server must accept the absolute form."""
    connection.sendall(post(path=path))
    assert replies(connection, 1) == [200]


def test_head_request_has_no_body_in_its_reply(connection: socket.socket) -> None:
    """RFC 9110, 9.3.2; the next reply begins where its head ends."""
    connection.sendall(b"HEAD /v1/score HTTP/1.1\r\nHost: x\r\n\r\n")
    head = connection.recv(65536)
    assert (head.split()[1], head[-4:], b"allow: POST\r\n" in head) == (b"405", b"\r\n\r\n", True)
    connection.sendall(post())
    assert replies(connection, 1) == [200]


@pytest.mark.parametrize(("size", "count"), [(10, 5), (MAX_KNOWN_REQUEST + 1, 0)])
def test_memory_of_parsed_requests_has_a_bound(
    service: Service, monkeypatch: pytest.MonkeyPatch, size: int, count: int
) -> None:
    """So many, and no long ones."""
    monkeypatch.setattr(hook_server, "MAX_KNOWN", 5)
    server = HookServer(Hook(service.state))
    for number in range(20):
        server.remember(b"%d" % number + b" " * size, Request(b"POST", PATH, b"", 0, BODY, keeps=True))
        assert len(server.requests) <= count
    assert len(server.requests) == count


# What is refused


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
        b"hello\r\n\r\n",
        b"POST /v1/score HTTP/9.9\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/score HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_not_http_is_400_and_closed(service: Service, garbage: bytes) -> None:
    """Whatever came before on the connection; the next client notices nothing."""
    for before in (b"", post()):
        with connect(service) as connection:
            connection.sendall(before)
            assert replies(connection, 1 if before else 0) == [200] * bool(before)
            connection.sendall(garbage)
            assert last_reply(connection) == (400, "close", {"error": "Bad Request"})
    assert service.score(qos="high")["reason"] == ""


@pytest.mark.parametrize("size", [MAX_HEAD + 1, 60_000])
def test_head_above_8_kib_is_431_and_closed(service: Service, connection: socket.socket, size: int) -> None:
    """A head that is whole; nothing that came behind it is answered."""
    connection.sendall(post(BODY, f"X: {'x' * size}") + post())
    assert last_reply(connection)[:2] == (431, "close")
    assert 'outcome="scored"' not in service.ask("GET", "/metrics")[2]


@pytest.mark.parametrize(
    ("begin", "more", "status"),
    [
        (b"POST /v1/score HTTP/1.1\r\nX: ", b"x" * 8192, 431),
        (b"POST /", b"x" * 8192, 431),
        (b"POST /v1/score HTTP/1.1\r\n", b"X: y\r\n" * 1000, 431),
        (
            b"POST /v1/score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"400\r\n%s\r\n" % (b"x" * 1024),
            413,
        ),
        (b"POST /v1/score HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"x" * 8192, 413),
        (b"POST /v1/score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 8192, 431),
    ],
)
def test_request_without_an_end_is_refused_before_it_fills_the_memory(
    connection: socket.socket, begin: bytes, more: bytes, status: int
) -> None:
    """No more than twice what is allowed is taken, and what one read brings."""
    connection.sendall(begin)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it is closed while we send
        for _ in range(2 * MAX_UNFINISHED // len(more) + 400):
            connection.sendall(more)
    head = connection.recv(65536)
    assert head.split()[:2] == [b"HTTP/1.1", b"%d" % status]
    assert b"connection: close\r\n" in head


def test_refused_size_is_counted(service: Service, connection: socket.socket) -> None:
    """413 before the end is an answer like any other."""
    connection.sendall(b"POST /v1/score HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 70_000)
    assert replies(connection, 1) == [413]
    text = service.ask("GET", "/metrics")[2]
    assert 'slurm_score_answers_total{outcome="too_large"} 1.0' in text


def test_connections_beyond_the_limit_are_answered_503(service: Service) -> None:
    """Shed, don't queue; who leaves makes room."""
    with contextlib.ExitStack() as held:
        first, *_ = [held.enter_context(connect(service)) for _ in range(MAX_CONNECTIONS)]
        with connect(service) as surplus:
            surplus.sendall(post())
            assert last_reply(surplus) == (503, "close", {"error": "Service Unavailable"})
        first.sendall(post())
        assert replies(first, 1) == [200]
        first.close()
        deadline, status = time.monotonic() + TIMEOUT_S, 503
        while status != 200:
            assert time.monotonic() < deadline
            status = service.ask("POST", "/v1/score", BODY)[0]
