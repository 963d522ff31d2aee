"""What slurmctld is to the Lua hook: Lua 5.1 to 5.4, LuaSocket's semantics on a real socket, virtual time.

Time never passes by itself. A wait on the fake LuaSocket takes the service's `pace_s` from its budget or,
where that isn't enough, all of the budget: what a slow service costs slurmctld is exact on any machine.
"""

import contextlib
import importlib
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HOOK_DIR = Path(__file__).parents[2] / "job_submit"
LUA_VERSIONS = ("lua51", "lua52", "lua53", "lua54")
DEADLINE_S = 0.02
SAFETY_S = 30  # real seconds after which a test gives up; nothing waits so long when it passes

# What slurmctld and LuaSocket are to the hook, made of the Python functions that are passed in.
GLUE = """
local record, gettime, new_stream = ...
local function writer(kind)
  return function(format, ...) record(kind, string.format(format, ...)) end
end
slurm = { SUCCESS = 0, ERROR = -1, log_user = writer("user") }
for _, level in ipairs({ "error", "info", "verbose", "debug" }) do
  slurm["log_" .. level] = writer(level)
end
local function stream()
  local py = new_stream()
  return {
    settimeout = function(_, ...) return py.settimeout(...) end,
    connect = function(_, ...) return py.connect(...) end,
    send = function(_, ...) return py.send(...) end,
    receive = function(_, ...) return py.receive(...) end,
    close = function(_) return py.close() end,
  }
end
package.preload["socket"] = function() return { gettime = gettime } end
package.preload["socket.unix"] = function() return { stream = stream } end
"""
# Slurm's job_desc: an empty table that answers and takes fields through its metatable.
PROXY = """
local fields, raising, on_read, on_write = ...
return setmetatable({}, {
  __index = function(_, key)
    on_read(key)
    if raising[key] then error("unrecognized field " .. key) end
    return fields[key]
  end,
  __newindex = function(_, key, value) on_write(key, value) end,
})
"""
# Every name in _G, in Lua's own libraries and in the metatables of strings and of _G with what it is
# bound to; of `package` all but what is loaded.
SNAPSHOT = """
local lines = {}
local function note(name, values)
  for key, value in pairs(values) do
    lines[#lines + 1] = name .. "." .. tostring(key) .. "=" .. tostring(value)
    if type(value) == "table" and (name == "_G" or name == "package") and key ~= "_G" and key ~= "loaded" then
      note(key, value)
    end
  end
end
note("_G", _G)
note("strings", getmetatable(""))
note("globals", getmetatable(_G) or {})
table.sort(lines)
return table.concat(lines, "\\n")
"""
# What ends each line about a submission.
TALLY = re.compile(r" \[scored=\d+ neutral=\d+ refused=\d+ failed=\d+ resting=\d+\]$")


def raw(data: bytes) -> str:
    """The bytes as the str that the runtime, which decodes Latin-1, takes for them."""
    return data.decode("latin-1")


