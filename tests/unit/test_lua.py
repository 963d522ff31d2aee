"""slurm_score/slurm/lua.py and trial.lua on the real Lua 5.1 to 5.4, in the libraries that lupa brings."""

import ctypes
import dataclasses
import importlib
from pathlib import Path

import pytest

from slurm_score.errors import SlurmError
from slurm_score.slurm.lua import Libraries, Lua, Trial, find_libraries, open_lua, parse_trial

HOOK_DIR = Path(__file__).parents[2] / "job_submit"
BOTH = b"function slurm_job_submit() end function slurm_job_modify() end "


@pytest.fixture(params=["5.1", "5.2", "5.3", "5.4"])
def lua(request: pytest.FixtureRequest) -> Lua:
    """One Lua after the other; not global, so that several can live in one process."""
    module = importlib.import_module(f"lupa.lua{request.param.replace('.', '')}")
    lua = Lua(str(module.__file__), mode=ctypes.RTLD_LOCAL)
    assert lua.version() == request.param
    return lua


def trial(lua: Lua, source: str | bytes) -> Trial:
    """Return what a script shows; a tenth of the usual limit is enough here."""
    data = source if isinstance(source, bytes) else source.encode()
    return lua.try_script(data, "x.lua", 1_000_000)


@pytest.mark.parametrize("name", ["job_submit.lua", "example_site.lua"])
def test_what_we_ship_loads(lua: Lua, name: str) -> None:
    """No fault, no doubt, and the defaults."""
    assert lua.try_script((HOOK_DIR / name).read_bytes(), name) == Trial()


def test_a_syntax_error_is_told_in_luas_words(lua: Lua) -> None:
    """Case 54: with file and line, as slurmctld's log would have it."""
    found = trial(lua, BOTH + b"\nlocal x = = 1")
    assert found == Trial(syntax="x.lua:2: unexpected symbol near '='")
    assert found.faults == ("Lua does not take it: x.lua:2: unexpected symbol near '='",)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (BOTH, ()),
        (b"function slurm_job_submit() end", ("slurm_job_modify",)),
        (b"slurm_job_submit = 5 slurm_job_modify = nil", ("slurm_job_submit", "slurm_job_modify")),
        (b"local slurm_job_submit " + BOTH, ("slurm_job_submit",)),
        (b"_G.slurm_job_submit = print _G['slurm_job_modify'] = function() end", ()),
        (b"local site = require('site') slurm_job_submit = site.submit slurm_job_modify = site.modify", ()),
        (b"#!/usr/bin/lua\n" + BOTH, ()),
        (b"", ("slurm_job_submit", "slurm_job_modify")),
    ],
)
def test_both_functions_are_looked_for(lua: Lua, source: bytes, missing: tuple[str, ...]) -> None:
    """slurmctld refuses a script that lacks one; what another module defines can't be told and passes."""
    assert trial(lua, source) == Trial(missing=missing)


@pytest.mark.parametrize(
    "source",
    [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return f() end f()",
        "for _ in function() return 1 end do end",
        "xpcall(function() while true do end end, function() while true do end end) while true do end",
        "xpcall(error, function() while true do end end)",
        "setmetatable({}, { __gc = function() while true do end end }) while true do end",
    ],
)
def test_a_script_that_does_not_end_is_ended(lua: Lua, source: str) -> None:
    """slurmctld would wait for it under its locks; no pcall of its own holds it up here."""
    found = trial(lua, source)
    assert found.endless
    assert found.faults == ("it does not end when it is loaded, and slurmctld would wait for it",)


