"""slurm-score history: what was decided about one job, and why; `import` fills the history of runs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from slurm_score.audit import StoredDecision, read_history
from slurm_score.cli import audit_option, local_time
from slurm_score.cli.history_import import import_history
from slurm_score.errors import AuditError, ParseError
from slurm_score.factors import registry
from slurm_score.jobid import JobId, parse_job_id
from slurm_score.report.table import format_table


class JobIdType(click.ParamType[JobId]):
    """A job id as squeue prints it."""

    name = "jobid"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> JobId:
        """Return the job id."""
        try:
            return value if isinstance(value, JobId) else parse_job_id(str(value))
        except ParseError as error:
            self.fail(str(error), param, ctx)


class JobOrCommand(click.Group):
    """A group whose first word is a subcommand, or else the job id of `decisions`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that is named, `decisions` for anything else."""
        if args and args[0] not in self.commands:
            args = ["decisions", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let options of `decisions` stand before the job id too."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["decisions", *args]
        return super().parse_args(ctx, args)


@click.group("history", cls=JobOrCommand)
def command() -> None:
    """Show what was decided about a job: history JOB_ID. Or keep what ended runs tell: history import.

    \b
    Examples:
      slurm-score history 812
      slurm-score history import --since 30d
    """


command.add_command(import_history)


@command.command("decisions")
@click.argument("job_id", type=JobIdType())
@audit_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the policies included.")
def decisions(job_id: JobId, audit: Path, as_json: bool) -> None:
    """Show what was decided about job JOB_ID, one line a decision, oldest first.

    An array is found by its number, with its tasks; a task by 12_3. CHANGE is the SiteFactor that Slurm
    held and the one that was wanted, WHY says whether it was sent; the columns between are the parts
    of the score.

    \b
    Examples:
      slurm-score history 812
      slurm-score history 812 --json
    """
    history = read_history(audit, job_id)
    if not history.decisions:
        raise AuditError(f"job {job_id}: nothing is recorded about it in {audit}")
    click.echo(
        json.dumps({"job": str(job_id)} | asdict(history), indent=2)
        if as_json
        else format_history(history.decisions),
        nl=as_json,
    )


def format_history(decisions: Sequence[StoredDecision]) -> str:
    """Return decisions as a table, with a column for each factor that any of them knew."""
    factors = list(dict.fromkeys(name for decision in decisions for name in decision.parts))
    headers = ["TIME", "CYCLE", "JOBID", "CHANGE", "SCORE", *map(header, factors), "WHY", "POLICY"]
    rows = (
        [
            local_time(decision.start_s),
            decision.cycle,
            decision.job,
            f"{'?' if decision.old is None else decision.old} -> {decision.new}",
            f"{decision.score:.1f}",
            *(f"{decision.parts[name]:.1f}" if name in decision.parts else "" for name in factors),
            f"{decision.why}, past the guard" if decision.guarded else decision.why,
            decision.policy,
        ]
        for decision in decisions
    )
    return format_table(headers, rows)


def header(factor: str) -> str:
    """Return a factor's column header; one that isn't installed any more has its name."""
    return registry()[factor].header if factor in registry() else factor.upper()
