#!/usr/bin/python3
"""systemctl for a container without systemd: enable, disable and daemon-reload, by what the unit files say.

A unit is started as its User, with its StateDirectory and RuntimeDirectory, and is up when it says READY=1.
"""

import os
import pwd
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path("/etc/systemd/system")
RUN = Path("/run/systemctl")
TIMEOUT_S = 30


def settings(name: str) -> dict[str, str]:
    """Return the settings of a unit."""
    lines = (UNITS / f"{name}.service").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def start(name: str) -> None:
    """Return when the unit is ready."""
    unit, path = settings(name), RUN / f"{name}.notify"
    user = pwd.getpwnam(unit["User"])
    for key, above in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")):
        if key in unit:
            folder = Path(above) / unit[key]
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
            for one in (folder, *folder.iterdir()):
                os.chown(one, user.pw_uid, user.pw_gid)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        path.unlink(missing_ok=True)
        notify.bind(str(path))
        path.chmod(0o666)
        notify.settimeout(TIMEOUT_S)
        argv = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups"]
        with (RUN / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv + shlex.split(unit["ExecStart"]),
                env=os.environ | {"NOTIFY_SOCKET": str(path), "HOME": user.pw_dir},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (RUN / f"{name}.pid").write_text(str(process.pid))
        while b"READY=1" not in notify.recv(4096):
            pass


def stop(name: str) -> None:
    """Return when the unit is gone."""
    path = RUN / f"{name}.pid"
    pid = int(path.read_text())
    os.kill(pid, signal.SIGTERM)
    latest_s = time.monotonic() + TIMEOUT_S
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > latest_s:
            sys.exit(f"{name} does not end")
        time.sleep(0.05)
    path.unlink()


def main(words: list[str]) -> None:
    """Do what is asked for, or say that it is not known here."""
    RUN.mkdir(exist_ok=True)
    if words == ["daemon-reload"]:
        return
    if words[:2] not in (["enable", "--now"], ["disable", "--now"]):
        sys.exit(f"systemctl {' '.join(words)}: not known here")
    for name in words[2:]:
        (start if words[0] == "enable" else stop)(name)


if __name__ == "__main__":
    main(sys.argv[1:])
