"""slurm_score/slurm/pyslurm_gateway.py: what comes from pyslurm, and what from the commands."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from slurm_score.gres import NO_GPUS, GpuCount, GpuRequest
from slurm_score.hints import Hints
from slurm_score.model import Job, Node, Partition
from tests.unit.builders import NOW
from tests.unit.pyslurm_stub import JOB, PARTITION_RECORD, Stub, commands, door, install


def read(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Job:
    """Return the job that is read from one record."""
    install(monkeypatch, Stub(jobs=[JOB | changes]))
    (job,) = door(commands(sprio="")).read_jobs()
    return job


def gpu(count: int) -> SimpleNamespace:
    """Return what pyslurm keeps of one counted GRES."""
    return SimpleNamespace(count=count)


# jobs


def test_jobs_are_joined_with_the_site_factors_that_sprio_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """slurm-facts 6: pyslurm's Job has no site_factor; equal to the job read through squeue otherwise."""
    install(monkeypatch, Stub())
    slurm = commands()
    assert door(slurm).read_jobs() == (
        Job(
            job_id=812,
            label="812",
            update_id="812",
            user="bob",
            account="research",
            qos="normal",
            partitions=("main",),
            reason="Priority",
            priority=1200,
            submit_s=1_699_990_000,
            eligible_s=1_699_990_000,
            time_limit_s=3600.0,
            site_factor=700,
            slurm_parts=(500, 0, 0, 0, 0, 0, 0, 0),
            name="train-1",
        ),
    )
    assert [argv[0] for argv, _ in slurm.asked] == ["sprio"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"id": 3, "array_id": 3, "array_tasks_waiting": "6-99:3", "array_tasks_parallel": 2},
            {"label": "3_[6-99:3%2]", "update_id": "3_[6-99:3]", "tasks": "6-99:3"},
            id="array with a throttle",
        ),
        pytest.param(
            {"id": 3, "array_id": 3, "array_tasks_waiting": "1-5"}, {"label": "3_[1-5]"}, id="array without"
        ),
        pytest.param({"id": 6, "array_id": 3, "array_task_id": 3}, {"update_id": "3_3"}, id="task"),
        pytest.param({"id": 5, "array_id": 3}, {"label": "3_0", "job_id": 5}, id="task 0 is None"),
        pytest.param(
            {"id": 30, "heterogeneous_id": 30}, {"label": "30+0", "het_job_id": 30}, id="het leader"
        ),
        pytest.param(
            {"id": 31, "heterogeneous_id": 30, "heterogeneous_offset": 1},
            {"label": "30+1", "update_id": "30", "follows_leader": True},
            id="het component",
        ),
        pytest.param(
            {"heterogeneous_offset": 4_294_967_294}, {"label": "812", "het_job_id": None}, id="no het job"
        ),
        pytest.param({"time_limit": None}, {"time_limit_s": math.inf}, id="unlimited is None"),
        pytest.param({"priority": 0, "state_reason": "JobHeldUser"}, {"held": True}, id="held"),
        pytest.param({"priority": None, "state_reason": None}, {"priority": 1, "reason": "None"}, id="gaps"),
        pytest.param({"partition": "main,gpu"}, {"partitions": ("main", "gpu")}, id="case 27: partitions"),
        pytest.param({"requeue_count": 2, "start_time": 5}, {"restarts": 2, "start_s": 5}, id="restarted"),
        pytest.param({"num_nodes": 3}, {"nodes": 3, "cpus": 3}, id="a CPU on each node"),
        pytest.param({"num_nodes": 2, "max_nodes": 4}, {"max_nodes": 4}, id="range of nodes"),
        pytest.param({"max_nodes": 1}, {"max_nodes": 1}, id="one node"),
        pytest.param({"max_nodes": 1, "priority": 0}, {"max_nodes": 0}, id="held: no request"),
        pytest.param({"max_nodes": 1, "eligible_time": None}, {"max_nodes": 0}, id="it depends on another"),
        pytest.param({"memory": 4000}, {"mem_mib": 4000}, id="memory"),
        pytest.param(
            {"constraints": ["a100&nvlink", "big"], "reservation": "course"},
            {"features": "a100&nvlink,big", "reservation": "course"},
            id="constraint and reservation",
        ),
        pytest.param(
            {"required_nodes": "g[1-2]", "excluded_nodes": "g3", "allocated_nodes": "g1"},
            {"req_nodes": "g[1-2]", "exc_nodes": "g3", "node_list": "g1"},
            id="nodes",
        ),
        pytest.param(
            {"gres_per_node": {"gres/shard": 3}, "gres": {"gpu": gpu(1), "gpu:1g.10gb": gpu(1)}},
            {"shards": GpuRequest(3, (), 3), "slices": GpuRequest(1, (("1g.10gb", 1),)), "gpus": NO_GPUS},
            id="shards and slices",
        ),
        pytest.param({"federation_origin": "west"}, {"origin": "west"}, id="trap 27: federation"),
        pytest.param({"comment": "score: est=20m"}, {"hints": Hints(est_s=1200.0)}, id="hint"),
        pytest.param(
            {"dependencies": {"afterany": [7], "afterok": ["17(unfulfilled)", 18], "satisfy": "all"}},
            {"dependency": "afterany:7,afterok:17(unfulfilled),afterok:18"},
            id="all dependencies",
        ),
        pytest.param(
            {"dependencies": {"afterok": [17, 18], "singleton": False, "satisfy": "any"}},
            {"dependency": "afterok:17?afterok:18"},
            id="any dependency",
        ),
    ],
)
def test_attribute_of_a_job_is_read(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    """pyslurm turns 0 into None where it holds 0 for NO_VAL: utils/uint.pyx."""
    job = read(monkeypatch, **changes)
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        pytest.param({}, NO_GPUS, id="none"),
        pytest.param(
            {"gres_per_node": {"gres/gpu:a100": 2}, "num_nodes": 2}
            | {"gres": {"gpu": gpu(4), "gpu:a100": gpu(4)}},
            GpuRequest(4, (("a100", 4),), 2),
            id="--gres",
        ),
        pytest.param({"gres": {"gpu": gpu(5)}}, GpuRequest(5), id="--gpus"),
        pytest.param(
            {"gres": {"gpu": gpu(4), "gpu:a100": gpu(4)}}, GpuRequest(4, (("a100", 4),)), id="--gpus=a100:4"
        ),
        pytest.param(
            {"tres_per_task": SimpleNamespace(gres={"gpu:a100": gpu(1)}), "ntasks": 3},
            GpuRequest(3, (("a100", 3),)),
            id="--gpus-per-task",
        ),
        pytest.param({"gres": {"shard": gpu(3)}}, NO_GPUS, id="shards"),
    ],
)
def test_gpu_request_is_read(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], gpus: GpuRequest
) -> None:
    """pyslurm keeps `gres/` in gres_per_node and drops it elsewhere: utils/cstr.pyx, db/tres.pyx."""
    assert read(monkeypatch, **changes).gpus == gpus


