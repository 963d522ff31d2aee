"""What `slurm-score advise` advises, given to a real Slurm: it is accepted, and jobs go where it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .harness import Cluster, wait_for
from .product import OPERATOR, Product
from .topology import replace_parameters

RELEASE = "24.11"  # node weights and scheduler parameters are the same in all releases
SLURM_CONF = "/etc/slurm/slurm.conf"
CONTENDED, IDLE = {"g1", "g2"}, {"g3"}  # the nodes with a100 and with v100
WAITING = 3


@pytest.fixture(scope="module")
def cluster(_engine: None) -> Iterator[Cluster]:
    """A cluster with nothing of ours running: cycles are run by hand, and advise needs no service."""
    with Cluster(RELEASE, daemons=()) as running:
        yield running


@pytest.fixture(scope="module")
def product(cluster: Cluster) -> Product:
    """The product in observe, after two cycles in which jobs waited for a100 while v100 was idle."""
    product = Product(cluster)
    product.set_policy("mode: observe\n")
    taken = product.submit("--nodes=2", "--gres=gpu:a100:4", "--time=60")
    product.wait_for_state(taken, "RUNNING")
    waiting = [product.submit("--gres=gpu:a100:4", "--time=60") for _ in range(WAITING)]
    wait_for(lambda: set(waiting) <= set(product.sites()), 30, "Slurm ranks the jobs")
    for _ in range(2):
        product.cycle()
    cluster.clear_jobs()
    return product


@pytest.fixture(autouse=True)
def _idle(cluster: Cluster) -> Iterator[None]:
    """Every test leaves an empty queue, and the weights and parameters of slurm.conf."""
    before = cluster.read_file(SLURM_CONF)
    yield
    cluster.clear_jobs()
    cluster.write_file(SLURM_CONF, before)
    reconfigure(cluster)


def advise(product: Product, *options: str) -> str:
    """Return what advise prints."""
    argv = ["slurm-score", "advise", "--short-history", *options]
    return product.cluster.exec(argv, user=OPERATOR).stdout


def advised(product: Product) -> dict[str, Any]:
    """Return what advise says, by name."""
    answer: dict[str, Any] = json.loads(advise(product, "--json"))
    return answer


def reconfigure(cluster: Cluster) -> None:
    """Let slurmctld read slurm.conf again, and return when all nodes are idle."""
    cluster.exec(["scontrol", "reconfigure"])
    cluster.clear_jobs()


def placed_on(product: Product) -> str:
    """Return the node that Slurm gives a job to which any type of GPU is good."""
    job_id = product.submit("--gres=gpu:1", "--time=5")
    product.wait_for_state(job_id, "RUNNING")
    return product.show_job(job_id)["NodeList"]


def weights(cluster: Cluster) -> dict[str, int]:
    """Return the Weight of each node."""
    rows = cluster.exec(["sinfo", "--noheader", "--Node", "--format=%N %w"]).stdout.split()
    return dict(zip(rows[::2], map(int, rows[1::2]), strict=True))


def test_weights_that_were_pasted_move_a_job_to_the_less_contended_type(product: Product) -> None:
    """Before, Slurm takes the first node, an a100; after, the v100 that nobody waits for."""
    assert placed_on(product) in CONTENDED
    product.cluster.clear_jobs()
    told = advise(product)
    assert "scontrol update NodeName=g3 Weight=10\n" in told
    assert "scontrol update NodeName=g[1-2] Weight=20\n" in told
    # 3 jobs of 4 GPUs for the 8 that there are
    assert "# a100: 1.5 GPUs asked for per usable one over the last week, 1.5 over the last 24 hours" in told

    pasted = "\n".join(line for line in told.splitlines() if not line.startswith("SchedulerParameters"))
    product.cluster.exec(["bash", "-e"], stdin=pasted)

    assert weights(product.cluster) == {"g1": 20, "g2": 20, "g3": 10}
    assert placed_on(product) in IDLE
    assert advised(product)["weights"]["changes"] == []


def test_scontrols_weights_are_lost_when_slurmctld_is_reconfigured(product: Product) -> None:
    """As advise says: slurm.conf is where they stay. Source: scontrol(1), Weight."""
    product.cluster.exec(["scontrol", "update", "NodeName=g[1-2]", "Weight=20"])
    assert weights(product.cluster)["g1"] == 20
    reconfigure(product.cluster)
    assert set(weights(product.cluster).values()) == {1}


def test_slurm_takes_the_line_for_the_scheduler(product: Product) -> None:
    """slurmctld reads it without a complaint, shows it as it is, and advise has nothing more to say."""
    line = advised(product)["scheduler"]["line"]
    name, _, value = line.partition("=")
    assert name == "SchedulerParameters"
    assert {"bf_window=10080", "bf_job_part_count_reserve=1", "sched_interval=2"} <= set(value.split(","))
    assert complaints_of(product, "bf_interval=2,bf_window=99999") > 0  # they can be seen
    product.cluster.clear_jobs()
    assert complaints_of(product, value) == 0
    shown = product.cluster.exec(["scontrol", "show", "config"]).stdout.splitlines()
    assert [row.partition("=")[2].strip() for row in shown if row.startswith(name)] == [value]
    found = advised(product)["scheduler"]
    assert (found["changes"], found["line"]) == ([], "")


def complaints_of(product: Product, parameters: str) -> int:
    """Return how often slurmctld complains of SchedulerParameters until backfill has worked by them."""
    cluster = product.cluster
    before = cluster.read_file(SLURM_CONF)
    cluster.write_file(SLURM_CONF, replace_parameters(before, {"SchedulerParameters": parameters}))
    complaints = count_complaints(cluster)
    reconfigure(cluster)
    product.submit("--nodes=3", "--gres=gpu:4", "--time=5")
    blocked = product.submit("--nodes=3", "--gres=gpu:4", "--time=5")
    cluster.exec(["sdiag", "--reset"])
    wait_for(lambda: backfill_passes(cluster) > 0, 90, f"a pass of backfill over job {blocked}")
    return count_complaints(cluster) - complaints


def count_complaints(cluster: Cluster) -> int:
    """Return how many lines of slurmctld's log complain of SchedulerParameters."""
    return cluster.read_file("/var/log/slurm/slurmctld.log").count("Invalid SchedulerParameters")


def backfill_passes(cluster: Cluster) -> int:
    """Return how many passes backfill has made since the last reset."""
    stats = cluster.exec(["sdiag"]).stdout.partition("Backfilling stats")[2]
    return int(stats.partition("Total cycles:")[2].split()[0])
