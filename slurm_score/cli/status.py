"""slurm-score status: how the product does, on one screen."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from slurm_score.audit import read_cycles
from slurm_score.cli import audit_option, policy_option, snapshot_option, socket_option
from slurm_score.errors import SlurmScoreError
from slurm_score.report.status import format_status, told_of
from slurm_score.service.client import ServiceClient
from slurm_score.snapshot import read_snapshot
from slurm_score.status import EXIT_CODES, Seen, status_of
from slurm_score.watch import read_policy

T = TypeVar("T")

CYCLES = 100
"""Cycles that are looked at for errors."""


@click.command("status")
@policy_option
@snapshot_option
@socket_option
@audit_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context, policy: Path, snapshot: Path, socket_path: Path, audit: Path, as_json: bool
) -> None:
    """Show mode, last cycle, service, hook, the queue by GPU type, fragmentation and the last errors.

    Slurm isn't asked. The exit code is for monitoring: 0 all is well, 1 a warning, 2 an error.

    \b
    Examples:
      slurm-score status
      slurm-score status --json
    """
    status = status_of(look(policy, snapshot, socket_path, audit))
    click.echo(json.dumps(told_of(status), indent=2) if as_json else format_status(status), nl=as_json)
    ctx.exit(EXIT_CODES[status.level])


def look(policy: Path, snapshot: Path, socket_path: Path, audit: Path) -> Seen:
    """Return what is known of the product; what can't be had is told as such."""
    read, policy_error = _tried(lambda: read_policy(policy))
    taken, snapshot_error = _tried(lambda: read_snapshot(snapshot))
    health, service_error = _tried(ServiceClient(socket_path).health)
    cycles, audit_error = _tried(lambda: read_cycles(audit, CYCLES))
    return Seen(
        now_s=time.time(),
        policy=read,
        policy_error=policy_error,
        snapshot=taken,
        snapshot_error=snapshot_error,
        health=health,
        service_error=service_error,
        cycles=cycles or (),
        audit_error=audit_error,
    )


def _tried(read: Callable[[], T]) -> tuple[T | None, str]:
    """Return what was read, or None and the sentence why it couldn't be."""
    try:
        return read(), ""
    except SlurmScoreError as error:
        return None, str(error)
