"""The shipped fake Slurm behaves as Slurm does; each docstring names the rule and where it comes from."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from slurm_score.errors import CommandFailedError, ServiceError, WriteRefusedError
from slurm_score.gres import GpuCount, GpuRequest
from slurm_score.model import Job, Node, Partition, PastRun
from slurm_score.slurm.fake import START_S, FakeSlurm, JobRun, Submission
from slurm_score.slurm.fake_jobs import expand_array, format_tasks
from slurm_score.slurm.gateway import Access, Gateway, Identity, SiteFactorUpdate, UpdateFailure

T0 = START_S
A100, V100 = "a100-40gb", "v100-16gb"
QOS = {"normal": 0, "high": 50, "urgent": 100}


def gpu_node(name: str, gpu_type: str, gpus: int = 2, cpus: int = 8, partitions: str = "gpu") -> Node:
    types = {gpu_type: gpus} if gpus else {}
    return Node(name=name, cpus=cpus, gpus=GpuCount(gpus, types), partitions=tuple(partitions.split(",")))


def two_nodes(*, access: Access = Access.ENFORCE, **options: Any) -> FakeSlurm:
    """Node a with two A100, node v with two V100, one partition."""
    partition = Partition(name="gpu", default=True, max_time_s=86400)
    slurm = FakeSlurm([gpu_node("a", A100), gpu_node("v", V100)], [partition], QOS, **options)
    slurm.guard.access = access
    return slurm


def one_node(cpus: int = 1, **options: Any) -> FakeSlurm:
    """One node without GPUs: with one CPU, one job at a time."""
    slurm = FakeSlurm([gpu_node("n", "", 0, cpus)], [Partition(name="gpu", default=True)], QOS, **options)
    slurm.guard.access = Access.ENFORCE
    return slurm


def job_of(slurm: FakeSlurm, job_id: int) -> Job:
    return next(job for job in slurm.read_jobs() if job.job_id == job_id)


def labels(slurm: FakeSlurm) -> list[str]:
    return [job.label for job in slurm.read_jobs()]


def reasons(slurm: FakeSlurm) -> dict[str, str]:
    return {job.label: job.reason for job in slurm.read_jobs() if job.pending}


def starts(slurm: FakeSlurm) -> dict[str, int]:
    """When each label last started, in seconds after T0."""
    return {run.label: run.start_s - T0 for run in slurm.started.values() if run.start_s is not None}


def write(slurm: FakeSlurm, update_id: str, value: int) -> tuple[str, ...]:
    """Send one update; return the sentences of those that failed."""
    failures = slurm.write_site_factors([SiteFactorUpdate(0, update_id, value)])
    return tuple(failure.message for failure in failures)


def fill(slurm: FakeSlurm, run_time_s: int = 600, **fields: Any) -> int:
    """Let a job take the whole of one_node until T0 + run_time_s."""
    job_id = slurm.submit(Submission(run_time_s=run_time_s, **fields))
    slurm.schedule()
    return job_id


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


# Priority


def test_priority_is_the_weighted_sum_of_age_qos_and_job_size() -> None:
    """age 100 s of 1000 s, QOS 50 of 100, half the nodes and a quarter of the CPUs, site factor, nice.

    0.1 * 1000 + 0.5 * 2000 + (0.5 + 0.25) / 2 * 800 + 7 - 40 = 1367 (_get_priority_internal).
    """
    weights = {"age": 1000, "qos": 2000, "job_size": 800}
    slurm = two_nodes(priority_weights=weights, max_age_s=1000)
    slurm.drain("a")
    slurm.drain("v")
    job_id = slurm.submit(Submission(qos="high", cpus_per_task=4, nice=40))
    write(slurm, "1", 7)
    slurm.advance(T0 + 100)
    assert job_of(slurm, job_id).priority == 1367


def test_age_is_full_after_max_age() -> None:
    """The age factor reaches 1.0 at PriorityMaxAge and stays there (slurm.conf(5))."""
    slurm = one_node(priority_weights={"age": 500}, max_age_s=100)
    slurm.drain("n")
    slurm.submit(Submission())
    slurm.advance(T0 + 250)
    assert job_of(slurm, 1).priority == 500


def test_priority_is_never_below_one() -> None:
    """0 is hold, so a negative sum becomes 1 (_get_priority_internal)."""
    slurm = one_node()
    slurm.submit(Submission(nice=100))
    assert job_of(slurm, 1).priority == 1


def test_priority_is_capped() -> None:
    """A priority is 32 bits wide (_get_priority_internal)."""
    slurm = one_node(priority_weights={"qos": 2**32})
    slurm.submit(Submission(qos="urgent"))
    assert job_of(slurm, 1).priority == 4294967295


def test_held_job_is_at_priority_zero_and_not_in_sprio() -> None:
    """sbatch --hold gives JobHeldUser; sprio leaves out priority 0 (sbatch(1); sprio(1))."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    job = job_of(slurm, 1)
    assert (job.priority, job.reason, job.held) == (0, "JobHeldUser", True)
    assert (job.site_factor, job.eligible_s) == (None, None)
    assert slurm.schedule() == ()


