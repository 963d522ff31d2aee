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
        ("12.batch", "12"),
        ("12_3.0", "12_3"),
        ("12+1.extern", "12"),
        ("9_[3-9,20-...]", "9"),
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
        *(
            "",
            "x",
            "12.",
            "12.foo",
            "12_",
            "12+",
            "12_[",
            "12_[]",
            "12_[1-2",
            "12_[a]",
            "-1",
            "1 2",
            "12_3_4",
        ),
        *(
            "12_[1,3",
            "12_[-]",
            "12_[1,,2]",
            "12_[1-2%]",
            "12+1_2",
            "٣",
            "1" * 11,
            "1_[9%99999999999]",
        ),
    ],
)
def test_other_job_id_is_refused(text: str) -> None:
    """What squeue can't have printed is a mistake, and is named as one."""
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


@pytest.mark.parametrize(
    ("text", "kind", "tasks", "step"),
    [
        ("12", "job", 1, ""),
        ("12_3", "task", 1, ""),
        ("57829110_[5-100]", "array", 96, ""),
        ("26+1", "het", 1, ""),
        ("12.0", "step", 1, "0"),
        ("12_3.batch", "step", 1, "batch"),
        ("12+1.interactive", "step", 1, "interactive"),
    ],
)
def test_an_id_says_what_it_names(text: str, kind: str, tasks: int, step: str) -> None:
    """Case 25: one row of 96 tasks; case 26: a component; steps belong to their job. Source: squeue(1)."""
    job_id = parse_job_id(text)
    assert (job_id.kind, job_id.task_count, job_id.step, str(job_id)) == (kind, tasks, step, text)


@pytest.mark.parametrize(
    ("text", "tasks", "throttle"),
    [
        ("12_[0-9,20-29,...]", "0-9,20-29", None),
        ("12_[1,3,5,7...%4]", "1,3,5", 4),
        ("12_[1,3,5,7...", "1,3,5", None),
        ("12_[0-99...]", "", None),
    ],
)
def test_a_cut_task_list_is_read_as_far_as_it_is_whole(text: str, tasks: str, throttle: int | None) -> None:
    """The last number before the dots may be cut too. Part of a list would split the array: trap 12."""
    job_id = parse_job_id(text)
    assert (job_id.tasks, job_id.throttle, job_id.truncated) == (tasks, throttle, True)
    assert (job_id.kind, job_id.update_id) == ("array", "12")
