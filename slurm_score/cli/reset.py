"""slurm-score reset: the way back."""

import math
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import Progress

from slurm_score.brakes import Brakes
from slurm_score.burst import Burst
from slurm_score.errors import SlurmError
from slurm_score.plan import Plan
from slurm_score.reprioritizer import plan_of_reset, reset
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.gateway import Gateway


@click.command("reset")
@click.option(
    "--partition", "partitions", multiple=True, metavar="NAME", help="Only jobs of this partition; repeat it."
)
def command(partitions: tuple[str, ...]) -> None:
    """Put the SiteFactor of every pending job back to 0, whatever the policy says.

    Stop the reprioritizer or leave enforce first, else the next cycle sets them again. Held and
    pinned jobs are left alone; run it again when they are released. A reset that was interrupted is
    gone on with by the next one. No policy file is needed.

    \b
    Examples:
      slurm-score reset
      slurm-score reset --partition gpu
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    put_back(CommandGateway(), partitions, stop)


def put_back(gateway: Gateway, partitions: Collection[str], stop: threading.Event) -> None:
    """Plan the reset and carry it out, showing how far it is.

    Raises:
        SlurmScoreError: it could not be done, or not whole; what was done is printed before.
    """
    brakes = Brakes(deadline_s=math.inf, stop=stop)
    plan = plan_of_reset(gateway, brakes, partitions)
    with _progress(len(plan.updates)) as tell:
        burst = reset(gateway, plan, brakes, tell)
    click.echo(summary(plan, burst))
    if burst.left:
        raise SlurmError(f"{burst.halted}: {burst.left} updates were not sent; run it again for the rest")
    if burst.failures:
        raise SlurmError(f"{len(burst.failures)} updates failed, the first: {burst.failures[0].message}")


def summary(plan: Plan, burst: Burst) -> str:
    """Return in a line what was done."""
    skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(plan.skipped.items())) or "none"
    return f"{len(burst.sent) - len(burst.failures)} jobs set to 0; skipped: {skipped}"


@contextmanager
def _progress(updates: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, and nothing in a pipe."""
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("set to 0", total=updates)
        yield lambda sent: bar.update(task, completed=sent)
