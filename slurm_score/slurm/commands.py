"""Slurm through its commands: the default gateway, and the only place that starts processes."""

import logging
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from slurm_score.errors import (
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
from slurm_score.model import Cluster, EndedRun, Job, Node, PastRun, Reservation, SlurmConfig
from slurm_score.predict.sources import SACCT_FIELDS, SACCT_STATES
from slurm_score.slurm import parse, parse_accounting, parse_config, parse_json, parse_nodes, priorities
from slurm_score.slurm.answers import REFUSED, Answer, failed, timed_out, words
from slurm_score.slurm.controllers import parse_ping, parse_time
from slurm_score.slurm.gateway import (
    ControllerHost,
    Identity,
    Patience,
    SiteFactorUpdate,
    UpdateFailure,
    WriteGuard,
)
from slurm_score.slurm.job_details import Details, parse_details, wanting_details
from slurm_score.slurm.reading import Reading
from slurm_score.slurm.updates import failed_updates, update_lines
from slurm_score.users import user_name

__all__ = ["UNIT_SEPARATOR", "Answer", "CommandGateway", "Runner", "run_command"]

T = TypeVar("T")

log = logging.getLogger(__name__)

UNIT_SEPARATOR = "\x1f"
"""Between squeue's fields: no name that Slurm accepts for a field before the comment holds it."""

_FOREIGN = ("SQUEUE_", "SPRIO_", "SCONTROL_", "SACCT_", "SINFO_")
_OURS = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C.UTF-8"}
_FIELD_REJECTED = "Invalid job format specification"
"""squeue's words for a field that it doesn't know; it prints the field empty and exits with 0."""

STATES = ",".join(parse.ACTIVE_STATES)
READ_TIMEOUT_S = 60.0
SECONDS_PER_UPDATE = 0.05
ACCOUNTING_SHARE = 0.25
"""Of what a cycle has left, a question to slurmdbd may take this much: the updates must not wait for it."""
MAX_JSON_JOBS = 5_000
"""More jobs are never asked for as JSON, which costs squeue 150 kB of memory each."""


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
        raise timed_out(argv, timeout_s, _decode(late.stderr or b"")) from None
    except OSError as error:
        raise CommandFailedError(f"{words(argv)}: {error.strerror}", argv=argv) from error
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
        self._lacks: Set[str] = frozenset()
        self._details = Details()

    def read_controllers(self) -> tuple[ControllerHost, ...]:
        """Return the hosts of the controllers, the primary first; the first that is up acts.

        Raises:
            ControllerDownError: none of them answers.
        """
        argv = ("scontrol", "ping")
        answer = self._ask(argv)
        controllers = parse_ping(answer.stdout)
        if not controllers:
            raise (
                failed(argv, answer)
                if answer.returncode
                else UnparseableAnswerError(
                    f"{words(argv)}: no controller, got {shown(answer.stdout)}", argv=argv
                )
            )
        if not any(controller.up for controller in controllers):
            hosts = ", ".join(controller.host for controller in controllers)
            raise ControllerDownError(f"{words(argv)}: slurmctld is down on {hosts}", argv=argv)
        return controllers

    def read_config(self) -> SlurmConfig:
        """Return slurmctld's configuration."""
        return self.read_config_and_time()[0]

    def read_config_and_time(self) -> tuple[SlurmConfig, float]:
        """Return slurmctld's configuration, and its clock: jobs' times are by that, whatever ours says."""
        argv = ("scontrol", "show", "config")
        config, time_s = self._parsed(argv, lambda text: (parse_config.parse_config(text), parse_time(text)))
        if config.jobs_are_private:
            users = ("scontrol", "show", "assoc_mgr", "flags=users")
            config = replace(config, operators=self._parsed(users, parse_config.parse_operators))
        return config, self._clock() if time_s is None else time_s

    def read_cluster(self) -> Cluster:
        """Return what stands beside the jobs; `time_s` is now, by slurmctld's clock."""
        partitions = self._reading(("scontrol", "show", "partition", "-o"), parse_nodes.parse_partitions)
        config, time_s = self.read_config_and_time()
        return Cluster(
            time_s=time_s,
            config=config,
            partitions={partition.name: partition for partition in partitions},
            nodes=parse_nodes.with_switches(self._nodes(), self.read_switches()),
            qos=self.read_qos(),
            reservations=self.read_reservations(),
        )

    def read_switches(self) -> Mapping[str, str]:
        """Return the leaf switch of each node that has one; none where Slurm can't tell of any."""
        argv = ("scontrol", "show", "topology")
        try:
            return self._parsed(argv, parse_nodes.parse_switches)
        except (CommandFailedError, UnparseableAnswerError) as error:
            self._tell_once("scontrol show topology", "%s; no switches are known", error)
            return {}

    def read_reservations(self) -> Mapping[str, Reservation]:
        """Return the reservations by name."""
        argv = ("scontrol", "show", "reservation", "-o")
        return {r.name: r for r in self._reading(argv, parse_nodes.parse_reservations)}

    def read_qos(self) -> dict[str, int]:
        """Return QOS priorities by name, from slurmctld's memory: slurmdbd isn't asked."""
        return self._parsed(("scontrol", "show", "assoc_mgr", "flags=qos"), parse_config.parse_qos)

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that wait, run or will run again, joined with what sprio shows."""
        return priorities.join_priorities(self._jobs(), self.read_priorities())

    def read_priorities(self) -> list[priorities.PriorityRow]:
        """Return what sprio shows of the jobs that can start."""
        return self._reading(("sprio", "-h", "-o", priorities.SPRIO_FORMAT), priorities.parse_sprio)

    def read_expected_start(self, job_id: int) -> int | None:
        """Return when slurmctld expects a waiting job to start, in s; None if it can't tell."""
        argv = ("squeue", "-h", "--start", "-j", str(job_id), "-o", "%S")
        return self._parsed(argv, parse.parse_first_start)

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the earlier runs of requeued jobs, oldest first, from slurmdbd.

        Raises:
            AccountingDownError: slurmdbd doesn't answer.
            SlurmError: sacct couldn't be run, or printed something else.
        """
        if not job_ids:
            return {}
        ids, fields = ",".join(map(str, job_ids)), ",".join(parse_accounting.SACCT_FIELDS)
        return self._parsed(
            ("sacct", "-D", "-X", "-n", "-P", "-j", ids, "-o", fields), parse_accounting.parse_past_runs
        )

    def read_ended_runs(self, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
        """Return the runs that ended after `since_s` and not after `until_s`, from slurmdbd.

        Raises:
            AccountingDownError: slurmdbd doesn't answer.
            SlurmError: sacct couldn't be run, or printed something else.
        """
        separator = secrets.token_hex(8)
        window = ("-S", f"uts{since_s}", "-E", f"uts{until_s}", "-s", SACCT_STATES)
        fields = tuple(name for name in SACCT_FIELDS if name not in self._lacks)
        form = (f"--delimiter={separator}", "-o", ",".join(fields))
        argv = ("sacct", "-a", "-D", "-X", "-n", "-P", *window, *form)
        try:
            return self._parsed(
                argv,
                lambda text: parse_accounting.parse_ended_runs(text, separator, since_s, until_s, fields),
            )
        except CommandFailedError as error:
            late = parse_accounting.rejected_fields(error.stderr) - self._lacks
            if not late:
                raise
            self._lacks |= late
            return self.read_ended_runs(since_s, until_s)

    def read_identity(self) -> Identity:
        """Return who we are and our AdminLevel, from slurmctld's memory: slurmdbd isn't asked."""
        user = user_name(os.geteuid())
        argv = ("scontrol", "show", "assoc_mgr", "flags=users", f"users={user}")
        return Identity(user, self._parsed(argv, lambda text: parse_config.parse_admin_level(text, user)))

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
        usual_s = READ_TIMEOUT_S + SECONDS_PER_UPDATE * len(updates)
        answer = self._ask(argv, "".join(update_lines(updates)), usual_s)
        failures = failed_updates(updates, answer)
        if len(failures) == len(updates) and all(REFUSED.search(f.message) for f in failures):
            raise NotPermittedError(
                f"slurmctld refused all {len(failures)} updates: {failures[0].message}",
                argv=argv,
                returncode=answer.returncode,
                stderr=answer.stderr,
            )
        return failures

    def _jobs(self) -> list[Job]:
        """Return the jobs by squeue's text, by its JSON where the text can't be read.

        What squeue doesn't tell of some jobs is asked of scontrol, if there are such jobs.
        """
        try:
            jobs = self._jobs_by_text()
        except UnparseableAnswerError as error:
            # all of them: up to 24.05.0 that is what --json prints
            count = len(self._parsed(("squeue", "-h", "-t", "all", "-o", "%A"), str.split))
            if count > MAX_JSON_JOBS:
                raise UnparseableAnswerError(f"{error}; {count} jobs are too many for --json") from error
            argv = ("squeue", "--json", "-t", STATES)
            return self._instead(error, argv, parse_json.parse_jobs_json)
        if self._details.missing(wanting_details(jobs, all_waiting="ExcNodes" in self._lacks), self._clock()):
            told = self._parsed(("scontrol", "show", "job", "-o"), parse_details)
            self._details.learn(told, self._clock())
        return self._details.add_to(jobs)

    def _jobs_by_text(self) -> list[Job]:
        """Return the jobs by squeue's text, without the fields that this release lacks."""
        end, lacks = f"{UNIT_SEPARATOR}{secrets.token_hex(8)}", self._lacks
        fields = parse.squeue_format(UNIT_SEPARATOR, end, lacks)
        try:
            return self._reading(
                ("squeue", "-h", "-t", STATES, "-O", fields),
                lambda text: parse.parse_squeue(text, UNIT_SEPARATOR, end, lacks),
            )
        except UnparseableAnswerError as error:
            late = parse.rejected_fields(error.stderr) & parse.LATE_FIELDS - lacks
            if not late:
                raise
            self._lacks = lacks | late
            return self._jobs_by_text()

    def _nodes(self) -> list[Node]:
        """Return the nodes by scontrol's text, by its JSON (from 23.02 on) where the text can't be read."""
        try:
            return self._reading(("scontrol", "show", "node", "-o", "-d"), parse_nodes.parse_nodes)
        except UnparseableAnswerError as error:
            argv = ("scontrol", "show", "node", "--json")
            return self._instead(error, argv, parse_json.parse_nodes_json)

    def _instead(self, error: SlurmError, argv: Sequence[str], read: Callable[[str], Reading[T]]) -> list[T]:
        command = " ".join(argv).removesuffix(f" -t {STATES}")
        self._tell_once(command, "%s; %s is read instead", error, command)
        try:
            return self._reading(argv, read)
        except (CommandFailedError, UnparseableAnswerError) as other:
            raise UnparseableAnswerError(f"{error}; {other}", argv=argv) from other

    def _reading(self, argv: Sequence[str], read: Callable[[str], Reading[T]]) -> list[T]:
        reading = self._parsed(argv, read)
        command = words(argv)
        if reading.problems and not reading.items:
            raise UnparseableAnswerError(f"{command}: {reading.problems[0]}", argv=argv)
        if reading.problems:
            problem = reading.problems[0]
            self._tell_once(command, "%s: %d records left out: %s", command, len(reading.problems), problem)
        return reading.items

    def _tell_once(self, what: str, message: str, *values: object) -> None:
        if what not in self._told:
            self._told.add(what)
            log.warning(message, *values)

    def _parsed(self, argv: Sequence[str], read: Callable[[str], T]) -> T:
        answer = self._ask(argv)
        if _FIELD_REJECTED in answer.stderr:
            raise UnparseableAnswerError(f"{words(argv)}: {answer.said}", argv=argv, stderr=answer.stderr)
        if answer.returncode:
            raise failed(argv, answer)
        try:
            return read(answer.stdout)
        except (ParseError, ValueError) as error:
            raise UnparseableAnswerError(f"{words(argv)}: {error}", argv=argv) from error

    def _ask(self, argv: Sequence[str], stdin: str = "", usual_s: float = READ_TIMEOUT_S) -> Answer:
        share = ACCOUNTING_SHARE if argv[0] == "sacct" else 1.0
        timeout_s = self.patience.timeout_s(usual_s, share)
        if timeout_s <= 0:
            raise CommandTimedOutError(f"{words(argv)}: not run: the cycle's time is over", argv=argv)
        return self._run(argv, stdin, timeout_s)


def _decode(data: bytes) -> str:
    """Return the text of a command's output; bytes that aren't UTF-8 become U+FFFD."""
    return data.decode("utf-8", "replace")
