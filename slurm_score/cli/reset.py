"""slurm-score reset: the way back."""

import click

from slurm_score.errors import SlurmError
from slurm_score.reprioritizer import reset
from slurm_score.slurm.commands import CommandGateway


@click.command("reset")
def command() -> None:
    """Put the SiteFactor of every pending job back to 0, whatever the policy says.

    Stop the reprioritizer or leave enforce first, else the next cycle sets them again. Held and
    pinned jobs are left alone; run it again when they are released.
    """
    plan, failures = reset(CommandGateway())
    skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(plan.skipped.items())) or "none"
    click.echo(f"{len(plan.updates) - len(failures)} jobs set to 0; skipped: {skipped}")
    if failures:
        raise SlurmError(f"{len(failures)} updates failed, the first: {failures[0].message}")
