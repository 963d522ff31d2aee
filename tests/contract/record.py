"""python -m tests.contract.record [RELEASE...] [--case NAME]: records Slurm's answers anew.

For each release a cluster comes up in containers, the situations of the table are prepared on it, and
what Slurm answers to the product's own questions replaces the folders in tests/data/slurm. 20.11 is
written from its documentation instead.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Mapping

from tests.contract import documented, shapes
from tests.contract.config_cases import CONFIG_CASES
from tests.contract.lab_cases import LAB_CASES, CaseFunction
from tests.contract.node_cases import NODE_CASES
from tests.contract.prepare import Stage
from tests.contract.recording import Recording
from tests.live import images
from tests.live.harness import Cluster

log = logging.getLogger("slurm-score-test")


def main(argv: list[str] | None = None) -> int:
    """Record what the command line names; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for chatty in ("docker", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    arguments = _parser().parse_args(argv)
    for release in arguments.releases:
        if release == documented.RELEASE:
            documented.write()
        else:
            record(release, set(arguments.case or []))
    return 0


def _parser() -> argparse.ArgumentParser:
    names = [documented.RELEASE, *images.releases()]
    parser = argparse.ArgumentParser(prog="python -m tests.contract.record", description=__doc__)
    parser.add_argument("releases", nargs="*", default=names, metavar="RELEASE", help=f"default: {names}")
    cases = [*LAB_CASES, *CONFIG_CASES, *NODE_CASES]
    parser.add_argument("--case", action="append", choices=cases, help="only this one; may be repeated")
    return parser


def record(release: str, only: set[str]) -> None:
    """Record the cases of one release, all of them where none is named."""
    clusters: tuple[tuple[Mapping[str, CaseFunction], Cluster], ...] = (
        (
            LAB_CASES | CONFIG_CASES,
            Cluster(release, daemons=(), shape=shapes.lab(), slurm_conf=shapes.LAB_CONF),
        ),
        (
            NODE_CASES,
            Cluster(
                release,
                daemons=(),
                shape=shapes.nodes(),
                slurm_conf=shapes.nodes_conf(),
                files={shapes.TOPOLOGY_PATH: shapes.TOPOLOGY},
            ),
        ),
    )
    for table, cluster in clusters:
        wanted = {name: function for name, function in table.items() if not only or name in only}
        if wanted:
            with cluster as running:
                _record_cases(Stage(running), wanted.items())


def _record_cases(stage: Stage, cases: Iterable[tuple[str, CaseFunction]]) -> None:
    stage.install()
    for number, (name, function) in enumerate(cases):
        if number:
            stage.clear()
        began_s = time.monotonic()
        case = Recording(stage, name, function.__doc__ or "")
        function(case)
        case.write()
        log.info("%s %s: %.0f s", stage.release, name, time.monotonic() - began_s)


if __name__ == "__main__":
    sys.exit(main())
