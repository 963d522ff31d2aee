"""slurm-score serve: the scoring service."""

from pathlib import Path

import click
import uvicorn

from slurm_score.cli import policy_option, snapshot_option, socket_option
from slurm_score.service.app import create_app

KEEP_ALIVE_S = 600
SHUTDOWN_S = 2


@click.command("serve")
@policy_option
@snapshot_option
@socket_option
def command(policy: Path, snapshot: Path, socket_path: Path) -> None:
    """Answer the submit hook and the reports on a unix socket.

    The service never calls Slurm: it answers from the snapshot that `slurm-score reprioritize` writes.
    """
    uvicorn.run(
        create_app(policy, snapshot),
        uds=str(socket_path),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
