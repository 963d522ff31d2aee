"""The command line: the only place that prints and exits.

Exit codes: 0 done, 1 could not be done, 2 wrong usage or policy.
"""

import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from slurm_score import __version__
from slurm_score.errors import PolicyError, SlurmScoreError

SUBCOMMANDS = {
    "advise": "advise",
    "check": "check",
    "cycles": "cycles",
    "demo": "demo",
    "explain": "explain",
    "gpus": "gpus",
    "history": "history",
    "install-hook": "install_hook",
    "parse": "parse",
    "predict": "predict",
    "policy": "policy",
    "reprioritize": "reprioritize",
    "reset": "reset",
    "serve": "serve",
    "simulate": "simulate",
    "status": "status",
    "whatif": "whatif",
}
"""Subcommands by name, with the module of this package that holds them; read only when needed."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _path_option(flag: str, parameter: str, default: str, help_text: str) -> Decorator:
    """Return an option for a path, which the environment can set as SLURM_SCORE_<FLAG>."""
    return click.option(
        f"--{flag}",
        parameter,
        type=click.Path(path_type=Path, dir_okay=False, readable=False),
        default=Path(default),
        show_default=True,
        envvar=f"SLURM_SCORE_{flag.upper().replace('-', '_')}",
        show_envvar=True,
        help=help_text,
    )


policy_option = _path_option("policy", "policy", "/etc/slurm/slurm-score.yaml", "The policy file.")
snapshot_option = _path_option(
    "snapshot",
    "snapshot",
    "/var/lib/slurm-score/snapshot.jsonl",
    "The file through which the reprioritizer tells the service about the cluster.",
)
audit_option = _path_option(
    "audit", "audit", "/var/lib/slurm-score/audit.sqlite", "The SQLite file of what was decided and why."
)
history_option = _path_option(
    "history", "history", "/var/lib/slurm-score/history.sqlite", "The SQLite file of the runs that ended."
)
socket_option = _path_option(
    "socket", "socket_path", "/run/slurm-score/slurm-score.sock", "The unix socket for reports."
)
kill_switch_option = click.option(
    "--kill-switch",
    type=click.Path(path_type=Path),
    envvar="SLURM_SCORE_KILL_SWITCH",
    show_envvar=True,
    help="While this file exists nothing is written to Slurm.  [default: STOP beside the snapshot]",
)
hook_socket_option = _path_option(
    "hook-socket", "hook_socket", "/run/slurm-score/hook.sock", "The unix socket for the submit hook."
)


class Commands(click.Group):
    """A group that turns our errors into one line each and an exit code, without a traceback.

    Subcommands are imported when they are called, so that one doesn't wait for the libraries of all.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the subcommands."""
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a subcommand, None where there is none of this name."""
        if cmd_name not in SUBCOMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{SUBCOMMANDS[cmd_name]}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with reported_errors(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


@contextmanager
def reported_errors(*, debug: bool = False) -> Iterator[None]:
    """Print our own errors as `slurm-score: …` and exit with 2 (policy) or 1 (the rest)."""
    try:
        yield
    except SlurmScoreError as error:
        if debug:
            raise
        for line in str(error).splitlines():
            click.echo(f"slurm-score: {line}", err=True)
        sys.exit(2 if isinstance(error, PolicyError) else 1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="slurm-score")
@click.option("--debug", is_flag=True, help="Show tracebacks, and log more.")
def main(debug: bool) -> None:
    """Score the pending jobs of a Slurm cluster and keep its queue in their order."""
    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def local_time(time_s: float) -> str:
    """Return a time as squeue prints it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time_s))
