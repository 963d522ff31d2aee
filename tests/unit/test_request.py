"""slurm_score/request.py: equal requests are one, and what follows from a request."""

from typing import Any

import pytest

from slurm_score.gres import NO_GPUS, GpuRequest
from slurm_score.hints import parse_hints
from slurm_score.model import Job
from slurm_score.request import Ask, Where, ask_of, code_asks
from tests.unit.builders import make_gpu_job, make_job, typed


def ask(**changes: Any) -> Ask:
    """Return a job's request."""
    found = ask_of(make_job(**changes))
    assert found is not None
    return found


def test_request_holds_what_slurm_was_told_and_what_was_wished() -> None:
    """Field by field."""
    job = make_job(
        partitions=("gpu", "far"),
        features="a|b",
        req_nodes="g1",
        exc_nodes="g2",
        reservation="course",
        gpus=typed("a100", 4, 2),
        slices=GpuRequest(1, (("1g.10gb", 1),)),
        shards=GpuRequest(3),
        nodes=2,
        max_nodes=4,
        cpus=16,
        mem_mib=4096,
        prefer="c",
        hints=parse_hints("score: gpu=h100|a100 vram=40 est=2h"),
    )
    assert ask_of(job) == Ask(
        where=Where(("gpu", "far"), "a|b", "g1", "g2", "course"),
        gpus=typed("a100", 4, 2),
        slices=GpuRequest(1, (("1g.10gb", 1),)),
        shards=GpuRequest(3),
        nodes=2,
        max_nodes=4,
        cpus=16,
        mem_mib=4096,
        prefer="c",
        order=("h100", "a100"),
        vram_gib=40.0,
    )


@pytest.mark.parametrize(
    ("job", "units"),
    [
        (make_job(gpus=GpuRequest(4)), 4),
        (make_job(gpus=GpuRequest(2), slices=GpuRequest(3), shards=GpuRequest(5)), 10),
    ],
)
def test_units_are_gpus_slices_and_shards_together(job: Job, units: int) -> None:
    """Each is one thing that the job needs."""
    found = ask_of(job)
    assert found is not None
    assert found.units == units


@pytest.mark.parametrize("job", [make_job(), make_job(gpus=GpuRequest(0)), make_job(cpus=64, prefer="a100")])
def test_job_that_asks_for_no_gpu_has_no_request(job: Job) -> None:
    """Nor for a slice or a shard."""
    assert ask_of(job) is None


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        pytest.param({"gpus": GpuRequest(4)}, 0, id="--gpus=4: as Slurm likes"),
        pytest.param({"gpus": GpuRequest(4, (), 4)}, 1, id="--gres=gpu:4"),
        pytest.param({"gpus": GpuRequest(8, (), 4), "nodes": 2}, 2, id="--gres=gpu:4 -N 2"),
        pytest.param({"gpus": GpuRequest(4), "max_nodes": 1}, 1, id="--gpus=4 -N 1"),
        pytest.param({"gpus": GpuRequest(4), "max_nodes": 2}, 0, id="--gpus=4 -N 1-2"),
        pytest.param({"shards": GpuRequest(6, (), 2), "nodes": 3}, 3, id="--gres=shard:2 -N 3"),
        pytest.param({"gpus": NO_GPUS, "slices": GpuRequest(2, (("1g.10gb", 2),), 1)}, 2, id="slices"),
    ],
)
def test_groups_are_the_nodes_that_each_hold_the_same(changes: dict[str, Any], groups: int) -> None:
    """What is asked for on each node, or on one node, stands together."""
    assert ask(**changes).groups == groups


@pytest.mark.parametrize(("max_nodes", "most"), [(0, 4), (2, 2), (9, 4)])
def test_request_stands_on_no_more_nodes_than_units(max_nodes: int, most: int) -> None:
    """Slurm takes no node of which the job gets no GPU."""
    assert ask(gpus=GpuRequest(4), max_nodes=max_nodes).most_nodes == most


def test_equal_requests_have_one_code() -> None:
    """Whether or not they are the same object; who asks, and for how long, is no part of it."""
    hint = "score: gpu=a100"
    jobs = (
        make_job(1),
        make_gpu_job(2, "gpu:a100:2"),
        make_gpu_job(3, "gpu:a100:2", user="bob", qos="high", time_limit_s=60.0),
        make_job(4, partitions=("gpu",), gpus=typed("a100", 2)),
        make_job(5, cpus=64),
        make_gpu_job(6, "gpu:a100:2", hints=parse_hints(hint)),
        make_gpu_job(7, "gpu:a100:2", hints=parse_hints(f"{hint} est=2h")),
        make_gpu_job(8, "gpu:a100:2", cpus=2),
    )
    codes, asks = code_asks(jobs)
    assert codes == [0, 1, 1, 1, 0, 2, 2, 3]
    assert asks == (None, ask_of(jobs[1]), ask_of(jobs[5]), ask_of(jobs[7]))


def test_no_job_no_request() -> None:
    """An empty queue."""
    assert code_asks(()) == ([], ())
