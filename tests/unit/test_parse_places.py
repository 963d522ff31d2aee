"""slurm_score/slurm/parse.py: where jobs may run, and how much memory they ask for."""

from typing import Any

import pytest

from slurm_score.gres import GpuRequest
from slurm_score.slurm.parse import JOB_FIELDS, parse_squeue, rejected_fields, squeue_format
from tests.unit.slurm_texts import END, SEP, squeue_line


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"Feature": "a100&nvlink"}, {"features": "a100&nvlink"}, id="--constraint"),
        pytest.param({"Feature": "[a100*2&v100*1]"}, {"features": "[a100*2&v100*1]"}, id="with counts"),
        pytest.param({"Prefer": "nvlink|v100"}, {"prefer": "nvlink|v100"}, id="--prefer"),
        pytest.param({"ReqNodes": "g[1-2]"}, {"req_nodes": "g[1-2]"}, id="--nodelist"),
        pytest.param({"ExcNodes": "c1,g[1-2]"}, {"exc_nodes": "c1,g[1-2]"}, id="--exclude"),
        pytest.param({"Reservation": "course"}, {"reservation": "course"}, id="--reservation"),
        pytest.param({"NodeList": "c1,g[1-4]"}, {"node_list": "c1,g[1-4]"}, id="it runs there"),
        pytest.param({}, {"max_nodes": 0, "features": "", "prefer": "", "reservation": ""}, id="nothing"),
        pytest.param({"NumNodes": "2", "MaxNodes": "4"}, {"nodes": 2, "max_nodes": 4}, id="--nodes=2-4"),
        pytest.param(
            {"NumNodes": "2", "MaxNodes": "2"},
            {"nodes": 2, "max_nodes": 0},
            id="--nodes=2 or none, for all it says",
        ),
        pytest.param({"NumNodes": "1K", "MaxNodes": "2K"}, {"nodes": 1024, "max_nodes": 2048}, id="units"),
        pytest.param(
            {"tres_per_node": "gres:shard:A100:2"},
            {"shards": GpuRequest(2, (("a100", 2),), per_node=2)},
            id="--gres=shard:A100:2",
        ),
        pytest.param(
            {
                "tres_per_job": "gres/gpu:1g.10gb:2",
                "tres_alloc": "cpu=1,node=1,gres/gpu=2,gres/gpu:1g.10gb=2",
            },
            {"slices": GpuRequest(2, (("1g.10gb", 2),)), "gpus": GpuRequest()},
            id="--gpus=1g.10gb:2",
        ),
    ],
)
def test_field_of_a_place_is_read(changes: dict[str, str], expected: dict[str, Any]) -> None:
    """What squeue prints on 22.05, 24.11 and 26.05, and what it means; unset is (null) or nothing."""
    (job,) = parse_squeue(squeue_line(**changes), SEP, END).items
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "mem_mib"),
    [
        pytest.param({}, 0, id="none: Slurm then counts the whole node's"),
        pytest.param({"MinMemory": "500M", "tres_alloc": "cpu=1,mem=500M,node=1"}, 500, id="--mem=500M"),
        pytest.param({"MinMemory": "3G", "tres_alloc": "cpu=1,mem=3G,node=1"}, 3072, id="--mem=3G"),
        pytest.param(
            {"MinMemory": "500M", "tres_alloc": "cpu=2,mem=1000M,node=2", "NumNodes": "2"},
            1000,
            id="--mem on two nodes",
        ),
        pytest.param(
            {"MinMemory": "500M", "tres_alloc": "cpu=2,mem=1000M,node=2", "NumNodes": "3"},
            1500,
            id="--nodes=2-3: Slurm counts two and means to give three",
        ),
        pytest.param(
            {"MinMemory": "100M", "tres_alloc": "cpu=3,mem=300M,node=1"}, 300, id="--mem-per-cpu, three CPUs"
        ),
        pytest.param(
            {"mem_per_tres": "gres:gpu:100", "tres_alloc": "cpu=1,mem=200M,node=1,gres/gpu=2"},
            200,
            id="--mem-per-gpu on 22.05",
        ),
        pytest.param(
            {"mem_per_tres": "gres/gpu:100", "MinMemory": "100M", "tres_alloc": "cpu=1,mem=200M,node=1"},
            200,
            id="--mem-per-gpu on 24.11",
        ),
        pytest.param(
            {"State": "RUNNING", "tres_alloc": "cpu=8,mem=4000M,node=1"}, 4000, id="running: what it holds"
        ),
        pytest.param(
            {"State": "RUNNING", "MinMemory": "500M", "tres_alloc": "cpu=1,node=1"},
            0,
            id="running where Slurm doesn't count memory (CR_Core)",
        ),
        pytest.param({"MinMemory": "1T", "tres_alloc": "cpu=1,mem=1T,node=1"}, 1_048_576, id="--mem=1T"),
    ],
)
def test_memory_is_what_the_job_asks_for(changes: dict[str, str], mem_mib: int) -> None:
    """All nodes together, in MiB; observed on 22.05, 24.11 and 26.05."""
    reading = parse_squeue(squeue_line(**changes), SEP, END)
    assert reading.problems == []
    assert reading.items[0].mem_mib == mem_mib


def test_fields_that_a_release_lacks_are_neither_asked_for_nor_read() -> None:
    """20.11 knows neither --prefer nor a field for --exclude; the other fields stay where they are."""
    lacks = frozenset({"Prefer", "ExcNodes"})
    names = [name for name in JOB_FIELDS if name not in lacks]
    assert squeue_format("<", ">", lacks) == ",".join(f"{n}:<" for n in names[:-2]) + ",Name:>,Comment:>"
    (job,) = parse_squeue(squeue_line(lacks, Feature="a100"), SEP, END, lacks).items
    assert (job.job_id, job.features, job.prefer, job.exc_nodes) == (812, "a100", "", "")


@pytest.mark.parametrize(
    ("stderr", "fields"),
    [
        pytest.param("squeue: error: Invalid job format specification: ExcNodes\n", {"ExcNodes"}, id="22.05"),
        pytest.param(
            "squeue: error: Invalid job format specification: ExcNodes\n"
            "squeue: error: Invalid job format specification: Prefer\n",
            {"ExcNodes", "Prefer"},
            id="20.11",
        ),
        pytest.param("squeue: error: Invalid user: nobody\n", set(), id="another complaint"),
    ],
)
def test_fields_that_squeue_rejects_are_named(stderr: str, fields: set[str]) -> None:
    """It prints them empty and ends with 0."""
    assert rejected_fields(stderr) == fields


def test_unreadable_memory_is_named() -> None:
    """The others are kept."""
    bad = squeue_line(JobID="2", MinMemory="500M", tres_alloc="cpu=1,mem=lots,node=1")
    reading = parse_squeue(squeue_line() + bad, SEP, END)
    assert [job.job_id for job in reading.items] == [812]
    assert "not an amount of memory, got 'lots'" in reading.problems[0]
