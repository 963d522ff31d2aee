"""slurm-score explain: one job's score, taken apart."""

import json
from pathlib import Path

import click

from slurm_score.cli import socket_option
from slurm_score.report.explanation import format_explanation
from slurm_score.service.client import ServiceClient


@click.command("explain")
@click.argument("job_id")
@socket_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(job_id: str, socket_path: Path, as_json: bool) -> None:
    """Explain the score of pending job JOB_ID, and what blocks it if that is not its score."""
    answer = ServiceClient(socket_path).job(job_id)
    click.echo(json.dumps(answer, indent=2) if as_json else format_explanation(answer), nl=as_json)
