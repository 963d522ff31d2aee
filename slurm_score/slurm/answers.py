"""What a Slurm command answered, and the exception that a bad answer is. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_score.errors import (
    AccountingDownError,
    CommandFailedError,
    CommandTimedOutError,
    ControllerDownError,
    NotPermittedError,
    SlurmError,
    shown,
)

DOWN = re.compile(
    r"unable to contact slurm controller|unexpected message received|unable to connect to database"
    r"|connection refused|connection timed out|socket timed out|no route to host"
    r"|backup controller in standby mode",
    re.IGNORECASE,
)
REFUSED = re.compile(r"access/permission denied|invalid user id", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed and how it ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """What it complained of, in one line."""
        return self.stderr.strip().replace("\n", " / ") or "no message"


def error_kind(said: str) -> type[SlurmError]:
    """Return the exception for what Slurm said when something failed."""
    if DOWN.search(said):
        return ControllerDownError
    return NotPermittedError if REFUSED.search(said) else CommandFailedError


def failed(argv: Sequence[str], answer: Answer) -> SlurmError:
    """Return the exception for a command that ended with an error."""
    kind = error_kind(answer.stderr)
    kind = _down(argv) if kind is ControllerDownError else kind
    message = f"{words(argv)}: exit {answer.returncode}: {answer.said}"
    return kind(message, argv=argv, returncode=answer.returncode, stderr=answer.stderr)


def timed_out(argv: Sequence[str], timeout_s: float, stderr: str) -> SlurmError:
    """Return why a command was killed: with slurmctld down, scontrol tries each update for seconds."""
    message = f"{words(argv)}: no answer within {timeout_s:.3g} s"
    said = next((line.strip() for line in stderr.split("\n") if DOWN.search(line)), "")
    if not said:
        return CommandTimedOutError(message, argv=argv, stderr=stderr)
    return _down(argv)(f"{message}: {shown(said, 200)}", argv=argv, stderr=stderr)


def words(argv: Sequence[str]) -> str:
    """Return the first words of a command, as they may be shown."""
    return " ".join(word for word in argv[:3] if word.isprintable())


def _down(argv: Sequence[str]) -> type[SlurmError]:
    """Return the exception for a daemon that is down: sacct asks slurmdbd, all others slurmctld."""
    return AccountingDownError if argv[0] == "sacct" else ControllerDownError
