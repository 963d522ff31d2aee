"""The shipped fake Slurm behaves as Slurm does: eligibility and the main scheduler.

Each docstring names the rule and where it comes from.
"""

from slurm_score.gres import GpuRequest
from slurm_score.model import Partition
from slurm_score.slurm.fake import FakeSlurm, Submission
from tests.unit.fake_support import (
    A100,
    QOS,
    T0,
    V100,
    fill,
    gpu_node,
    job_of,
    one_node,
    reasons,
    starts,
    two_nodes,
)

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
