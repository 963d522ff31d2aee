"""The shipped fake Slurm behaves as Slurm does: reading and submission.

Each docstring names the rule and where it comes from.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from slurm_score.errors import CommandFailedError, ControllerDownError, ServiceError
from slurm_score.gres import GpuCount, GpuRequest
from slurm_score.model import Partition
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, ControllerHost, Gateway, Identity, SiteFactorUpdate
from tests.unit.fake_support import (
    A100,
    QOS,
    T0,
    V100,
    fill,
    gpu_node,
    job_of,
    one_node,
    two_nodes,
)

# Reading


def test_fake_is_a_gateway() -> None:
    """FakeSlurm fulfils the Gateway protocol, which the type checker sees here."""
    gateway: Gateway = two_nodes()
    assert gateway.read_config().cluster == "fake"


def test_config_is_suitable_for_site_factors() -> None:
    """SiteFactor needs priority/multifactor and no site factor plugin (scontrol show config)."""
    config = two_nodes(priority_weights={"age": 1000, "qos": 500}).read_config()
    assert (config.release, config.slurm_user) == ("24.11.5", "slurm")
    assert (config.priority_type, config.site_factor_plugin) == ("priority/multifactor", "")
    assert config.priority_weights == {
        "age": 1000,
        "assoc": 0,
        "fairshare": 0,
        "job_size": 0,
        "partition": 0,
        "qos": 500,
        "tres": 0,
    }


def test_identity_names_the_admin_level() -> None:
    """Who sets SiteFactor needs AdminLevel Operator or to be SlurmUser (job_mgr.c, validate_operator)."""
    operator = two_nodes(user="ops", admin_levels={"ops": "Operator"})
    assert operator.read_identity() == Identity("ops", "Operator")
    assert two_nodes().read_identity() == Identity("slurm", "None")


def test_pending_job_reads_as_squeue_and_sprio_print_it() -> None:
    """Every field of a pending job is what was submitted, with the partition's limit (squeue(1))."""
    slurm = two_nodes()
    job_id = slurm.submit(
        Submission(
            user="ann",
            account="bio",
            gres=f"gpu:{A100}:1",
            nodes=1,
            tasks=2,
            cpus_per_task=3,
            time_limit_s=5400,
            comment="score: est=20m",
        )
    )
    job = job_of(slurm, job_id)
    assert (job.label, job.update_id, job.user, job.account) == ("1", "1", "ann", "bio")
    assert (job.qos, job.partitions, job.state, job.reason) == ("normal", ("gpu",), "PENDING", "None")
    assert (job.submit_s, job.eligible_s, job.start_s, job.time_limit_s) == (T0, T0, None, 5400)
    assert (job.nodes, job.cpus, job.gpus) == (1, 6, GpuRequest(1, ((A100, 1),), 1))
    assert (job.hints.est_s, job.site_factor, job.pinned) == (1200, 0, False)


def test_running_job_reads_without_site_factor() -> None:
    """sprio lists pending jobs only (priority_p_get_priority_factors_list)."""
    slurm = two_nodes()
    job_id = slurm.submit(Submission(run_time_s=60))
    slurm.schedule()
    job = job_of(slurm, job_id)
    assert (job.state, job.reason, job.start_s, job.site_factor) == ("RUNNING", "None", T0, None)


def test_ended_job_is_not_read() -> None:
    """squeue shows pending and running jobs unless asked for others (squeue(1), --states)."""
    slurm = two_nodes()
    slurm.submit(Submission(run_time_s=60))
    slurm.advance(T0 + 60)
    assert slurm.read_jobs() == ()


def test_unset_time_limit_is_the_default_time_of_the_partition() -> None:
    """A job without --time gets DefaultTime, MaxTime where that isn't set (slurm.conf(5))."""
    partitions = [
        Partition(name="short", default=True, default_time_s=600, max_time_s=3600),
        Partition(name="long", max_time_s=7200),
        Partition(name="open"),
    ]
    slurm = FakeSlurm([gpu_node("n", A100, partitions="short,long,open")], partitions, QOS)
    for name in ("", "long", "open"):
        slurm.submit(Submission(partition=name))
    assert [job.time_limit_s for job in slurm.read_jobs()] == [600, 7200, math.inf]


def test_time_limit_counts_in_whole_minutes() -> None:
    """sbatch rounds a limit up to minutes, and 0 asks for none (sbatch(1), --time; time_str2mins)."""
    limits = [Submission(time_limit_s=limit).limit_s for limit in (1, 60, 61, 0, math.inf, None)]
    assert limits == [60, 60, 120, math.inf, math.inf, None]


