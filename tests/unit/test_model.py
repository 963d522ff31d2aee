"""slurm_score/model.py: what follows from a job, a node, a cluster, a queue."""

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Job, Node, SlurmConfig
from tests.unit.builders import NOW, make_cluster, make_job, make_node


@pytest.mark.parametrize(
    ("job", "eligible"),
    [
        pytest.param(make_job(), True, id="pending, eligible since now"),
        pytest.param(make_job(eligible_s=NOW + 1), False, id="begin time to come"),
        pytest.param(make_job(eligible_s=None), False, id="dependency open"),
        pytest.param(make_job(priority=0), False, id="held"),
        pytest.param(make_job(state="RUNNING"), False, id="running"),
    ],
)
def test_job_is_eligible_when_it_could_start_now(job: Job, eligible: bool) -> None:
    """Holds, begin times and dependencies keep a job from competing."""
    assert job.eligible(NOW) is eligible


def test_job_at_priority_0_is_held_whatever_its_reason() -> None:
    """Case 34: launch_failed_requeued_held, BadConstraints and a user's hold are all priority 0."""
    assert make_job(priority=0, reason="launch_failed_requeued_held").held
    assert not make_job(priority=1, reason="JobHeldUser").held


@pytest.mark.parametrize(("het_job_id", "follows"), [(None, False), (5, False), (4, True)])
def test_het_component_follows_its_leader(het_job_id: int | None, follows: bool) -> None:
    """Case 26: the leader's own id is the het job's id."""
    assert make_job(5, het_job_id=het_job_id).follows_leader is follows


def test_record_stands_for_the_tasks_that_it_holds() -> None:
    """Case 25: 57829110_[5-100] is 96 jobs in one record; a plain job is one."""
    assert make_job(tasks="5-100").task_count == 96
    assert make_job().task_count == 1


@pytest.mark.parametrize(
    ("node", "gpu_type", "free"),
    [
        pytest.param(make_node("g", "a100:4"), "a100", 4, id="idle"),
        pytest.param(make_node("g", "a100:4"), None, 4, id="any type"),
        pytest.param(make_node("g", "a100:4"), "v100", 0, id="another type"),
        pytest.param(make_node("g", "a100:4", gpus_used=GpuCount(3, {"a100": 3})), "a100", 1, id="in use"),
        pytest.param(make_node("g", "a100:4", gpus_used=GpuCount(5, {"a100": 5})), "a100", 0, id="overused"),
        pytest.param(make_node("g", "a100:4", usable=False), "a100", 0, id="drained"),
        pytest.param(make_node("g", "a100:4", cpus_used=8), "a100", 0, id="no CPU left"),
        pytest.param(Node(name="g", cpus=8, gpus=GpuCount(2)), None, 2, id="GPUs without type"),
        pytest.param(
            Node(name="g", cpus=8, gpus=GpuCount(4), gpus_used=GpuCount(1)),
            None,
            3,
            id="without type, in use",
        ),
        pytest.param(
            Node(name="g", cpus=8, gpus=GpuCount(4), gpus_used=GpuCount(5)),
            None,
            0,
            id="without type, overused",
        ),
        pytest.param(Node(name="g", cpus=8, gpus=GpuCount(2)), "a100", 0, id="type asked, none known"),
    ],
)
def test_free_gpus_are_those_that_a_job_could_take_now(node: Node, gpu_type: str | None, free: int) -> None:
    """A GPU on a drained node, or beside no free CPU, is of no use."""
    assert node.free_gpus(gpu_type) == free


def test_slurms_own_range_is_the_sum_of_its_weights() -> None:
    """The most that multifactor can add to a SiteFactor."""
    assert SlurmConfig(priority_weights={"age": 1000, "qos": 500}).priority_range == 1500
    assert SlurmConfig().priority_range == 0


def test_default_partition_is_the_one_marked_so() -> None:
    """Empty where Slurm marks none."""
    assert make_cluster().default_partition == "main"
    assert make_cluster(partitions={}).default_partition == ""
