"""slurm-score check: is everything as it must be."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from slurm_score.checks import Level, checks
from slurm_score.cli import hook_socket_option, policy_option, snapshot_option, socket_option
from slurm_score.gather import Places, gather
from slurm_score.slurm.commands import CommandGateway


@click.command("check")
@policy_option
@snapshot_option
@socket_option
@hook_socket_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context, policy: Path, snapshot: Path, socket_path: Path, hook_socket: Path, as_json: bool
) -> None:
    """Look at Slurm, the policy, the service and the submit hook, and say what is wrong and what to do.

    Run it on slurmctld's host as root, or as the user that runs the reprioritizer to see whether that
    user may set SiteFactor. It changes nothing. Exit code 1 if there is an error.

    \b
    Examples:
      slurm-score check
      slurm-score check --json
    """
    results = checks(gather(CommandGateway(), Places(policy, snapshot, socket_path, hook_socket)))
    errors = sum(result.level is Level.ERROR for result in results)
    warnings = sum(result.level is Level.WARNING for result in results)
    if as_json:
        listed = [asdict(result) for result in results]
        click.echo(json.dumps({"checks": listed, "errors": errors, "warnings": warnings}, indent=2))
    else:
        for result in results:
            click.echo(str(result))
        click.echo(f"{len(results)} checks, {errors} errors, {warnings} warnings")
    ctx.exit(1 if errors else 0)


for _parameter in command.params:
    if isinstance(_parameter.type, click.Path):
        # what can't be read is a result here, not a wrong use of the command
        _parameter.type = click.Path(path_type=Path, readable=False)
