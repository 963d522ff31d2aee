"""slurm_score/checks/hook.py: plugin, Lua, script, modules, and what slurmctld has loaded."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from slurm_score.checks.facts import (
    Account,
    Facts,
    FileFacts,
    Health,
    HookSeen,
    LuaFacts,
    ModuleFacts,
    Rights,
)
from slurm_score.checks.hook import DEFAULT_SOCKET
from slurm_score.slurm.lua import Trial
from tests.unit.check_facts import (
    CONFIG,
    HEALTHY,
    LOADED,
    LUA,
    MODULES,
    NOW,
    PLUGINS,
    changed,
    found,
    make_file,
    with_config,
)

PATH = "/etc/slurm/job_submit.lua"
INSTALL = "run `slurm-score install-hook`"


def without_lua(facts: Facts = HEALTHY) -> Facts:
    """Return the facts of a cluster that does not use the hook yet."""
    return changed("slurm", facts, config=dataclasses.replace(CONFIG, job_submit_plugins=("x",)))


NOT_USED = (
    "warning job submit plugins: JobSubmitPlugins lacks lua: no job gets a first score; "
    f"{INSTALL}, then set JobSubmitPlugins=x,lua in slurm.conf and run `scontrol reconfigure`"
)


def test_a_cluster_without_the_hook_is_warned() -> None:
    """Only the first score is missing; other plugins stay."""
    assert found(without_lua()) == [NOT_USED]


@pytest.mark.parametrize(("configured", "level"), [(True, "error"), (False, "warning")])
def test_case_48_a_missing_script_is_an_error_where_lua_is_configured(configured: bool, level: str) -> None:
    """slurmctld doesn't start without it; before lua is configured it harms nothing."""
    facts = changed("hook", script=None, error="no such file or directory", trial=None)
    facts = facts if configured else without_lua(facts)
    harm = ": slurmctld does not start without it" if configured else ""
    assert found(facts)[-1] == f"{level} hook script: {PATH}: no such file or directory{harm}; {INSTALL}"


@pytest.mark.parametrize(("configured", "level"), [(True, "error"), (False, "warning")])
def test_case_53_a_slurm_without_the_plugin_was_built_without_lua(configured: bool, level: str) -> None:
    """Slurm itself says only that it couldn't find the specified plugin name."""
    facts = changed("hook", lua=LuaFacts(), trial=None)
    facts = facts if configured else without_lua(facts)
    assert (
        f"{level} lua: Slurm was built without Lua: no job_submit_lua.so in {PLUGINS}; "
        "install or build Slurm with Lua, or take lua out of JobSubmitPlugins"
    ) in found(facts)


def loaded(
    *,
    script: FileFacts | None = None,
    modules: tuple[ModuleFacts, ...] = MODULES,
    seen: HookSeen | None = None,
) -> list[str]:
    """Return what is found where slurmctld loaded the hook at LOADED and the files are these."""
    health = HEALTHY.service.health or Health()
    facts = changed("hook", script=script or HEALTHY.hook.script, modules=modules)
    return found(changed("service", facts, health=dataclasses.replace(health, hook=seen or health.hook)))


def stamped(mtime_s: float, ctime_s: float, name: str = "job_submit.lua") -> FileFacts:
    """Return a file beside slurm.conf with these times."""
    return make_file(f"/etc/slurm/{name}", mtime_s=mtime_s, ctime_s=ctime_s)


UNSEEN = "warning hook loaded: changed since slurmctld loaded the script 00:10:00 ago, and perhaps not seen"


@pytest.mark.parametrize(
    ("mtime_s", "ctime_s", "line"),
    [
        pytest.param(LOADED - 9, LOADED - 9, None, id="older than the loading"),
        pytest.param(LOADED + 5, LOADED + 5, None, id="newer: loaded at the next submission"),
        pytest.param(
            LOADED - 9, LOADED + 5, f"{UNSEEN}: {PATH}; `touch {PATH}`", id="older stamp, newer file"
        ),
        pytest.param(LOADED + 0.9, LOADED + 5, f"{UNSEEN}: {PATH}; `touch {PATH}`", id="the same second"),
        pytest.param(
            NOW + 3600,
            NOW - 5,
            f"warning hook loaded: the time stamp of {PATH} is in the future: slurmctld would not see an "
            "ordinary change; `touch` it and restart slurmctld",
            id="stamp in the future",
        ),
        pytest.param(NOW + 1, NOW, None, id="as install-hook stamps it"),
    ],
)
def test_case_54_a_script_that_slurmctld_does_not_see_is_named(
    mtime_s: float, ctime_s: float, line: str | None
) -> None:
    """slurmctld goes on with the old script unless the new one's stamp, in whole seconds, is later."""
    assert loaded(script=stamped(mtime_s, ctime_s)) == ([line] if line else [])


