"""job_submit/*.lua as slurmctld loads them: options, LuaSocket, the scripts of sites."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.unit import hook_support
from tests.unit.hook_support import HOOK_DIR, Hook, Service

VERSION = tomllib.loads((HOOK_DIR.parent / "pyproject.toml").read_text())["project"]["version"]

# pytest finds fixtures by their names in the module.
bare_hook, hook, service = hook_support.bare_hook, hook_support.hook, hook_support.service


# Set up


def test_luasocket_is_looked_for_in_the_sites_folders_first(bare_hook: Hook) -> None:
    """A LuaSocket built for slurmctld's Lua may live anywhere; the paths hold while it is loaded. Case 49."""
    bare_hook.lua.execute("""
        package.preload["socket"] = function()
          seen = { package.path, package.cpath }
          return { gettime = function() return 0 end }
        end""")
    bare_hook.load(luasocket_path="/opt/lua/?.lua", luasocket_cpath="/opt/lua/?.so")
    path, cpath = bare_hook.lua.globals().seen.values()
    assert path.split(";")[0] == "/opt/lua/?.lua"
    assert cpath.split(";")[0] == "/opt/lua/?.so"


def test_luasocket_before_3_0_is_a_function(bare_hook: Hook) -> None:
    """There `require("socket.unix")` returns the constructor itself."""
    bare_hook.lua.execute("""
        local stream = require("socket.unix").stream
        package.loaded["socket.unix"] = function() return stream() end""")
    bare_hook.load()
    assert bare_hook.submit() == {"site_factor": 1500}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("deadline_s", 1.0), ("deadline_s", 0), ("deadline_s", -1), ("deadline_s", float("nan"))),
        *(
            ("deadline_s", "0.01"),
            ("cap", 2147483646),
            ("breaker_pause_s", 0),
            ("path", "/\r\nx"),
            ("sokcet", "/x"),
        ),
    ],
)
def test_option_out_of_range_is_reported_and_ignored(bare_hook: Hook, name: str, value: object) -> None:
    """No setting can make slurmctld wait longer than 50 ms (case 51) or break the request."""
    bare_hook.load(**{name: value})
    assert bare_hook.lines("error") == [
        f"slurm_score: option {name} is unknown or out of range, left as it was"
    ]
    assert bare_hook.submit() == {"site_factor": 1500}


def test_cap_of_the_site_is_kept(bare_hook: Hook) -> None:
    """A site that leaves room for its other priority factors refuses what is higher."""
    bare_hook.load(cap=1499)
    assert bare_hook.submit() == {}
    assert bare_hook.counts() == {"refused": 1}


def test_setup_that_is_no_table_is_reported(bare_hook: Hook) -> None:
    """An error here would keep slurmctld from starting (controller.c)."""
    bare_hook.load()
    bare_hook.module.setup("socket=/x")
    assert "slurm_score: setup: " in bare_hook.lines("error")[0]


def test_module_that_was_not_set_up_does_so_at_the_first_job(bare_hook: Hook) -> None:
    """A site that only requires the module gets the defaults; here it logs that LuaSocket is missing."""
    bare_hook.lua.execute('package.preload["socket"] = nil package.cpath = ""')
    bare_hook.lua.globals().package.path = f"{HOOK_DIR}/?.lua"
    bare_hook.module = bare_hook.lua.execute('return (require("slurm_score"))')
    assert [bare_hook.submit(), bare_hook.submit()] == [{}, {}]
    assert len(bare_hook.lines("error")) == 1


def test_version_in_the_log_is_that_of_the_package(hook: Hook) -> None:
    """Each load says which version runs, so that a forgotten old one shows. Case 54."""
    version = hook.lua.eval("_VERSION")
    assert hook.lines("info") == [f"slurm_score: version {VERSION} on {version}, asks {hook.service.path}"]


def test_request_says_which_hook_asks_and_since_when(bare_hook: Hook, service: Service) -> None:
    """The service shows a forgotten old version in /healthz; the second is that of the load."""
    bare_hook.lua.execute("os.time = function() return 1700000001 end")
    bare_hook.load()
    bare_hook.lua.execute("os.time = function() return 1700000999 end")
    bare_hook.submit()
    version = bare_hook.lua.eval("_VERSION")
    assert service.headers[0] == {
        "Host": "slurm-score",
        "User-Agent": f"slurm_score.lua/{VERSION} ({version}; loaded 1700000001; failed 0; resting 0)",
        "Content-Type": "application/json",
        "Content-Length": str(len(service.requests[0])),
    }


def test_default_socket_is_the_hooks_own(bare_hook: Hook) -> None:
    """Readers have another one, which every user may open."""
    bare_hook.load(socket=5)
    assert bare_hook.lines("info")[0].endswith(", asks /run/slurm-score/hook.sock")


# job_submit.lua and example_site.lua


