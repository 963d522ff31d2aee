"""Runs one command in a container: standard input, both outputs apart, and a time-out that ends it."""

from __future__ import annotations

import io
import selectors
import shlex
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from docker.models.containers import Container

# How long the engine gets to report a command that timeout(1) has killed. Longer: the container is stuck.
GRACE_S = 5.0
HEADER = struct.Struct(">BxxxL")  # stream (1 stdout, 2 stderr), length of the chunk: the engine's framing
TIMED_OUT = (124, 137)  # timeout(1): ended by TERM, by KILL


@dataclass(frozen=True)
class Result:
    """What a command returned, its outputs decoded as UTF-8."""

    returncode: int
    stdout: str
    stderr: str


class ExecError(Exception):
    """A command ended with an exit code other than 0; result has its outputs."""

    def __init__(self, where: str, argv: Sequence[str], result: Result) -> None:
        self.argv = tuple(argv)
        self.result = result
        output = (result.stderr or result.stdout).strip()
        super().__init__(f"{where}: {shlex.join(argv)}: exit {result.returncode}: {output}")


class ExecTimeoutError(Exception):
    """A command was ended because it took too long."""

    def __init__(self, where: str, argv: Sequence[str], timeout_s: float) -> None:
        self.argv = tuple(argv)
        super().__init__(f"{where}: {shlex.join(argv)}: no end within {timeout_s:g} s")


def run(
    container: Container,
    argv: Sequence[str],
    *,
    user: str,
    stdin: str | None,
    env: Mapping[str, str],
    timeout_s: float,
) -> Result:
    """Returns what the command returned; ExecTimeoutError when it took longer than timeout_s seconds."""
    client = container.client
    assert client is not None
    api = client.api
    # timeout(1) within the container: closing the connection would leave the command running there.
    wrapped = ["timeout", "--kill-after=2", str(timeout_s), *argv]
    exec_id = api.exec_create(
        container.id, wrapped, stdin=stdin is not None, user=user, environment=dict(env)
    )["Id"]
    started = time.monotonic()
    where = f"{user}@{container.name}"
    with _Connection(api.exec_start(exec_id, socket=True)) as connection:
        try:
            received = connection.converse((stdin or "").encode(), started + timeout_s + GRACE_S)
        except TimeoutError:
            raise ExecTimeoutError(where, argv, timeout_s) from None
    returncode = api.exec_inspect(exec_id)["ExitCode"]
    if returncode in TIMED_OUT and time.monotonic() - started >= timeout_s:
        raise ExecTimeoutError(where, argv, timeout_s)
    stdout, stderr = _separate(received)
    return Result(returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"))


class _Connection:
    """The two-way connection that the engine makes of a started exec.

    The SDK hands out the innermost reader of the response. Needed are the socket below it, to close one
    direction only, and the buffer above it, which may have swallowed the first output with the headers.
    """

    def __init__(self, wire: Any) -> None:
        self._wire = wire
        self._sock: socket.socket = wire._sock
        self._buffer: io.BufferedReader = wire._response.raw._fp.fp
        self._sock.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire._response.close()
        self._wire.close()

    def converse(self, to_send: bytes, deadline: float) -> bytes:
        """Returns all that comes until the other side closes, sending meanwhile; or TimeoutError."""
        received = bytearray(self._buffer.read1())
        pending = memoryview(to_send)
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while True:
                ready = self._wait(selector, deadline)
                if ready & selectors.EVENT_WRITE:
                    pending = pending[self._sock.send(pending) :] if pending else pending
                    if not pending:
                        self._sock.shutdown(socket.SHUT_WR)
                        selector.modify(self._sock, selectors.EVENT_READ)
                if ready & selectors.EVENT_READ:
                    chunk = self._sock.recv(65536)
                    if not chunk:
                        return bytes(received)
                    received += chunk

    @staticmethod
    def _wait(selector: selectors.BaseSelector, deadline: float) -> int:
        events = selector.select(max(0.0, deadline - time.monotonic()))
        if not events:
            raise TimeoutError
        return events[0][1]


def _separate(received: bytes) -> tuple[bytes, bytes]:
    streams = {1: bytearray(), 2: bytearray()}
    position = 0
    while position + HEADER.size <= len(received):
        stream, length = HEADER.unpack_from(received, position)
        position += HEADER.size
        streams[stream] += received[position : position + length]
        position += length
    return bytes(streams[1]), bytes(streams[2])
