"""slurm-score explain: one job's score, taken apart, and what would change it."""

import json
from pathlib import Path

import click

from slurm_score.cli import local_time, socket_option
from slurm_score.report.explanation import format_explanation
from slurm_score.service.client import ServiceClient


@click.command("explain")
@click.argument("job_id")
@socket_option
@click.option("--start", is_flag=True, help="Ask slurmctld when it expects the job to start.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(job_id: str, socket_path: Path, start: bool, as_json: bool) -> None:
    """Explain the score of pending job JOB_ID, where it stands, what blocks it and what would change it.

    Only --start asks slurmctld; all else is what the last cycle saw.

    \b
    Examples:
      slurm-score explain 812
      slurm-score explain 812 --json
    """
    answer = ServiceClient(socket_path).job(job_id)
    if start:
        from slurm_score.slurm.commands import CommandGateway  # slow to import, and mostly not needed

        answer["expected_start_s"] = CommandGateway().read_expected_start(answer["job_id"])
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    click.echo(format_explanation(answer), nl=False)
    if start:
        at_s = answer["expected_start_s"]
        click.echo(f"Slurm expects it to start at {local_time(at_s)}." if at_s else NOT_EXPECTED)


NOT_EXPECTED = "Slurm doesn't tell when it expects it to start: backfill has not planned it."