def test_case_54_a_changed_module_needs_a_touch_of_the_script() -> None:
    """slurmctld watches no other file."""
    module = ModuleFacts(name="slurm_score.lua", file=stamped(LOADED + 5, LOADED + 5, "slurm_score.lua"))
    assert loaded(modules=(module,)) == [f"{UNSEEN}: /etc/slurm/slurm_score.lua; `touch {PATH}`"]
    assert loaded(modules=(module,), script=stamped(LOADED + 9, LOADED + 9)) == []


def test_case_54_the_service_knows_which_version_runs() -> None:
    """The files are new and older than the loading, yet an older hook asked last."""
    assert loaded(seen=HookSeen(NOW, "0.0.9", "5.1", LOADED)) == [
        f"warning hook loaded: slurmctld runs version 0.0.9 of the hook, and 0.1.0 is installed; {INSTALL}"
    ]


def test_without_the_service_the_start_of_slurmctld_bounds_the_loading() -> None:
    """BOOT_TIME is 10 s before LOADED here: a change in between counts as unseen."""
    script = stamped(LOADED - 100, LOADED - 5)
    assert loaded(script=script) == []
    assert loaded(script=script, seen=HookSeen()) == [
        f"{UNSEEN.replace('00:10:00', '00:10:10')}: {PATH}; `touch {PATH}`"
    ]


def test_an_unknown_time_of_loading_is_a_warning() -> None:
    """Neither the service nor slurmctld told."""
    health = dataclasses.replace(HEALTHY.service.health or Health(), hook=HookSeen())
    assert found(changed("service", with_config(boot_time_s=None), health=health)) == [
        "warning hook loaded: it is not known when slurmctld loaded the script"
    ]


@pytest.mark.parametrize(
    ("lua", "line"),
    [
        (
            {"error": "Lua 5.4 is not on this host (looked for liblua5.4.so.0)"},
            "warning lua: Lua 5.4 is not on this host (looked for liblua5.4.so.0); "
            "run this check on slurmctld's host",
        ),
        (
            {"luasocket_error": "module 'socket' not found:", "luasocket": ""},
            "error luasocket: LuaSocket does not load in Lua 5.1: module 'socket' not found:; "
            "install it for Lua 5.1 (package lua-socket, or luarocks), then restart slurmctld",
        ),
    ],
)
def test_slurmctlds_own_lua_is_what_counts(lua: dict[str, Any], line: str) -> None:
    """Case 49: LuaSocket for another Lua helps nothing."""
    assert found(changed("hook", lua=dataclasses.replace(LUA, **lua))) == [line]


@pytest.mark.parametrize(
    ("trial", "line"),
    [
        (
            Trial(syntax="job_submit.lua:3: '=' expected"),
            f"error hook script: {PATH}: Lua does not take it: job_submit.lua:3: '=' expected; "
            f"correct it, or {INSTALL}",
        ),
        (
            Trial(missing=("slurm_job_modify",)),
            f"error hook script: {PATH}: it lacks slurm_job_modify; slurmctld needs both functions; "
            f"correct it, or {INSTALL}",
        ),
        (
            Trial(stopped="x.lua:1: boom"),
            f"warning hook script: {PATH}: tried without Slurm, it stops: x.lua:1: boom; see slurmctld's log",
        ),
        (
            Trial(options={"socket": "/tmp/x.sock"}),
            "warning hook options: the script asks /tmp/x.sock, and the service is expected at "
            "/run/slurm-score/hook.sock; correct setup's socket, or give --hook-socket",
        ),
        (None, f"warning hook script: {PATH} was not looked at: no Lua to do so"),
    ],
)
def test_what_is_wrong_with_the_script_is_said(trial: Trial | None, line: str) -> None:
    """As slurmctld's Lua put it."""
    assert found(changed("hook", trial=trial)) == [line]


