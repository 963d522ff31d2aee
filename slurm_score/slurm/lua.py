"""The Lua that slurmctld runs, loaded here as slurmctld loads it, and what it says of a job_submit.lua.

The site's script never runs for real: trial.lua, beside this file, compiles it and runs it among stubs.
"""

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from slurm_score.errors import SlurmError

PLUGIN = "job_submit_lua.so"
MAX_INSTRUCTIONS = 50_000_000
"""What a script may take to load: about half a second. Ours takes a few hundred."""

_LIBRARY = re.compile(rb"(?<![^\0])liblua-?(5\.\d)?\.so(?:\.(\d[.\d]*))?(?=\0)")
_LOOK_FOR_LUASOCKET = """
local path, cpath = ...
local function from_the_root(paths) -- Lua looks in the current folder, where anybody may have put something
  return (paths:gsub("[^;]+", function(place) return place:sub(1, 1) == "/" and place or "" end))
end
package.path = from_the_root(path .. ";" .. package.path)
package.cpath = from_the_root(cpath .. ";" .. package.cpath)
for _, name in ipairs({ "socket", "socket.unix" }) do
  local is_loaded, why = pcall(require, name)
  if not is_loaded then
    return "-" .. tostring(why):match("[^\\n]*")
  end
end
return "+" .. tostring(require("socket")._VERSION)
"""


@dataclass(frozen=True, slots=True)
class Libraries:
    """The Lua that a plugin was built with, such as 5.1, empty if it can't be told, and its files' names."""

    version: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a script showed: Lua's own sentences where it failed, and the options it gives our module."""

    syntax: str = ""
    endless: bool = False
    stopped: str = ""
    returned: str = ""
    missing: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[str, ...]:
        """Why slurmctld would refuse the script, or hang; empty if it would do neither."""
        lacks = bool(self.missing) and not self.endless
        found = {
            f"Lua does not take it: {self.syntax}": bool(self.syntax),
            "it does not end when it is loaded, and slurmctld would wait for it": self.endless,
            f"it returns {self.returned} when it is loaded; slurm.SUCCESS is needed": bool(self.returned),
            f"it stops while it is loaded: {self.stopped}": lacks and bool(self.stopped),
            f"it lacks {' and '.join(self.missing)}; slurmctld needs both functions": lacks
            and not self.stopped,
        }
        return tuple(sentence for sentence, applies in found.items() if applies)

    @property
    def doubt(self) -> str:
        """Why it may fail all the same: it stopped among stubs, with both functions there by then."""
        return f"tried without Slurm, it stops: {self.stopped}" if self.stopped and not self.missing else ""


def find_libraries(plugin: bytes) -> Libraries:
    """Return which Lua a plugin's file names, best name first: a number at the end is linked with.

    Source: slurm src/lua/slurm_lua.c, slurm_lua_init; the order of its dlopen begins with liblua.so,
    which may be any Lua and is therefore left out here.
    """
    found: dict[str, str] = {}
    for match in _LIBRARY.finditer(plugin):
        version = (match[1] or match[2] or b"").decode()
        if version.startswith("5."):
            found[match[0].decode()] = version[:3]
    versions = sorted(set(found.values()))
    names = sorted(found, key=lambda name: (not re.search(r"\.so\.", name), name))
    return Libraries(versions[0], tuple(names)) if len(versions) == 1 else Libraries()


