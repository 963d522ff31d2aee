"""The submit hook: its plugin, its Lua, its files, and whether slurmctld has loaded them. Pure."""

from collections.abc import Iterator

from slurm_score.checks.facts import READ, Check, Facts, HookSeen, Level
from slurm_score.slurm.lua import PLUGIN, Trial
from slurm_score.units import format_duration

INSTALL = "run `slurm-score install-hook`"
DEFAULT_SOCKET = "/run/slurm-score/hook.sock"
"""What slurm_score.lua asks where the script does not say."""

MAX_AHEAD_S = 5
"""install-hook stamps a script one second ahead."""


def check_hook(facts: Facts) -> Iterator[Check]:
    """Yield what is known of the hook. Where JobSubmitPlugins lacks lua, its faults harm nothing yet."""
    config = facts.slurm.config
    configured = config is not None and config.submits_to_lua
    fault = Level.ERROR if configured else Level.WARNING
    yield _job_submit_plugins(facts)
    yield from _lua(facts, fault)
    yield from _script(facts, fault)
    if facts.hook.script is None:
        return
    yield _readable(facts, fault)
    yield _modules(facts, fault)
    if facts.hook.trial is not None and facts.hook.mentions_us:
        yield _socket_option(facts, facts.hook.trial)
    if configured and facts.slurm.answers:
        yield _loaded(facts)


def _job_submit_plugins(facts: Facts) -> Check:
    config = facts.slurm.config
    if config is None:
        return Check("job submit plugins", Level.WARNING, "it is not known whether JobSubmitPlugins has lua")
    if not config.submits_to_lua:
        plugins = ",".join((*config.job_submit_plugins, "lua"))
        found = "JobSubmitPlugins lacks lua: no job gets a first score"
        remedy = (
            f"{INSTALL}, then set JobSubmitPlugins={plugins} in slurm.conf and run `scontrol reconfigure`"
        )
        return Check("job submit plugins", Level.WARNING, found, remedy)
    return Check("job submit plugins", Level.OK, "JobSubmitPlugins has lua")


def _lua(facts: Facts, fault: Level) -> Iterator[Check]:
    lua, config = facts.hook.lua, facts.slurm.config
    if lua.plugin is None and (config is None or not config.plugin_dirs):
        yield Check("lua", Level.WARNING, f"PluginDir is not known, so {PLUGIN} was not looked at")
    elif lua.plugin is None and config is not None:
        found = f"Slurm was built without Lua: no {PLUGIN} in {':'.join(config.plugin_dirs)}"
        yield Check(
            "lua", fault, found, "install or build Slurm with Lua, or take lua out of JobSubmitPlugins"
        )
    elif lua.error:
        yield Check("lua", Level.WARNING, lua.error, "run this check on slurmctld's host")
    else:
        yield Check("lua", Level.OK, f"{lua.plugin} is built with Lua {lua.version}")
        yield _luasocket(facts, fault)


def _luasocket(facts: Facts, fault: Level) -> Check:
    lua = facts.hook.lua
    if lua.luasocket_error:
        found = f"LuaSocket does not load in Lua {lua.version}: {lua.luasocket_error}"
        remedy = f"install it for Lua {lua.version} (package lua-socket, or luarocks), then restart slurmctld"
        return Check("luasocket", fault, found, remedy)
    return Check("luasocket", Level.OK, f"{lua.luasocket} loads in Lua {lua.version}")


def _script(facts: Facts, fault: Level) -> Iterator[Check]:
    hook = facts.hook
    if hook.script is None:
        harm = ": slurmctld does not start without it" if fault is Level.ERROR else ""
        yield Check("hook script", fault, f"{hook.script_path}: {hook.error}{harm}", INSTALL)
        return
    if hook.script.kind != "file":
        yield Check("hook script", fault, f"{hook.script_path} is a {hook.script.kind}, not a file", INSTALL)
    elif hook.error:
        yield Check(
            "hook script", Level.WARNING, f"{hook.script_path}: {hook.error}", "run this check as root"
        )
    elif hook.trial is None:
        yield Check("hook script", Level.WARNING, f"{hook.script_path} was not looked at: no Lua to do so")
    elif hook.trial.faults:
        yield from (
            Check("hook script", fault, f"{hook.script_path}: {sentence}", f"correct it, or {INSTALL}")
            for sentence in hook.trial.faults
        )
    elif hook.trial.doubt:
        yield Check(
            "hook script", Level.WARNING, f"{hook.script_path}: {hook.trial.doubt}", "see slurmctld's log"
        )
    else:
        yield Check("hook script", Level.OK, f"{hook.script_path} loads and has both functions")
    if not (hook.error or hook.mentions_us or (hook.trial and hook.trial.faults)):
        found = f"{hook.script_path} never mentions slurm_score, so no job gets a first score"
        yield Check("hook script", Level.WARNING, found, f"{INSTALL}, which tells the lines to add")


