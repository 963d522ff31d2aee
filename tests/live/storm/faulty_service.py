"""Runs in the controller's container in the place of the scoring service and fails in one way.

faulty_service.py FAULT SOCKET COUNTS listens on the socket, prints its process id and goes on in the
background; ended by SIGTERM it writes how many connections and requests it had to COUNTS, as JSON.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from pathlib import Path

SITE_FACTOR = 337
BODY = json.dumps({"site_factor": SITE_FACTOR, "advice": [], "reason": "", "policy": "0123456789ab"}).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
REPLY = HEAD % len(BODY) + BODY
HUGE = 10 * 1024 * 1024
SLOW_S = 1.0
LIFE_S = 1.0  # of a service that restarts all the time

Talk = Callable[[StreamReader, StreamWriter], Awaitable[None]]

counts = {"connections": 0, "requests": 0}
writers: set[StreamWriter] = set()


async def read_request(reader: StreamReader) -> None:
    """Read one request; IncompleteReadError when the other side has hung up."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.lower().splitlines() if line.startswith(b"content-length:")
    ]
    await reader.readexactly(int(lengths[0]))
    counts["requests"] += 1


def answering(reply: bytes, after_s: float = 0.0) -> Talk:
    """Return a service that gives every request the same reply."""

    async def talk(reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            await read_request(reader)
            await asyncio.sleep(after_s)
            writer.write(reply)
            await writer.drain()

    return talk


async def silent(reader: StreamReader, writer: StreamWriter) -> None:
    """Read whatever comes and say nothing."""
    while True:
        await read_request(reader)


async def cut(reader: StreamReader, writer: StreamWriter) -> None:
    """Hang up in the middle of the reply."""
    await read_request(reader)
    writer.write(REPLY[: -len(BODY) // 2])
    await writer.drain()


FAULTS: dict[str, Talk] = {
    "silent": silent,
    "slow": answering(REPLY, SLOW_S),
    "garbage": answering(bytes(range(256)) * 8 + b"\r\n\r\n"),
    "cut": cut,
    "huge": answering(HEAD % HUGE + b" " * HUGE),
    "restarting": answering(REPLY),
    "foreign": answering(REPLY),  # a good service on a socket that slurmctld may not open
}


def counting(talk: Talk) -> Callable[[StreamReader, StreamWriter], Awaitable[None]]:
    """Return the service with its connections counted, and known for as long as they last."""

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        counts["connections"] += 1
        writers.add(writer)
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the hook has hung up
        finally:
            writers.discard(writer)
            writer.close()

    return connected


def listen(path: Path) -> socket.socket:
    """Return a listening socket in the place of the one that is there."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    path.chmod(0o600)
    listening.listen(128)
    return listening


async def serve(fault: str, path: Path, listening: socket.socket) -> None:
    """Serve until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    while not ended.is_set():
        server = await asyncio.start_unix_server(counting(FAULTS[fault]), sock=listening)
        try:
            await asyncio.wait_for(ended.wait(), LIFE_S if fault == "restarting" else None)
        except TimeoutError:
            server.close()
            for writer in tuple(writers):
                writer.transport.abort()
            listening = listen(path)
    path.unlink(missing_ok=True)


def go_to_background() -> None:
    """Return in a process of its own; the one that was started prints its id and ends."""
    child = os.fork()
    if child:
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def main() -> None:
    """Fail as told."""
    fault, path, counts_path = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    listening = listen(path)
    go_to_background()
    asyncio.run(serve(fault, path, listening))
    counts_path.write_text(json.dumps(counts), encoding="utf-8")


if __name__ == "__main__":
    main()