class Lua:
    """One Lua library; each run has a state of its own."""

    def __init__(self, name: str, mode: int = ctypes.RTLD_GLOBAL) -> None:
        """Load the library; globally, as slurmctld does, so that modules in C find its symbols.

        Raises:
            SlurmError: it can't be loaded, or isn't Lua.
        """
        try:
            self._library = ctypes.CDLL(name, mode=mode)
            self._declare()
        except (OSError, AttributeError) as error:
            raise SlurmError(f"{name}: can't be loaded as Lua: {error}") from error

    def version(self) -> str:
        """Return the Lua, such as 5.1."""
        return self.run("return _VERSION").removeprefix("Lua ")

    def luasocket(self, path: str = "", cpath: str = "") -> tuple[str, str]:
        """Return LuaSocket's version and "", or "" and why it can't be loaded.

        The paths go before Lua's own; relative places in either are left out.
        """
        answer = self.run(_LOOK_FOR_LUASOCKET, path, cpath)
        return (answer[1:], "") if answer.startswith("+") else ("", answer[1:])

    def try_script(self, source: bytes, name: str, limit: int = MAX_INSTRUCTIONS) -> Trial:
        """Return what a job_submit.lua shows without being run for real; `name` is for messages."""
        program = files(__package__).joinpath("trial.lua").read_text(encoding="utf-8")
        return parse_trial(self.run(program, source, name, str(limit)))

    def run(self, program: str, *arguments: str | bytes) -> str:
        """Return the text that a program returns when it is called with the arguments.

        Raises:
            SlurmError: it raised instead.
        """
        state = self._library.luaL_newstate()
        if not state:
            raise SlurmError("Lua: no memory for a state")
        try:
            self._library.luaL_openlibs(state)
            text = program.encode()
            failed = self._load(state, text, len(text), b"=trial") or self._call(state, arguments)
            answer = self._text(state)
        finally:
            self._library.lua_close(state)
        if failed:
            raise SlurmError(f"Lua: {answer}")
        return answer

    def _call(self, state: int, arguments: Sequence[str | bytes]) -> int:
        for argument in arguments:
            data = argument.encode() if isinstance(argument, str) else argument
            self._library.lua_pushlstring(state, data, len(data))
        return self._pcall(state, len(arguments), 1, 0)

    def _text(self, state: int) -> str:
        size = ctypes.c_size_t()
        start = self._library.lua_tolstring(state, -1, ctypes.byref(size))
        return ctypes.string_at(start, size.value).decode("utf-8", "replace") if start else "no text"

    def _declare(self) -> None:
        """Tell ctypes the types of what is used; 5.2 renamed two of the functions and gave them more."""
        library, pointer, number, size = self._library, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
        library.luaL_newstate.restype = pointer
        library.luaL_openlibs.argtypes = (pointer,)
        library.lua_close.argtypes = (pointer,)
        library.lua_pushlstring.argtypes = (pointer, ctypes.c_char_p, size)
        library.lua_pushlstring.restype = pointer
        library.lua_tolstring.argtypes = (pointer, number, ctypes.POINTER(size))
        library.lua_tolstring.restype = pointer
        if hasattr(library, "lua_pcallk"):
            library.luaL_loadbufferx.argtypes = (pointer, ctypes.c_char_p, size, ctypes.c_char_p, pointer)
            library.lua_pcallk.argtypes = (pointer, number, number, number, ctypes.c_ssize_t, pointer)
            self._load: Callable[..., int] = lambda *given: library.luaL_loadbufferx(*given, None)
            self._pcall: Callable[..., int] = lambda *given: library.lua_pcallk(*given, 0, None)
        else:
            library.luaL_loadbuffer.argtypes = (pointer, ctypes.c_char_p, size, ctypes.c_char_p)
            library.lua_pcall.argtypes = (pointer, number, number, number)
            self._load, self._pcall = library.luaL_loadbuffer, library.lua_pcall


def open_lua(plugin: Path) -> tuple[Lua, str]:
    """Return the Lua that slurmctld's plugin was built with, and its version.

    Raises:
        SlurmError: the plugin can't be read, names no Lua, or its Lua isn't on this host.
    """
    try:
        libraries = find_libraries(plugin.read_bytes())
    except OSError as error:
        raise SlurmError(f"{plugin}: can't be read: {error.strerror}") from error
    if not libraries.names:
        raise SlurmError(f"{plugin}: it can't be told which Lua it was built with")
    for name in libraries.names:
        try:
            lua = Lua(name)
        except SlurmError:
            continue  # slurmctld tries one name after the other as well
        if lua.version() == libraries.version:
            return lua, libraries.version
    raise SlurmError(f"Lua {libraries.version} is not on this host (looked for {', '.join(libraries.names)})")


def parse_trial(report: str) -> Trial:
    """Return what trial.lua reported."""
    pairs = [line.partition("=")[::2] for line in report.splitlines()]
    values = dict(pairs)
    return Trial(
        syntax=values.get("syntax", ""),
        endless="endless" in values,
        stopped=values.get("stopped", ""),
        returned=values.get("returned", ""),
        missing=tuple(name for key, name in pairs if key == "missing"),
        options={
            key: values[key] for key in ("socket", "luasocket_path", "luasocket_cpath") if key in values
        },
    )