def _readable(facts: Facts, fault: Level) -> Check:
    hook, account = facts.hook, facts.slurm.slurm_user
    if account is None:
        return Check(
            "hook rights", Level.WARNING, "SlurmUser is not known here, nor whether it can read the hook"
        )
    files = (hook.script, *(module.file for module in hook.modules))
    refusals = [refusal for file in files if file and (refusal := file.refusal(account, READ))]
    if refusals:
        kept_out = ", ".join(dict.fromkeys(refusals))
        return Check(
            "hook rights", fault, f"{account.name} can't read the hook, kept out by {kept_out}", "chmod it"
        )
    return Check("hook rights", Level.OK, f"{account.name} can read the hook")


def _modules(facts: Facts, fault: Level) -> Check:
    modules = facts.hook.modules
    missing = [module.name for module in modules if module.file is None]
    other = [module.name for module in modules if module.file and not module.as_shipped]
    if missing:
        level = fault if facts.hook.mentions_us else Level.WARNING
        return Check("hook modules", level, f"missing beside the script: {', '.join(missing)}", INSTALL)
    if other:
        found = f"not as shipped with version {facts.version}: {', '.join(other)}"
        return Check("hook modules", Level.WARNING, found, INSTALL)
    return Check("hook modules", Level.OK, f"the modules are those of version {facts.version}")


def _socket_option(facts: Facts, trial: Trial) -> Check:
    asked, expected = trial.options.get("socket", DEFAULT_SOCKET), facts.hook.socket_path
    if asked != expected:
        found = f"the script asks {asked}, and the service is expected at {expected}"
        return Check("hook options", Level.WARNING, found, "correct setup's socket, or give --hook-socket")
    return Check("hook options", Level.OK, f"the script asks {asked}")


def _loaded(facts: Facts) -> Check:
    """Case 54: slurmctld goes on with the script it has, without a word, until it sees a later time stamp.

    It compares whole seconds with the time stamp of the script it loaded last, which nobody can ask
    for; a stamp that lies after the loading is surely later. Source: slurm_lua.c, slurm_lua_loadscript.
    """
    hook, script = facts.hook, facts.hook.script
    seen = facts.service.health.hook if facts.service.health else HookSeen()
    boot_s = facts.slurm.config.boot_time_s if facts.slurm.config else None
    loaded_s = max(seen.loaded_s or 0, boot_s or 0)
    if script is None or not loaded_s:
        return Check("hook loaded", Level.WARNING, "it is not known when slurmctld loaded the script")
    files = (script, *(module.file for module in hook.modules if module.file))
    newer = [file.path for file in files if int(file.ctime_s) > loaded_s]
    ago = format_duration(facts.now_s - loaded_s)
    if newer and int(script.mtime_s) <= loaded_s:
        found = (
            f"changed since slurmctld loaded the script {ago} ago, and perhaps not seen: {', '.join(newer)}"
        )
        return Check("hook loaded", Level.WARNING, found, f"`touch {script.path}`")
    if script.mtime_s > facts.now_s + MAX_AHEAD_S:
        found = (
            f"the time stamp of {script.path} is in the future: slurmctld would not see an ordinary change"
        )
        return Check("hook loaded", Level.WARNING, found, "`touch` it and restart slurmctld")
    if newer:
        return Check("hook loaded", Level.OK, "slurmctld loads the changed files at the next submission")
    if seen.version and seen.version != facts.version and seen.loaded_s == loaded_s:
        found = f"slurmctld runs version {seen.version} of the hook, and {facts.version} is installed"
        return Check("hook loaded", Level.WARNING, found, INSTALL)
    return Check("hook loaded", Level.OK, f"slurmctld has loaded the files as they are, {ago} ago")