def test_released_job_starts_and_becomes_eligible_then() -> None:
    """Release clears the hold and its reason; eligible time is set at that point (_release_job_rec)."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    slurm.advance(T0 + 50)
    slurm.release(1)
    job = job_of(slurm, 1)
    assert (job.priority, job.reason, job.eligible_s, job.site_factor) == (1, "None", T0 + 50, 0)
    assert slurm.schedule() == (1,)


def test_hold_by_an_operator_takes_the_age_away() -> None:
    """Holding removes the accrue time, so that age starts anew at the release (_hold_job_rec)."""
    slurm = one_node(priority_weights={"age": 1000}, max_age_s=1000)
    fill(slurm)
    slurm.submit(Submission())
    slurm.advance(T0 + 200)
    assert job_of(slurm, 2).priority == 200
    slurm.hold(2, "JobHeldAdmin")
    assert (job_of(slurm, 2).priority, job_of(slurm, 2).reason) == (0, "JobHeldAdmin")
    slurm.advance(T0 + 300)
    slurm.release(2)
    assert job_of(slurm, 2).priority == 1
    slurm.advance(T0 + 350)
    assert job_of(slurm, 2).priority == 50


def test_pinned_priority_is_never_recomputed() -> None:
    """Priority=N sets direct_set_prio and nice 0; sprio shows no factors, SITE 0 (_update_job)."""
    slurm = one_node(priority_weights={"age": 1000}, max_age_s=100)
    fill(slurm)
    slurm.submit(Submission(nice=100))
    slurm.update_priority(2, 5000)
    slurm.advance(T0 + 100)
    assert write(slurm, "2", 77) == ()
    job = job_of(slurm, 2)
    assert (job.priority, job.pinned, job.site_factor) == (5000, True, 0)
    assert slurm.site_factor_of(2) == 77


def test_release_unpins_a_job_without_giving_its_nice_back() -> None:
    """Release of a job that isn't held recomputes it, nice 0 (job_mgr.c, _update_job)."""
    slurm = one_node(priority_weights={"age": 1000}, max_age_s=100)
    fill(slurm)
    slurm.submit(Submission(nice=100))
    slurm.update_priority(2, 5000)
    write(slurm, "2", 77)
    slurm.advance(T0 + 100)
    slurm.release(2)
    assert (job_of(slurm, 2).priority, job_of(slurm, 2).pinned) == (1077, False)


def test_release_of_a_job_that_is_neither_held_nor_pinned_changes_nothing() -> None:
    """There is nothing to release (job_mgr.c, _update_job)."""
    slurm = one_node()
    slurm.submit(Submission(nice=-5))
    slurm.release(1)
    assert job_of(slurm, 1).priority == 5


def test_priority_of_a_held_job_can_not_be_set() -> None:
    """Priority=N on a held job is refused and does not release it (ESLURM_JOB_HELD)."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    with pytest.raises(CommandFailedError, match="Job is in held state"):
        slurm.update_priority(1, 5)
    assert job_of(slurm, 1).priority == 0


def test_priority_zero_holds() -> None:
    """Priority=0 is the same as scontrol hold (scontrol(1))."""
    slurm = one_node()
    slurm.submit(Submission())
    slurm.update_priority(1, 0)
    assert job_of(slurm, 1).reason == "JobHeldAdmin"


def test_hold_of_a_running_or_ended_job_is_refused() -> None:
    """Only pending jobs can be held (ESLURM_JOB_NOT_PENDING, ESLURM_JOB_FINISHED)."""
    slurm = one_node()
    fill(slurm, 60)
    with pytest.raises(CommandFailedError, match="Job is no longer pending execution"):
        slurm.hold(1)
    slurm.advance(T0 + 60)
    with pytest.raises(CommandFailedError, match="Job/step already completing or completed"):
        slurm.hold(1)


# SiteFactor


def test_guard_lets_nothing_through_at_first() -> None:
    """The guard starts read-only, and a refused write changes nothing (gateway.WriteGuard)."""
    slurm = two_nodes(access=Access.READ_ONLY)
    slurm.submit(Submission())
    with pytest.raises(WriteRefusedError):
        slurm.write_site_factors([SiteFactorUpdate(1, "1", 5)])
    assert (slurm.update_count, job_of(slurm, 1).site_factor) == (0, 0)


def test_site_factor_counts_at_once() -> None:
    """SiteFactor is stored and the priority recomputed in the same call (job_mgr.c, set_job_prio)."""
    slurm = two_nodes()
    slurm.submit(Submission())
    assert write(slurm, "1", 500) == ()
    assert (job_of(slurm, 1).site_factor, job_of(slurm, 1).priority) == (500, 500)
    assert slurm.update_count == 1


def test_site_factor_reorders_the_queue() -> None:
    """The scheduler takes the highest priority first (sort_job_queue2)."""
    slurm = one_node()
    fill(slurm, 100)
    slurm.submit(Submission(run_time_s=100))
    slurm.submit(Submission(run_time_s=100))
    write(slurm, "3", 10)
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "3": 100, "2": 200}


def test_held_job_stores_its_site_factor_and_stays_held() -> None:
    """On a held job SiteFactor is stored, takes effect on release and releases nothing (_update_job)."""
    slurm = one_node()
    slurm.submit(Submission(hold=True))
    assert write(slurm, "1", 40) == ()
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).site_factor) == (0, None)
    assert slurm.site_factor_of(1) == 40
    slurm.release(1)
    assert job_of(slurm, 1).priority == 40


def test_update_of_a_job_with_bad_constraints_lets_it_go_until_the_next_pass() -> None:
    """Any update un-holds a BadConstraints job; the scheduler holds it again (_update_job, _schedule)."""
    slurm = one_node()
    slurm.submit(Submission())
    slurm.break_constraints(1)
    slurm.schedule()
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).reason) == (0, "BadConstraints")
    write(slurm, "1", 3)
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).reason) == (3, "None")
    slurm.schedule()
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).reason) == (0, "BadConstraints")


def test_running_job_accepts_a_site_factor() -> None:
    """An update of a running job is carried out, though useless (job_mgr.c, _update_job)."""
    slurm = one_node()
    fill(slurm)
    assert write(slurm, "1", 5) == ()
    assert slurm.site_factor_of(1) == 5


@pytest.mark.parametrize("update_id", ["99", "99_1", "99_[1-2]", "1_1", "1+1", "x"])
def test_update_of_an_unknown_id_fails(update_id: str) -> None:
    """Slurm's sentence for ids that stand for no job (slurm_errno.c, ESLURM_INVALID_JOB_ID)."""
    slurm = one_node()
    slurm.submit(Submission())
    assert write(slurm, update_id, 5) == ("Invalid job id specified",)
    assert slurm.update_count == 0


def test_update_of_an_ended_job_fails() -> None:
    """A finished job can't be updated (slurm_errno.c, ESLURM_JOB_FINISHED)."""
    slurm = one_node()
    fill(slurm, 10)
    slurm.advance(T0 + 10)
    assert write(slurm, "1", 5) == ("Job/step already completing or completed",)