def test_nothing_of_a_script_reaches_the_system(lua: Lua, tmp_path: Path) -> None:
    """Files, processes, modules and other ways out are stubs, and a script never notices."""
    made = tmp_path / "made"
    script = f"""
        os.execute("touch {made}") io.popen("touch {made}"):read("*a") os.remove("{tmp_path}") os.exit(1)
        local file = io.open("{made}", "w") file:write("x") file:close() io.output("{made}"):write("x")
        for line in io.lines("{made}") do error(line) end
        for line in file:lines() do error(line) end
        while file:read("*l") do end
        assert(file:read("*a"):match("^$"))
        local posix = require("posix") posix.unlink("{tmp_path}")
        package.loadlib("{made}", "*")() debug.getregistry()[1]() dofile("{made}") loadfile("{made}")()
        load("error()")() print("x")
        local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
        package.path = folder .. "/?.lua;" .. package.path
        if slurm.NO_VAL < 5 or slurm.ESLURM_INVALID_TIME_LIMIT < 0 then error("no") end
        if #slurm.CLUSTER_NAME == 0 then error("no") end
        slurm.log_info("%s", os.date("%H") + os.time())
        {BOTH.decode()}
        return slurm.SUCCESS
    """
    assert trial(lua, script) == Trial()
    assert list(tmp_path.iterdir()) == []


def test_luas_own_libraries_are_real(lua: Lua) -> None:
    """A script that builds tables while it is loaded gets right results."""
    script = """
        local t = {} for word in string.gmatch("a b c", "%a") do table.insert(t, word:upper()) end
        table.sort(t)
        assert(table.concat(t) == "ABC" and math.floor(2.5) == 2 and tonumber("7") == 7)
        assert(select("#", pcall(error, "x")) == 2 and rawget(setmetatable({}, {}), 1) == nil)
        string.gsub, string.find, string.format = nil, nil, nil
    """
    assert trial(lua, script.encode() + BOTH) == Trial()


def test_a_script_that_stops_is_a_fault_only_if_it_lacks_a_function_by_then(lua: Lua) -> None:
    """Among stubs a script may stop that would not stop in slurmctld."""
    early, late = trial(lua, b"error('boom')"), trial(lua, BOTH + b"error('boom')")
    assert early.faults == ("it stops while it is loaded: x.lua:1: boom",)
    assert (late.faults, late.doubt) == ((), "tried without Slurm, it stops: x.lua:1: boom")


def test_a_script_must_return_success(lua: Lua) -> None:
    """slurmctld takes any other number as a failure to load."""
    assert trial(lua, BOTH + b"return slurm.ERROR").faults == (
        "it returns -1 when it is loaded; slurm.SUCCESS is needed",
    )


def test_compiled_code_is_not_looked_at(lua: Lua) -> None:
    """Made by hand it could crash whoever loads it."""
    assert trial(lua, b"\x1bLua\x51\x00").faults[0].startswith("Lua does not take it: ")


def test_options_for_our_module_are_seen(lua: Lua) -> None:
    """What the script gives to setup, and nothing of other kinds; control characters don't get through."""
    script = b"""
        local has_score, score = pcall(require, "slurm_score")
        score.setup({ socket = "/run/a\\nmissing=b", luasocket_cpath = "/opt/?.so", luasocket_path = 5 })
        slurm_job_submit, slurm_job_modify = score.submit, score.modify
    """
    found = trial(lua, script)
    assert (found.missing, found.options) == (
        (),
        {"socket": "/run/a missing=b", "luasocket_cpath": "/opt/?.so"},
    )


def test_luasocket_is_loaded_from_the_scripts_own_folders(lua: Lua, tmp_path: Path) -> None:
    """Case 49: the version of what is found, else the first line of Lua's reason."""
    (tmp_path / "socket").mkdir()
    (tmp_path / "socket.lua").write_text('return { _VERSION = "LuaSocket 3.1.0" }')
    (tmp_path / "socket" / "unix.lua").write_text("return {}")
    assert lua.luasocket(f"{tmp_path}/?.lua") == ("LuaSocket 3.1.0", "")
    (tmp_path / "socket" / "unix.lua").write_text("error('built for another Lua\\nmore')")
    version, why = lua.luasocket(f"{tmp_path}/?.lua")
    assert version == ""
    assert "unix.lua:1: built for another Lua" in why
    assert "\n" not in why


