"""slurm_score/slurm/parse.py: jobs from squeue, priorities from sprio, earlier runs from sacct."""

import math
from typing import Any

import pytest

from slurm_score.gres import NO_GPUS, GpuRequest
from slurm_score.hints import Hints, parse_hints
from slurm_score.model import Job, PastRun
from slurm_score.slurm.parse import JOB_FIELDS, parse_squeue, squeue_format
from slurm_score.slurm.parse_accounting import parse_past_runs
from slurm_score.slurm.priorities import PriorityRow, join_priorities, parse_sprio
from tests.unit.builders import make_job
from tests.unit.slurm_texts import END, SEP
from tests.unit.slurm_texts import squeue_line as line


def read(**changes: str) -> Job:
    """Return the job that is read from one line."""
    reading = parse_squeue(line(**changes), SEP, END)
    assert reading.problems == []
    return reading.items[0]


def test_format_asks_for_every_field_without_a_width() -> None:
    """Case 12: a field with a width is cut; users' words come last, with what ends them behind each."""
    asked = squeue_format("<", ">").split(",")
    assert asked[0] == "JobID:<"
    assert asked[-3:] == ["Origin:<", "Name:>", "Comment:>"]
    assert [field.partition(":")[0] for field in asked] == list(JOB_FIELDS)


