"""slurm_score/changes.py: in what other ways a job could have been asked for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from slurm_score.changes import Change, changes
from slurm_score.gres import GpuRequest, gpu_request, gpu_shards
from slurm_score.hints import Hints
from slurm_score.model import Cluster, Job, Predicted, RunTimes
from slurm_score.policy import Policy
from tests.unit.builders import (
    DAY,
    HOUR,
    MINUTE,
    drained,
    make_cluster,
    make_gpu_job,
    make_job,
    make_node,
    make_queue,
    typed,
)


def found(
    *jobs: Job,
    kind: str = "",
    cluster: Cluster | None = None,
    predicted: Mapping[int, Predicted] | None = None,
    run_times: Mapping[str, RunTimes] | None = None,
) -> list[Change]:
    """Return the changes of one kind to the first of these jobs, by the default policy."""
    queue = replace(make_queue(*jobs, cluster=cluster), predicted=predicted or {})
    every = changes(queue, 0, Policy(), run_times or {}, jobs)
    return [change for change in every if kind in ("", change.kind)]


def told(*jobs: Job, **given: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return them as their users read them: words, sbatch's option, scontrol's."""
    return [(change.words, change.options, change.update) for change in found(*jobs, **given)]


def words(*jobs: Job, **given: Any) -> list[str]:
    """Return them in words only."""
    return [change.words for change in found(*jobs, **given)]


def changed_partition(name: str, **values: Any) -> Cluster:
    """Return the cluster with one partition changed; GPU nodes stand in main as well."""
    cluster = make_cluster()
    nodes = tuple(replace(node, partitions=("main", *node.partitions)) for node in cluster.nodes)
    partitions = {**cluster.partitions, name: replace(cluster.partitions[name], **values)}
    return replace(cluster, nodes=nodes, partitions=partitions)


# GPU type


def test_another_type_that_can_serve_it_or_any_is_a_change() -> None:
    """As many GPUs, in the form in which the job asked: for each node, which Slurm can change, or in all."""
    assert told(make_gpu_job(1, "gpu:a100:2"), kind="GPU type") == [
        ("v100 instead of a100", "--gpus=v100:2", ()),
        ("any type instead of a100", "--gpus=2", ()),
    ]
    each = make_job(partitions=("gpu",), gpus=gpu_request(per_node="gpu:v100:2"))
    assert told(each, kind="GPU type") == [
        ("a100 instead of v100", "--gres=gpu:a100:2", ("Gres=gpu:a100:2",)),
        ("any type instead of v100", "--gres=gpu:2", ("Gres=gpu:2",)),
    ]
    assert [change.job.gpus for change in found(each, kind="GPU type")] == [
        typed("a100", 2, 2),
        GpuRequest(2, (), 2),
    ]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(), id="no GPU"),
        pytest.param(make_gpu_job(1, "gpu:2"), id="any type already"),
        pytest.param(make_gpu_job(1, "gpu:a100:1,gpu:v100:1"), id="two types"),
        pytest.param(make_gpu_job(1, "gpu:a100:1", shards=gpu_shards(per_job="shard:2")), id="shards too"),
    ],
)
def test_only_a_job_of_one_type_can_take_another(job: Job) -> None:
    """Of the others nothing is said."""
    assert words(job, kind="GPU type") == []


@pytest.mark.parametrize(
    ("hints", "offered"),
    [
        pytest.param(Hints(vram_gib=40.0), [], id="a v100 has 32 GiB at most"),
        pytest.param(Hints(vram_gib=16.0), ["v100 instead of a100"], id="any type might be too small"),
        pytest.param(Hints(gpu=("a100", "h100")), [], id="v100 is not among those that he would take"),
        pytest.param(Hints(gpu=("a100", "v100")), ["v100 instead of a100"], id="v100 is"),
    ],
)
def test_a_type_that_the_user_ruled_out_is_no_change(hints: Hints, offered: list[str]) -> None:
    """By its memory or by name, in the hints of his comment."""
    assert words(make_gpu_job(1, "gpu:a100:1", hints=hints), kind="GPU type") == offered


def test_a_type_of_which_there_is_too_little_is_no_change() -> None:
    """Two nodes with two a100 each are no four on one node."""
    job = make_job(partitions=("gpu",), gpus=gpu_request(per_node="gpu:v100:4"))
    assert words(job, kind="GPU type") == []


