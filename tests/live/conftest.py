"""The cluster fixture, once per Slurm release, and the daemons' logs of every failed test."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

import pytest

from . import engine, images
from .faulty import STOP, WRAPPERS, Faulty, prepared
from .harness import LOG_ROOT, Cluster
from .product import Product


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks every test of this folder as live."""
    item.add_marker(pytest.mark.live)


@pytest.fixture(scope="session")
def _engine() -> None:
    """Fails, and does not skip, where no Docker engine answers: a run without these tests is no run."""
    if not engine.answers():
        pytest.fail(engine.ADVICE, pytrace=False)


@pytest.fixture(scope="session", params=list(images.releases()))
def release(request: pytest.FixtureRequest) -> str:
    """One Slurm release after the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def cluster(_engine: None, release: str) -> Iterator[Cluster]:
    """A cluster of the release that runs the product; all tests of the session share it.

    The reprioritizer's first cycle is its only one by itself: the tests run theirs one by one.
    """
    with Cluster(release, every="1d") as running:
        yield running


@pytest.fixture
def faulty(cluster: Cluster) -> Iterator[Faulty]:
    """The product on full nodes, in enforce, and no reprioritizer running."""
    cluster.exec(["daemon.sh", "stop", "reprioritizer"], check=False)
    try:
        yield prepared(Product(cluster))
    finally:
        cluster.exec(["rm", "--recursive", "--force", WRAPPERS, STOP])
        cluster.exec(["daemon.sh", "stop", "reprioritizer", "KILL"], check=False)
        cluster.clear_jobs()
        cluster.start_daemon("reprioritizer")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Saves the daemons' logs of every cluster that a failed test had, and says where."""
    report = yield
    if report.failed:
        folder = LOG_ROOT / re.sub(r"[^\w.-]+", "-", item.name)
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Cluster) and value.is_up:
                report.sections.append((f"daemon logs of {name}", str(value.save_logs(folder / name))))
    return report
