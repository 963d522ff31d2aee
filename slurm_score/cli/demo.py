"""slurm-score demo: the product at work, without a Slurm."""

import logging

import click

from slurm_score.demo.show import show_demo


@click.command("demo")
def command() -> None:
    """Play two scenarios on a fake Slurm under the real service, reprioritizer and reports.

    \b
    Example:
      slurm-score demo
    """
    logging.getLogger().setLevel(logging.WARNING)
    for text in show_demo():
        click.echo(text, nl=False)
