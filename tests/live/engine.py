"""The Docker engine: reaching it, and bringing it up where that is possible without asking anybody."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from docker.client import DockerClient
from docker.errors import DockerException

from .topology import ROOT

T = TypeVar("T")
log = logging.getLogger("slurm-score-test")
PACKAGES = ["docker.io", "iptables", "debootstrap", "debian-archive-keyring"]
START_TIMEOUT_S = 60.0
ADVICE = (
    "no Docker engine answers: install one (Debian, Ubuntu: apt-get install docker.io) and start it, "
    "or run `python -m tests.live engine` as root there"
)


class EngineMissingError(Exception):
    """No Docker engine answers; the message says what to install."""


def wait_for(
    predicate: Callable[[], T], timeout_s: float, what: str | Callable[[], str], interval_s: float = 0.2
) -> T:
    """Returns the first true value of the predicate; TimeoutError after timeout_s seconds without one.

    what says what is waited for; as a function it can say as well, after the time-out, how things stand.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(interval_s)


def connect(timeout_s: int = 600) -> DockerClient:
    """Returns a client of the engine that just answered; timeout_s is for one silent answer of it."""
    try:
        _knock()
        return DockerClient.from_env(timeout=timeout_s)
    except (DockerException, OSError) as error:
        raise EngineMissingError(f"{ADVICE} ({error})") from error


def _knock() -> None:
    # The SDK forgets to close a socket that nobody answers, which Python reports as a leak sooner or later.
    scheme, _, path = (os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock").partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.connect(path)


def answers() -> bool:
    """Returns whether an engine answers."""
    try:
        connect(timeout_s=10).close()
    except EngineMissingError:
        return False
    return True


def is_debian() -> bool:
    """Returns whether this machine is a Debian, an Ubuntu or a child of theirs."""
    os_release = Path("/etc/os-release")
    if not os_release.exists():
        return False
    lines = dict(line.split("=", 1) for line in os_release.read_text().splitlines() if "=" in line)
    return "debian" in {*lines.get("ID", "").strip('"').split(), *lines.get("ID_LIKE", "").strip('"').split()}


def install_packages(packages: list[str]) -> None:
    """Installs Debian packages on this machine; EngineMissingError when apt-get cannot."""
    log.info("installing on this machine: %s", " ".join(packages))
    _apt_get("update", "-qq")
    # The docker command is a package of its own from Debian 13 on.
    known = subprocess.run(["apt-cache", "show", "docker-cli"], capture_output=True, check=False)
    client = ["docker-cli"] if "docker.io" in packages and known.returncode == 0 else []
    _apt_get("install", "-y", "-qq", "--no-install-recommends", *packages, *client)


def _apt_get(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        ["apt-get", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise EngineMissingError(f"apt-get {arguments[0]}: exit {done.returncode}: {done.stderr.strip()}")


def ensure() -> None:
    """Brings up an engine if none answers; EngineMissingError where it may not or cannot."""
    if answers():
        return
    if os.geteuid() != 0 or not is_debian():
        raise EngineMissingError(ADVICE)
    if _dockerd() is None:
        install_packages(PACKAGES)
    if Path("/run/systemd/system").exists():
        log.info("starting the service docker")
        subprocess.run(["systemctl", "start", "docker"], check=False)
        wait_for(answers, START_TIMEOUT_S, "the Docker engine answers")
    else:
        _start_dockerd()
    log.info("the Docker engine answers")


def _dockerd() -> str | None:
    return shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin")


def _start_dockerd() -> None:
    log_file = ROOT / ".cache" / "dockerd.log"
    log_file.parent.mkdir(exist_ok=True)
    _remove_stale(Path("/run/docker.pid"), "dockerd")
    _remove_stale(Path("/run/docker/containerd/containerd.pid"), "containerd")
    log.info("starting dockerd, log in %s", log_file)
    with log_file.open("wb") as out:
        # Its own session: it must outlive this process and not see the Ctrl-C of a terminal.
        process = subprocess.Popen(
            [str(_dockerd())], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    wait_for(
        lambda: answers() or process.poll() is not None, START_TIMEOUT_S, "the Docker engine answers", 0.5
    )
    if process.poll() is not None:
        last = log_file.read_text(errors="replace").strip().splitlines()[-3:]
        raise EngineMissingError(f"dockerd ended with exit code {process.returncode}: {' '.join(last)}")


def _remove_stale(pid_file: Path, command: str) -> None:
    # A pid that some other program has by now keeps dockerd from starting.
    if not pid_file.exists():
        return
    process_name = Path("/proc", pid_file.read_text().strip() or "none", "comm")
    if not process_name.exists() or process_name.read_text().strip() != command:
        pid_file.unlink()
