"""The hook's socket: HTTP/1.1 by httptools' parser, without a web server around it.

slurmctld waits for each reply under its locks, and what a server of many abilities runs besides costs more
than the answer. So a request is answered where its last byte is read: no task, no queue, no thread.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

import httptools

from slurm_score.service.hook import MAX_BODY, MAX_KNOWN, Hook, Reply, make_reply

PATH = b"/v1/score"
MAX_CONNECTIONS = 64
"""Connections to the socket; the first request of a further one is answered 503."""

MAX_HEAD = 8 * 1024
MAX_UNFINISHED = 2 * (MAX_BODY + MAX_HEAD)
"""Bytes, framing included, in which a request must be whole; what the last read brought may come on top."""

MAX_KNOWN_REQUEST = 3 * 1024
KEEP_ALIVE_S = 600.0
REQUEST_S = 10.0
"""How long a request may take to come in, and a reply to be fetched."""

SHUTDOWN_S = 2.0
TICK_S = 0.1

log = logging.getLogger(__name__)


def _error(status: HTTPStatus, *headers: str) -> Reply:
    return make_reply(int(status), {"error": status.phrase}, *headers)


_BAD_REQUEST = _error(HTTPStatus.BAD_REQUEST)
_NOT_FOUND = _error(HTTPStatus.NOT_FOUND)
_NOT_ALLOWED = _error(HTTPStatus.METHOD_NOT_ALLOWED, "allow: POST")
_TOO_SLOW = _error(HTTPStatus.REQUEST_TIMEOUT)
_HEAD_TOO_LARGE = _error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
_BUSY = _error(HTTPStatus.SERVICE_UNAVAILABLE)
_LAST = frozenset({400, 408, 431, 500, 503})
"""Statuses after which the connection is closed."""


class Request(NamedTuple):
    """A request that is whole; `keeps` says that its client may ask again on the same connection."""

    method: bytes
    url: bytes
    user_agent: bytes
    head_size: int
    body: bytes
    keeps: bool


class HookServer:
    """Serves the hook's socket until `should_exit` is set, from any thread."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.connections: set[Connection] = set()
        self.requests: dict[bytes, Request] = {}
        self.now_s = 0.0  # as exact as the ticks are
        self.should_exit = False

    async def serve(self, listening: socket.socket, ready: Callable[[], None]) -> None:
        """Answer until told to stop, then what was begun; the socket is closed."""
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: Connection(self), sock=listening)
        ready()
        while not self.should_exit:
            await self._tick()
        server.close()
        await asyncio.sleep(0)  # what has arrived by now is read
        for connection in tuple(self.connections):
            connection.finish()
        end_s = self.now_s + SHUTDOWN_S
        while self.connections and self.now_s < end_s:
            await self._tick()
        for connection in tuple(self.connections):
            connection.abort()
        self.hook.settle()

    def remember(self, data: bytes, request: Request) -> None:
        """Keep what a whole request, head and body, was parsed to: the same bytes are parsed once."""
        if len(data) <= MAX_KNOWN_REQUEST:
            if len(self.requests) >= MAX_KNOWN:
                self.requests.clear()
            self.requests[data] = request

    async def _tick(self) -> None:
        """Let a moment pass; then end the connections that took too long."""
        await asyncio.sleep(TICK_S)
        self.now_s += TICK_S
        self.hook.settle()
        for connection in tuple(self.connections):
            connection.check()


