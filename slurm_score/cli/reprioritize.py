"""slurm-score reprioritize: rescore the queue, once or again and again."""

import logging
import signal
import threading
from pathlib import Path

import click

from slurm_score.cli import policy_option, snapshot_option
from slurm_score.errors import ParseError
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.gateway import Gateway
from slurm_score.slurm.pyslurm_gateway import PyslurmGateway, available
from slurm_score.units import parse_duration
from slurm_score.watch import Watched, read_policy

log = logging.getLogger(__name__)


class DurationType(click.ParamType[float]):
    """A duration such as 60s or 5m, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        try:
            return value if isinstance(value, float) else parse_duration(str(value))
        except ParseError as error:
            self.fail(str(error), param, ctx)


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
@click.option(
    "--gateway",
    type=click.Choice(["commands", "pyslurm"]),
    default="commands",
    show_default=True,
    help="Read Slurm through its commands, or through pyslurm where it is installed and fits the release.",
)
@click.option("--once", is_flag=True, help="Run one cycle and exit; 1 if it could not be done.")
@click.option("--every", type=DurationType(), default="60s", show_default=True, help="Time between cycles.")
def command(policy: Path, snapshot: Path, gateway: str, once: bool, every: float) -> None:
    """Rescore the pending jobs and, in enforce, tell Slurm what changed.

    In observe and advise nothing is written to Slurm; the log says what would be.
    """
    watched = Watched(policy, read_policy)
    watched.current()
    reprioritizer = Reprioritizer(open_gateway(gateway), watched.current, snapshot)
    if once:
        click.echo(reprioritizer.cycle())
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    reprioritizer.run(every, stop)