def test_update_without_operator_rights_fails() -> None:
    """Own jobs: ESLURM_ACCESS_DENIED; those of others: ESLURM_USER_ID_MISSING (_update_job)."""
    slurm = two_nodes(user="ann")
    slurm.submit(Submission(user="ann"))
    slurm.submit(Submission(user="bob"))
    assert write(slurm, "1", 5) == ("Access/permission denied",)
    assert write(slurm, "2", 5) == ("Invalid user id",)
    assert (slurm.update_count, slurm.site_factor_of(1)) == (0, 0)


@pytest.mark.parametrize(
    ("user", "level", "sentences"),
    [
        ("slurm", "None", ()),
        ("root", "None", ()),
        ("ops", "Operator", ()),
        ("ops", "Administrator", ()),
        ("ops", "None", ("Invalid user id",)),
    ],
)
def test_operators_set_site_factors(user: str, level: str, sentences: tuple[str, ...]) -> None:
    """root, SlurmUser, and AdminLevel Operator or higher may (job_mgr.c, validate_operator)."""
    slurm = two_nodes(user=user, admin_levels={"ops": level})
    slurm.submit(Submission(user="bob"))
    assert write(slurm, "1", 5) == sentences


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        (2147483645, ()),
        (-2147483645, ()),
        (2147483646, ("SiteFactor value out of range (+/- 2147483645)",)),
        (-2147483646, ("SiteFactor value out of range (+/- 2147483645)",)),
    ],
)
def test_site_factor_has_a_range(value: int, sentences: tuple[str, ...]) -> None:
    """scontrol takes what fits beside NICE_OFFSET (scontrol/update_job.c)."""
    slurm = one_node()
    slurm.submit(Submission())
    assert write(slurm, "1", value) == sentences


def test_updates_go_on_after_a_failure() -> None:
    """scontrol carries out the rest and names the update that failed (scontrol(1), stdin)."""
    slurm = one_node()
    slurm.submit(Submission())
    bad, good = SiteFactorUpdate(9, "9", 5), SiteFactorUpdate(1, "1", 6)
    assert slurm.write_site_factors([bad, good]) == (UpdateFailure(bad, "Invalid job id specified"),)
    assert (slurm.site_factor_of(1), slurm.update_count) == (6, 1)


# Arrays


def test_array_is_one_record_and_not_in_sprio_before_a_pass() -> None:
    """A fresh array has no eligible time until the scheduler looks at it (sprio; job_independent)."""
    slurm = one_node()
    fill(slurm)
    job_id = slurm.submit(Submission(array="0-9%3"))
    job = job_of(slurm, job_id)
    assert (job.label, job.update_id, job.tasks, job.task_count) == ("2_[0-9%3]", "2_[0-9]", "0-9", 10)
    assert (job.eligible_s, job.site_factor) == (None, None)
    slurm.advance(T0 + 5)
    assert (job_of(slurm, job_id).eligible_s, job_of(slurm, job_id).site_factor) == (T0, 0)


def test_started_task_is_a_record_of_its_own() -> None:
    """The task gets a new job id and the rest keeps the array's (job_array_split)."""
    slurm = one_node(cpus=2)
    slurm.submit(Submission(array="1-3", run_time_s=10))
    assert slurm.schedule() == (2, 3)
    assert [(job.job_id, job.label, job.update_id, job.state) for job in slurm.read_jobs()] == [
        (1, "1_[3]", "1_[3]", "PENDING"),
        (2, "1_1", "1_1", "RUNNING"),
        (3, "1_2", "1_2", "RUNNING"),
    ]


def test_last_task_keeps_the_job_id_of_the_array() -> None:
    """With one task left there is no rest to split off (job_array_post_sched)."""
    slurm = one_node(cpus=2)
    slurm.submit(Submission(array="1-3", run_time_s=10))
    slurm.advance(T0 + 10)
    assert [(job.job_id, job.label, job.state) for job in slurm.read_jobs()] == [(1, "1_3", "RUNNING")]


def test_array_runs_no_more_tasks_than_its_throttle() -> None:
    """%2 lets two tasks run; the rest waits with JobArrayTaskLimit, outside sprio (job_array_start_test)."""
    slurm = one_node(cpus=8)
    slurm.submit(Submission(array="0-4%2", run_time_s=10))
    slurm.submit(Submission(run_time_s=10))
    slurm.schedule()
    assert labels(slurm) == ["1_[2-4%2]", "2", "1_0", "1_1"]
    rest = job_of(slurm, 1)
    assert (rest.reason, rest.eligible_s, rest.site_factor) == ("JobArrayTaskLimit", None, None)
    slurm.run_until_idle()
    assert starts(slurm) == {"1_0": 0, "1_1": 0, "2": 0, "1_2": 10, "1_3": 10, "1_4": 20}


@pytest.mark.parametrize("update_id", ["2", "2_[0-3]", "2_[0-9]"])
def test_update_of_the_whole_array_splits_nothing(update_id: str) -> None:
    """The bare id, and a list that covers the pending tasks, mean the pending record (update_job_str)."""
    slurm = one_node()
    fill(slurm)
    slurm.submit(Submission(array="0-3"))
    slurm.schedule()
    sentences = ("Invalid job id specified",) if update_id == "2_[0-9]" else ()
    assert write(slurm, update_id, 30) == sentences
    assert (labels(slurm), job_of(slurm, 2).site_factor) == (["1", "2_[0-3]"], 30)
    assert slurm.update_count == 1


def test_list_with_tasks_that_have_started_updates_the_rest_in_one() -> None:
    """A stale list is a superset: the pending record is updated, running tasks as well (update_job_str)."""
    slurm = one_node()
    slurm.submit(Submission(array="0-3"))
    slurm.schedule()
    assert write(slurm, "1_[0-3]", 30) == ()
    assert (labels(slurm), job_of(slurm, 1).site_factor) == (["1_[1-3]", "1_0"], 30)
    assert slurm.site_factor_of(2) == 30


