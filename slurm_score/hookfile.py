"""Puts job_submit.lua and our modules beside slurm.conf, so that slurmctld never sees half of it.

The modules come first, each file is replaced by one rename, and the script comes last: whenever this
stops, slurmctld finds the old script or the new one, and modules that both can use.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from slurm_score.errors import SlurmScoreError

SCRIPT = "job_submit.lua"
MODULES = "slurm_score*.lua"
FILE_MODE = 0o644
MARKS = (b"Ready to use as slurm.conf's neighbour job_submit.lua",)
"""In the first line of every job_submit.lua that we ship or shipped; a site's own script has none of them."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """The files of the hook as this release has them: name -> content."""

    script: bytes
    modules: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Installed:
    """What was written, the script last, and where the old files are kept; both empty if nothing changed."""

    written: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()


def shipped() -> Shipped:
    """Return the hook's files from the source tree or from where the wheel puts them.

    Raises:
        SlurmScoreError: they are in neither place.
    """
    source = Path(__file__).parents[1] / "job_submit"
    wheel = Path(sys.prefix) / "share" / "slurm-score" / "job_submit"
    for folder in (source, wheel):
        if (folder / SCRIPT).is_file():
            modules = {path.name: path.read_bytes() for path in sorted(folder.glob(MODULES))}
            return Shipped((folder / SCRIPT).read_bytes(), modules)
    raise SlurmScoreError(f"{wheel}: the hook's files are not there; install slurm-score again")


def is_ours(script: bytes) -> bool:
    """Return whether a script is a job_submit.lua of ours, of whatever release, options changed or not."""
    first = script.partition(b"\n")[0]
    return any(mark in first for mark in MARKS)


def mentions_us(script: bytes) -> bool:
    """Return whether a script has to do with our module."""
    return b"slurm_score" in script


def lines_to_add(folder: Path) -> tuple[str, str]:
    """Return the line for the top of a site's own script, and the one for its slurm_job_submit."""
    return (
        f'package.path = "{folder}/?.lua;" .. package.path; '
        'local has_score, score = pcall(require, "slurm_score")',
        "if has_score then pcall(score.submit, job_desc, part_list, submit_uid) end",
    )


def read_script(path: Path) -> bytes | None:
    """Return a script, None where there is none.

    Raises:
        SlurmScoreError: it can't be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SlurmScoreError(f"{path}: can't be read: {error.strerror}") from error


def install(folder: Path, script: bytes, modules: Mapping[str, bytes], now_s: float) -> Installed:
    """Write the modules and the script that differ from what is there, and keep what was there.

    A script is stamped later than any that slurmctld can have loaded, in the whole seconds that it
    compares; that makes it load the modules again too, so the script is written with any of them.

    Raises:
        SlurmScoreError: something can't be written; the files named in `written` so far are new and whole.
    """
    path = folder / SCRIPT
    _refuse_links(path, *(folder / name for name in modules))
    changed = {folder / name: data for name, data in modules.items() if read_script(folder / name) != data}
    old = read_script(path)
    if not changed and old == script and not _interrupted(folder, modules):
        return Installed()
    ending = f".old-{datetime.fromtimestamp(now_s, UTC):%Y%m%dT%H%M%SZ}"
    written: list[Path] = []
    kept: list[Path] = []
    for target, data in [*changed.items(), (path, script)]:
        stamp = _stamp(target, now_s) if target == path else None
        try:
            if read_script(target) not in (None, data):
                kept.append(_keep(target, ending))
            _replace(target, data, stamp)
        except OSError as error:
            done = f"; new by now: {', '.join(map(str, written))}" if written else "; nothing was changed"
            raise SlurmScoreError(f"{target}: can't be written: {error.strerror}{done}") from error
        written.append(target)
    return Installed(tuple(written), tuple(kept))


def _refuse_links(*paths: Path) -> None:
    """Root must not be led to another file by whoever may write to the folder."""
    for path in paths:
        if path.is_symlink():
            raise SlurmScoreError(
                f"{path}: is a link to {path.readlink()}, and links are not followed; "
                "remove it, or install where it leads with --to"
            )


def _interrupted(folder: Path, modules: Mapping[str, bytes]) -> bool:
    """Whether a module came later than the script: then slurmctld may not have loaded it."""
    newest_s = max((int((folder / name).stat().st_mtime) for name in modules), default=0)
    return newest_s > int((folder / SCRIPT).stat().st_mtime)


def _stamp(script: Path, now_s: float) -> int:
    """Return a time in whole seconds later than now and than the old script's.

    slurmctld remembers the time stamp of the script that it loaded, which may be in the future.
    Source: slurm_lua.c, slurm_lua_loadscript: `st_mtime <= *load_time`.
    """
    try:
        old_s = int(script.stat().st_mtime)
    except FileNotFoundError:
        old_s = 0
    return max(int(now_s), old_s) + 1


def _keep(path: Path, ending: str) -> Path:
    """Give the old file a second name, which stays when its own goes to the new one."""
    kept = path.with_name(path.name + ending)
    kept.unlink(missing_ok=True)
    os.link(path, kept)
    return kept


def _replace(path: Path, data: bytes, stamp_s: int | None) -> None:
    """Replace a file by one rename, once the new content is on the disk; owner as the folder's."""
    owner = path.parent.stat()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), FILE_MODE)
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            if stamp_s is not None:
                os.utime(file.fileno(), (stamp_s, stamp_s))
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
