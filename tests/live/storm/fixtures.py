"""The fixtures of the storms, as a plugin: all their files share one cluster for each release."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.live.harness import Cluster

from .lab import Lab


@pytest.fixture(scope="session")
def storm_cluster(_engine: None, release: str) -> Iterator[Cluster]:
    """A cluster for storms alone: thousands of finished jobs would slow down the tests of another."""
    with Cluster(release, daemons=("service",), slurm_conf={"MinJobAge": "10"}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def lab(storm_cluster: Cluster) -> Lab:
    """The storms' cluster, its nodes filled by one job."""
    lab = Lab(storm_cluster)
    lab.prepare()
    return lab


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a line of figures, which nothing is asserted of."""
    writer = request.config.get_terminal_writer()
    return lambda line: writer.line(f"\n{request.node.name}: {line}")