def test_update_of_one_task_splits_it_off() -> None:
    """A task named alone becomes a job record with its own id (update_job_str, job_array_split)."""
    slurm = one_node()
    fill(slurm)
    slurm.submit(Submission(array="0-3"))
    slurm.schedule()
    write(slurm, "2_[0-3]", 10)
    assert write(slurm, "2_2", 99) == ()
    assert [(job.job_id, job.label, job.site_factor) for job in slurm.read_jobs() if job.pending] == [
        (2, "2_[0-1,3]", 10),
        (3, "2_2", 99),
    ]
    assert job_of(slurm, 3).submit_s == T0


def test_list_that_covers_a_part_splits_each_task_off() -> None:
    """A subset of the pending tasks is updated task by task (update_job_str)."""
    slurm = one_node()
    fill(slurm)
    slurm.submit(Submission(array="0-3"))
    slurm.schedule()
    assert write(slurm, "2_[1-2]", 9) == ()
    assert labels(slurm) == ["1", "2_[0,3]", "2_1", "2_2"]


def test_whole_array_update_touches_finished_tasks() -> None:
    """The bare id goes on to tasks that have ended, and fails there (update_job_str)."""
    slurm = one_node()
    slurm.submit(Submission(array="0-2", run_time_s=10))
    slurm.advance(T0 + 10)
    assert write(slurm, "1", 5) == ("Job/step already completing or completed",)
    assert (slurm.site_factor_of(1), slurm.update_count) == (5, 1)


def test_task_that_was_split_off_goes_by_its_own_priority() -> None:
    """Each record is scheduled by its own priority (sort_job_queue2)."""
    slurm = one_node()
    fill(slurm, 10)
    slurm.submit(Submission(array="0-2", run_time_s=10))
    slurm.schedule()
    write(slurm, "2_2", 50)
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "2_2": 10, "2_0": 20, "2_1": 30}


def test_cancelled_array_is_over_as_a_whole() -> None:
    """scancel of an array's id ends its pending and running tasks (scancel(1))."""
    slurm = one_node()
    slurm.submit(Submission(array="0-3"))
    slurm.schedule()
    slurm.cancel(1)
    assert slurm.read_jobs() == ()
    assert write(slurm, "1_3", 5) == ("Job/step already completing or completed",)


def test_single_task_can_be_cancelled() -> None:
    """scancel 1_2 ends that task alone (scancel(1))."""
    slurm = one_node()
    slurm.submit(Submission(array="0-3"))
    slurm.schedule()
    slurm.cancel("1_2")
    assert labels(slurm) == ["1_[1,3]", "1_0"]


def test_array_texts_expand_and_fold() -> None:
    """Ranges, lists, steps and throttle of --array (sbatch(1)), and the lists that squeue prints."""
    assert expand_array("0-3") == ((0, 1, 2, 3), None)
    assert expand_array("1,5,3%2") == ((1, 3, 5), 2)
    assert expand_array("0-12:4") == ((0, 4, 8, 12), None)
    assert format_tasks((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    assert format_tasks(()) == ""


# Het jobs


def two_components() -> tuple[Submission, Submission]:
    return (
        Submission(gres=f"gpu:{A100}:2", run_time_s=30),
        Submission(gres=f"gpu:{V100}:2", run_time_s=999),
    )


def test_het_components_carry_the_label_of_their_leader() -> None:
    """squeue prints leader+offset, and an update goes by the leader's id (squeue(1), JobID)."""
    slurm = two_nodes()
    slurm.submit(Submission())
    assert slurm.submit_het(two_components()) == 2
    found = [(job.job_id, job.label, job.update_id, job.het_job_id) for job in slurm.read_jobs()[1:]]
    assert found == [(2, "2+0", "2", 2), (3, "2+1", "2", 2)]


def test_update_of_the_leader_means_every_component() -> None:
    """JobId=<leader> updates all components, leader+offset one (job_mgr.c, update_job_str)."""
    slurm = two_nodes()
    slurm.submit_het(two_components())
    write(slurm, "1", 20)
    assert [job.site_factor for job in slurm.read_jobs()] == [20, 20]
    write(slurm, "1+1", 30)
    assert [job.site_factor for job in slurm.read_jobs()] == [20, 30]
    assert slurm.update_count == 2


def test_hook_is_called_for_each_component() -> None:
    """het_job_offset tells the calls for one het job apart (_slurm_rpc_submit_batch_het_job)."""
    slurm = two_nodes(job_submit=lambda job_desc: {"site_factor": job_desc["het_job_offset"] + 5})
    slurm.submit_het(two_components())
    assert [job.site_factor for job in slurm.read_jobs()] == [5, 6]


def test_het_components_start_and_end_together() -> None:
    """A het job is one job: all components or none, for as long as the leader runs (heterogeneous_jobs)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{V100}:1", run_time_s=50))
    slurm.submit_het(two_components())
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "2+0": 50, "2+1": 50}
    assert [slurm.history[job_id].end_s for job_id in (2, 3)] == [T0 + 80, T0 + 80]


def test_held_component_keeps_the_het_job_waiting() -> None:
    """No component starts while one can't (heterogeneous_jobs, "Limitations")."""
    slurm = two_nodes()
    slurm.submit_het(two_components())
    slurm.hold("1+1")
    assert slurm.schedule() == ()
    slurm.release("1+1")
    assert slurm.schedule() == (1, 2)


def test_het_job_with_an_array_is_rejected() -> None:
    """Arrays of het jobs don't exist (heterogeneous_jobs, "Limitations")."""
    with pytest.raises(CommandFailedError, match="Invalid job array specification"):
        two_nodes().submit_het([Submission(array="0-3")])


# Eligibility


def test_job_waits_for_its_begin_time() -> None:
    """Until --begin a job has the reason BeginTime and is not in sprio (sbatch(1))."""
    slurm = one_node()
    slurm.submit(Submission(begin_s=T0 + 100, run_time_s=10))
    job = job_of(slurm, 1)
    assert (job.reason, job.eligible_s, job.site_factor) == ("BeginTime", T0 + 100, None)
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 100}


def test_dependent_job_is_eligible_when_the_other_has_ended() -> None:
    """afterok waits for success; eligible time is set then (sbatch(1); job_independent)."""
    slurm = one_node(cpus=2)
    slurm.submit(Submission(run_time_s=40))
    slurm.submit(Submission(dependency=1, run_time_s=10))
    job = job_of(slurm, 2)
    assert (job.reason, job.dependency) == ("Dependency", "afterok:1(unfulfilled)")
    assert (job.eligible_s, job.site_factor) == (None, None)
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "2": 40}
    assert slurm.history[2].eligible_s == T0 + 40