# size


def test_half_of_the_nodes_and_one_take_their_share_with_them() -> None:
    """GPUs, CPUs and memory of a node stay together."""
    nodes = tuple(make_node(f"g{i}", "a100:2", mem_mib=8000) for i in range(4))
    job = make_job(
        partitions=("gpu",),
        nodes=4,
        max_nodes=4,
        cpus=8,
        mem_mib=4000,
        gpus=gpu_request(per_node="gpu:a100:2", nodes=4),
    )
    smaller = found(job, kind="size", cluster=make_cluster(nodes=nodes))
    assert [(change.words, change.options, change.update) for change in smaller] == [
        ("2 nodes instead of 4, as many GPUs and tasks on each", "--nodes=2", ()),
        ("1 node instead of 4, as many GPUs and tasks on each", "--nodes=1", ()),
    ]
    assert [(c.job.nodes, c.job.max_nodes, c.job.cpus, c.job.mem_mib, c.job.gpus) for c in smaller] == [
        (2, 2, 4, 2000, typed("a100", 4, 2)),
        (1, 1, 2, 1000, typed("a100", 2, 2)),
    ]


def test_half_of_the_gpus_and_one_where_they_stand_anywhere() -> None:
    """Three are halved to one: told once."""
    assert told(make_gpu_job(1, "gpu:a100:4"), kind="size") == [
        ("2 GPUs instead of 4", "--gpus=a100:2", ()),
        ("1 GPU instead of 4", "--gpus=a100:1", ()),
    ]
    assert words(make_gpu_job(1, "gpu:3"), kind="size") == ["1 GPU instead of 3"]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(cpus=8), id="no GPU"),
        pytest.param(make_gpu_job(1, "gpu:a100:1"), id="one"),
        pytest.param(make_gpu_job(1, "gpu:a100:2,gpu:v100:2"), id="two types"),
    ],
)
def test_what_cannot_be_halved_stays(job: Job) -> None:
    """One GPU is the least; CPUs are cheap to say and hard to change."""
    assert words(job, kind="size") == []


# time limit


def test_a_predicted_job_is_advised_twice_the_prediction() -> None:
    """2 x 25 min 10 s, rounded up to minutes; never below what nine of ten jobs of the user take."""
    job = make_job(time_limit_s=10.0 * HOUR)
    one = {1: Predicted(1510.0, "last 5 of alice's jobs")}
    assert told(job, kind="time limit", predicted=one) == [
        (
            "limit 00:51:00 instead of 10:00:00 (predicted: 00:25:10, last 5 of alice's jobs)",
            "--time=00:51:00",
            ("TimeLimit=51",),
        )
    ]
    usual = {"alice": RunTimes(20, 2.0 * HOUR), "bob": RunTimes(20, 9.0 * HOUR)}
    (change,) = found(job, kind="time limit", predicted=one, run_times=usual)
    assert (change.options, change.job.time_limit_s) == ("--time=02:00:00", 7200.0)


def test_without_a_prediction_half_the_limit_is_named_under_a_condition() -> None:
    """Nothing is known of the job: only its user can tell."""
    assert told(make_job(time_limit_s=10.0 * HOUR), kind="time limit") == [
        (
            "limit 05:00:00 instead of 10:00:00 (if it surely ends by then)",
            "--time=05:00:00",
            ("TimeLimit=300",),
        )
    ]


@pytest.mark.parametrize(
    ("limit_s", "offered"),
    [
        pytest.param(None, "limit 01:00:00 instead of 02:00:00", id="the partition's default time"),
        pytest.param(15.0 * MINUTE, "limit 00:10:00 instead of 00:15:00", id="ten minutes are the least"),
        pytest.param(10.0 * MINUTE, None, id="shorter isn't advised"),
        pytest.param(float("inf"), None, id="half of no limit is none"),
    ],
)
def test_the_limit_that_holds_is_halved(limit_s: float | None, offered: str | None) -> None:
    """What the partition gives where the job names none."""
    said = words(make_job(partitions=("gpu",), time_limit_s=limit_s), kind="time limit")
    assert said == ([] if offered is None else [f"{offered} (if it surely ends by then)"])


def test_a_prediction_near_the_limit_advises_nothing() -> None:
    """Twice of it is no shorter."""
    one = {1: Predicted(0.6 * HOUR, "last 5 of alice's jobs")}
    assert words(make_job(), kind="time limit", predicted=one) == []