def test_job_submit_lua_scores_from_its_own_folder(bare_hook: Hook, service: Service, tmp_path: Path) -> None:
    """The script finds the module beside it, whatever Lua's path is, and adds only Slurm's two functions."""
    folder = shutil.copytree(HOOK_DIR, tmp_path / "etc")
    script = folder / "job_submit.lua"
    script.write_text(script.read_text().replace("setup({})", f'setup({{ socket = "{service.path}" }})'))
    run = bare_hook.lua.eval("function(path) return assert(loadfile(path))() end")
    before = bare_hook.snapshot()
    assert run(str(script)) == 0
    added = bare_hook.snapshot() - before
    assert sorted(line.split("=")[0] for line in added) == ["_G.slurm_job_modify", "_G.slurm_job_submit"]
    job, slurm = bare_hook.job(), bare_hook.lua.globals()
    assert slurm.slurm_job_submit(job.proxy, None, 1000.0) == 0
    assert slurm.slurm_job_modify(job.proxy, job.proxy, None, 0.0) == 0
    assert job.writes == {"site_factor": 1500}


MODULES = sorted(path.name for path in HOOK_DIR.glob("slurm_score*.lua"))
SCRIPTS = ("job_submit.lua", "example_site.lua")
NOT_LOADED = "slurm_score: not loaded, no job gets a first score: "


def pass_jobs(bare_hook: Hook, script: Path) -> None:
    """Loads the script, and lets three jobs pass it unchanged."""
    bare_hook.lua.globals().package.path = ""
    script.write_text(script.read_text().replace("/etc/slurm", str(script.parent)))
    run = bare_hook.lua.eval("function(path) return assert(loadfile(path))() end")
    assert run(str(script)) == 0
    slurm, job = bare_hook.lua.globals(), bare_hook.job(account="physics")
    for _ in range(3):
        assert slurm.slurm_job_submit(job.proxy, None, 1000.0) == 0
        assert slurm.slurm_job_modify(job.proxy, job.proxy, None, 0.0) == 0
    assert job.writes == {}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("text", [None, "this is not Lua", 'error("boom")', "error()"])
@pytest.mark.parametrize("module", MODULES)
def test_script_whose_modules_do_not_load_lets_every_job_pass(
    bare_hook: Hook, tmp_path: Path, module: str, text: str | None, script: str
) -> None:
    """A script that doesn't load keeps slurmctld from starting, so it always loads. Case 48."""
    folder = shutil.copytree(HOOK_DIR, tmp_path / "etc")
    (folder / module).unlink()
    if text is not None:
        (folder / module).write_text(text)
    pass_jobs(bare_hook, folder / script)
    (line,) = bare_hook.lines("error")
    assert line.startswith(NOT_LOADED)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("function", ["submit", "modify", "setup"])
def test_script_whose_module_misses_a_function_lets_every_job_pass(
    bare_hook: Hook, tmp_path: Path, function: str, script: str
) -> None:
    """After an update of half of the files; from Slurm 26.05 on an error here would reject the job."""
    folder = shutil.copytree(HOOK_DIR, tmp_path / "etc")
    module = folder / "slurm_score.lua"
    module.write_text(re.sub(r"\nreturn M\n$", f"\nM.{function} = nil\nreturn M\n", module.read_text()))
    pass_jobs(bare_hook, folder / script)
    if script == "job_submit.lua":
        (line,) = bare_hook.lines("error")
        assert line.startswith(NOT_LOADED)


def test_a_function_that_raises_is_not_called_again(bare_hook: Hook, tmp_path: Path) -> None:
    """The module's own never raise; should one do, the log has one line and not one for each job."""
    folder = shutil.copytree(HOOK_DIR, tmp_path / "etc")
    (folder / "slurm_score.lua").write_text(
        'return { setup = function() end, submit = function() error("boom") end, modify = error }'
    )
    pass_jobs(bare_hook, folder / "job_submit.lua")
    (line,) = bare_hook.lines("error")
    assert line.startswith("slurm_score: submit failed, no further job gets a first score: ")
    assert line.endswith("boom")


def test_site_with_its_own_rules_calls_the_module(bare_hook: Hook, service: Service, tmp_path: Path) -> None:
    """In example_site.lua the site's rule decides, and what it lets pass is scored."""
    text = (HOOK_DIR / "example_site.lua").read_text().replace("/etc/slurm", str(HOOK_DIR))
    (tmp_path / "site.lua").write_text(text)
    bare_hook.load()
    bare_hook.lua.globals().package.loaded["slurm_score"] = bare_hook.module
    bare_hook.load(tmp_path / "site.lua")
    slurm = bare_hook.lua.globals()
    job, no_account = bare_hook.job(account="physics"), bare_hook.job()
    assert slurm.slurm_job_submit(job.proxy, None, 1000.0) == 0
    assert slurm.slurm_job_submit(no_account.proxy, None, 1000.0) == -1
    assert slurm.slurm_job_modify(job.proxy, job.proxy, None, 1000.0) == 0
    assert (job.writes, no_account.writes, len(service.requests)) == ({"site_factor": 1500}, {}, 1)
