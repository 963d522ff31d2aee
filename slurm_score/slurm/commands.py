"""Slurm through its commands: the default gateway, and the only place that starts processes."""

import logging
import os
import pwd
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from slurm_score.errors import (
    AccountingDownError,
    CommandFailedError,
    CommandNotFoundError,
    CommandTimedOutError,
    ControllerDownError,
    NotPermittedError,
    ParseError,
    SlurmError,
    UnparseableAnswerError,
    shown,
)
from slurm_score.model import Cluster, EndedRun, Job, Node, PastRun, SlurmConfig
from slurm_score.predict.sources import SACCT_FIELDS, SACCT_STATES
from slurm_score.slurm import parse, parse_json, priorities
from slurm_score.slurm.controllers import parse_ping
from slurm_score.slurm.gateway import (
    ControllerHost,
    Identity,
    Patience,
    SiteFactorUpdate,
    UpdateFailure,
    WriteGuard,
)
from slurm_score.slurm.updates import update_lines

T = TypeVar("T")

log = logging.getLogger(__name__)

UNIT_SEPARATOR = "\x1f"
"""Between squeue's fields: no name that Slurm accepts for a field before the comment holds it."""

_FOREIGN = ("SQUEUE_", "SPRIO_", "SCONTROL_", "SACCT_", "SINFO_")
_OURS = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C.UTF-8"}
_DOWN = re.compile(
    r"unable to contact slurm controller|unexpected message received|unable to connect to database"
    r"|connection refused|connection timed out|socket timed out|no route to host"
    r"|backup controller in standby mode",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"access/permission denied|invalid user id", re.IGNORECASE)
_IGNORED = "Value ignored"
"""scontrol's words for a SiteFactor out of range; it doesn't say of which job."""
_FIELD_REJECTED = "Invalid job format specification"
"""squeue's words for a field that it doesn't know; it prints the field empty and exits with 0."""

STATES = ",".join(parse.ACTIVE_STATES)
READ_TIMEOUT_S = 60.0
SECONDS_PER_UPDATE = 0.05
ACCOUNTING_SHARE = 0.25
"""Of what a cycle has left, a question to slurmdbd may take this much: the updates must not wait for it."""
MAX_JSON_JOBS = 5_000
"""More jobs are never asked for as JSON, which costs squeue 150 kB of memory each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed and how it ended."""

    returncode: int
    stdout: str
    stderr: str


Runner = Callable[[Sequence[str], str, float], Answer]
"""Runs a command (argv, text for stdin, time-out in s) and returns what it answered."""


