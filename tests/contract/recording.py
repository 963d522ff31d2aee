"""One case while it is recorded: what was asked, and the folder that it becomes."""

from __future__ import annotations

import base64
import datetime
import re
import shutil
import socket
from typing import Any

import yaml

from tests.contract.prepare import Stage
from tests.live.topology import ROOT

DATA = ROOT / "tests" / "data" / "slurm"
NEUTRAL_KERNEL = (b"6.1.0", b"#1 SMP")
_ADDRESS = re.compile(rb"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")


class LeakError(Exception):
    """An answer tells something about the machine that it was recorded on."""


class Recording:
    """Asks Slurm on a stage and keeps the answers, each with the number of writes that came before."""

    def __init__(self, stage: Stage, name: str, about: str) -> None:
        self.stage = stage
        self.name = name
        self.folder = DATA / stage.release / name
        self._about = " ".join(about.split())
        self._commands: list[dict[str, Any]] = []
        self._files: dict[str, bytes] = {}
        self._writes = 0
        self._now_s = 0
        self._kernel = [stage.root("uname", flag).strip().encode() for flag in ("-r", "-v")]

    def ask(self, *steps: list[Any], user: str = "scoreop") -> list[str]:
        """Take the steps as a user; return the class of the error that each of them met, empty for none."""
        answer = self.stage.in_container({"ask": steps}, user=user)
        self._now_s = self._now_s or answer["now_s"]
        for command in answer["commands"]:
            self._keep(command, user)
        raised: list[str] = answer["raised"]
        return raised

    def _keep(self, command: dict[str, Any], user: str) -> None:
        entry = {"user": user, "argv": command["argv"], "writes": self._writes, "exit": command["exit"]}
        if command["stdin"]:
            entry["stdin"] = command["stdin"]
            self._writes += 1
        for stream in ("stdout", "stderr"):
            output = self._anonymous(base64.b64decode(command[stream]))
            if output:
                entry[stream] = self._file(command["argv"], stream, output)
        self._commands.append(entry)

    def _file(self, argv: list[str], stream: str, output: bytes) -> str:
        known = next((name for name, content in self._files.items() if content == output), None)
        if known:
            return known
        words = "-".join(word for word in argv[:3] if re.fullmatch(r"[a-z_]+", word))
        name = f"{len(self._files) + 1:02}-{words}.{stream}"
        self._files[name] = output
        return name

    def _anonymous(self, output: bytes) -> bytes:
        for word, neutral in zip(self._kernel, NEUTRAL_KERNEL, strict=True):
            output = output.replace(word, neutral)
        for secret in (socket.gethostname().encode(), str(ROOT).encode(), b"/root", *self._kernel):
            if re.search(rb"(?<!\w)" + re.escape(secret) + rb"(?!\w)", output):
                raise LeakError(f"{self.folder}: {secret!r} is in an answer")
        if found := _ADDRESS.search(output):
            raise LeakError(f"{self.folder}: the address {found[0]!r} is in an answer")
        return output

    def write(self) -> None:
        """Replace the case's folder by what was recorded."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, content in self._files.items():
            (self.folder / name).write_bytes(content)
        stage = self.stage
        case = {
            "release": stage.release,
            "slurm": stage.root("scontrol", "--version").split()[1],
            "recorded": datetime.datetime.now(tz=datetime.UTC).date(),
            "now_s": self._now_s,
            "about": self._about,
            "left_out": stage.left_out,
            "jobs": stage.ids,
            "commands": self._commands,
        }
        text = yaml.safe_dump(case, sort_keys=False, default_flow_style=None, width=110)
        (self.folder / "case.yaml").write_text(text)