def test_pending_job_is_read() -> None:
    """Every field of a plain job."""
    assert read() == Job(
        job_id=812,
        label="812",
        update_id="812",
        user="bob",
        account="research",
        qos="normal",
        partitions=("main",),
        reason="Priority",
        priority=1200,
        submit_s=1_699_990_000,
        eligible_s=1_699_990_000,
        time_limit_s=3600.0,
        name="train-1",
    )


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        pytest.param({"tres_per_node": "gres:gpu:a100:2"}, GpuRequest(2, (("a100", 2),), 2), id="22.05"),
        pytest.param({"tres_per_node": "gres/gpu:a100:2"}, GpuRequest(2, (("a100", 2),), 2), id="24.11"),
        pytest.param({"tres_per_task": "gres/gpu=1", "NumTasks": "3"}, GpuRequest(3), id="for each task"),
        pytest.param({"tres_per_task": "cpu=2", "NumTasks": "3"}, NO_GPUS, id="CPUs for each task"),
        pytest.param(
            {"tres_alloc": "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=2,gres/gpu:a100=2"},
            GpuRequest(2, (("a100", 2),)),
            id="the whole request",
        ),
        pytest.param(
            {"tres_alloc": "cpu=1,node=1,billing=1,gres/gpu=4", "tres_per_job": "gres/gpu:4"},
            GpuRequest(4),
            id="case 8: --gpus=4 stands in tres-per-job",
        ),
        pytest.param(
            {"NumNodes": "4", "tres_per_node": "gres/gpu:p100:2", "tres_alloc": "cpu=4,node=4,gres/gpu=8"},
            GpuRequest(8, (("p100", 8),), 2),
            id="case 15: for each of four nodes",
        ),
        pytest.param({"tres_alloc": "(null)", "tres_per_job": "N/A"}, NO_GPUS, id="case 13"),
    ],
)
def test_gpu_request_is_read_in_every_releases_spelling(changes: dict[str, str], gpus: GpuRequest) -> None:
    """Observed with squeue -O on 22.05 and 24.11."""
    assert read(**changes).gpus == gpus


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"JobID": "9", "JobArrayID": "9_[3-9%3]"},
            {"job_id": 9, "label": "9_[3-9%3]", "update_id": "9_[3-9]", "tasks": "3-9", "task_count": 7},
            id="array with a throttle",
        ),
        pytest.param(
            {"JobID": "11", "JobArrayID": "9_2"},
            {"job_id": 11, "label": "9_2", "update_id": "9_2", "tasks": "", "task_count": 1},
            id="array task of its own",
        ),
        pytest.param(
            {"JobID": "26", "JobArrayID": "26+0", "HetJobID": "26"},
            {"label": "26+0", "update_id": "26", "het_job_id": 26, "follows_leader": False},
            id="case 26: het leader",
        ),
        pytest.param(
            {"JobID": "27", "JobArrayID": "26+1", "HetJobID": "26"},
            {"label": "26+1", "update_id": "26", "het_job_id": 26, "follows_leader": True},
            id="case 26: het component",
        ),
        pytest.param({"NumNodes": "3", "NumCPUs": "1"}, {"nodes": 3, "cpus": 3}, id="a CPU on each node"),
        pytest.param(
            {"cpus_per_tres": "gres:gpu:3", "tres_alloc": "cpu=1,gres/gpu=2"},
            {"cpus": 6},
            id="--cpus-per-gpu",
        ),
        pytest.param({"Origin": "west"}, {"origin": "west"}, id="trap 27: of another cluster's"),
        pytest.param({"Origin": "(null)"}, {"origin": ""}, id="no federation"),
        pytest.param({"NumNodes": "2-2", "NumCPUs": "16"}, {"nodes": 2, "cpus": 16}, id="range of nodes"),
        pytest.param({"Partition": "main,gpu"}, {"partitions": ("main", "gpu")}, id="case 27: partitions"),
        pytest.param({"PriorityLong": "0", "Reason": "JobHeldUser"}, {"held": True}, id="held"),
        pytest.param(
            {
                "Account": "(null)",
                "QOS": "(null)",
                "PriorityLong": "0",
                "Reason": "launch failed requeued held",
            },
            {"held": True, "reason": "launch failed requeued held"},
            id="case 34",
        ),
        pytest.param(
            {"Reason": "Nodes required for job are DOWN, DRAINED or reserved"},
            {"reason": "Nodes required for job are DOWN, DRAINED or reserved"},
            id="case 45: commas in the reason",
        ),
        pytest.param({"TimeLimit": "UNLIMITED"}, {"time_limit_s": math.inf}, id="case 17"),
        pytest.param({"TimeLimit": "Partition_Limit"}, {"time_limit_s": None}, id="case 18"),
        pytest.param({"TimeLimit": "NOT_SET"}, {"time_limit_s": None}, id="no limit set"),
        pytest.param({"TimeLimit": "30:00"}, {"time_limit_s": 1800.0}, id="case 19"),
        pytest.param({"EligibleTime": "N/A"}, {"eligible_s": None}, id="dependency open"),
        pytest.param({"StartTime": "1700000000"}, {"start_s": 1_700_000_000}, id="start expected"),
        pytest.param({"RestartCnt": "3"}, {"restarts": 3}, id="case 33"),
        pytest.param(
            {"Dependency": "afterok:811(unfulfilled),afterany:810(unfulfilled)"},
            {"dependency": "afterok:811(unfulfilled),afterany:810(unfulfilled)"},
            id="dependency",
        ),
        pytest.param({"Comment": "score: est=20m"}, {"hints": Hints(est_s=1200.0)}, id="hint"),
    ],
)
def test_field_of_a_job_is_read(changes: dict[str, str], expected: dict[str, Any]) -> None:
    """What squeue prints and what it means."""
    job = read(**changes)
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("two\nlines", id="newline"),
        pytest.param(f"a{SEP}b{SEP}c", id="separators"),
        pytest.param(f"forged\n{line()}".replace(END, SEP), id="a forged record"),
        pytest.param(f"forged{END[:-1]}\n{line(Name='x')}".replace(END, END[:-1]), id="nearly the end"),
        pytest.param("x'; touch /tmp/pwn; echo '", id="case 29, quotes"),
        pytest.param('{"a":"b;c"}', id="case 29, JSON"),
        pytest.param("caf\ufffd", id="bytes that were no UTF-8"),
        pytest.param("a|b,c", id="case 28"),
        pytest.param("", id="empty"),
        pytest.param("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028", id="every other end of a line"),
    ],
)
@pytest.mark.parametrize("field", ["Name", "Comment"])
def test_no_words_of_a_user_can_break_or_forge_a_record(field: str, words: str) -> None:
    """What ends them is unguessable, so three jobs stay three jobs, and a name is no comment."""
    known = {"Name": "train", "Comment": "score: est=20m"} | {field: words}
    text = line(JobID="1") + line(JobID="2", **known) + line(JobID="3")
    reading = parse_squeue(text, SEP, END)
    assert [job.job_id for job in reading.items] == [1, 2, 3]
    assert reading.problems == []
    assert (reading.items[1].name, reading.items[1].hints) == (known["Name"], parse_hints(known["Comment"]))