def test_dependency_on_an_array_waits_for_every_task() -> None:
    """afterok:<array> means all of its tasks (sbatch(1), --dependency)."""
    slurm = one_node(cpus=2)
    slurm.submit(Submission(array="0-3%1", run_time_s=10))
    slurm.submit(Submission(dependency=1, run_time_s=10))
    assert job_of(slurm, 2).dependency == "afterok:1_*(unfulfilled)"
    slurm.run_until_idle()
    assert starts(slurm)["2"] == 40


def test_dependency_on_a_job_that_failed_is_never_satisfied() -> None:
    """After a TIMEOUT an afterok job stays pending (kill_invalid_depend is off; slurm.conf(5))."""
    slurm = one_node(cpus=2)
    slurm.submit(Submission(time_limit_s=60, run_time_s=61))
    slurm.submit(Submission(dependency=1))
    assert slurm.run_until_idle() == T0 + 60
    job = job_of(slurm, 2)
    assert (job.reason, job.dependency) == ("DependencyNeverSatisfied", "afterok:1(failed)")
    assert (job.site_factor, slurm.history[1].state) == (None, "TIMEOUT")


# Scheduling


def test_founding_four_jobs_start_in_order_of_submission() -> None:
    """Strict FIFO on 2 A100 and 2 V100: the 60 s job on both A100 holds the two behind it up.

    By hand: 15 s on an A100 at 0; 60 s on both at 15; 30 s on a V100 may not pass it, so 15; 10 s on
    an A100 at 75 (slurm src/slurmctld/job_scheduler.c, _schedule).
    """
    slurm = two_nodes()
    for gres, run_time_s in [(f"{A100}:1", 15), (f"{A100}:2", 60), (f"{V100}:1", 30), (f"{A100}:1", 10)]:
        slurm.submit(Submission(gres=f"gpu:{gres}", run_time_s=run_time_s))
    slurm.schedule()
    assert reasons(slurm) == {"2": "Resources", "3": "Priority", "4": "Priority"}
    assert slurm.run_until_idle() == T0 + 85
    assert starts(slurm) == {"1": 0, "2": 15, "3": 15, "4": 75}


def test_ties_go_by_submit_time_then_job_id() -> None:
    """Equal priorities: earlier submit time, then lower job id (sort_job_queue2)."""
    slurm = one_node()
    fill(slurm, 10)
    for _ in range(3):
        slurm.submit(Submission(run_time_s=10))
    slurm.requeue(1)
    slurm.advance(T0 + 5)
    slurm.requeue(1)
    slurm.run_until_idle()
    assert starts(slurm) == {"2": 5, "3": 15, "4": 25, "1": 35}


def test_blocked_job_stops_its_partition_alone() -> None:
    """A job that waits stops later jobs of its partition, not of others on other nodes (_schedule)."""
    nodes = [gpu_node("a", A100, partitions="big"), gpu_node("v", V100, partitions="small")]
    partitions = [Partition(name="big", default=True), Partition(name="small")]
    slurm = FakeSlurm(nodes, partitions, QOS)
    slurm.submit(Submission(gres="gpu:1", run_time_s=50))
    slurm.submit(Submission(gres="gpu:2", run_time_s=50))
    slurm.submit(Submission(gres="gpu:1", run_time_s=50))
    slurm.submit(Submission(gres="gpu:1", run_time_s=50, partition="small"))
    assert slurm.schedule() == (1, 4)
    assert reasons(slurm) == {"2": "Resources", "3": "Priority"}


def test_blocked_partition_closes_its_nodes_to_others() -> None:
    """No more jobs on nodes of a partition where one waits, whatever their partition (_schedule)."""
    nodes = [gpu_node("a", A100, partitions="p,q")]
    slurm = FakeSlurm(nodes, [Partition(name="p", default=True), Partition(name="q")], QOS)
    slurm.submit(Submission(gres="gpu:1", run_time_s=50))
    slurm.submit(Submission(gres="gpu:2", run_time_s=50))
    slurm.submit(Submission(gres="gpu:1", run_time_s=50, partition="q"))
    assert slurm.schedule() == (1,)
    waiting = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    assert reasons(slurm) == {"2": "Resources", "3": waiting}


def test_job_in_two_partitions_starts_in_the_first_that_has_room() -> None:
    """A comma list is tried in turn; the job then runs in one partition (sbatch(1), --partition)."""
    nodes = [gpu_node("a", A100, partitions="p"), gpu_node("v", V100, partitions="q")]
    slurm = FakeSlurm(nodes, [Partition(name="p", default=True), Partition(name="q")], QOS)
    slurm.submit(Submission(gres="gpu:2", run_time_s=50))
    slurm.submit(Submission(gres="gpu:1", run_time_s=50, partition="p,q"))
    assert job_of(slurm, 2).partitions == ("p", "q")
    assert slurm.schedule() == (1, 2)
    assert job_of(slurm, 2).partitions == ("q",)


def test_time_limit_above_that_of_the_partition_never_starts() -> None:
    """Without EnforcePartLimits the job is queued and waits, blocking nobody (slurm.conf(5))."""
    slurm = two_nodes()
    slurm.submit(Submission(time_limit_s=90000))
    slurm.submit(Submission(run_time_s=10))
    assert slurm.schedule() == (2,)
    assert reasons(slurm) == {"1": "PartitionTimeLimit"}