def run_command(argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
    """Run a Slurm command without a shell and return its answer; both pipes are drained.

    It runs in a session of its own, so that a Ctrl-C at our terminal ends us between two updates.

    Raises:
        CommandNotFoundError, CommandTimedOutError, CommandFailedError: it couldn't be run to its end.
        ControllerDownError, AccountingDownError: it said so before its time was over.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN) and k != "SLURM_CLUSTERS"}
    try:
        done = subprocess.run(
            argv,
            input=stdin.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
            env=kept | _OURS,
        )
    except FileNotFoundError:
        raise CommandNotFoundError(
            f"{argv[0]}: not found; are Slurm's commands on PATH?", argv=argv
        ) from None
    except subprocess.TimeoutExpired as late:
        raise _timed_out(argv, timeout_s, _decode(late.stderr or b"")) from None
    except OSError as error:
        raise CommandFailedError(f"{_text(argv)}: {error.strerror}", argv=argv) from error
    return Answer(done.returncode, _decode(done.stdout), _decode(done.stderr))


class CommandGateway:
    """Slurm through squeue, sprio, scontrol and sacct: one process for each question."""

    def __init__(
        self,
        guard: WriteGuard | None = None,
        run: Runner = run_command,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.guard, self.patience = guard or WriteGuard(), Patience()
        self._run = run
        self._clock = clock
        self._told: set[str] = set()

    def read_controllers(self) -> tuple[ControllerHost, ...]:
        """Return the hosts of the controllers, the primary first; the first that is up acts.

        Raises:
            ControllerDownError: none of them answers.
        """
        argv = ("scontrol", "ping")
        answer = self._run(argv, "", self.patience.timeout_s(READ_TIMEOUT_S))
        controllers = parse_ping(answer.stdout)
        if not controllers:
            raise (
                _failed(argv, answer)
                if answer.returncode
                else UnparseableAnswerError(
                    f"{_text(argv)}: no controller, got {shown(answer.stdout)}", argv=argv
                )
            )
        if not any(controller.up for controller in controllers):
            hosts = ", ".join(controller.host for controller in controllers)
            raise ControllerDownError(f"{_text(argv)}: slurmctld is down on {hosts}", argv=argv)
        return controllers

    def read_config(self) -> SlurmConfig:
        """Return slurmctld's configuration."""
        return self._parsed(("scontrol", "show", "config"), parse.parse_config)

    def read_cluster(self) -> Cluster:
        """Return configuration, partitions, nodes and QOS; `time_s` is now."""
        partitions = self._reading(("scontrol", "show", "partition", "-o"), parse.parse_partitions)
        return Cluster(
            time_s=self._clock(),
            config=self.read_config(),
            partitions={partition.name: partition for partition in partitions},
            nodes=tuple(self._nodes()),
            qos=self.read_qos(),
        )

    def read_qos(self) -> dict[str, int]:
        """Return QOS priorities by name, from slurmctld's memory: slurmdbd isn't asked."""
        return self._parsed(("scontrol", "show", "assoc_mgr", "flags=qos"), parse.parse_qos)

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that wait, run or will run again, joined with what sprio shows."""
        return priorities.join_priorities(self._jobs(), self.read_priorities())

    def read_priorities(self) -> list[priorities.PriorityRow]:
        """Return what sprio shows of the jobs that can start."""
        return self._reading(("sprio", "-h", "-o", priorities.SPRIO_FORMAT), priorities.parse_sprio)

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the earlier runs of requeued jobs, oldest first, from slurmdbd.

        Raises:
            AccountingDownError: slurmdbd doesn't answer.
            SlurmError: sacct couldn't be run, or printed something else.
        """
        if not job_ids:
            return {}
        ids, fields = ",".join(map(str, job_ids)), ",".join(parse.SACCT_FIELDS)
        return self._parsed(("sacct", "-D", "-X", "-n", "-P", "-j", ids, "-o", fields), parse.parse_past_runs)

    def read_ended_runs(self, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
        """Return the runs that ended after `since_s` and not after `until_s`, from slurmdbd.

        Raises:
            AccountingDownError: slurmdbd doesn't answer.
            SlurmError: sacct couldn't be run, or printed something else.
        """
        separator = secrets.token_hex(8)
        window = ("-S", f"uts{since_s}", "-E", f"uts{until_s}", "-s", SACCT_STATES)
        fields = (f"--delimiter={separator}", "-o", ",".join(SACCT_FIELDS))
        argv = ("sacct", "-a", "-D", "-X", "-n", "-P", *window, *fields)
        return self._parsed(argv, lambda text: parse.parse_ended_runs(text, separator, since_s, until_s))

    def read_identity(self) -> Identity:
        """Return who we are and our AdminLevel, from slurmctld's memory: slurmdbd isn't asked."""
        user = _user_name(os.geteuid())
        argv = ("scontrol", "show", "assoc_mgr", "flags=users", f"users={user}")
        return Identity(user, self._parsed(argv, lambda text: parse.parse_admin_level(text, user)))

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Set SiteFactors through one scontrol, one after the other; return those that failed.

        Raises:
            WriteRefusedError: the guard doesn't permit it; nothing was sent.
            NotPermittedError: slurmctld refused every update.
            SlurmError: scontrol couldn't be run to its end.
        """
        self.guard.permit(updates)
        if not updates:
            return ()
        argv = ("scontrol",)
        timeout_s = self.patience.timeout_s(READ_TIMEOUT_S + SECONDS_PER_UPDATE * len(updates))
        answer = self._run(argv, "".join(update_lines(updates)), timeout_s)
        failures = self._failures(updates, answer)
        if len(failures) == len(updates) and all(_REFUSED.search(f.message) for f in failures):
            raise NotPermittedError(
                f"slurmctld refused all {len(failures)} updates: {failures[0].message}",
                argv=argv,
                returncode=answer.returncode,
                stderr=answer.stderr,
            )
        return failures

    def _failures(self, updates: Sequence[SiteFactorUpdate], answer: Answer) -> tuple[UpdateFailure, ...]:
        by_id = {re.sub(r"[\[\]]", "", update.update_id): update for update in updates}
        failures: dict[str, UpdateFailure] = {}
        told = list(parse.parse_update_failures(answer.stderr))
        for job, sentence in told:
            update = by_id.get(re.sub(r"[\[\]]", "", job))
            if _DOWN.search(sentence):
                raise ControllerDownError(f"scontrol update: {sentence}", stderr=answer.stderr)
            if update is not None:
                failures.setdefault(update.update_id, UpdateFailure(update, sentence))
            else:
                log.warning("scontrol update: %s", shown(f"{sentence} {job}".strip(), 200))
        unsaid = not any(job for job, _ in told) or any(_IGNORED in sentence for _, sentence in told)
        if answer.returncode and unsaid:
            raise _failed(("scontrol", "update"), answer)
        return tuple(failures.values())

    def _jobs(self) -> list[Job]:
        """Return the jobs by squeue's text, by its JSON where the text can't be read."""
        end = f"{UNIT_SEPARATOR}{secrets.token_hex(8)}"
        fields = parse.squeue_format(UNIT_SEPARATOR, end)
        try:
            return self._reading(
                ("squeue", "-h", "-t", STATES, "-O", fields),
                lambda text: parse.parse_squeue(text, UNIT_SEPARATOR, end),
            )
        except UnparseableAnswerError as error:
            # all of them: up to 24.05.0 that is what --json prints
            count = len(self._parsed(("squeue", "-h", "-t", "all", "-o", "%A"), str.split))
            if count > MAX_JSON_JOBS:
                raise UnparseableAnswerError(f"{error}; {count} jobs are too many for --json") from error
            argv = ("squeue", "--json", "-t", STATES)
            return self._instead(error, argv, parse_json.parse_jobs_json)

    def _nodes(self) -> list[Node]:
        """Return the nodes by scontrol's text, by its JSON (from 23.02 on) where the text can't be read."""
        try:
            return self._reading(("scontrol", "show", "node", "-o", "-d"), parse.parse_nodes)
        except UnparseableAnswerError as error:
            argv = ("scontrol", "show", "node", "--json")
            return self._instead(error, argv, parse_json.parse_nodes_json)

    def _instead(
        self, error: SlurmError, argv: Sequence[str], read: Callable[[str], parse.Reading[T]]
    ) -> list[T]:
        command = " ".join(argv).removesuffix(f" -t {STATES}")
        if command not in self._told:
            self._told.add(command)
            log.warning("%s; %s is read instead", error, command)
        try:
            return self._reading(argv, read)
        except (CommandFailedError, UnparseableAnswerError) as other:
            raise UnparseableAnswerError(f"{error}; {other}", argv=argv) from other

    def _reading(self, argv: Sequence[str], read: Callable[[str], parse.Reading[T]]) -> list[T]:
        reading = self._parsed(argv, read)
        command = _text(argv)
        if reading.problems and not reading.items:
            raise UnparseableAnswerError(f"{command}: {reading.problems[0]}", argv=argv)
        if reading.problems and command not in self._told:
            self._told.add(command)
            log.warning("%s: %d records left out: %s", command, len(reading.problems), reading.problems[0])
        return reading.items

    def _parsed(self, argv: Sequence[str], read: Callable[[str], T]) -> T:
        share = ACCOUNTING_SHARE if argv[0] == "sacct" else 1.0
        answer = self._run(argv, "", self.patience.timeout_s(READ_TIMEOUT_S, share))
        if _FIELD_REJECTED in answer.stderr:
            raise UnparseableAnswerError(f"{_text(argv)}: {_said(answer)}", argv=argv, stderr=answer.stderr)
        if answer.returncode:
            raise _failed(argv, answer)
        try:
            return read(answer.stdout)
        except (ParseError, ValueError) as error:
            raise UnparseableAnswerError(f"{_text(argv)}: {error}", argv=argv) from error


def _user_name(uid: int) -> str:
    """Return a user's name, or the number where the system knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def error_kind(said: str) -> type[SlurmError]:
    """Return the exception for what Slurm said when something failed."""
    if _DOWN.search(said):
        return ControllerDownError
    return NotPermittedError if _REFUSED.search(said) else CommandFailedError


def _failed(argv: Sequence[str], answer: Answer) -> SlurmError:
    kind = error_kind(answer.stderr)
    kind = _down(argv) if kind is ControllerDownError else kind
    message = f"{_text(argv)}: exit {answer.returncode}: {_said(answer)}"
    return kind(message, argv=argv, returncode=answer.returncode, stderr=answer.stderr)


def _timed_out(argv: Sequence[str], timeout_s: float, stderr: str) -> SlurmError:
    """Return why a command was killed: with slurmctld down, scontrol tries each update for seconds."""
    message = f"{_text(argv)}: no answer within {timeout_s:g} s"
    said = next((line.strip() for line in stderr.split("\n") if _DOWN.search(line)), "")
    if not said:
        return CommandTimedOutError(message, argv=argv, stderr=stderr)
    return _down(argv)(f"{message}: {shown(said, 200)}", argv=argv, stderr=stderr)


def _down(argv: Sequence[str]) -> type[SlurmError]:
    """Return the exception for a daemon that is down: sacct asks slurmdbd, all others slurmctld."""
    return AccountingDownError if argv[0] == "sacct" else ControllerDownError


def _said(answer: Answer) -> str:
    return answer.stderr.strip().replace("\n", " / ") or "no message"


def _text(argv: Sequence[str]) -> str:
    """Return the first words of a command, as they may be shown."""
    return " ".join(word for word in argv[:3] if word.isprintable())


def _decode(data: bytes) -> str:
    """Return the text of a command's output; bytes that aren't UTF-8 become U+FFFD."""
    return data.decode("utf-8", "replace")