@pytest.mark.parametrize(
    "changes",
    [
        {"tres_alloc": "cpu=2,mem=512M,node="},
        {"JobArrayID": "9_[1-5,"},
        {"SubmitTime": "2026-01-01T00:00:00"},
        {"PriorityLong": "0.0000234"},
        {"TimeLimit": "an hour"},
        {"tres_per_node": "gpu:a100:2(S:0"},
    ],
)
def test_unreadable_job_is_left_out_and_named(changes: dict[str, str]) -> None:
    """Cases 12, 25 and 32: the others are kept, and the sentence shows the record."""
    reading = parse_squeue(line(JobID="1") + line(JobID="2", **changes) + line(JobID="3"), SEP, END)
    assert [job.job_id for job in reading.items] == [1, 3]
    assert len(reading.problems) == 1
    assert "in '2\\x1f" in reading.problems[0]


def test_record_with_too_few_fields_is_named() -> None:
    """A release that knows one field less doesn't shift the others in silence."""
    reading = parse_squeue(SEP.join(["1"] * 20) + END, SEP, END)
    assert (reading.items, len(reading.problems)) == ([], 1)


@pytest.mark.parametrize("text", ["", "\n"])
def test_empty_queue_has_no_jobs(text: str) -> None:
    """Nothing pending is nothing wrong."""
    reading = parse_squeue(text, SEP, END)
    assert (reading.items, reading.problems) == ([], [])


# sprio: id | priority | SITE | age | assoc | fairshare | jobsize | partition | QOS | nice

NO_PARTS = (0,) * 8


@pytest.mark.parametrize(
    ("text", "row"),
    [
        pytest.param(
            "12|1700|700|100|0|400|0|0|500|0|",
            PriorityRow(12, 700, False, (100, 0, 400, 0, 0, 500, 0, 0)),
            id="scored",
        ),
        pytest.param("12|1|0|0|0|0|0|0|0|0|", PriorityRow(12, 0, False, NO_PARTS), id="fresh"),
        pytest.param("17|5000|0|0|0|0|0|0|0|0|", PriorityRow(17, 0, True, NO_PARTS), id="case 36: pinned"),
        pytest.param(
            "12|7|0|0|0|0|0|0|0|0|", PriorityRow(12, 0, False, NO_PARTS), id="seven parts lost by rounding"
        ),
        pytest.param(
            "12|8|0|0|0|0|0|0|0|0|", PriorityRow(12, 0, True, NO_PARTS), id="more than rounding can hide"
        ),
        pytest.param("12|5000|5000|0|0|0|0|0|0|0|", PriorityRow(12, 5000, False, NO_PARTS), id="ours alone"),
        pytest.param(
            "12|1|-300|0|0|0|0|0|0|0|", PriorityRow(12, -300, False, NO_PARTS), id="negative, of an admin"
        ),
        pytest.param(
            "12|3000|0|0|0|0|0|0|0|0|cpu=1000,gres/gpu=2000",
            PriorityRow(12, 0, False, (0, 0, 0, 0, 0, 0, 0, 3000)),
            id="TRES alone",
        ),
        pytest.param(
            "12|400|0|0|0|0|0|0|500|100|", PriorityRow(12, 0, False, (0, 0, 0, 0, 0, 500, 100, 0)), id="nice"
        ),
        pytest.param(
            "17|5000|-2147483648|0|0|0|0|0|0|-2147483648|", PriorityRow(17, 0, True), id="22.05, partitions"
        ),
    ],
)
def test_sprio_row_tells_site_factor_and_pin(text: str, row: PriorityRow) -> None:
    """A priority without any part is a pin; a part that no addition gives is 22.05's way to print one."""
    reading = parse_sprio(text + "\n")
    assert (reading.items, reading.problems) == ([row], [])