@pytest.mark.parametrize("state", ["COMPLETED", "REVOKED", "STAGE_OUT", "TIMEOUT"])
def test_jobs_that_have_ended_are_left_out(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """Jobs.load brings every job that slurmctld remembers; as squeue -t does it."""
    install(monkeypatch, Stub(jobs=[JOB | {"state": state}, JOB | {"id": 9, "state": "RUNNING"}]))
    assert [job.job_id for job in door(commands()).read_jobs()] == [9]


@pytest.mark.parametrize(("sprio", "states"), [("", []), ("812|1|0|0|0|0|0|0|0|0|\n", ["COMPLETING"])])
def test_completing_job_is_read_if_it_runs_again(
    monkeypatch: pytest.MonkeyPatch, sprio: str, states: list[str]
) -> None:
    """As in squeue's text: sprio lists the jobs that will run again."""
    install(monkeypatch, Stub(jobs=[JOB | {"state": "COMPLETING"}]))
    assert [job.state for job in door(commands(sprio=sprio)).read_jobs()] == states


# the cluster


def test_cluster_is_read_from_pyslurm_and_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes and partitions from pyslurm; configuration, QOS, switches, reservations from the commands."""
    install(monkeypatch, Stub())
    slurm = commands()
    cluster = door(slurm).read_cluster()
    assert (cluster.time_s, cluster.config.release, cluster.qos) == (NOW, "22.05.8", {"high": 1000})
    main = Partition(name="main", default=True, max_time_s=604800.0, cpus=24, access="not told")
    assert cluster.partitions == {"main": main}
    assert cluster.nodes == (
        Node(
            name="g1",
            states=("MIXED", "DRAIN"),
            usable=False,
            cpus=8,
            cpus_used=8,
            mem_mib=4000,
            mem_used_mib=1000,
            gpus=GpuCount(4, {"a100": 4}),
            gpus_used=GpuCount(4, {"a100": 4}),
            partitions=("main", "gpu"),
            features=("nvlink",),
            switch="s1",
        ),
    )
    assert list(cluster.reservations) == ["later", "course"]
    assert [argv[2] for argv, _ in slurm.asked] == ["config", "topology", "assoc_mgr", "reservation"]


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({"default_time": 60, "max_time": "UNLIMITED"}, "default_time_s", 3600.0),
        ({"default_time": 60, "max_time": "UNLIMITED"}, "max_time_s", math.inf),
        ({"state": "DRAIN"}, "up", False),
    ],
)
def test_attribute_of_a_partition_is_read(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], name: str, expected: object
) -> None:
    """pyslurm gives minutes, None for no limit set and a word for no limit."""
    install(monkeypatch, Stub(partitions=[PARTITION_RECORD | changes]))
    assert getattr(door(commands()).read_cluster().partitions["main"], name) == expected
