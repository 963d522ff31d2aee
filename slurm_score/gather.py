"""Looks at Slurm, the files, the service and Lua for `slurm-score check`; checks judges what was seen."""

import os
import pwd
import shutil
import stat
import time
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from slurm_score import __version__
from slurm_score.checks.facts import (
    Account,
    Facts,
    FileFacts,
    Health,
    HookFacts,
    LuaFacts,
    ModuleFacts,
    PolicyFacts,
    Rights,
    ServiceFacts,
    SlurmFacts,
    SnapshotFacts,
)
from slurm_score.errors import PolicyError, ServiceError, SlurmError, SnapshotError
from slurm_score.hookfile import SCRIPT, mentions_us, shipped
from slurm_score.model import SlurmConfig
from slurm_score.service.client import ServiceClient
from slurm_score.slurm.gateway import Gateway
from slurm_score.slurm.lua import PLUGIN, Trial, open_lua
from slurm_score.snapshot import read_snapshot
from slurm_score.watch import read_policy

COMMANDS = ("scontrol", "squeue", "sprio", "sacct")
SLURM_CONF = "/etc/slurm/slurm.conf"
USUAL_PLUGIN_DIRS = (
    "usr/lib/*/slurm-wlm",
    "usr/lib/*/slurm",
    "usr/lib64/slurm",
    "usr/lib/slurm",
    "usr/local/lib*/slurm",
    "opt/slurm/lib*/slurm",
)
"""Where Slurm's plugins are if neither slurmctld nor slurm.conf says so."""

KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFSOCK: "socket"}

_HEALTH = TypeAdapter(Health)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the product's files and sockets are."""

    policy: Path
    snapshot: Path
    socket: Path
    hook_socket: Path


def gather(gateway: Gateway, places: Places) -> Facts:
    """Return everything that checks needs; what can't be had is told as such, nothing is raised."""
    slurm = look_at_slurm(gateway)
    config = slurm.config or SlurmConfig()
    return Facts(
        now_s=time.time(),
        version=__version__,
        slurm=slurm,
        policy=_policy(places.policy),
        snapshot=_snapshot(places.snapshot),
        hook=look_at_hook(config, places.hook_socket),
        service=_service(places.socket),
    )


def look_at_slurm(gateway: Gateway) -> SlurmFacts:
    """Return what slurmctld says; if it is down, what its slurm.conf says."""
    missing = tuple(name for name in COMMANDS if shutil.which(name) is None)
    try:
        config = gateway.read_config()
    except SlurmError as error:
        written = read_slurm_conf(Path(os.environ.get("SLURM_CONF") or SLURM_CONF))
        return SlurmFacts(
            missing_commands=missing,
            error=str(error),
            config=written,
            slurm_user=find_account(written.slurm_user) if written else None,
        )
    facts = SlurmFacts(
        missing_commands=missing, answers=True, config=config, slurm_user=find_account(config.slurm_user)
    )
    try:
        return replace(facts, identity=gateway.read_identity())
    except SlurmError as error:
        return replace(facts, error=str(error))


def read_slurm_conf(path: Path) -> SlurmConfig | None:
    """Return what a slurm.conf says of the hook, None where it can't be read; Include isn't followed."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("#")[0].partition("=") for line in lines)
    values = {key.strip().lower(): value.strip() for key, _, value in pairs if value}
    plugins = values.get("jobsubmitplugins", "")
    return SlurmConfig(
        slurm_user=values.get("slurmuser", "root"),
        job_submit_plugins=tuple(name.removeprefix("job_submit/") for name in plugins.split(",") if name),
        plugin_dirs=tuple(filter(None, values.get("plugindir", "").split(":"))) or _usual_plugin_dirs(),
        slurm_conf=str(path),
    )


def _usual_plugin_dirs() -> tuple[str, ...]:
    found = (folder for pattern in USUAL_PLUGIN_DIRS for folder in Path("/").glob(pattern))
    return tuple(str(folder) for folder in found if (folder / PLUGIN).is_file())


def find_account(name: str) -> Account | None:
    """Return a user with all groups, None where the system knows none of the name."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, user.pw_uid, frozenset(os.getgrouplist(name, user.pw_gid)))