@pytest.mark.parametrize("text", ["12|1700", "a|b|c|d|e|f|g|h|i|j|", "12|1.5|0|0|0|0|0|0|0|0|"])
def test_unreadable_sprio_row_is_named(text: str) -> None:
    """The others count."""
    reading = parse_sprio(f"1|1|0|0|0|0|0|0|0|0|\n{text}\n")
    assert ([row.job_id for row in reading.items], len(reading.problems)) == ([1], 1)


def test_priorities_join_their_jobs() -> None:
    """The first row of a job in several partitions counts; a job without a row doesn't tell."""
    rows = [PriorityRow(1, 700, False), PriorityRow(1, 0, True), PriorityRow(3, 0, True)]
    jobs = [make_job(i, site_factor=None) for i in (1, 2, 3)]
    assert [(job.site_factor, job.pinned) for job in join_priorities(jobs, rows)] == [
        (700, False),
        (None, False),
        (0, True),
    ]


def test_completing_job_is_there_if_sprio_lists_it() -> None:
    """squeue says COMPLETING of an ended job and of a requeued one; sprio lists what will run again."""
    jobs = [make_job(i, state=state, site_factor=None) for i, state in enumerate(("COMPLETING",) * 2, 1)]
    (again,) = join_priorities(jobs, [PriorityRow(2, 700, False)])
    assert (again.job_id, again.state, again.pending, again.site_factor) == (2, "COMPLETING", False, 700)


def test_job_that_is_requeued_and_completing_hides_no_pin() -> None:
    """Its row of sprio is its own: no array is under suspicion because of it."""
    array, pinned = make_job(9, label="9_[0-4]", tasks="0-4"), make_job(14, state="COMPLETING")
    assert [job.hides_tasks for job in join_priorities([array, pinned], [PriorityRow(14, 0, True)])] == [
        False,
        False,
    ]


# sacct -D -X -n -P -o JobIDRaw,State,Submit,Eligible,Start


def test_past_runs_are_told_oldest_first() -> None:
    """Case 44: wait before each run = start - max(submit, eligible); what never started is no run."""
    text = (
        "7|PREEMPTED|2000|2000|2600\n"
        "7|NODE_FAIL|1000|1100|1500\n"
        "7|PENDING|3000|3000|Unknown\n"
        "8|CANCELLED by 1001|1000|Unknown|1300\n"
        "9|REQUEUED|1000|900|1200\n"
    )
    assert parse_past_runs(text) == {
        7: (PastRun("NODE_FAIL", 400.0), PastRun("PREEMPTED", 600.0)),
        8: (PastRun("CANCELLED", 300.0),),
        9: (PastRun("REQUEUED", 200.0),),
    }


@pytest.mark.parametrize(("text", "runs"), [("", {}), ("\n", {}), ("7|REQUEUED|None|None|None\n", {})])
def test_nothing_in_accounting_is_no_run(text: str, runs: dict[int, tuple[PastRun, ...]]) -> None:
    """A job that accounting hasn't heard of yet."""
    assert parse_past_runs(text) == runs


def test_clock_that_went_back_gives_no_negative_wait() -> None:
    """A start before the submission counts as no wait."""
    assert parse_past_runs("7|NODE_FAIL|2000|2000|1990\n") == {7: (PastRun("NODE_FAIL", 0.0),)}


@pytest.mark.parametrize(
    ("reason", "rows", "hides"),
    [
        ("Priority", [PriorityRow(9, 0, False)], False),
        ("Priority,JobHeldUser", [PriorityRow(9, 0, False)], True),
        ("Resources,BadConstraints", [], True),
        ("Priority", [PriorityRow(9, 0, False), PriorityRow(14, 0, True)], True),
        ("Priority", [PriorityRow(9, 0, False), PriorityRow(14, 7, False)], False),
    ],
    ids=["plain", "held", "bad constraints, not ranked", "pinned", "a task with its own limit"],
)
def test_an_array_tells_whether_it_may_hide_a_task(reason: str, rows: list[PriorityRow], hides: bool) -> None:
    """By the reasons that squeue joins, and by pinned rows of sprio that squeue doesn't show."""
    array = make_job(9, label="9_[0-4]", tasks="0-4", reason=reason)
    plain = make_job(10, reason="JobHeldUser")
    assert [job.hides_tasks for job in join_priorities([array, plain], rows)] == [hides, False]
