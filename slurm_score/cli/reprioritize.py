"""slurm-score reprioritize: rescore the queue, once or again and again."""

import logging
import os
import signal
import socket
import threading
from pathlib import Path

import click

from slurm_score.audit import AuditTrail
from slurm_score.brakes import Brakes
from slurm_score.cli import (
    audit_option,
    history_option,
    kill_switch_option,
    policy_option,
    snapshot_option,
)
from slurm_score.cli.durations import DurationType
from slurm_score.duty import Duty
from slurm_score.errors import LockedError
from slurm_score.lock import FileLock
from slurm_score.loop import Loop
from slurm_score.policy import Mode
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.service.notify import Notifier
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.gateway import Gateway
from slurm_score.slurm.pyslurm_gateway import PyslurmGateway, available
from slurm_score.suitability import require_right_to_write
from slurm_score.watch import Watched, read_policy

log = logging.getLogger(__name__)


def open_gateway(name: str) -> Gateway:
    """Return the gateway asked for, or the commands where it can't be used, saying why."""
    commands = CommandGateway()
    if name == "commands":
        return commands
    reason = available(commands.read_config().release)
    if reason:
        log.warning("%s; Slurm's commands are used", reason)
        return commands
    return PyslurmGateway(commands)


@click.command("reprioritize")
@policy_option
@snapshot_option
@audit_option
@history_option
@click.option(
    "--gateway",
    type=click.Choice(["commands", "pyslurm"]),
    default="commands",
    show_default=True,
    help="Read Slurm through its commands, or through pyslurm where it is installed and fits the release.",
)
@click.option("--once", is_flag=True, help="Run one cycle and exit; 1 if it could not be done.")
@click.option("--every", type=DurationType(), default="60s", show_default=True, help="Time between cycles.")
@click.option(
    "--deadline",
    type=DurationType(),
    envvar="SLURM_SCORE_DEADLINE",
    show_envvar=True,
    help="Time that a cycle may take; what isn't sent by then waits for the next one.  "
    "[default: --every, at least 30s]",
)
@kill_switch_option
def command(
    policy: Path,
    snapshot: Path,
    audit: Path,
    history: Path,
    gateway: str,
    once: bool,
    every: float,
    deadline: float | None,
    kill_switch: Path | None,
) -> None:
    """Rescore the pending jobs and, in enforce, tell Slurm what changed.

    In observe and advise nothing is written to Slurm; the log says what would be. One instance a
    cluster acts: the one whose host has the acting controller, and who holds the lock beside the
    snapshot. The others stand by.

    \b
    Examples:
      slurm-score reprioritize --once
      slurm-score reprioritize --every 30s
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    watched = Watched(policy, read_policy)
    watched.current()
    notifier = Notifier(os.environ)
    brakes = Brakes(
        every,
        deadline_s=deadline,
        kill_switch=kill_switch or snapshot.with_name("STOP"),
        stop=stop,
        alive=notifier.alive,
    )
    door, host = open_gateway(gateway), socket.gethostname()
    loop = Loop(
        Reprioritizer(door, watched.current, snapshot, brakes, AuditTrail(audit), history).cycle,
        brakes,
        # a cycle by hand is no instance that stays: it only waits its turn
        Duty(door, None if once else _lock(snapshot, "instance.lock", host), host),
        _lock(snapshot, "cycle.lock", host),
        notifier,
    )
    if once:
        try:
            click.echo(loop.turn())
        except LockedError:
            _require_right(door, watched.current().mode)
            raise
        return
    loop.run()


def _require_right(door: Gateway, mode: Mode) -> None:
    """Who may not use our files has mostly no right at Slurm either: that is what to be told of."""
    if mode is Mode.ENFORCE:
        require_right_to_write(door.read_identity(), door.read_config())


def _lock(snapshot: Path, name: str, host: str) -> FileLock:
    """Return a lock beside the snapshot."""
    return FileLock(snapshot.with_name(f"{snapshot.name}.{name}"), host)
