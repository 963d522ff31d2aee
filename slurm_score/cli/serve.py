"""slurm-score serve: the scoring service."""

from pathlib import Path

import click

from slurm_score.cli import (
    hook_socket_option,
    kill_switch_option,
    policy_option,
    snapshot_option,
    socket_option,
)
from slurm_score.service.reports import process_worker
from slurm_score.service.server import Addresses, Server
from slurm_score.service.state import State


class AddressType(click.ParamType[tuple[str, int]]):
    """`[HOST:]PORT`; without a host it is this machine alone."""

    name = "[host:]port"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return host and port."""
        host, _, port = str(value).rpartition(":")
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            self.fail(f"not a port, got {value!r}; such as 9341, 127.0.0.1:9341 or [::1]:9341", param, ctx)
        return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


@click.command("serve")
@policy_option
@snapshot_option
@hook_socket_option
@socket_option
@kill_switch_option
@click.option(
    "--tcp", type=AddressType(), help="Serve reports and /metrics on TCP too, by default on 127.0.0.1."
)
def command(
    policy: Path,
    snapshot: Path,
    hook_socket: Path,
    socket_path: Path,
    kill_switch: Path | None,
    tcp: tuple[str, int] | None,
) -> None:
    """Answer the submit hook on one unix socket and the reports on another.

    Run it as SlurmUser: only the owner of the hook's socket can connect to it. The service never calls
    Slurm: it answers from the snapshot that `slurm-score reprioritize` writes.

    \b
    Examples:
      slurm-score serve
      slurm-score serve --tcp 9341
    """
    state = State(policy, snapshot, new_worker=process_worker, kill_switch=kill_switch)
    Server(state, Addresses(hook=hook_socket, readers=socket_path, tcp=tcp)).run()
