"""slurm_score/slurm/job_details.py: what `scontrol show job -o` tells and squeue doesn't."""

import pytest

from slurm_score.slurm.job_details import Details, JobDetail, parse_details
from tests.unit.builders import NOW, make_job

LINE = (
    "JobId=31 {array}JobName=train UserId=alice(2001) GroupId=alice(2001) MCS_label=N/A Priority=1 Nice=0 "
    "Account=research QOS=normal JobState=PENDING Reason=Priority Dependency=(null) Requeue=1 Restarts=0 "
    "BatchFlag=1 TimeLimit=01:00:00 SubmitTime=1699990000 Partition=main AllocNode:Sid=ctl:391 "
    "ReqNodeList=(null) ExcNodeList={exc} NodeList= SchedNodeList=g1 NumNodes={nodes} NumCPUs=1 NumTasks=1 "
    "CPUs/Task=1 ReqB:S:C:T=0:0:*:* ReqTRES=cpu=1,mem=4000M,node=1,billing=1 AllocTRES=(null) "
    "Features=(null) Command=(null) WorkDir=/tmp StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null\n"
)


def line(nodes: str = "1", exc: str = "(null)", array: str = "") -> str:
    """Return what scontrol prints of one waiting job, as observed on 24.11."""
    return LINE.format(nodes=nodes, exc=exc, array=array)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        pytest.param(line("1"), JobDetail(), id="--gpus=2"),
        pytest.param(line("1-1"), JobDetail(max_nodes=1), id="--nodes=1 --gpus=2"),
        pytest.param(line("1-2"), JobDetail(max_nodes=2), id="--nodes=1-2"),
        pytest.param(line("1K-2K"), JobDetail(max_nodes=2048), id="numbers with a unit"),
        pytest.param(line(exc="c1,g[1-2]"), JobDetail(exc_nodes="c1,g[1-2]"), id="--exclude"),
        pytest.param(
            line("1-1", array="ArrayJobId=31 ArrayTaskId=0-3 ArrayTaskThrottle=2 "),
            JobDetail(max_nodes=1),
            id="array",
        ),
    ],
)
def test_limit_of_nodes_and_excluded_nodes_are_read(text: str, detail: JobDetail) -> None:
    """Observed on 22.05.8, 24.11.5 and 26.05.5."""
    assert parse_details(text) == {31: detail}


FORGED = "JobId=32 JobName=x ReqNodeList=x ExcNodeList=g[1-9] NodeList= NumNodes=9-9 NumCPUs=1 "


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            line("1-1") + line().replace("JobId=31", "JobId=32").replace("train", f"x\n{FORGED}"), id="name"
        ),
        pytest.param(line("1-1").replace("WorkDir", f"Comment=x\n{FORGED}\nWorkDir") + FORGED, id="comment"),
        pytest.param(FORGED + "\n" + FORGED + "\n" + line("1-1"), id="before"),
    ],
)
def test_a_name_or_a_comment_cannot_speak_for_another_job(text: str) -> None:
    """Line ends in names and comments come through raw (observed): a job with two lines has no details."""
    assert parse_details(text) == {31: JobDetail(max_nodes=1)}


def test_details_are_added_to_jobs_that_wait() -> None:
    """What squeue told stays; of a job that can't start yet 24.11 repeats the fewest nodes as the most."""
    jobs = [
        make_job(1),
        make_job(2, exc_nodes="g3"),
        make_job(3, max_nodes=4),
        make_job(4, priority=0),
        make_job(5, eligible_s=None),
        make_job(6, state="RUNNING"),
        make_job(7),
    ]
    details = Details()
    details.learn({job.job_id: JobDetail(1, "g1") for job in jobs if job.job_id != 7}, NOW)
    told = [(job.max_nodes, job.exc_nodes) for job in details.add_to(jobs)]
    assert told == [(1, "g1"), (1, "g3"), (4, "g1"), (0, "g1"), (0, "g1"), (0, ""), (0, "")]


@pytest.mark.parametrize(
    ("wanted", "later_s", "missing"),
    [
        pytest.param([1, 2], 600, False, id="all were there"),
        pytest.param([1, 3], 600, True, id="a new one"),
        pytest.param([1, 3], 299, False, id="a new one, but it was asked just now"),
        pytest.param([3], -1, True, id="a clock that was set back"),
        pytest.param([], 600, False, id="nobody needs it"),
    ],
)
def test_scontrol_is_asked_again_where_a_job_is_new(wanted: list[int], later_s: float, missing: bool) -> None:
    """And every five minutes at most."""
    details = Details()
    assert details.missing(wanted, NOW) is bool(wanted)
    details.learn({1: JobDetail(), 2: JobDetail()}, NOW)
    assert details.missing(wanted, NOW + later_s) is missing