def test_used_cpus_and_gpus_are_shown_on_the_node() -> None:
    """A running job's CPUs and GPUs are in use on its node (scontrol show node, AllocTRES, GresUsed)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{V100}:1", cpus_per_task=4, run_time_s=60))
    slurm.schedule()
    a, v = slurm.read_cluster().nodes
    assert (a.states, a.cpus_used, a.gpus_used.total) == (("IDLE",), 0, 0)
    assert (v.states, v.cpus_used, v.gpus_used) == (("MIXED",), 4, GpuCount(1, {V100: 1}))
    assert (v.free_gpus(V100), v.free_gpus(None)) == (1, 1)


def test_untyped_request_takes_gpus_of_some_type() -> None:
    """A request without a type is met by any GPU, and that one's type is in use (gres.html)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres="gpu:2", run_time_s=60))
    slurm.schedule()
    assert slurm.read_cluster().nodes[0].gpus_used == GpuCount(2, {A100: 2})


def test_node_with_every_cpu_in_use_is_allocated() -> None:
    """A node's state is ALLOCATED when nothing of it is left (sinfo(1), NODE STATE CODES)."""
    slurm = one_node()
    fill(slurm)
    assert slurm.read_cluster().nodes[0].states == ("ALLOCATED",)


def test_drained_and_down_nodes_are_not_usable() -> None:
    """A drained node keeps its base state beside DRAIN, a failed one is DOWN (sinfo(1))."""
    slurm = two_nodes()
    slurm.drain("a")
    slurm.fail("v")
    a, v = slurm.read_cluster().nodes
    assert (a.states, a.usable) == (("IDLE", "DRAIN"), False)
    assert (v.states, v.usable) == (("DOWN",), False)
    slurm.resume("a")
    assert slurm.read_cluster().nodes[0] == gpu_node("a", A100)


def test_node_that_is_given_as_unusable_starts_drained() -> None:
    """A node that can't take jobs at first takes them when resumed (scontrol(1), State=RESUME)."""
    node = replace(gpu_node("n", A100), usable=False, states=("IDLE", "DRAIN"), cpus_used=3)
    slurm = FakeSlurm([node], [Partition(name="gpu", default=True)], QOS)
    slurm.submit(Submission(run_time_s=60))
    assert slurm.schedule() == ()
    slurm.resume("n")
    assert slurm.schedule() == (1,)


def test_unknown_node_is_refused() -> None:
    """scontrol names an unknown node as such (slurm_errno.c, ESLURM_INVALID_NODE_NAME)."""
    with pytest.raises(CommandFailedError, match=r"^Invalid node name specified$"):
        two_nodes().drain("x")


def test_cluster_holds_partitions_and_qos() -> None:
    """Partitions know their CPUs, and QOS their priority (scontrol show partition, show assoc_mgr)."""
    cluster = two_nodes().read_cluster()
    assert cluster.partitions["gpu"].cpus == 16
    assert (cluster.qos, cluster.time_s, cluster.default_partition) == (QOS, T0, "gpu")


# Submission


@pytest.mark.parametrize(
    ("submission", "sentence"),
    [
        (Submission(partition="x"), "Invalid partition name specified"),
        (Submission(qos="x"), "Invalid qos specification"),
        (Submission(gres="gpu:a b"), "Invalid generic resource (gres) specification"),
        (Submission(gres="gpu:1", gpus="1"), "Invalid generic resource (gres) specification"),
        (Submission(gres="gpu:h100:1"), "Requested node configuration is not available"),
        (Submission(gres=f"gpu:{A100}:3"), "Requested node configuration is not available"),
        (Submission(gpus="3", nodes=1), "Requested node configuration is not available"),
        (Submission(nodes=3), "Requested node configuration is not available"),
        (Submission(cpus_per_task=17), "Requested node configuration is not available"),
        (Submission(array="3-1"), "Invalid job array specification"),
        (Submission(array="x"), "Invalid job array specification"),
        (Submission(dependency=99), "Job dependency problem"),
    ],
)
def test_impossible_submission_is_rejected(submission: Submission, sentence: str) -> None:
    """sbatch fails with Slurm's own sentence (slurm_errno.c), and nothing is queued."""
    slurm = two_nodes()
    with pytest.raises(CommandFailedError) as caught:
        slurm.submit(submission)
    assert str(caught.value) == f"Batch job submission failed: {sentence}"
    assert slurm.read_jobs() == ()


def test_submission_without_default_partition_is_rejected() -> None:
    """A job needs a partition, named or default (slurm_errno.c, ESLURM_DEFAULT_PARTITION_NOT_SET)."""
    slurm = FakeSlurm([gpu_node("n", A100)], [Partition(name="gpu")], QOS)
    with pytest.raises(CommandFailedError, match="No partition specified or system default partition"):
        slurm.submit(Submission())