def test_a_folder_in_the_scripts_place_is_an_error() -> None:
    """slurmctld could not load it."""
    facts = changed("hook", script=make_file(PATH, kind="folder"), error="can't be read: Is a directory")
    assert found(changed("hook", facts, trial=None)) == [
        f"error hook script: {PATH} is a folder, not a file; {INSTALL}"
    ]


@pytest.mark.parametrize(
    ("rights", "only"),
    [({}, True), ({"uid": 7}, True), ({"uid": 8}, False), ({"mode": 0o664}, False), ({"mode": 0o646}, False)],
)
def test_who_may_change_a_file_is_told_by_owner_and_mode(rights: dict[str, int], only: bool) -> None:
    """What others may change is not trusted with paths to load from."""
    assert make_file(PATH, **rights).only_changed_by(0, 7) is only


def test_a_script_that_we_may_not_read_is_no_error() -> None:
    """Whether SlurmUser may is told by the modes."""
    assert found(changed("hook", error="can't be read: Permission denied", trial=None)) == [
        f"warning hook script: {PATH}: can't be read: Permission denied; run this check as root"
    ]


def test_a_site_script_that_never_asks_us_is_warned() -> None:
    """It loads well, and no job gets a first score; our missing modules then harm nothing."""
    absent = tuple(dataclasses.replace(module, file=None) for module in MODULES)
    assert found(changed("hook", mentions_us=False, modules=absent)) == [
        f"warning hook script: {PATH} never mentions slurm_score, so no job gets a first score; "
        f"{INSTALL}, which tells the lines to add",
        f"warning hook modules: missing beside the script: slurm_score.lua, slurm_score_http.lua; {INSTALL}",
    ]


def test_modules_are_there_and_as_shipped() -> None:
    """A missing one costs every first score; another version may not fit the others."""
    first, second = MODULES
    missing = (first, dataclasses.replace(second, file=None))
    assert found(changed("hook", modules=missing)) == [
        f"error hook modules: missing beside the script: slurm_score_http.lua; {INSTALL}"
    ]
    other = (dataclasses.replace(first, as_shipped=False), second)
    assert found(changed("hook", modules=other)) == [
        f"warning hook modules: not as shipped with version 0.1.0: slurm_score.lua; {INSTALL}"
    ]


def test_a_file_that_slurm_user_cant_read_is_named_with_its_mode() -> None:
    """slurmctld runs as SlurmUser; a folder without the right to search hides what is in it."""
    assert found(changed("hook", script=make_file(PATH, mode=0o600))) == [
        f"error hook rights: slurm can't read the hook, kept out by {PATH} (mode 0600, owner 0:0); chmod it"
    ]
    folders = (Rights("/"), Rights("/etc", mode=0o750))
    assert found(changed("hook", script=make_file(PATH, folders=folders))) == [
        "error hook rights: slurm can't read the hook, kept out by /etc (mode 0750, owner 0:0); chmod it"
    ]


@pytest.mark.parametrize(
    ("account", "rights", "wanted", "allowed"),
    [
        (Account("root", 0, frozenset()), Rights("/x", uid=5, mode=0), 4, True),
        (Account("a", 5, frozenset({7})), Rights("/x", uid=5, gid=7, mode=0o077), 4, False),
        (Account("a", 5, frozenset({7})), Rights("/x", uid=5, mode=0o400), 4, True),
        (Account("a", 6, frozenset({7, 8})), Rights("/x", uid=5, gid=8, mode=0o040), 4, True),
        (Account("a", 6, frozenset({7, 8})), Rights("/x", uid=5, gid=8, mode=0o604), 4, False),
        (Account("a", 6, frozenset({7})), Rights("/x", uid=5, gid=8, mode=0o604), 4, True),
        (Account("a", 6, frozenset({7})), Rights("/x", uid=5, gid=8, mode=0o604), 2, False),
    ],
)
def test_the_first_of_owner_group_and_others_that_fits_decides(
    account: Account, rights: Rights, wanted: int, allowed: bool
) -> None:
    """path_resolution(7): an owner without the right isn't helped by the group's; root needs none."""
    assert rights.allow(account, wanted) is allowed


def test_the_default_socket_is_the_one_that_the_module_asks() -> None:
    """slurm_score.lua decides."""
    module = Path(__file__).parents[2] / "job_submit" / "slurm_score.lua"
    assert f'socket = "{DEFAULT_SOCKET}",' in module.read_text(encoding="utf-8")
