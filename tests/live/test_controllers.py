"""Two controllers: one that stands by for the other, and the clusters of a federation.

All tests of a release share a pair of controllers on one StateSaveLocation, the second of which stands by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import topology
from .faulty import BY_LIMIT, JOBS, Faulty, prepared
from .harness import Cluster, Result, wait_for
from .product import Product

PRIMARY, BACKUP = "ctl", "ctl2"
SLURM_CONF = "/etc/slurm/slurm.conf"
TAKEOVER_S = "5"

EAST_CONF = "/etc/east/slurm.conf"
EAST = {
    "ClusterName": "east",
    "SlurmctldHost": BACKUP,
    "SlurmctldPort": "6827",
    "StateSaveLocation": "/etc/east/state",
    "JobSubmitPlugins": None,
    "NodeName": "e1 NodeAddr=127.0.0.9 Port=6999 CPUs=24 RealMemory=4000",
    "PartitionName": "main Nodes=e1 Default=YES",
}
ADD_EAST = (
    "cluster east",
    "account research cluster=east",
    "user alice,scoreop account=research cluster=east",
)


@pytest.fixture(scope="session")
def pair(_engine: None, release: str) -> Iterator[Cluster]:
    """A cluster with a backup controller that takes over after 5 s; cycles are run by the tests."""
    shape = topology.load().model_copy(update={"backup": BACKUP})
    settings = {"SlurmctldTimeout": TAKEOVER_S}
    with Cluster(release, daemons=("service",), shape=shape, slurm_conf=settings) as running:
        yield running


@pytest.fixture
def tidy(pair: Cluster) -> Iterator[Cluster]:
    """The pair as it was, after whatever a test did to it."""
    try:
        yield pair
    finally:
        for host in (PRIMARY, BACKUP):
            pair.exec(["daemon.sh", "stop", "reprioritizer", "KILL"], node=host, check=False)
        if _acting(pair) != PRIMARY:
            _give_back(pair)
        if pair.exec(["daemon.sh", "check", "slurmctld"], node=BACKUP, check=False).returncode:
            pair.start_daemon("slurmctld", node=BACKUP)
        pair.clear_jobs()


def _give_back(pair: Cluster) -> None:
    """Lets the primary act again; a backup that is asked to step back may take half a minute for it."""
    pair.exec(["daemon.sh", "stop", "slurmctld", "KILL"], node=BACKUP, check=False)
    pair.start_daemon("slurmctld")


def _acting(pair: Cluster) -> str:
    """Returns the host of the first controller that answers, empty if none does."""
    ping = pair.exec(["scontrol", "ping"], check=False).stdout
    match = re.search(r" at (\S+) is UP", ping)
    return match[1] if match else ""


def test_backup_controller_takes_over_in_mid_burst(tidy: Cluster) -> None:
    """Trap 29: of two reprioritizers the one beside the acting controller acts, and only that one writes."""
    Product(tidy, BACKUP).set_policy(BY_LIMIT.format(mode="enforce"))
    primary = prepared(Product(tidy))
    backup = primary.on(BACKUP)
    primary.save_state()
    wait_for(lambda: _acting(tidy) == PRIMARY, 60, "the primary answers")  # it may be busy writing
    backup.start()
    backup.wait_for_log("stands by: the controller on ctl acts")
    assert not primary.updated()
    assert primary.start_slowly() < JOBS
    tidy.stop_daemon("slurmctld", "KILL")
    backup.wait_for_log("acts: ctl2 has the acting controller (ctl, ctl2)")
    backup.wait_for_log(" 0 to change")
    primary.wait_for_log("stands by: the controller on ctl2 acts")
    backup.assert_converged()
    _assert_only_one_writes(primary, backup)
    _give_back(tidy)
    backup.wait_for_log("stands by: the controller on ctl acts")
    primary.wait_for_log("acts: ctl has the acting controller (ctl, ctl2)")
    primary.wait_for_log(" 0 to change")  # it came back with the scores that it had saved
    _assert_only_one_writes(backup, primary)
    primary.assert_converged()


def _assert_only_one_writes(standby: Faulty, acting: Faulty) -> None:
    """What an admin changed is put right by the one that acts; a cycle of the other would be in its log."""
    job_id = acting.jobs[4]
    wanted = acting.product.sites()[job_id]
    for each in (standby, acting):
        each.clear_log()
    acting.product.exec(["scontrol", "update", f"JobId={job_id}", "SiteFactor=0"])
    acting.wait_for_log("1 to change, 1 sent, 0 failed")
    assert acting.product.sites()[job_id] == wanted
    assert " to change" not in standby.log()


def test_federation(tidy: Cluster) -> None:
    """Trap 27: of two clusters each sets the SiteFactors of its own jobs, and Slurm tells the other."""
    lab = Product(tidy)
    lab.set_policy(BY_LIMIT.format(mode="observe"))
    lab.cycle()
    lab.fill()
    with _federated(tidy) as east:
        jobs = [each.submit("--nodes=1", f"--time={i}") for i, each in enumerate((lab, east), 5)]
        submitted_s = lab.now_s()
        for product in (lab, east):
            product.set_policy(BY_LIMIT.format(mode="enforce"))
            _wait_for_ranks(product, jobs)
        wait_for(lambda: lab.now_s() > submitted_s + 2, 30, "the jobs are older than min_age")
        for product in (lab, east):
            report = product.cycle().stdout
            assert "1 to change, 1 sent, 0 failed; skipped: 1 belongs to another cluster" in report
        sites = lab.sites()
        assert sites[jobs[0]] > sites[jobs[1]] > 0
        assert east.sites() == sites


def _wait_for_ranks(product: Product, jobs: list[int]) -> None:
    wait_for(lambda: set(jobs) <= product.sites().keys(), 30, f"the jobs {jobs} are ranked")


@dataclass(frozen=True)
class _East(Product):
    """The cluster east, with a slurmctld on the host of lab's backup and a node that never comes."""

    def exec(self, argv: Sequence[str], **options: Any) -> Result:
        """Returns what a command of that cluster's returned."""
        return super().exec(argv, env={"SLURM_CONF": EAST_CONF}, **options)