def http_reply(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """One HTTP/1.1 reply as uvicorn writes it."""
    lines = (f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(frozen=True)
class Reply:
    """What the service sends for one request: its pieces, and whether it closes the connection after them."""

    pieces: tuple[bytes, ...]
    closes: bool = False


OK = Reply((http_reply(b'{"site_factor": 1500, "advice": [], "reason": null}'),))
SILENCE = Reply(())


class Service:
    """A scoring service on a unix socket that answers by script: `replies` in turn, the last one for ever."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replies = [OK]
        self.pace_s = 0.0  # virtual seconds that each piece takes
        self.turns = threading.Semaphore(0)  # one for each piece of a paced reply, and for its end
        self.heard = threading.Semaphore(0)  # one for each request whose reply is chosen
        self.requests: list[bytes] = []
        self.headers: list[dict[str, str]] = []  # of the same requests
        self.accepted = 0
        self._stopping = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def answer(self, body: bytes) -> None:
        """From now on every request gets this body with status 200."""
        self.replies = [Reply((http_reply(body),))]

    def start(self) -> None:
        self._stopping = False
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen()
        self._open.append(listener)
        self._run(self._accept, listener)

    def stop(self) -> None:
        self._stopping = True
        self.turns.release(100)  # more than there are threads
        self._end(slice(1))  # the listener: from here on no connection is added
        self._end(slice(None))
        for sock in self._open:
            sock.close()
        self._open.clear()
        self._threads.clear()
        self.turns = threading.Semaphore(0)
        self.path.unlink(missing_ok=True)

    def _end(self, which: slice) -> None:
        for sock in self._open[which]:
            with contextlib.suppress(OSError):  # the other side has closed it
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[which]:
            thread.join(SAFETY_S)

    def _run(self, work: Callable[[socket.socket], None], sock: socket.socket) -> None:
        thread = threading.Thread(target=work, args=(sock,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # stop() shuts the listener down
            while not self._stopping:
                conn, _ = listener.accept()
                self.accepted += 1
                self._open.append(conn)
                self._run(self._serve, conn)

    def _serve(self, conn: socket.socket) -> None:
        with contextlib.suppress(OSError), conn.makefile("rb") as stream:
            while headers := _read_headers(stream):
                self.headers.append(headers)
                self.requests.append(bytes(stream.read(int(headers["Content-Length"]))))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                self.heard.release()
                for piece in reply.pieces:
                    self._take_turn()
                    conn.sendall(piece)
                if reply.closes:
                    self._take_turn()
                    conn.shutdown(socket.SHUT_RDWR)

    def _take_turn(self) -> None:
        if self.pace_s:
            self.turns.acquire()
        if self._stopping:
            raise ConnectionAbortedError


def _read_headers(stream: Any) -> dict[str, str]:
    """The headers of the next request, checked to be a well-framed POST; none at the end."""
    if stream.readline() != b"POST /v1/score HTTP/1.1\r\n":
        return {}
    lines = [line.decode().rstrip("\r\n") for line in iter(stream.readline, b"\r\n")]
    return dict(line.split(": ", 1) for line in lines)


class FakeStream:
    """LuaSocket's unix stream: a call returns a value, or nil, the reason and what came so far."""

    def __init__(self, world: "Hook") -> None:
        self.world = world
        self.timeouts = {"b": -1.0, "t": -1.0}
        self.sock = socket.socket(socket.AF_UNIX)
        self.buffer = b""
        self.broken = False

    def settimeout(self, seconds: float, mode: str = "b") -> int:
        if not seconds >= 0:
            self.world.faults.append(f"settimeout({seconds}) waits for ever")
        self.world.budgets.append((self.world.now, seconds))
        self.timeouts[mode] = seconds
        return 1

    def connect(self, path: str) -> object:
        try:
            self.sock.connect(path)
        except OSError as error:
            return None, error.strerror
        self.sock.setblocking(False)
        return 1

    def send(self, data: str) -> object:
        try:
            self.sock.sendall(data.encode("latin-1"))
        except OSError:
            return None, "closed", 0
        return len(data)

    def receive(self, size: float) -> object:
        if self.broken:
            raise RuntimeError("out of memory")
        wanted, why = int(size), None
        while len(self.buffer) < wanted and not why:
            why = self._fill()
        part, self.buffer = self.buffer[:wanted], self.buffer[wanted:]
        return (None, why, raw(part)) if why else raw(part)

    def close(self) -> int:
        self.sock.close()
        return 1

    def _fill(self) -> str | None:
        """Reads what is there, after a wait in virtual time if nothing is; returns why not."""
        while True:
            try:
                data = self.sock.recv(8192)
            except BlockingIOError:
                if not self.world.wait(min(self.timeouts.values()), self.sock):
                    return "timeout"
                continue
            except OSError:
                return "closed"
            self.buffer += data
            self.world.bytes_read += len(data)
            return None if data else "closed"


@dataclass
class Job:
    """A job_desc: what Lua sees, what it read and what it wrote."""

    proxy: Any
    reads: list[str] = field(default_factory=list)
    writes: dict[str, object] = field(default_factory=dict)


class Hook:
    """The hook in one Lua runtime, with its clock, its log and its jobs."""

    def __init__(self, lua_version: str, service: Service) -> None:
        lupa = importlib.import_module(f"lupa.{lua_version}")
        self.lua = lupa.LuaRuntime(encoding="latin-1", unpack_returned_tuples=True)
        self.service = service
        self.now = 1_700_000_000.0
        self.clock_steps: list[float] = []  # added to the clock, one at each waiting read
        self.log: list[tuple[str, str]] = []
        self.budgets: list[tuple[float, float]] = []  # (when, seconds) of every settimeout
        self.faults: list[str] = []  # what no hook may ever do; checked after each test
        self.bytes_read = 0
        self.streams: list[FakeStream] = []
        self.module: Any = None
        self.lua.execute(GLUE, lambda *line: self.log.append(line), lambda: self.now, self._new_stream)

    def load(self, script: Path | None = None, /, **options: Any) -> Any:
        """What slurm_score.lua, set up with the options, or another script returns to slurmctld."""
        path = script or HOOK_DIR / "slurm_score.lua"
        self.lua.globals().package.path = f"{path.parent}/?.lua"
        result = self.lua.eval("function(path) return assert(loadfile(path))() end")(str(path))
        if script is None:
            self.module = result
            self.module.setup(self.lua.table_from({"socket": str(self.service.path), **options}))
        return result

    def job(self, *raising: str, **fields: object) -> Job:
        """A job_desc with these fields, numbers as floats as in slurmctld; `raising` can't be read."""
        job = Job(None)
        values = {name: float(v) if type(v) is int else v for name, v in fields.items()}
        job.proxy = self.lua.execute(
            PROXY,
            self.lua.table_from(values),
            self.lua.table_from(dict.fromkeys(raising, True)),
            job.reads.append,
            job.writes.__setitem__,
        )
        return job

    def submit(self, job: Job | None = None, uid: int = 1000) -> dict[str, object]:
        """What the hook writes into the job, after a check that it lets the job pass."""
        job = job or self.job()
        assert self.module.submit(job.proxy, self.lua.table(), float(uid)) == 0
        return job.writes

    def counts(self) -> dict[str, int]:
        return {key: value for key, value in self.module.counts.items() if value}

    def lines(self, kind: str) -> list[str]:
        """What was logged or told, without the tally at the end of a line."""
        return [TALLY.sub("", text) for level, text in self.log if level == kind]

    def snapshot(self) -> set[str]:
        return set(self.lua.execute(SNAPSHOT).splitlines())

    def wait(self, budget_s: float, sock: socket.socket) -> bool:
        """One wait for the service in virtual time; whether something came."""
        if budget_s == 0:
            return False
        if self.clock_steps:
            self.now += self.clock_steps.pop(0)
        if self.service.pace_s > budget_s:
            self.now += budget_s
            return False
        self.now += self.service.pace_s
        if self.service.pace_s:
            self.service.turns.release()
        if not select.select([sock], [], [], SAFETY_S)[0]:
            self.faults.append("the service of the test did not answer")
            return False
        return True

    def close(self) -> None:
        for stream in self.streams:
            stream.close()

    def _new_stream(self) -> FakeStream:
        self.streams.append(FakeStream(self))
        return self.streams[-1]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "score.sock")
    service.start()
    yield service
    service.stop()


@pytest.fixture(params=LUA_VERSIONS)
def bare_hook(request: pytest.FixtureRequest, service: Service) -> Iterator[Hook]:
    """A Lua runtime with slurmctld's names in it and nothing loaded yet."""
    hook = Hook(request.param, service)
    yield hook
    hook.close()
    assert hook.faults == []


@pytest.fixture
def hook(bare_hook: Hook) -> Hook:
    """The module, loaded and set up for the service of the test."""
    bare_hook.load()
    return bare_hook