class Connection(asyncio.Protocol):
    """One client: requests in, replies out in the same order. Its `on_*` methods are called by the parser."""

    _transport: asyncio.Transport
    _is_surplus = False

    def __init__(self, server: HookServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._whole: list[Request] = []
        self._unfinished = 0  # bytes read since the last request that was whole
        self._is_closing = self._is_last = self._is_stuck = False
        self.on_message_begin()
        self._is_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or remember that there are too many."""
        self._transport = transport
        self._is_surplus = len(self._server.connections) >= MAX_CONNECTIONS
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget it; the parser refers to this connection, and so does nothing any more."""
        self._server.connections.discard(self)
        del self._parser

    def data_received(self, data: bytes) -> None:
        """Answer each request that has become whole, and refuse what can't become one."""
        if self._is_closing:
            return
        known = None if self._is_begun else self._server.requests.get(data)
        if known is not None:
            self._since_s = self._server.now_s
            self._respond(known)
            return
        is_first = not self._is_begun
        refusal = self._feed(data)
        whole, self._whole = self._whole, []
        if is_first and len(whole) == 1 and not (refusal or self._is_begun or self._is_last):
            self._server.remember(data, whole[0])
        for request in whole:
            if not self._is_closing:
                self._respond(request)
        if refusal and not self._is_closing:
            self._send(refusal, keeps=False)

    def _feed(self, data: bytes) -> Reply | None:
        """Parse what came; what is said to a request that can't become whole any more."""
        self._unfinished += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_last = True  # what follows is another protocol
        except httptools.HttpParserError:
            return _BAD_REQUEST
        if self._is_begun and self._body_size > MAX_BODY:
            return self._server.hook.answer(b"".join(self._body))
        return _HEAD_TOO_LARGE if self._is_begun and self._unfinished > MAX_UNFINISHED else None

    def pause_writing(self) -> None:
        """Who doesn't fetch replies may not ask further."""
        self._is_stuck = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on reading."""
        self._is_stuck = False
        self._transport.resume_reading()

    def check(self) -> None:
        """End the connection if it took too long."""
        is_working = self._is_begun or self._is_stuck or self._is_surplus or self._is_closing
        if self._server.now_s - self._since_s <= (REQUEST_S if is_working else KEEP_ALIVE_S):
            return
        if self._is_begun and not self._is_stuck and not self._is_closing:
            self._send(_TOO_SLOW, keeps=False)
        else:
            self.abort()

    def finish(self) -> None:
        """Close the connection, after the answer to a request that has begun."""
        self._is_last = True
        if not self._is_begun:
            self._close()

    def abort(self) -> None:
        """Close the connection, whatever is on its way."""
        self._transport.abort()

    def on_message_begin(self) -> None:
        self._is_begun = True
        self._since_s = self._server.now_s
        self._url = self._user_agent = b""
        self._head_size = self._body_size = 0
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if name.lower() == b"user-agent":
            self._user_agent = value

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._body_size += len(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        keeps = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        head_size = self._head_size + len(self._url)
        body = b"".join(self._body)
        self._whole.append(Request(parser.get_method(), self._url, self._user_agent, head_size, body, keeps))
        self._is_begun = False
        self._since_s = self._server.now_s
        self._unfinished = 0

    def _answer(self, request: Request) -> Reply:
        if self._is_surplus:
            return _BUSY
        if request.head_size > MAX_HEAD:
            return _HEAD_TOO_LARGE
        if request.url != PATH and _path(request.url) != PATH:
            return _NOT_FOUND
        if request.method != b"POST":
            return _NOT_ALLOWED
        try:
            self._server.hook.see(request.user_agent)
            return self._server.hook.answer(request.body)
        except Exception as error:
            log.exception("a fault of ours, answered 500")
            return make_reply(500, {"error": f"internal error: {type(error).__name__}"})

    def _respond(self, request: Request) -> None:
        self._send(self._answer(request), request.keeps, request.method != b"HEAD")

    def _send(self, reply: Reply, keeps: bool, has_body: bool = True) -> None:
        message = reply.message
        keeps = keeps and not self._is_last and reply.status not in _LAST
        if not keeps:
            message = message.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)
        self._transport.write(message if has_body else message[: message.index(b"\r\n\r\n") + 4])
        if not keeps:
            self._close()

    def _close(self) -> None:
        """Close it when what was written is sent."""
        self._is_closing = True
        self._since_s = self._server.now_s
        self._transport.close()


def _path(url: bytes) -> bytes:
    """The path of a request's target, which may be a whole URL or have a query."""
    try:
        return bytes(httptools.parse_url(url).path or b"")
    except httptools.HttpParserInvalidURLError:
        return b""
