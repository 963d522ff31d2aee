"""Recorded answers in place of Slurm: a runner for the product's gateway that starts no process."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

from slurm_score.slurm import commands
from slurm_score.slurm.commands import Answer, CommandGateway, Runner
from slurm_score.slurm.gateway import Access, WriteGuard
from tests.contract.in_container import TOKEN

DATA = Path(__file__).resolve().parents[1] / "data" / "slurm"


@dataclass(frozen=True)
class RecordedCommand:
    """One command as it was run; `writes` is how many updates had been sent before."""

    user: str
    argv: tuple[str, ...]
    stdin: str
    writes: int
    answer: Answer


@dataclass(frozen=True)
class RecordedCase:
    """One folder: what Slurm answered on one release, and the job ids of what had been prepared."""

    name: str
    release: str
    slurm: str
    now_s: int
    jobs: Mapping[str, int]
    left_out: Mapping[str, str]
    commands: tuple[RecordedCommand, ...]

    def answer_to(self, *words: str) -> Answer:
        """Return the first answer to a command whose words include these."""
        return next(c.answer for c in self.commands if set(words) <= set(c.argv))


class NotRecordedError(Exception):
    """The product asked something that was not recorded: python -m tests.contract.record does it."""


@dataclass
class Replay:
    """A Runner that answers what Slurm answered; an answer holds until the next update.

    `asked` has what was asked so far, `writes` counts the updates.
    """

    case: RecordedCase

    def __post_init__(self) -> None:
        """Start with nothing asked."""
        self.asked: list[tuple[str, ...]] = []
        self.writes = 0

    def __call__(self, argv: Sequence[str], stdin: str, _timeout_s: float) -> Answer:
        """Return the recorded answer."""
        self.asked.append(tuple(argv))
        known = [
            command
            for command in self.case.commands
            if (command.argv, command.stdin) == (tuple(argv), stdin) and command.writes <= self.writes
        ]
        if not known:
            raise NotRecordedError(f"{self.case.release}/{self.case.name}: {' '.join(argv)!r} {stdin!r}")
        self.writes += bool(stdin)
        return max(known, key=lambda command: command.writes).answer


@cache
def load(folder: Path) -> RecordedCase:
    """Return what a folder holds."""
    case = yaml.safe_load((folder / "case.yaml").read_text())
    return RecordedCase(
        name=folder.name,
        release=case["release"],
        slurm=case["slurm"],
        now_s=case["now_s"],
        jobs=case["jobs"],
        left_out=case["left_out"],
        commands=tuple(_command(folder, entry) for entry in case["commands"]),
    )


def _command(folder: Path, entry: Mapping[str, object]) -> RecordedCommand:
    argv = entry["argv"]
    assert isinstance(argv, list)
    return RecordedCommand(
        user=str(entry["user"]),
        argv=tuple(argv),
        stdin=str(entry.get("stdin", "")),
        writes=int(str(entry["writes"])),
        answer=Answer(int(str(entry["exit"])), *(_text(folder, entry.get(s)) for s in ("stdout", "stderr"))),
    )


def _text(folder: Path, name: object) -> str:
    """Return an output as the product decodes it."""
    return (folder / str(name)).read_bytes().decode("utf-8", "replace") if name else ""


def recorded(*names: str) -> list[RecordedCase]:
    """Return the cases of these names, of all names without one, from every release that has them."""
    folders = sorted(path.parent for path in DATA.glob("*/*/case.yaml"))
    return [load(folder) for folder in folders if not names or folder.name in names]


def case_id(case: object) -> str:
    """Return how pytest shows a case."""
    return f"{case.release}-{case.name}" if isinstance(case, RecordedCase) else str(case)


def gateway_of(case: RecordedCase, run: Runner | None = None) -> CommandGateway:
    """Return the product's gateway on a case, at the time of its recording, allowed to write."""
    return CommandGateway(WriteGuard(Access.ENFORCE), run or Replay(case), lambda: float(case.now_s))


def become(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    """Let the product's gateway see another user behind this process."""
    monkeypatch.setattr(commands, "user_name", lambda _: user)


def same_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end of squeue's records be the one of the recording."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: TOKEN)