# partition


def test_a_partition_that_is_open_and_large_enough_is_a_change() -> None:
    """The job's limit must fit into the partition's maximum, its GPUs must be there."""
    shared = changed_partition("gpu")
    job = make_gpu_job(1, "gpu:a100:1", time_limit_s=1.0 * DAY)
    assert told(job, kind="partition", cluster=shared) == [
        ("partition main instead of gpu", "--partition=main", ("Partition=main",))
    ]
    assert words(job, kind="partition") == []  # no GPU there
    assert words(make_job(time_limit_s=3.0 * DAY), kind="partition") == []  # gpu gives two days
    assert words(make_job(time_limit_s=1.0 * DAY), kind="partition") == ["partition gpu instead of main"]
    assert words(make_job(cpus=25), kind="partition") == []
    assert words(make_job(cpus=24, time_limit_s=2.0 * DAY), kind="partition") == [
        "partition gpu instead of main"
    ]
    assert words(make_job(time_limit_s=None), kind="partition") == ["partition gpu instead of main"]


def test_a_partition_or_type_whose_nodes_are_down_is_no_change() -> None:
    """Nobody is sent where nothing starts."""
    cluster = drained(changed_partition("gpu"), "g3")
    assert words(make_gpu_job(1, "gpu:a100:1"), kind="GPU type", cluster=cluster) == [
        "any type instead of a100"
    ]
    assert words(make_gpu_job(1, "gpu:v100:1"), kind="partition", cluster=cluster) == []
    down = drained(make_cluster(), "g1", "g2", "g3")
    assert words(make_job(time_limit_s=1.0 * DAY), kind="partition", cluster=down) == []


@pytest.mark.parametrize(
    "limits",
    [
        {"up": False},
        {"accounts": ("chemistry",)},
        {"qos": ("high",)},
        {"access": "AllowGroups=staff"},
    ],
)
def test_a_partition_that_does_not_let_it_in_is_no_change(limits: dict[str, Any]) -> None:
    """Down, for other accounts or QOS, or limited in a way that isn't known here."""
    cluster = changed_partition("main", **limits)
    assert words(make_gpu_job(1, "gpu:a100:1"), kind="partition", cluster=cluster) == []


def test_accounts_and_qos_that_may_use_a_partition_are_let_in() -> None:
    """alice's account is physics, her QOS normal."""
    cluster = changed_partition("main", accounts=("physics", "chemistry"), qos=("normal",))
    job = make_gpu_job(1, "gpu:a100:1")
    assert words(job, kind="partition", cluster=cluster) == ["partition main instead of gpu"]


def test_a_job_in_a_reservation_stays_where_that_is() -> None:
    """Its nodes are elsewhere no more."""
    job = make_gpu_job(1, "gpu:a100:1", reservation="course")
    assert words(job, kind="partition", cluster=changed_partition("gpu")) == []


# QOS


def test_a_higher_qos_of_the_same_user_and_account_is_a_change() -> None:
    """That he has a job with it is how it is known that he may use it; jobs that run count as well."""
    jobs = (
        make_job(1, qos="low"),
        make_job(2, qos="high", user="bob"),
        make_job(3, qos="high", account="chemistry"),
        make_job(4, qos="normal"),
        make_job(5, qos="gone"),
    )
    assert words(*jobs, kind="QOS") == []
    running = make_job(6, label="6_3", qos="high", state="RUNNING")
    assert told(*jobs, running, kind="QOS") == [
        ("QOS high instead of low, as job 6_3 has it", "--qos=high", ("QOS=high",))
    ]
    assert words(make_job(1, qos=""), make_job(2, qos="low"), kind="QOS") == [
        "QOS low instead of (none), as job 2 has it"
    ]


@pytest.mark.parametrize("limits", [{"qos": ("normal",)}, {"access": "DenyQos=high"}])
def test_a_qos_that_its_partition_keeps_out_is_no_change(limits: dict[str, Any]) -> None:
    """The one that the other job has is used elsewhere."""
    jobs = make_job(1), make_job(2, qos="high", partitions=("gpu",))
    assert words(*jobs, kind="QOS", cluster=changed_partition("main", **limits)) == []
    assert len(words(*jobs, kind="QOS")) == 1
