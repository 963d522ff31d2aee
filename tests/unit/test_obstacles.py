"""slurm_score/obstacles.py: what a job waits for beside its score, whatever reason Slurm gives."""

from dataclasses import replace
from typing import Any

import pytest

from slurm_score.gres import gpu_request
from slurm_score.model import Cluster, Job, Reservation
from slurm_score.obstacles import obstacles
from tests.unit.builders import (
    DAY,
    HOUR,
    drained,
    make_cluster,
    make_gpu_job,
    make_job,
    make_node,
    make_queue,
)


def found(*jobs: Job, cluster: Cluster | None = None) -> tuple[str, ...]:
    """Return what the first of these jobs waits for."""
    return obstacles(make_queue(*jobs, cluster=cluster), 0)


def changed_partition(name: str, **changes: Any) -> Cluster:
    """Return the cluster with one partition changed."""
    cluster = make_cluster()
    changed = replace(cluster.partitions[name], **changes)
    return replace(cluster, partitions={**cluster.partitions, name: changed})


@pytest.mark.parametrize(
    "job",
    [
        make_job(),
        make_gpu_job(1, "gpu:a100:4"),
        make_job(cpus=24, time_limit_s=7.0 * DAY),
        make_job(partitions=("gone",)),
    ],
)
def test_a_job_that_only_waits_its_turn_has_none(job: Job) -> None:
    """Nor one of which too little is known."""
    assert found(job) == ()


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (make_gpu_job(1, "gpu:a100:5"), "it can never start: it asks for 5 a100, there are 4"),
        (make_job(cpus=25), "it can never start: it asks for 25 CPUs, partition main has 24"),
        (
            make_job(time_limit_s=8.0 * DAY),
            "it asks for 8-00:00:00, partition main gives 7-00:00:00 at most",
        ),
        (
            make_job(time_limit_s=float("inf"), partitions=("gpu",)),
            "it asks for UNLIMITED, partition gpu gives 2-00:00:00 at most",
        ),
    ],
)
def test_who_asks_for_too_much_reads_what_there_is(job: Job, sentence: str) -> None:
    """What is asked, and the most that can be had."""
    assert found(job) == (sentence,)


def test_one_partition_that_can_serve_it_is_enough() -> None:
    """Three days fit into main's seven, though not into gpu's two; eight fit into neither."""
    assert found(make_job(time_limit_s=3.0 * DAY, partitions=("main", "gpu"))) == ()
    assert found(make_job(time_limit_s=8.0 * DAY, partitions=("main", "gpu"))) == (
        "it asks for 8-00:00:00, partition main,gpu gives 7-00:00:00 at most",
    )


def test_a_partition_that_is_down_is_named() -> None:
    """Slurm starts nothing in it, whatever the order."""
    assert found(make_job(), cluster=changed_partition("main", up=False)) == (
        "partition main starts no jobs now",
    )


def test_jobs_of_a_higher_tier_on_the_same_nodes_go_first() -> None:
    """Two that could start; the held one doesn't count, and a tier on other nodes takes nothing away."""
    cluster = changed_partition("gpu", priority_tier=10)
    shared = replace(cluster, nodes=(*cluster.nodes, make_node("both", "a100:1", partitions=("main", "gpu"))))
    jobs = (
        make_job(1),
        make_gpu_job(2, "gpu:a100:1"),
        make_gpu_job(3, "gpu:a100:1"),
        make_gpu_job(4, "gpu:a100:1", priority=0),
    )
    assert found(*jobs, cluster=shared) == (
        "2 jobs of partition gpu go first: it has PriorityTier 10, not 1 as main",
    )
    assert found(*jobs, cluster=cluster) == ()
    assert found(*jobs[1:], cluster=shared) == ()


def test_nodes_that_are_down_are_told_by_type_or_all_together() -> None:
    """a100 stand on g1 and g2 only; with c1 and c2 all of main is gone."""
    cluster = drained(make_cluster(), "g1", "g2", "c1", "c2")
    assert found(make_gpu_job(1, "gpu:a100:1"), cluster=cluster) == (
        "no a100 that it could use is on a node that starts jobs now",
    )
    assert found(make_gpu_job(1, "gpu:1"), cluster=cluster) == ()
    assert found(make_job(), cluster=cluster) == ("no node of partition main starts jobs now",)
    assert found(make_job(), cluster=drained(make_cluster(), "c1")) == ()


@pytest.mark.parametrize(
    ("reservations", "sentences"),
    [
        ({}, ("there is no reservation maint",)),
        ({"maint": Reservation(name="maint")}, ("its reservation maint is not active",)),
        ({"maint": Reservation(name="maint", active=True, nodes=("c1",))}, ()),
    ],
)
def test_a_reservation_must_be_there_and_active(
    reservations: dict[str, Reservation], sentences: tuple[str, ...]
) -> None:
    """Its nodes serve the job only then."""
    assert found(make_job(reservation="maint"), cluster=make_cluster(reservations=reservations)) == sentences


def test_everything_is_told_at_once() -> None:
    """Slurm gives one reason at a time."""
    job = make_job(
        gpus=gpu_request(per_job="gpu:a100:5"), partitions=("gpu",), time_limit_s=49.0 * HOUR, reservation="x"
    )
    assert found(job, cluster=changed_partition("gpu", up=False)) == (
        "it can never start: it asks for 5 a100, there are 4",
        "it asks for 2-01:00:00, partition gpu gives 2-00:00:00 at most",
        "partition gpu starts no jobs now",
        "there is no reservation x",
    )