def test_job_submit_is_asked_with_what_the_hook_sends() -> None:
    """The fields and their spelling are those of job_submit/slurm_score.lua, None for what is unset."""
    asked: list[Mapping[str, Any]] = []

    def job_submit(job_desc: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(job_desc)
        return {}

    slurm = two_nodes(job_submit=job_submit)
    slurm.submit(
        Submission(
            user="ann",
            qos="high",
            name="train",
            gres=f"gpu:{A100}:1",
            tasks=2,
            cpus_per_task=2,
            time_limit_s=90,
            array="0-3%2",
            begin_s=T0 + 60,
        )
    )
    assert asked == [
        {
            "uid": 1000,
            "user": "ann",
            "account": None,
            "default_account": None,
            "qos": "high",
            "default_qos": None,
            "partition": None,
            "reservation": None,
            "name": "train",
            "comment": None,
            "features": None,
            "array": "0-3%2",
            "priority": None,
            "time_limit_min": 2,
            "time_min_min": None,
            "begin_time": T0 + 60,
            "min_nodes": 1,
            "max_nodes": None,
            "min_cpus": 4,
            "num_tasks": 2,
            "cpus_per_task": 2,
            "ntasks_per_node": None,
            "tres_per_job": None,
            "tres_per_node": f"gres/gpu:{A100}:1",
            "tres_per_socket": None,
            "tres_per_task": None,
            "cpus_per_tres": None,
            "het_job_offset": None,
        }
    ]


@pytest.mark.parametrize(
    ("submission", "field", "value"),
    [
        (Submission(time_limit_s=math.inf), "time_limit_min", "UNLIMITED"),
        (Submission(), "time_limit_min", None),
        (Submission(hold=True), "priority", 0),
        (Submission(gpus=f"{A100}:1,{V100}:2"), "tres_per_job", f"gres/gpu:{A100}:1,gres/gpu:{V100}:2"),
        (Submission(gpus="4"), "tres_per_job", "gres/gpu:4"),
        (Submission(nodes=2), "max_nodes", 2),
    ],
)
def test_hook_sees_the_request_as_slurmctld_spells_it(
    submission: Submission, field: str, value: object
) -> None:
    """TRES carry the gres/ prefix from 23.11 on, and limits are minutes (gres_prepend_tres_type)."""
    assert submission.job_desc(1000)[field] == value


def test_site_factor_and_advice_of_job_submit_are_kept() -> None:
    """job_desc.site_factor set by the hook is the job's SiteFactor at once (job_submit/lua)."""
    slurm = two_nodes(job_submit=lambda _: {"site_factor": 123, "advice": ("ask for a V100",)})
    job_id = slurm.submit(Submission())
    assert job_of(slurm, job_id).site_factor == 123
    assert slurm.advice_of(job_id) == ("ask for a V100",)


@pytest.mark.parametrize("value", [None, -2, 2147483646, 1.5, True, "7"])
def test_unusable_site_factor_of_job_submit_stays_unset(value: object) -> None:
    """-2 is NO_VAL, more than 2147483645 would wrap around, and only whole numbers are taken."""
    slurm = two_nodes(job_submit=lambda _: {"site_factor": value})
    assert job_of(slurm, slurm.submit(Submission())).site_factor == 0


@pytest.mark.parametrize("error", [ServiceError("no answer"), OSError("gone")])
def test_failing_job_submit_never_rejects_a_job(error: Exception) -> None:
    """The hook fails open: scoring trouble costs nobody a submission (job_submit/slurm_score.lua)."""

    def job_submit(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise error

    slurm = two_nodes(job_submit=job_submit)
    job_id = slurm.submit(Submission())
    assert (job_of(slurm, job_id).site_factor, slurm.advice_of(job_id)) == (0, ())


def test_advice_of_an_unknown_job_is_refused() -> None:
    """An id that was never given out is invalid (slurm_errno.c, ESLURM_INVALID_JOB_ID)."""
    with pytest.raises(CommandFailedError, match="Invalid job id specified"):
        two_nodes().advice_of(7)


def test_slurmctld_goes_down_after_so_many_updates() -> None:
    """What was carried out stays; it answers no ping until it is started again."""
    slurm = two_nodes()
    jobs = [slurm.submit(Submission(time_limit_s=600)) for _ in range(3)]
    slurm.guard.access, slurm.dies_after = Access.ENFORCE, 2
    with pytest.raises(ControllerDownError, match="Unable to contact slurm controller"):
        slurm.write_site_factors([SiteFactorUpdate(i, str(i), 7) for i in jobs])
    with pytest.raises(ControllerDownError):
        slurm.read_controllers()
    slurm.dies_after = None
    assert slurm.read_controllers() == (ControllerHost("fake", True),)
    assert [slurm.site_factor_of(i) for i in jobs] == [7, 7, 0]


def test_scrontab_job_takes_no_update() -> None:
    """Slurm's own words, whoever asks (trap 28)."""
    slurm = two_nodes()
    update = SiteFactorUpdate(slurm.submit(Submission(scrontab=True)), "1", 7)
    slurm.guard.access = Access.ENFORCE
    (failure,) = slurm.write_site_factors([update])
    assert failure.message == "Cannot modify scrontab jobs through scontrol"