def test_partition_that_is_down_starts_nothing() -> None:
    """State=DOWN queues jobs and starts none (scontrol(1), State)."""
    slurm = two_nodes()
    slurm.submit(Submission(run_time_s=10))
    slurm.update_partition("gpu", up=False)
    assert slurm.schedule() == ()
    assert reasons(slurm) == {"1": "PartitionDown"}
    slurm.update_partition("gpu", up=True)
    assert slurm.schedule() == (1,)


def test_job_that_only_fits_where_its_limit_is_too_long_blocks_nobody() -> None:
    """Of two partitions one has the GPU, the other allows the time: it waits (PartitionConfig)."""
    nodes = [gpu_node("a", A100, partitions="p"), gpu_node("v", V100, partitions="q")]
    partitions = [Partition(name="p", max_time_s=60), Partition(name="q", default=True)]
    slurm = FakeSlurm(nodes, partitions, QOS)
    slurm.submit(Submission(gres=f"gpu:{A100}:1", time_limit_s=120, partition="p,q"))
    slurm.submit(Submission(run_time_s=10))
    assert slurm.schedule() == (2,)
    assert reasons(slurm) == {"1": "PartitionConfig"}


def test_job_that_fits_only_a_blocked_partition_waits_for_priority() -> None:
    """Behind a blocked job the reason is Priority, whatever the other partition lacks (_schedule)."""
    nodes = [gpu_node("a", A100, partitions="p"), gpu_node("v", V100, partitions="q")]
    slurm = FakeSlurm(nodes, [Partition(name="p", default=True), Partition(name="q")], QOS)
    slurm.submit(Submission(gres="gpu:1", run_time_s=50))
    slurm.submit(Submission(gres="gpu:2", run_time_s=50))
    slurm.submit(Submission(gres=f"gpu:{A100}:1", partition="p,q"))
    assert slurm.schedule() == (1,)
    assert reasons(slurm) == {"2": "Resources", "3": "Priority"}


def test_job_that_needs_a_drained_node_blocks_nobody() -> None:
    """Nodes that can't be used at all are no reason to stop the queue (ESLURM_NODE_NOT_AVAIL)."""
    slurm = two_nodes()
    slurm.drain("a")
    slurm.submit(Submission(gres=f"gpu:{A100}:1"))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", run_time_s=10))
    assert slurm.schedule() == (2,)
    assert reasons(slurm) == {"1": "ReqNodeNotAvail, UnavailableNodes:a"}


def test_job_that_needs_more_nodes_than_are_up_blocks_its_partition() -> None:
    """min_nodes above the nodes that are left fails the partition (_schedule, fail_by_part)."""
    slurm = two_nodes()
    slurm.drain("a")
    slurm.submit(Submission(nodes=2))
    slurm.submit(Submission(run_time_s=10))
    assert slurm.schedule() == ()
    waiting = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    assert reasons(slurm) == {"1": waiting, "2": "Priority"}


def test_drained_node_lets_its_jobs_run() -> None:
    """Draining starts no new jobs and ends none (scontrol(1), State=DRAIN)."""
    slurm = one_node(cpus=2)
    fill(slurm, 30)
    slurm.drain("n")
    slurm.submit(Submission())
    slurm.advance(T0 + 10)
    assert job_of(slurm, 1).state == "RUNNING"
    assert slurm.read_cluster().nodes[0].states == ("MIXED", "DRAIN")
    assert slurm.run_until_idle() == T0 + 30
    assert starts(slurm) == {"1": 0}


def test_per_node_request_stands_together_on_each_node() -> None:
    """--gres is for each node: two nodes with one GPU each, never two on one (sbatch(1), --gres)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres="gpu:1", nodes=2, run_time_s=10))
    slurm.schedule()
    assert [node.gpus_used.total for node in slurm.read_cluster().nodes] == [1, 1]
    assert job_of(slurm, 1).gpus == GpuRequest(2, (), 1)


def test_per_node_request_does_not_spread_over_leftovers() -> None:
    """Two GPUs on one node can't be one here and one there (sbatch(1), --gres)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{A100}:1", run_time_s=50))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", run_time_s=30))
    slurm.submit(Submission(gres="gpu:2", run_time_s=10))
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "2": 0, "3": 30}


def test_per_job_request_may_spread_over_nodes() -> None:
    """--gpus is for the job, on as many nodes as it takes where --nodes is unset (sbatch(1), --gpus)."""
    slurm = two_nodes()
    slurm.submit(Submission(gpus="3", run_time_s=10))
    slurm.schedule()
    assert [node.gpus_used.total for node in slurm.read_cluster().nodes] == [2, 1]
    assert (job_of(slurm, 1).nodes, job_of(slurm, 1).gpus) == (2, GpuRequest(3, (), 0))


def test_per_job_request_of_two_types_takes_each() -> None:
    """Types in --gpus are met one by one (sbatch(1), --gpus)."""
    slurm = two_nodes()
    slurm.submit(Submission(gpus=f"{A100}:1,{V100}:2", run_time_s=10))
    slurm.schedule()
    used = [node.gpus_used.types for node in slurm.read_cluster().nodes]
    assert used == [{A100: 1}, {V100: 2}]


def test_every_node_of_a_per_job_request_gets_a_gpu() -> None:
    """With -N2 --gpus=2 no node is left without one (gres.html)."""
    slurm = two_nodes()
    slurm.submit(Submission(gpus="2", nodes=2, run_time_s=10))
    slurm.schedule()
    assert [node.gpus_used.total for node in slurm.read_cluster().nodes] == [1, 1]


def test_cpus_spread_over_nodes_where_nodes_are_unset() -> None:
    """-n without -N takes as many nodes as the tasks need (sbatch(1), --ntasks)."""
    slurm = two_nodes()
    slurm.submit(Submission(tasks=10, run_time_s=10))
    slurm.schedule()
    assert [node.cpus_used for node in slurm.read_cluster().nodes] == [8, 2]


