"""slurm-score cycles: what the reprioritizer did, cycle by cycle."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from slurm_score.audit import StoredCycle, read_cycles
from slurm_score.cli import audit_option, local_time
from slurm_score.cli.durations import DurationType
from slurm_score.report.table import format_table

SHOWN = 20
HEADERS = (
    "CYCLE",
    "TIME",
    "MODE",
    "PENDING",
    "PLANNED",
    "SENT",
    "FAILED",
    "LEFT",
    "RPCS",
    "READ_S",
    "SCORE_S",
    "PLAN_S",
    "WRITE_S",
    "POLICY",
    "TROUBLE",
)


@click.command("cycles")
@audit_option
@click.option(
    "--last",
    type=click.IntRange(min=1),
    help=f"Show N cycles at most; {SHOWN} unless this or --since is given.",
    metavar="N",
)
@click.option("--since", type=DurationType(), help="Show the cycles of this time until now, such as 2h.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(audit: Path, last: int | None, since: float | None, as_json: bool) -> None:
    """Show the last cycles, newest last: counts of jobs and updates, RPCs, seconds, policy, error.

    \b
    Examples:
      slurm-score cycles --last 5
      slurm-score cycles --since 2h --json
    """
    most = last or (SHOWN if since is None else sys.maxsize)
    cycles = read_cycles(audit, most, 0.0 if since is None else time.time() - since)
    if as_json:
        click.echo(json.dumps({"cycles": [asdict(cycle) for cycle in cycles]}, indent=2))
    else:
        click.echo(format_cycles(cycles), nl=False)


def format_cycles(cycles: Sequence[StoredCycle]) -> str:
    """Return cycles as a table."""
    rows = (
        [
            cycle.cycle,
            local_time(cycle.start_s),
            cycle.mode,
            cycle.pending,
            cycle.planned,
            cycle.sent,
            cycle.failed,
            cycle.left_over,
            cycle.rpcs,
            *(f"{seconds:.2f}" for seconds in (cycle.read_s, cycle.score_s, cycle.plan_s, cycle.write_s)),
            cycle.policy or "",
            cycle.error or cycle.halted,
        ]
        for cycle in cycles
    )
    return format_table(HEADERS, rows)
