"""What the product counts is what was asked for: every way to ask for GPUs, on every release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.contract.prepare import Stage
from tests.contract.shapes import LAB_CONF, lab
from tests.contract.situations_gpus import FILLER, GPU_FORMS, GPU_RUNS, GPUS_BY_PLACEMENT
from tests.contract.table import Reading, Situation

from .harness import Cluster

Counts = tuple[int, dict[str, int], int]
"""GPUs in all, by type, and on one node together."""


@pytest.fixture(scope="module")
def stage(_engine: None, release: str) -> Iterator[Stage]:
    """A cluster with 10 a100 and 6 v100; one of its nodes has both types, one has none."""
    with Cluster(release, daemons=(), shape=lab(), slurm_conf=LAB_CONF) as running:
        stage = Stage(running)
        stage.install()
        yield stage


@dataclass(frozen=True)
class Pending:
    """What the product counts by label, by text and by JSON, and the ids of the jobs."""

    ids: dict[str, int]
    counts: dict[str, dict[str, Counts]]


@pytest.fixture(scope="module")
def pending(stage: Stage) -> Pending:
    """Every form waits for its GPUs behind a job that holds them all."""
    stage.clear()
    stage.submit((FILLER, *GPU_FORMS))
    stage.settle((FILLER, *GPU_FORMS))
    return Pending(stage.ids, {how: counted(stage, how) for how in ("jobs", "jobs by JSON")})


@pytest.fixture(scope="module")
def running(stage: Stage) -> list[dict[str, Any]]:
    """The nodes as the product reads them while some jobs run; nothing else is in the queue."""
    stage.clear()
    stage.submit(GPU_RUNS)
    stage.settle(GPU_RUNS)
    return nodes(stage)


def counted(stage: Stage, how: str) -> dict[str, Counts]:
    """Return the GPUs that the product reads from the queue, by label."""
    jobs = stage.in_container({"read": how}, user="scoreop")
    return {
        job["label"]: (job["gpus"]["total"], dict(job["gpus"]["types"]), job["gpus"]["per_node"])
        for job in jobs
    }


def nodes(stage: Stage) -> list[dict[str, Any]]:
    """Return the nodes as the product reads them, in the container and with its own Python."""
    read: list[dict[str, Any]] = stage.in_container({"read": "nodes"}, user="scoreop")
    return read


def by_type(read: list[dict[str, Any]], field: str) -> dict[str, int]:
    """Return how many GPUs of each type the nodes have or use, by the field's name."""
    total: dict[str, int] = {}
    for node in read:
        for gpu_type, count in node[field]["types"].items():
            total[gpu_type] = total.get(gpu_type, 0) + count
    return total


def asked(reading: Reading) -> Counts:
    """Return the GPUs that the table says."""
    return reading.gpus, dict(reading.types), reading.per_node


@pytest.mark.parametrize("how", ["jobs", "jobs by JSON"])
@pytest.mark.parametrize("form", GPU_FORMS, ids=lambda form: form.name)
def test_gpus_asked_for_are_counted(release: str, pending: Pending, form: Situation, how: str) -> None:
    """In all, by type and on one node, for what sbatch(1) offers; a form that came later is not there."""
    if release in form.refused:
        assert form.name not in pending.ids
        return
    job_id, wanted = pending.ids[form.name], form.reads_on(release) or {}
    assert {suffix: pending.counts[how].get(f"{job_id}{suffix}") for suffix in wanted} == {
        suffix: asked(reading) for suffix, reading in wanted.items()
    }


def test_used_gpus_are_those_of_the_jobs_that_run(running: list[dict[str, Any]]) -> None:
    """7 of 10 a100 and 6 of 6 v100, whether the jobs named a type or not."""
    assert by_type(running, "gpus") == {"a100": 10, "v100": 6}
    assert by_type(running, "gpus_used") == {"a100": 7, "v100": 6}


def test_used_gpus_are_counted_on_the_node_where_the_job_runs(running: list[dict[str, Any]]) -> None:
    """g4 has both types and one of each in use by the same job."""
    assert {node["name"]: node["gpus_used"]["total"] for node in running} == {
        "g1": 3,
        "g2": 3,
        "g3": 4,
        "g4": 3,
        "c1": 0,
    }


def test_gpus_are_free_again_when_their_jobs_have_ended(stage: Stage, running: list[dict[str, Any]]) -> None:
    """GresUsed goes back to zero with the job's end."""
    stage.clear()
    after = nodes(stage)
    assert by_type(after, "gpus_used") == {"a100": 0, "v100": 0}
    assert {node["usable"] for node in after} == {True}


@pytest.mark.parametrize("form", GPUS_BY_PLACEMENT, ids=lambda form: form.name)
def test_size_read_of_a_job_that_waits_is_what_slurm_gives_it(
    release: str, stage: Stage, form: Situation
) -> None:
    """On an empty cluster the job runs on the nodes, CPUs and GPUs that the table says for it waiting."""
    stage.clear()
    stage.submit((replace(form, starts=True),))
    (job,) = stage.in_container({"read": "jobs"}, user="scoreop")
    (reading,) = (form.reads_on(release) or {}).values()
    assert job["state"] == "RUNNING"
    assert (job["nodes"], job["cpus"], job["gpus"]["total"]) == (reading.nodes, reading.cpus, reading.gpus)
