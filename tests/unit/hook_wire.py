"""HTTP on the hook's socket, byte by byte: requests, connections and what comes back."""

import json
import socket
from http.client import HTTPResponse

from tests.unit.service_support import Service

BODY = b'{"qos": "high"}'
TIMEOUT_S = 30
MOMENT_S = 0.3


def post(body: bytes = BODY, *headers: str, path: str = "/v1/score", version: str = "1.1") -> bytes:
    """Return a request."""
    head = "\r\n".join([f"POST {path} HTTP/{version}", "Host: x", f"Content-Length: {len(body)}", *headers])
    return head.encode() + b"\r\n\r\n" + body


def connect(service: Service) -> socket.socket:
    """Return a new connection to the hook's socket."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(TIMEOUT_S)
    made.connect(str(service.addresses.hook))
    return made


def replies(connection: socket.socket, count: int) -> list[int]:
    """Return the statuses of so many replies that came one after the other, each with JSON in it."""
    got, statuses = b"", list[int]()
    while len(statuses) < count:
        head, end, rest = got.partition(b"\r\n\r\n")
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]) if end else 0
        if end and len(rest) >= size:
            json.loads(rest[:size])
            statuses.append(int(head.split()[1]))
            got = rest[size:]
        else:
            piece = connection.recv(65536)
            assert piece, f"closed after {got!r}"
            got += piece
    assert got == b""
    return statuses


def last_reply(connection: socket.socket) -> tuple[int, str | None, object]:
    """Return status, Connection header and JSON of a reply after which the connection is closed."""
    response = HTTPResponse(connection)
    response.begin()
    told = (response.status, response.headers["Connection"], json.loads(response.read()))
    assert connection.recv(1) == b""
    return told
