"""slurm-score gpus: what there is of each GPU type, in what blocks it is free, and who wants it."""

import json
from pathlib import Path

import click

from slurm_score.cli import socket_option
from slurm_score.report.supply import format_supply
from slurm_score.service.client import ServiceClient


@click.command("gpus")
@socket_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(socket_path: Path, as_json: bool) -> None:
    """Print the GPUs of each partition and type: used, free, broken, free in one piece, asked for.

    NODE_MAX is the most that one node has free, BLOCK the most that is free in equal parts on several
    nodes. ASKED counts the GPUs of pending jobs that accept this type only, FLEXIBLE those of jobs that
    accept others too; CONTENTION is what is asked for each usable one.

    \b
    Examples:
      slurm-score gpus
      slurm-score gpus --json
    """
    answer = ServiceClient(socket_path).gpus()
    click.echo(json.dumps(answer, indent=2) if as_json else format_supply(answer), nl=as_json)
