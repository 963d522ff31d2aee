"""The running service: two unix sockets, TCP where asked for, in one event loop; and its life."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
import uvloop
from starlette.applications import Starlette

from slurm_score.service.app import readers_app
from slurm_score.service.hook import Hook
from slurm_score.service.hook_server import HookServer
from slurm_score.service.notify import Notifier
from slurm_score.service.sockets import HOOK_MODE, READERS_MODE, ClaimedSocket, listen_tcp
from slurm_score.service.state import State
from slurm_score.service.viewers import PeerProtocol

REFRESH_S = 0.5
KEEP_ALIVE_S = 600
SHUTDOWN_S = 2
MAX_CONNECTIONS = 64
"""Connections to one socket; a further one is answered 503 and closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the service listens: the hook's socket, the readers', and (host, port) for TCP."""

    hook: Path
    readers: Path
    tcp: tuple[str, int] | None = None


class _Server(uvicorn.Server):
    """A server among several of one process: the process handles the signals."""

    def __init__(self, app: Starlette, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PeerProtocol,
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                server_header=False,
                date_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=SHUTDOWN_S,
            )
        )
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def main_loop(self) -> None:
        """Serve until told to stop; by now the socket listens."""
        self._ready()
        await super().main_loop()


class Server:
    """The service; `run` returns after SIGTERM, SIGINT or `stop`.

    Raises:
        ServiceError: a socket can't be had; none was left behind.
    """

    def __init__(self, state: State, addresses: Addresses) -> None:
        self.listens = threading.Event()
        self._state = state
        self._notifier = Notifier(os.environ)
        self._stopping = threading.Event()
        with contextlib.ExitStack() as claimed:
            self._sockets = [
                self._claim(claimed, addresses.hook, HOOK_MODE),
                self._claim(claimed, addresses.readers, READERS_MODE),
            ]
            if addresses.tcp:
                self._sockets.append(listen_tcp(*addresses.tcp))
                claimed.callback(self._sockets[-1].close)
            self._claimed = claimed.pop_all()
        readers = readers_app(state)
        self._hook = HookServer(Hook(state))
        self._readers = [_Server(readers, self._ready) for _ in self._sockets[1:]]
        self._waiting = len(self._sockets)

    def run(self) -> None:
        """Serve until told to stop, then finish what was begun and remove the sockets."""
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._main())
        finally:
            self._claimed.close()
            self._state.close()

    def stop(self) -> None:
        """Let `run` return; from any thread, or as a signal handler."""
        self._stopping.set()
        self._hook.should_exit = True
        for server in self._readers:
            server.should_exit = True

    @staticmethod
    def _claim(stack: contextlib.ExitStack, path: Path, mode: int) -> socket.socket:
        claimed = ClaimedSocket(path, mode)
        stack.callback(claimed.release)
        return claimed.socket

    def _ready(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._notifier.send("READY=1")
            self.listens.set()

    async def _main(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._refresh())
            hook, *readers = self._sockets
            group.create_task(self._hook.serve(hook, self._ready))
            for server, listening in zip(self._readers, readers, strict=True):
                group.create_task(server.serve([listening]))
        self._notifier.send("STOPPING=1")

    async def _refresh(self) -> None:
        while not self._stopping.is_set():
            await asyncio.to_thread(self._state.refresh)
            self._notifier.alive()
            await asyncio.to_thread(self._stopping.wait, REFRESH_S)
