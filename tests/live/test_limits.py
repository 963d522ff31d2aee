"""Rate limits and clocks, on real slurmctlds.

22.05 has no rate limit, and under libfaketime, whose clocks these are, its Debian's Python can't sleep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from .faulty import BY_LIMIT, JOBS, Faulty
from .harness import Cluster, wait_for
from .product import SLURMCTLD_LOG, Product

SLURM_CONF = "/etc/slurm/slurm.conf"
CLOCK = "/tmp/clock"

pytestmark = pytest.mark.parametrize("release", ["24.11", "26.05"], indirect=True)

BY_WAIT = (
    BY_LIMIT.replace("wait: {{weight: 0}}", "wait: {{weight: 500, max_wait: 3h}}") + "guard: {{after: 90m}}\n"
)
"""Waits count, and who has waited for an hour and a half is in a tier above every score."""


@contextmanager
def _slurmctld_with(product: Product, setting: str = "", env: dict[str, str] | None = None) -> Iterator[None]:
    """Runs slurmctld with a line more in its slurm.conf, or in another environment."""
    cluster, before = product.cluster, product.cluster.read_file(SLURM_CONF)
    try:
        cluster.write_file(SLURM_CONF, f"{before}{setting}\n")
        product.stop_slurmctld()
        cluster.start_daemon("slurmctld", env=env)
        yield
    finally:
        cluster.write_file(SLURM_CONF, before)
        product.stop_slurmctld()
        cluster.start_daemon("slurmctld")


def test_operator_whose_rate_is_limited(faulty: Faulty) -> None:
    """Trap 18: it knows the limit and says so once, keeps within it, and takes waiting for no trouble."""
    parameters = "rl_enable,rl_bucket_size=10,rl_refill_rate=40,rl_log_freq=0"
    with _slurmctld_with(faulty.product, f"SlurmctldParameters={parameters}"):
        faulty.cluster.exec(["truncate", "--size=0", SLURMCTLD_LOG])
        faulty.start()
        faulty.wait_for_log(" 0 to change")
        faulty.cluster.stop_daemon("reprioritizer")
        log, of_slurmctld = faulty.log(), faulty.cluster.read_file(SLURMCTLD_LOG)
    assert "RPC rate limit exceeded by uid 2003 with REQUEST_UPDATE_JOB" in of_slurmctld
    said = "slurmctld limits user scoreop to 10 requests a second: at most 87 updates a cycle"
    assert log.count(said) == 1
    assert "user scoreop gets 10 requests a second; slurm and root are exempt" in log
    sent = [int(found) for found in re.findall(r" (\d+) sent, 0 failed", log)]
    assert (sum(sent), len(sent) <= 3) == (JOBS, True), log
    assert not re.search("trouble|slurmctld took|given up", log), log
    faulty.assert_converged()


def test_clock_that_is_set(faulty: Faulty) -> None:
    """Trap 30: waits are by slurmctld's clock. Ours counts for nothing; with its own they all grow alike."""
    faulty.product.set_policy(BY_WAIT.format(mode="enforce"))
    _set_clock(faulty.cluster, 0)
    faulty.start({"CLOCK": CLOCK})
    faulty.wait_for_log(" 0 to change")
    sites = faulty.product.sites()
    for hours in (2, -2):
        _set_clock(faulty.cluster, hours)
        _wait_for_calm_cycles(faulty, hours)
        assert faulty.product.sites() == sites
    assert len(re.findall(r" [1-9]\d* sent", faulty.log())) == 1  # by the first cycle
    faulty.cluster.stop_daemon("reprioritizer")
    _set_clock(faulty.cluster, 0)
    with _slurmctld_with(faulty.product, env={"CLOCK": CLOCK}):
        for hours in (1, -1, 0):
            _set_clock(faulty.cluster, hours)
            _wait_for_slurmctld(faulty.cluster, hours)
            assert " 0 to change, 0 sent, 0 failed" in faulty.product.cycle().stdout
        wait_for(lambda: faulty.product.sites() == sites, 30, "Slurm ranks the jobs as before")
        faulty.assert_converged()


def _set_clock(cluster: Cluster, hours: int) -> None:
    """Sets the clock of the daemons that run with CLOCK so many hours ahead of the host's."""
    cluster.write_file(CLOCK, f"{hours:+d}h\n")


def _wait_for_calm_cycles(faulty: Faulty, hours: int) -> None:
    """Returns when the log has two cycles, so many hours ahead of the host's clock, without a change."""
    wait_for(
        lambda: [round(ahead_s / 3600) for ahead_s in _calm_cycles(faulty)].count(hours) >= 2,
        30,
        lambda: f"cycles {hours} h ahead, {faulty.log()}",
    )


def _calm_cycles(faulty: Faulty) -> list[float]:
    """Returns by how much the times of the cycles that changed nothing are ahead of the host's clock."""
    now_s = faulty.product.now_s()
    times = re.findall(r"^(\S+ \S+),\d+ .* 0 to change, 0 sent, 0 failed", faulty.log(), re.MULTILINE)
    return [datetime.fromisoformat(f"{time}+00:00").timestamp() - now_s for time in times]


def _wait_for_slurmctld(cluster: Cluster, hours: int) -> None:
    """Returns when slurmctld's clock is so many hours ahead of the host's."""
    argv = ["bash", "-c", "scontrol show config | head -1; date +%s"]

    def ahead_s() -> int:
        theirs, ours = re.findall(r"\d{9,}", cluster.exec(argv, env={"SLURM_TIME_FORMAT": "%s"}).stdout)
        return int(theirs) - int(ours)

    wait_for(lambda: round(ahead_s() / 3600) == hours, 30, f"slurmctld's clock is {hours} h ahead")
