"""sscore: the queue by score, like sprio."""

import json
from pathlib import Path

import click

from slurm_score import __version__
from slurm_score.cli import reported_errors, socket_option
from slurm_score.report.table import format_queue, format_weights
from slurm_score.service.client import ServiceClient


@click.command("sscore", context_settings={"help_option_names": ["--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="sscore")
@socket_option
@click.option("-w", "--weights", is_flag=True, help="Print the weights of the factors only.")
@click.option(
    "-S",
    "--sort",
    type=click.Choice(["score", "priority"]),
    default="score",
    show_default=True,
    help="By score, or in the order that Slurm held when the queue was last read.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, jobs that can't start yet included.")
def main(socket_path: Path, weights: bool, sort: str, as_json: bool) -> None:
    """Print the pending jobs that could start, highest score first, with the parts of each score."""
    with reported_errors():
        answer = ServiceClient(socket_path).jobs()
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        queue = format_queue(answer, by_priority=sort == "priority")
        click.echo(format_weights(answer) if weights else queue, nl=False)