def test_nodes_with_more_to_give_are_taken_where_the_first_are_not_enough() -> None:
    """A job on n nodes starts if any n of them have the room (select/cons_tres)."""
    nodes = [gpu_node("n1", "", 0, 1), gpu_node("n2", "", 0, 4), gpu_node("n3", "", 0, 4)]
    slurm = FakeSlurm(nodes, [Partition(name="gpu", default=True)], QOS)
    slurm.submit(Submission(nodes=2, tasks=8, run_time_s=10))
    assert slurm.schedule() == (1,)
    assert [node.cpus_used for node in slurm.read_cluster().nodes] == [0, 4, 4]


# Backfill


def test_backfill_starts_a_job_that_ends_before_the_blocked_one_could_start() -> None:
    """EASY: by its time limit the later job is gone at the shadow time (Lifka 1995).

    1 ends by its limit at 600; 2 needs both GPUs then. 3 (600 s) may run, 4 (660 s) would be late.
    """
    slurm = FakeSlurm([gpu_node("a", A100, 3)], [Partition(name="gpu", default=True)], QOS, backfill=True)
    slurm.submit(Submission(gres="gpu:1", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres="gpu:3", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=660, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=600, run_time_s=60))
    assert slurm.schedule() == (1, 4)
    assert reasons(slurm) == {"2": "Resources", "3": "Priority"}
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "4": 0, "2": 600, "3": 660}