def find_plugin(config: SlurmConfig) -> Path | None:
    """Return Slurm's plugin for job_submit.lua, None where no folder of PluginDir has it."""
    paths = (Path(folder) / PLUGIN for folder in config.plugin_dirs)
    return next((path for path in paths if path.is_file()), None)


def find_folder(config: SlurmConfig) -> Path:
    """Return the folder of slurm.conf, where slurmctld looks for job_submit.lua."""
    return Path(config.slurm_conf or SLURM_CONF).parent


def look_at_file(path: Path) -> tuple[FileFacts | None, str]:
    """Return what is at a path, with the folders above it; or None and why it can't be told."""
    try:
        found = path.stat()
        folders = tuple(_rights(folder, folder.stat()) for folder in reversed(path.absolute().parents))
    except OSError as error:
        return None, (error.strerror or str(error)).lower()
    return FileFacts(
        rights=_rights(path, found),
        kind=KINDS.get(stat.S_IFMT(found.st_mode), "device"),
        mtime_s=found.st_mtime,
        ctime_s=found.st_ctime,
        folders=folders,
    ), ""


def look_at_hook(config: SlurmConfig, socket: Path) -> HookFacts:
    """Return what there is of the hook beside slurm.conf."""
    folder = find_folder(config)
    path = folder / SCRIPT
    script, error = look_at_file(path)
    source, unread = _source(path) if script else (b"", error)
    lua, trial = _look_with_lua(find_plugin(config), script if not unread else None, source)
    found, socket_error = look_at_file(socket)
    return HookFacts(
        script_path=str(path),
        script=script,
        error=unread,
        mentions_us=mentions_us(source),
        lua=lua,
        trial=trial,
        modules=tuple(_module(folder / name, data) for name, data in shipped().modules.items()),
        socket_path=str(socket),
        socket=found,
        socket_error=socket_error,
    )


def _source(path: Path) -> tuple[bytes, str]:
    try:
        return path.read_bytes(), ""
    except OSError as error:
        return b"", f"can't be read: {error.strerror}"


def _look_with_lua(
    plugin: Path | None, script: FileFacts | None, source: bytes
) -> tuple[LuaFacts, Trial | None]:
    """Return slurmctld's Lua and what it says of the script.

    Whoever can write the script could make root load a library here, so its folders for LuaSocket
    count only if that is root or we.
    """
    if plugin is None:
        return LuaFacts(), None
    try:
        lua, version = open_lua(plugin)
        trial = lua.try_script(source, script.path) if script else None
        options = trial.options if trial and script and script.only_changed_by(0, os.geteuid()) else {}
        socket, why = lua.luasocket(options.get("luasocket_path", ""), options.get("luasocket_cpath", ""))
    except SlurmError as error:
        return LuaFacts(plugin=str(plugin), error=str(error)), None
    return LuaFacts(plugin=str(plugin), version=version, luasocket=socket, luasocket_error=why), trial


def _module(path: Path, data: bytes) -> ModuleFacts:
    file, _ = look_at_file(path)
    if file is None:
        return ModuleFacts(name=path.name)
    try:
        same = path.read_bytes() == data
    except OSError:
        same = True  # it can't be told; that SlurmUser may read it is judged by its mode
    return ModuleFacts(name=path.name, file=file, as_shipped=same)


def _rights(path: Path, found: os.stat_result) -> Rights:
    return Rights(str(path), found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))


def _policy(path: Path) -> PolicyFacts:
    try:
        return PolicyFacts(path=str(path), policy=read_policy(path))
    except PolicyError as error:
        return PolicyFacts(path=str(path), problems=tuple(map(str, error.problems)))


def _snapshot(path: Path) -> SnapshotFacts:
    try:
        return SnapshotFacts(path=str(path), time_s=read_snapshot(path, with_jobs=False).cluster.time_s)
    except SnapshotError as error:
        return SnapshotFacts(path=str(path), error=str(error))


def _service(path: Path) -> ServiceFacts:
    try:
        return ServiceFacts(path=str(path), health=_HEALTH.validate_python(ServiceClient(path).health()))
    except ServiceError as error:
        return ServiceFacts(path=str(path), error=str(error))
    except ValidationError as error:
        told = f"{path}: its /healthz is not that of this release: {error.error_count()} faults"
        return ServiceFacts(path=str(path), error=told)
