"""The facts of a healthy cluster for the check command; every test changes only what it is about."""

from dataclasses import replace
from typing import Any

from slurm_score.checks import Check, Facts, checks
from slurm_score.checks.facts import (
    Account,
    FileFacts,
    Health,
    HookFacts,
    HookSeen,
    LuaFacts,
    ModuleFacts,
    PolicyFacts,
    Rights,
    ServiceFacts,
    SlurmFacts,
    SnapshotFacts,
)
from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.slurm.gateway import Identity
from slurm_score.slurm.lua import Trial

NOW, LOADED, BEFORE = 1_700_000_600.0, 1_700_000_000, 1_600_000_000.5
SLURM = Account("slurm", 64030, frozenset({64030}))
FOLDERS = (Rights("/"), Rights("/etc"), Rights("/etc/slurm"))
PLUGINS = "/usr/lib/slurm"


def make_file(path: str, **changes: Any) -> FileFacts:
    """Return a file of root that everybody may read, changed long before slurmctld loaded anything."""
    rights = {name: changes.pop(name) for name in ("uid", "gid", "mode") if name in changes}
    values: dict[str, Any] = {"mtime_s": BEFORE, "ctime_s": BEFORE, "folders": FOLDERS}
    return FileFacts(rights=Rights(path, **{"mode": 0o644} | rights), **values | changes)


CONFIG = SlurmConfig(
    release="24.11.5",
    slurm_user="slurm",
    priority_type="priority/multifactor",
    scheduler_parameters=("bf_continue",),
    controllers=("ctl",),
    job_submit_plugins=("lua",),
    plugin_dirs=(PLUGINS,),
    slurm_conf="/etc/slurm/slurm.conf",
    boot_time_s=LOADED - 10,
)
SCRIPT = make_file("/etc/slurm/job_submit.lua")
MODULES = tuple(
    ModuleFacts(name=name, file=make_file(f"/etc/slurm/{name}"))
    for name in ("slurm_score.lua", "slurm_score_http.lua")
)
SOCKET = make_file("/run/slurm-score/hook.sock", kind="socket", uid=64030, gid=64030, mode=0o600)
LUA = LuaFacts(plugin=f"{PLUGINS}/job_submit_lua.so", version="5.1", luasocket="LuaSocket 3.0.0")
HEALTHY = Facts(
    now_s=NOW,
    version="0.1.0",
    slurm=SlurmFacts(answers=True, config=CONFIG, identity=Identity("root", "None"), slurm_user=SLURM),
    policy=PolicyFacts(path="/etc/slurm/slurm-score.yaml", policy=Policy()),
    snapshot=SnapshotFacts(path="/var/lib/slurm-score/snapshot.jsonl", time_s=NOW - 60),
    hook=HookFacts(
        script_path=SCRIPT.path,
        script=SCRIPT,
        lua=LUA,
        trial=Trial(),
        modules=MODULES,
        socket_path=SOCKET.path,
        socket=SOCKET,
    ),
    service=ServiceFacts(
        path="/run/slurm-score/slurm-score.sock",
        health=Health(
            version="0.1.0",
            mode="observe",
            policy=Policy().hash,
            hook=HookSeen(NOW - 5, "0.1.0", "5.1", LOADED),
        ),
    ),
)


def changed(part: str, facts: Facts = HEALTHY, **changes: Any) -> Facts:
    """Return facts with one part (slurm, hook, …) changed."""
    return replace(facts, **{part: replace(getattr(facts, part), **changes)})


def with_config(**changes: Any) -> Facts:
    """Return the facts of a cluster with another configuration."""
    return changed("slurm", config=replace(CONFIG, **changes))


def found(facts: Facts) -> list[str]:
    """Return what isn't ok, as `level name: what was found; remedy`."""
    return [_line(check) for check in checks(facts) if check.level != "ok"]


def _line(check: Check) -> str:
    return f"{check.level} {check.name}: {check.found}" + (f"; {check.remedy}" if check.remedy else "")
