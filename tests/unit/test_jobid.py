"""slurm_score/jobid.py: job ids as squeue prints them, and as scontrol update takes them."""

import pytest

from slurm_score.errors import ParseError
from slurm_score.jobid import JobId, count_tasks, parse_job_id


@pytest.mark.parametrize(
    ("text", "job_id"),
    [
        ("12", JobId(12)),
        ("12_0", JobId(12, task=0)),
        ("12_3", JobId(12, task=3)),
        pytest.param("57829110_[5-100]", JobId(57829110, tasks="5-100"), id="case 25"),
        ("9_[3-9%3]", JobId(9, tasks="3-9", throttle=3)),
        ("9_[0,2-4,8-20:4]", JobId(9, tasks="0,2-4,8-20:4")),
        pytest.param("1234+0", JobId(1234, het_offset=0), id="case 26, leader"),
        pytest.param("1234+1", JobId(1234, het_offset=1), id="case 26, component"),
    ],
)
def test_job_id_is_read_as_squeue_prints_it(text: str, job_id: JobId) -> None:
    """Plain jobs, array tasks, pending arrays with and without a throttle, het components."""
    assert parse_job_id(text) == job_id
    assert str(job_id) == text


@pytest.mark.parametrize(
    ("text", "update_id"),
    [
        ("12", "12"),
        ("12_3", "12_3"),
        ("9_[3-9%3]", "9_[3-9]"),
        ("9_[3-9]", "9_[3-9]"),
        ("26+0", "26"),
        ("26+1", "26"),
    ],
)
def test_update_names_whole_array_record_and_het_leader(text: str, update_id: str) -> None:
    """Case 26, and slurm-facts 8.12: a list without its throttle splits no array; a leader covers its job."""
    assert parse_job_id(text).update_id == update_id


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "12.batch", "12_", "12+", "12_[", "12_[]", "12_[1-2", "12_[a]", "-1", "1 2", "12_3_4"),
        *("12_[0-9,...]", "12_[-]", "12_[1,,2]", "12_[1-2%]", "12+1_2", "٣", "1" * 11, "1_[9%99999999999]"),
    ],
)
def test_other_job_id_is_refused(text: str) -> None:
    """A task list that squeue cut off is one of them: updating half of an array would split it."""
    with pytest.raises(ParseError):
        parse_job_id(text)


@pytest.mark.parametrize(
    ("tasks", "count"),
    [("7", 1), pytest.param("5-100", 96, id="case 25"), ("0-9,12", 11), ("20-30:5", 3), ("1,3,5-7", 5)],
)
def test_tasks_of_a_list_are_counted(tasks: str, count: int) -> None:
    """Each task of an array is a job that waits."""
    assert count_tasks(tasks) == count


@pytest.mark.parametrize("tasks", ["", "a", "1-", "1,,2", "1-2:", "0-99999999999999999999", "1" * 5000])
def test_other_task_list_is_refused(tasks: str) -> None:
    """Numbers beyond ten digits are no task ids, and too large to count."""
    with pytest.raises(ParseError, match="not a list of array tasks"):
        count_tasks(tasks)
