"""Every exception that slurm-score raises on purpose.

SlurmScoreError
├── ParseError               one text that a grammar can't read
├── PolicyError              every problem of one policy file
├── FactorError              a factor raised, or left [0, 1]
├── SnapshotError            the snapshot file is missing, stale or unreadable
├── ServiceError             the scoring service does not answer
├── LockedError              another process holds a lock of ours
├── AuditError               the audit's database can't be used
├── WorkloadError            every problem of one workload that was to be simulated
│   └── SwfError                 … in the Standard Workload Format
├── SimulationError          what was asked of the simulator can't be simulated
├── HistoryError             the history of run times can't be used, or a file that was to go into it
└── SlurmError               Slurm, as the gateway met it
    ├── CommandNotFoundError     a Slurm command is not installed here
    ├── CommandFailedError       a command ended with an error
    ├── CommandTimedOutError     a command did not end in time
    ├── ControllerDownError      slurmctld does not answer
    ├── AccountingDownError      slurmdbd does not answer
    ├── NotPermittedError        slurmctld refused us the right
    ├── UnparseableAnswerError   a command printed what no reader understands
    ├── UnsuitableSlurmError     SiteFactor can't work on this configuration
    └── WriteRefusedError        our own guard: a write outside enforce

Exceptions carry data; only the command line turns them into exit codes and only the service into
HTTP statuses. One line says where, what is wrong, what was got and what is allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: where, what, what was got, what is allowed."""

    where: str
    what: str
    got: str = ""
    allowed: str = ""

    def __str__(self) -> str:
        """Return `<where>: <what>, got <value>; <allowed>`, leaving out what is not known."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        text += f", got {self.got}" if self.got else ""
        return text + (f"; {self.allowed}" if self.allowed else "")


class SlurmScoreError(Exception):
    """The root of the tree; each comes out of another process as it was, with its data."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle makes it again: not by its own arguments, which aren't those of Exception."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[SlurmScoreError], args: tuple[Any, ...], data: Mapping[str, Any]) -> SlurmScoreError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(data)
    return error


class ParseError(SlurmScoreError, ValueError):
    """A text that a grammar can't read; `.problem` says why."""

    def __init__(self, what: str, got: str, allowed: str = "") -> None:
        self.problem = Problem("", what, shown(got), allowed)
        super().__init__(str(self.problem))


class PolicyError(SlurmScoreError):
    """A policy that can't be used; `.problems` holds every reason at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class FactorError(SlurmScoreError):
    """A factor raised, or returned something that is not one finite value in [0, 1] a job."""


class SnapshotError(SlurmScoreError):
    """The snapshot can't be used; the text is the reason, fit to be shown to a user."""


class ServiceError(SlurmScoreError):
    """The scoring service did not answer; `.status` is its HTTP status where it has one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class SlurmError(SlurmScoreError):
    """Slurm as the gateway met it; `.argv`, `.returncode` and `.stderr` where a command ran."""

    def __init__(
        self, message: str, *, argv: Sequence[str] = (), returncode: int | None = None, stderr: str = ""
    ) -> None:
        self.argv = tuple(argv)
        self.returncode = returncode
        self.stderr = stderr
        super().__init__(message)


class CommandNotFoundError(SlurmError):
    """A Slurm command is not installed on this host."""


class CommandFailedError(SlurmError):
    """A Slurm command ended with an error; its own sentence is kept word for word."""


class CommandTimedOutError(SlurmError):
    """A Slurm command did not end in time and was killed."""


class ControllerDownError(SlurmError):
    """slurmctld does not answer."""


class AccountingDownError(SlurmError):
    """slurmdbd does not answer: nothing is known of earlier runs."""


class NotPermittedError(SlurmError):
    """slurmctld refused us the right to do it."""


class UnparseableAnswerError(SlurmError):
    """A command printed something that no reader understands; the text is in the message."""


class UnsuitableSlurmError(SlurmError):
    """This Slurm is set up so that SiteFactor has no effect or would be overwritten."""


class WriteRefusedError(SlurmError):
    """Our own guard: something tried to write to Slurm outside enforce."""


def shown(text: str, limit: int = 80) -> str:
    """Return a text from outside as it may be shown: quoted, escaped, at most about `limit` characters.

    Control characters and lone surrogates come out as escapes, so that no input can steer a
    terminal or forge a log line.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return ascii(cut) if any(not c.isprintable() for c in cut) else repr(cut)


class LockedError(SlurmScoreError):
    """A lock file that another process holds, or that can't be had."""


class AuditError(SlurmScoreError):
    """An audit database that can't be used; the sentence has the path, the cause and the remedy."""


class WorkloadError(SlurmScoreError):
    """A workload that can't be used; `.problems` holds every reason, up to a limit."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class SwfError(WorkloadError):
    """A workload in the Standard Workload Format that can't be read."""


class SimulationError(SlurmScoreError):
    """A policy or machine that can't be simulated; `.problems` holds every reason."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class HistoryError(SlurmScoreError):
    """A history of run times that can't be used; the sentence has the path, the cause and the remedy."""
