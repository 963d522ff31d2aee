"""The shipped fake Slurm behaves as Slurm does: arrays and het jobs.

Each docstring names the rule and where it comes from.
"""

import pytest

from slurm_score.errors import CommandFailedError
from slurm_score.slurm.fake import Submission
from slurm_score.slurm.fake_submission import expand_array, format_tasks
from tests.unit.fake_support import (
    T0,
    V100,
    fill,
    job_of,
    labels,
    one_node,
    starts,
    two_components,
    two_nodes,
    write,
)

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
    assert write(slurm, "1", 5) == ("Job has already finished",)
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
    assert write(slurm, "1_3", 5) == ("Job has already finished",)


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