def test_backfill_starts_a_longer_job_on_what_the_blocked_one_does_not_need() -> None:
    """EASY: a later job of any length may take what is left beside the reservation (Lifka 1995)."""
    slurm = two_nodes(backfill=True)
    slurm.submit(Submission(gres=f"gpu:{A100}:1", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", time_limit_s=6000, run_time_s=6000))
    assert slurm.schedule() == (1, 3)


def test_backfill_looks_for_nodes_that_the_reservation_spares() -> None:
    """A job that would delay the blocked one on the first node starts on another (Lifka 1995)."""
    slurm = two_nodes(backfill=True)
    slurm.submit(Submission(gres=f"gpu:{A100}:1", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=6000, run_time_s=60))
    assert slurm.schedule() == (1, 3)
    assert [node.gpus_used.total for node in slurm.read_cluster().nodes] == [1, 1]


def test_backfill_counts_what_it_started_before() -> None:
    """Two later jobs that are harmless one by one are not together (Lifka 1995)."""
    slurm = FakeSlurm([gpu_node("a", A100, 4)], [Partition(name="gpu", default=True)], QOS, backfill=True)
    slurm.submit(Submission(gres="gpu:2", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres="gpu:3", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=6000, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=6060, run_time_s=60))
    assert slurm.schedule() == (1, 3)


def test_blocked_job_without_a_shadow_time_stops_nobody() -> None:
    """Behind an UNLIMITED job there is no time to reserve for, so backfill goes on (Lifka 1995)."""
    slurm = FakeSlurm([gpu_node("a", A100, 2)], [Partition(name="gpu", default=True)], QOS, backfill=True)
    slurm.submit(Submission(gres="gpu:1", run_time_s=600))
    slurm.submit(Submission(gres="gpu:2", run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", run_time_s=60))
    assert slurm.schedule() == (1, 3)


def test_strict_order_is_the_default() -> None:
    """Without backfill nothing passes a blocked job of its partition (_schedule)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{A100}:1", run_time_s=600))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", run_time_s=60))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", time_limit_s=60, run_time_s=60))
    assert slurm.schedule() == (1,)


# The clock


def test_job_ends_after_its_run_time_or_at_its_limit() -> None:
    """The time limit ends a job as TIMEOUT, else it is COMPLETED (sbatch(1), --time)."""
    slurm = one_node(cpus=3)
    slurm.submit(Submission(run_time_s=50, time_limit_s=60))
    slurm.submit(Submission(run_time_s=70, time_limit_s=60))
    slurm.submit(Submission(time_limit_s=120))
    slurm.run_until_idle()
    ends = [(run.state, (run.end_s or 0) - T0) for run in slurm.history.values()]
    assert ends == [("COMPLETED", 50), ("TIMEOUT", 60), ("TIMEOUT", 120)]


def test_everything_that_ends_in_a_second_ends_before_anything_starts() -> None:
    """Two ends free both GPUs for one job in the same second: one pass after all ends."""
    slurm = two_nodes()
    for _ in range(2):
        slurm.submit(Submission(gres=f"gpu:{A100}:1", run_time_s=20))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", run_time_s=20))
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "2": 0, "3": 20}


def test_next_event_is_the_next_end_or_begin_time() -> None:
    """What moves the clock: ends of running jobs and begin times; nothing else happens by itself."""
    slurm = one_node(cpus=2)
    assert slurm.next_event_s() is None
    slurm.submit(Submission(begin_s=T0 + 90, run_time_s=5))
    assert slurm.next_event_s() == T0 + 90
    fill(slurm, 40)
    assert slurm.next_event_s() == T0 + 40


def test_job_without_limit_or_run_time_never_ends() -> None:
    """An UNLIMITED job whose run time isn't given runs on, and the cluster is idle of events."""
    slurm = one_node()
    slurm.submit(Submission(time_limit_s=math.inf))
    assert slurm.run_until_idle() == T0
    slurm.advance(T0 + 10**6)
    assert job_of(slurm, 1).state == "RUNNING"


def test_clock_stops_where_it_is_told_to() -> None:
    """advance goes to its time whatever happens there, run_until_idle no further than its limit."""
    slurm = one_node()
    slurm.submit(Submission(run_time_s=100))
    slurm.advance(T0 + 30)
    assert (slurm.now_s, slurm.read_cluster().time_s) == (T0 + 30, T0 + 30)
    assert slurm.run_until_idle(limit_s=50) == T0 + 30
    assert slurm.run_until_idle() == T0 + 100


def test_clock_never_goes_back() -> None:
    """Time is an event's or later; a past time is a mistake of the caller."""
    with pytest.raises(ValueError, match="the clock goes forward only"):
        two_nodes().advance(T0 - 1)


def test_history_tells_who_started_when() -> None:
    """One line a record: enough to print who started earlier or later than under another order."""
    slurm = one_node()
    slurm.submit(Submission(name="first", run_time_s=10))
    slurm.submit(Submission(name="second", run_time_s=10))
    slurm.advance(T0 + 15)
    first = JobRun(
        job_id=1,
        label="1",
        name="first",
        state="COMPLETED",
        submit_s=T0,
        eligible_s=T0,
        start_s=T0,
        end_s=T0 + 10,
    )
    second = replace(first, job_id=2, label="2", name="second", state="RUNNING", start_s=T0 + 10, end_s=None)
    assert slurm.history == {1: first, 2: second}
    assert list(slurm.started) == [1, 2]


def test_same_calls_give_the_same_schedule() -> None:
    """No wall clock and no chance: two runs of one trace are equal."""

    def trace() -> Mapping[int, JobRun]:
        slurm = two_nodes(backfill=True, priority_weights={"age": 1000, "qos": 300}, max_age_s=500)
        for i in range(40):
            slurm.advance(T0 + 7 * i)
            slurm.submit(
                Submission(
                    qos=("normal", "urgent")[i % 5 == 0],
                    gres=f"gpu:{1 + i % 2}",
                    run_time_s=10 + 13 * i % 50,
                    time_limit_s=60 + 60 * (i % 3),
                )
            )
        slurm.run_until_idle()
        return slurm.history

    assert trace() == trace()
    assert all(run.state == "COMPLETED" for run in trace().values())


# Requeue, cancel, failing nodes


@pytest.mark.parametrize(
    ("by", "state"), [("user", "REQUEUED"), ("node_fail", "NODE_FAIL"), ("preempted", "PREEMPTED")]
)
def test_requeued_job_counts_from_now_and_remembers_its_wait(by: str, state: str) -> None:
    """A requeue resets the submit time; accounting keeps the earlier run (job_requeue; sacct -D)."""
    slurm = one_node()
    fill(slurm, 100)
    slurm.submit(Submission(run_time_s=100))
    write(slurm, "2", 12)
    slurm.advance(T0 + 130)
    slurm.requeue(2, by)
    job = job_of(slurm, 2)
    assert (job.state, job.submit_s, job.eligible_s, job.start_s) == ("PENDING", T0 + 130, T0 + 130, None)
    assert (job.restarts, job.site_factor) == (1, 12)
    assert slurm.read_past_runs([1, 2, 99]) == {2: (PastRun(state, 100),)}
    slurm.run_until_idle()
    assert starts(slurm)["2"] == 130
    assert slurm.history[2].end_s == T0 + 230


def test_past_runs_are_oldest_first() -> None:
    """Each run ends up in accounting in its turn, its wait from eligible or submit time (sacct -D)."""
    slurm = one_node()
    slurm.submit(Submission(begin_s=T0 + 20, run_time_s=100))
    slurm.advance(T0 + 30)
    slurm.requeue(1)
    slurm.advance(T0 + 40)
    slurm.requeue(1, "preempted")
    assert slurm.read_past_runs([1]) == {1: (PastRun("REQUEUED", 0), PastRun("PREEMPTED", 0))}


def test_requeued_job_stays_pinned() -> None:
    """A pin survives the requeue (job_mgr.c: direct_set_prio is kept)."""
    slurm = one_node()
    slurm.submit(Submission(run_time_s=100))
    slurm.update_priority(1, 900)
    slurm.schedule()
    slurm.requeue(1)
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).pinned) == (900, True)


def test_only_running_jobs_are_requeued() -> None:
    """A pending job has nothing to requeue, an ended one is gone (ESLURM_JOB_PENDING, _FINISHED)."""
    slurm = one_node()
    slurm.submit(Submission(run_time_s=5))
    with pytest.raises(CommandFailedError, match="Job is pending execution"):
        slurm.requeue(1)
    slurm.run_until_idle()
    with pytest.raises(CommandFailedError, match="Job/step already completing or completed"):
        slurm.requeue(1)


def test_failing_node_requeues_its_jobs() -> None:
    """Jobs of a node that goes DOWN are requeued as NODE_FAIL, others run on (kill_running_job_by_node)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{A100}:1", array="0-1", run_time_s=100))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", run_time_s=100))
    slurm.advance(T0 + 10)
    slurm.fail("a")
    assert [(job.label, job.state) for job in slurm.read_jobs()] == [
        ("1_1", "PENDING"),
        ("2", "RUNNING"),
        ("1_0", "PENDING"),
    ]
    assert slurm.read_past_runs([1, 2, 3]) == {1: (PastRun("NODE_FAIL", 0),), 3: (PastRun("NODE_FAIL", 0),)}
    slurm.advance(T0 + 50)
    slurm.resume("a")
    slurm.run_until_idle()
    assert starts(slurm) == {"2": 0, "1_1": 50, "1_0": 50}


def test_failing_node_requeues_a_het_job_as_a_whole() -> None:
    """One component's node takes the whole het job back into the queue (heterogeneous_jobs)."""
    slurm = two_nodes()
    slurm.submit_het(two_components())
    slurm.schedule()
    slurm.fail("v")
    assert [job.state for job in slurm.read_jobs()] == ["PENDING", "PENDING"]


def test_cancelled_job_frees_its_node() -> None:
    """scancel ends a job and gives back what it had (scancel(1))."""
    slurm = one_node()
    fill(slurm)
    slurm.submit(Submission(run_time_s=10))
    slurm.advance(T0 + 5)
    slurm.cancel(1)
    assert slurm.schedule() == (2,)
    assert (slurm.history[1].state, slurm.history[1].end_s) == ("CANCELLED", T0 + 5)
    with pytest.raises(CommandFailedError, match="Job/step already completing or completed"):
        slurm.cancel(1)
    with pytest.raises(CommandFailedError, match="Invalid job id specified"):
        slurm.cancel(77)
