"""Programs that check what we ship: from PATH, else out of their Debian packages, which are not installed.

`python -m tests.tools` fetches what is missing into .cache/tools; `make lint` does so first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "tools"
PACKAGES = {"promtool": "prometheus", "mandoc": "mandoc"}
"""Program -> the Debian package that has it: unpacked only, as installing prometheus would start a server."""


class ToolMissingError(Exception):
    """A program is neither here nor to be had; the message says what to install."""


def tool(name: str) -> str:
    """Returns the path of a program; ToolMissingError, and no skip, where there is none."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{FOLDER}")
    if found is None:
        raise ToolMissingError(
            f"{name}: not found; `python -m tests.tools` fetches it on Debian and Ubuntu, "
            f"elsewhere install what has it (Debian: {PACKAGES[name]})"
        )
    return found


def ensure(name: str) -> str:
    """Returns the path of a program, fetched where it is missing."""
    try:
        return tool(name)
    except ToolMissingError:
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise
        _fetch(name)
        return tool(name)


def _fetch(name: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        _download(PACKAGES[name], folder)
        (package,) = Path(folder).glob("*.deb")
        _run(["dpkg-deb", "--extract", str(package), folder])
        (program,) = (path for path in Path(folder).glob(f"usr/bin/{name}") if path.is_file())
        program.replace(FOLDER / name)


def _download(package: str, folder: str) -> None:
    # As root apt-get would use a user of its own, who may not write here.
    argv = ["apt-get", "download", "-qq", "--option=APT::Sandbox::User=root", package]
    try:
        _run(argv, folder)
    except ToolMissingError:
        if os.geteuid() != 0:
            raise
        _run(["apt-get", "update", "-qq"])  # an image that was just made knows no packages
        _run(argv, folder)


def _run(argv: list[str], folder: str | None = None) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise ToolMissingError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")


if __name__ == "__main__":
    try:
        for each in PACKAGES:
            ensure(each)
    except ToolMissingError as missing:
        sys.exit(str(missing))