def test_nothing_is_loaded_from_the_current_folder(
    lua: Lua, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lua's own path has ./?.lua, and root may run the check in a folder where anybody may write."""
    (tmp_path / "socket.lua").write_text('return { _VERSION = "planted" }')
    (tmp_path / "socket").mkdir()
    (tmp_path / "socket" / "unix.lua").write_text("return {}")
    monkeypatch.chdir(tmp_path)
    assert lua.run("return package.path").count("./?.lua") == 1
    assert lua.run("return require('socket')._VERSION") == "planted"
    assert lua.luasocket("./?.lua", "./?.so") != ("planted", "")
    assert lua.luasocket()[0] != "planted"


def test_a_program_that_raises_is_an_error(lua: Lua) -> None:
    """Ours don't; what they return is text."""
    with pytest.raises(SlurmError, match=r"Lua: .*boom"):
        lua.run("error('boom')")
    with pytest.raises(SlurmError, match=r"Lua: .*trial"):
        lua.run("x x")
    assert lua.run("return ...", b"a\x00\xff") == "a\x00\ufffd"
    assert lua.run("return nil") == "no text"


@pytest.mark.parametrize("name", ["libc.so.6", "liblua5.1.so.no-such"])
def test_a_library_that_is_no_lua_is_an_error(name: str) -> None:
    """One sentence, whatever the loader says."""
    with pytest.raises(SlurmError, match=f"^{name}: can't be loaded as Lua: "):
        Lua(name)


DEBIAN = b"\0liblua.so\0liblua-5.1.so\0liblua5.1.so\0liblua5.1.so.0\0liblua.so.5.1\0_slurm_lua\0"


@pytest.mark.parametrize(
    ("plugin", "libraries"),
    [
        pytest.param(
            DEBIAN,
            Libraries("5.1", ("liblua.so.5.1", "liblua5.1.so.0", "liblua-5.1.so", "liblua5.1.so")),
            id="Debian's 22.05, 24.11 and 26.05",
        ),
        pytest.param(b"\0liblua-5.4.so\0liblua.so\0", Libraries("5.4", ("liblua-5.4.so",)), id="RHEL"),
        pytest.param(b"\0liblua.so.5.4.6\0", Libraries("5.4", ("liblua.so.5.4.6",)), id="Arch"),
        pytest.param(b"\0liblua.so\0libluajit-5.1.so.2\0libluaX5.1.so\0", Libraries(), id="no version"),
        pytest.param(b"\0liblua5.1.so\0liblua5.4.so\0", Libraries(), id="two versions"),
        pytest.param(b"x/liblua5.1.so\0liblua5.1.so.0 ", Libraries(), id="only a part of a string"),
        pytest.param(b"", Libraries(), id="empty"),
    ],
)
def test_the_plugin_names_its_lua(plugin: bytes, libraries: Libraries) -> None:
    """Case 53's neighbour: the names that slurm_lua_init tries and the one that it is linked with."""
    assert find_libraries(plugin) == libraries


def test_a_plugin_whose_lua_is_not_here_says_so(tmp_path: Path) -> None:
    """A check on another host than slurmctld's."""
    plugin = tmp_path / "job_submit_lua.so"
    with pytest.raises(SlurmError, match=r"job_submit_lua\.so: can't be read: No such file"):
        open_lua(plugin)
    plugin.write_bytes(b"\0liblua5.0.so.7\0")
    with pytest.raises(SlurmError) as caught:
        open_lua(plugin)
    assert str(caught.value) == "Lua 5.0 is not on this host (looked for liblua5.0.so.7)"
    plugin.write_bytes(b"nothing")
    with pytest.raises(SlurmError, match="it can't be told which Lua it was built with"):
        open_lua(plugin)


def test_a_report_is_read() -> None:
    """One key=value on each line; a value may hold equals signs."""
    assert parse_trial("stopped=a=b\nmissing=x\nmissing=y\nsocket=/s") == Trial(
        stopped="a=b", missing=("x", "y"), options={"socket": "/s"}
    )
    assert dataclasses.replace(parse_trial("endless=5\nmissing=x"), missing=()) == Trial(endless=True)
