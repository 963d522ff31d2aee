"""slurm-score reprioritize: rescore the queue, once or again and again."""

import signal
import threading
from pathlib import Path

import click

from slurm_score.cli import policy_option, snapshot_option
from slurm_score.errors import ParseError
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.slurm.commands import CommandGateway
from slurm_score.units import parse_duration
from slurm_score.watch import Watched, read_policy


class DurationType(click.ParamType[float]):
    """A duration such as 60s or 5m, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        try:
            return value if isinstance(value, float) else parse_duration(str(value))
        except ParseError as error:
            self.fail(str(error), param, ctx)


@click.command("reprioritize")
@policy_option
@snapshot_option
@click.option("--once", is_flag=True, help="Run one cycle and exit; 1 if it could not be done.")
@click.option("--every", type=DurationType(), default="60s", show_default=True, help="Time between cycles.")
def command(policy: Path, snapshot: Path, once: bool, every: float) -> None:
    """Rescore the pending jobs and, in enforce, tell Slurm what changed.

    In observe and advise nothing is written to Slurm; the log says what would be.
    """
    watched = Watched(policy, read_policy)
    watched.current()
    reprioritizer = Reprioritizer(CommandGateway(), watched.current, snapshot)
    if once:
        click.echo(reprioritizer.cycle())
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    reprioritizer.run(every, stop)
