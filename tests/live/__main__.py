"""python -m tests.live: the container cluster without the tests."""

from __future__ import annotations

import argparse
import logging
import sys

from . import engine, images, leftovers
from .harness import Cluster, ClusterError

log = logging.getLogger("slurm-score-test")


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code: 0, or 1 with one sentence on standard error."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for chatty in ("docker", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except (engine.EngineMissingError, images.ImageError, ClusterError, TimeoutError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    names = list(images.releases())
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("engine", help="bring up a Docker engine if none answers").set_defaults(run=_engine)
    build = commands.add_parser("images", help="build what is missing or out of date")
    build.add_argument("releases", nargs="*", default=names, metavar="RELEASE", help=f"default: {names}")
    build.set_defaults(run=_images)
    up = commands.add_parser("up", help="leave a cluster running for a person")
    up.add_argument("--release", choices=names, default=names[-1])
    up.add_argument("--daemons", default="service,reprioritizer", help="'' for a plain Slurm")
    up.set_defaults(run=_up)
    commands.add_parser("down", help="remove the clusters that `up` left running").set_defaults(run=_down)
    return parser


def _engine(_: argparse.Namespace) -> None:
    engine.ensure()


def _images(arguments: argparse.Namespace) -> None:
    client = engine.connect()
    table = images.releases()
    for name in arguments.releases:
        log.info("%s is up to date", images.ensure(client, table[name]))
    client.close()


def _up(arguments: argparse.Namespace) -> None:
    daemons = [name for name in arguments.daemons.split(",") if name]
    cluster = Cluster(arguments.release, daemons=daemons, keep=True).up()
    log.info("Slurm %s is up: %s and %s", arguments.release, cluster.nodes[0], ", ".join(cluster.nodes[1:]))
    for user in cluster.topology.users:
        log.info("  docker exec --interactive --tty --user %s %s-ctl bash", user, cluster.name)
    log.info("as root: --user root; to remove it: python -m tests.live down")
    cluster.client.close()


def _down(_: argparse.Namespace) -> None:
    client = engine.connect()
    for cluster_id in leftovers.cluster_ids(client, owned_by=leftovers.KEEP):
        leftovers.remove(client, cluster_id)
        log.info("removed cluster %s", cluster_id)
    client.close()


if __name__ == "__main__":
    sys.exit(main())