@contextmanager
def _federated(pair: Cluster) -> Iterator[Product]:
    """Gives the second cluster of a federation, in the place of the backup controller."""
    east, folder = _East(pair, BACKUP), str(Path(EAST_CONF).parent)
    pair.exec(["daemon.sh", "stop", "slurmctld", "KILL"], node=BACKUP)
    pair.exec(["install", "--directory", "--owner=slurm", folder, f"{folder}/state"], node=BACKUP)
    text = topology.replace_parameters(pair.read_file(SLURM_CONF), EAST)
    pair.write_file(EAST_CONF, text, node=BACKUP)
    for words in ADD_EAST:
        pair.exec(["sacctmgr", "--immediate", "add", *words.split()])
    try:
        east.exec(["daemon.sh", "start", "slurmctld"])
        wait_for(lambda: _is_registered(pair), 30, "slurmdbd knows east's slurmctld")
        pair.exec(["sacctmgr", "--immediate", "add", "federation", "both", "clusters=lab,east"])
        wait_for(lambda: _is_synced(pair), 30, "the federation is in step")
        yield east
    finally:
        pair.exec(["sacctmgr", "--immediate", "delete", "federation", "both"], check=False)
        east.exec(["daemon.sh", "stop", "slurmctld", "KILL"])


def _is_registered(pair: Cluster) -> bool:
    """Returns whether it is known where east's slurmctld is; 22.05's lab never finds it out later."""
    argv = ["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "east", "format=ControlPort"]
    return pair.exec(argv).stdout.strip() == EAST["SlurmctldPort"]


def _is_synced(pair: Cluster) -> bool:
    return "Synced:Yes" in pair.exec(["scontrol", "show", "federation"]).stdout
