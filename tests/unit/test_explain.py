"""slurm_score/explain.py: one job's score in words and numbers, and what blocks it."""

from dataclasses import replace

import pytest

from slurm_score.explain import Explanation, blocker, explain_job
from slurm_score.model import Job, Offsets
from slurm_score.policy import Policy
from slurm_score.score import score_queue
from slurm_score.standing import Standing
from tests.unit.builders import HOUR, NOW, make_gpu_job, make_job, make_queue


def explain(*jobs: Job, i: int = 0) -> Explanation:
    """Return the explanation of job i of a queue by the default policy."""
    queue = make_queue(*jobs)
    return explain_job(queue, score_queue(queue, Policy()), Policy(), i)


def test_parts_add_up_to_the_score() -> None:
    """350/2 + 450/2 + 200/4 + 500 + 0, each with its weight, factor and words."""
    told = explain(make_job(wait_s=27 * HOUR, time_limit_s=1800.0, cpus=6, qos="high"))
    assert [(line.name, line.weight, line.factor, line.part) for line in told.terms] == [
        ("wait", 350, 0.5, 175.0),
        ("remaining", 450, 0.5, 225.0),
        ("size", 200, 0.25, 50.0),
        ("qos", 500, 1.0, 500.0),
        ("gres_fit", 100, 0.0, 0.0),
    ]
    assert sum(line.part for line in told.terms) == told.score == 950.0
    assert [line.words for line in told.terms] == [
        "has waited 1-03:00:00 of 2-06:00:00",
        "00:30:00 to run by its time limit; one half at 00:30:00",
        "asks for 6 of the 24 CPUs of its partition",
        "QOS high has priority 1000 of at most 1000",
        "asks for no GPU",
    ]


def test_shares_tell_what_part_of_the_score_each_factor_makes() -> None:
    """225 + 100 + 0 of 225 + 50 + 125: the time limit makes more than half of it."""
    told = explain(make_job(time_limit_s=1800.0, cpus=6, qos="low"))
    assert [line.share for line in told.terms] == [0.0, 0.5625, 0.125, 0.3125, 0.0]


def test_a_score_of_0_has_shares_of_0() -> None:
    """Nothing is divided by it."""
    told = explain(make_job(time_limit_s=float("inf"), partitions=()))
    assert (told.score, {line.share for line in told.terms}) == (0.0, {0.0})


def test_sub_terms_are_shown_beside_their_factor() -> None:
    """4 of 4 a100 asked: scarcity 1/2, and all four are ready; those that weigh 0 are shown too."""
    told = explain(make_gpu_job(1, "gpu:a100:4"))
    fit = {"scarcity": 0.5, "ready": 1.0, "match": 1.0, "packing": 1.0, "spread": 1.0}
    assert [line.details for line in told.terms] == [{}, {}, {}, {}, fit]


def test_explanation_names_job_and_policy() -> None:
    """Whoever reads it knows whose job it is, by which policy, and what Slurm holds."""
    told = explain(make_job(7, label="7_[1-3]", qos="high", partitions=("main", "gpu"), site_factor=12))
    assert (told.job, told.user, told.partition, told.qos) == ("7_[1-3]", "alice", "main,gpu", "high")
    assert (told.site_wanted, told.site_held, told.policy_hash) == (658, 12, Policy().hash)


def test_guarded_job_says_so() -> None:
    """Its place comes from its wait, not from the sum above."""
    told = explain(make_job(wait_s=46 * HOUR))
    words = "above every score, in the order in which jobs got there"
    assert told.guard == f"it has waited longer than 1-21:00:00: {words}"
    assert told.site_wanted == 1601 + 1089 + 60
    assert explain(make_job()).guard == ""


@pytest.mark.parametrize(
    ("i", "rank", "of"),
    [
        pytest.param(0, 2, 3, id="main, normal"),
        pytest.param(1, 1, 3, id="main, high"),
        pytest.param(2, 1, 2, id="gpu alone, but shares it with the job in both"),
        pytest.param(3, 4, 4, id="in both, behind all"),
        pytest.param(4, 2, 4, id="held: counted for itself only"),
    ],
)
def test_rank_counts_jobs_that_share_a_partition_and_could_start(i: int, rank: int, of: int) -> None:
    """The place among those that compete now; the job itself always counts."""
    jobs = (
        make_job(1, submit_s=10),
        make_job(2, qos="high"),
        make_gpu_job(3, "gpu:a100:1", qos="high"),
        make_job(4, partitions=("main", "gpu"), time_limit_s=float("inf")),
        make_job(5, qos="low", priority=0),
    )
    told = explain(*jobs, i=i)
    assert (told.rank, told.of) == (rank, of)


def test_standing_counts_those_that_want_the_same_type_and_the_gpus_before_it() -> None:
    """Five tasks of two GPUs each and a job that takes any type; no v100, nothing held, no CPU job."""
    jobs = (
        make_gpu_job(1, "gpu:a100:1"),
        make_gpu_job(2, "gpu:v100:1", qos="high"),
        make_gpu_job(3, "gpu:a100:2", qos="high", tasks="0-4"),
        make_gpu_job(4, "gpu:2", qos="low"),
        make_gpu_job(5, "gpu:a100:1", priority=0),
        make_job(6, partitions=("gpu",), qos="high"),
    )
    assert explain(*jobs).standings == (Standing("gpu", ("a100",), 3, 3, 12),)
    assert explain(*jobs, i=3).standings == (Standing("gpu", ("a100", "v100"), 3, 4, 11),)


def test_standing_is_told_for_each_partition() -> None:
    """A job in two of them has two places; without GPUs all that could start count."""
    jobs = (
        make_job(1, partitions=("main", "gpu")),
        make_job(2, qos="high"),
        make_gpu_job(3, "gpu:a100:1", qos="high"),
        make_job(4, time_limit_s=86400.0),
    )
    assert explain(*jobs).standings == (Standing("main", (), 2, 3, 0), Standing("gpu", (), 2, 2, 0))


@pytest.mark.parametrize(
    ("i", "rank"),
    [
        pytest.param(0, 3, id="the last of those submitted at once, by its number"),
        pytest.param(1, 2, id="the lower number"),
        pytest.param(2, 1, id="submitted earlier, though its number is higher"),
    ],
)
def test_ties_go_by_submission_and_then_by_number(i: int, rank: int) -> None:
    """As Slurm orders jobs of one priority."""
    since = {"eligible_s": 0}
    jobs = (
        make_job(8, submit_s=NOW - 60, **since),
        make_job(7, submit_s=NOW - 60, **since),
        make_job(9, submit_s=NOW - 61, **since),
    )
    told = explain(*jobs, i=i)
    assert (told.standings[0].rank, told.rank) == (rank, rank)


def test_a_request_that_no_node_can_serve_stands_in_no_line_for_a_type() -> None:
    """It accepts none of those that there are."""
    assert explain(make_gpu_job(1, "gpu:h100:1")).standings == (Standing("gpu", (), 1, 1, 0),)


def test_site_factor_is_points_and_offset_and_slurm_adds_its_own_parts() -> None:
    """158.3 + 40.5 is 199, rounded; Slurm holds 190 and makes 190 + 30 + 12 - 5 = 227 of it."""
    job = make_job(site_factor=190, slurm_parts=(30, 0, 0, 0, 0, 12, 5, 0), priority=227)
    queue = replace(make_queue(job), offsets=Offsets(40.5, 7.0))
    told = explain_job(queue, score_queue(queue, Policy()), Policy(), 0)
    assert (round(told.points, 2), told.offset, told.site_wanted) == (158.33, 40.5, 199)
    assert told.slurm_parts == {
        "age": 30,
        "assoc": 0,
        "fairshare": 0,
        "job_size": 0,
        "partition": 0,
        "qos": 12,
        "nice": 5,
        "tres": 0,
    }
    assert told.priority == 227


def test_past_the_guard_its_minutes_count_from_where_the_tier_begins() -> None:
    """An hour past 45 h: 60 points on 1600 + 1089 + 1 and the tier's own offset."""
    queue = replace(make_queue(make_job(wait_s=46 * HOUR)), offsets=Offsets(40.5, 7.0))
    told = explain_job(queue, score_queue(queue, Policy()), Policy(), 0)
    assert (told.points, told.offset, told.site_wanted) == (60.0, 2697.0, 2757)


def test_untouched_job_says_why() -> None:
    """Case 36: pinned by an admin, skipped and told so."""
    assert explain(make_job(priority=5000, pinned=True)).untouched == "pinned"
    assert explain(make_job()).untouched == ""


@pytest.mark.parametrize("reason", ["Priority", "Resources", "None", ""])
def test_job_that_waits_its_turn_has_no_blocker(reason: str) -> None:
    """The score decides when it starts."""
    assert blocker(make_job(reason=reason)) == ""


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (
            make_job(reason="Dependency", dependency="afterok:812(unfulfilled)"),
            "it waits for another job (afterok:812(unfulfilled)): Dependency",
        ),
        (make_job(reason="Dependency"), "it waits for another job: Dependency"),
        (make_job(reason="BeginTime"), "its begin time has not come: BeginTime"),
        (make_job(reason="JobHeldUser", priority=0), "its user holds it: JobHeldUser"),
        (make_job(reason="JobHeldAdmin", priority=0), "an administrator holds it: JobHeldAdmin"),
        (
            make_job(reason="BadConstraints", priority=0),
            "no node can ever meet its constraints; Slurm holds it: BadConstraints",
        ),
        (
            make_job(reason="QOSMaxJobsPerUserLimit"),
            "a limit of its QOS is reached: QOSMaxJobsPerUserLimit",
        ),
        (make_job(reason="QOSMinGRES"), "it asks for less than its QOS demands: QOSMinGRES"),
        (
            make_job(reason="QOSNotAllowed"),
            "its partition or its association doesn't let its QOS in: QOSNotAllowed",
        ),
        (
            make_job(reason="Nodes required for job are DOWN"),
            "nodes that it needs are not available: Nodes required for job are DOWN",
        ),
        (
            make_job(reason="JobHoldMaxRequeue", priority=0),
            "it was requeued too often; Slurm holds it: JobHoldMaxRequeue",
        ),
        (make_job(reason="AssocGrpGRES"), "a limit of its association is reached: AssocGrpGRES"),
        (make_job(reason="Priority", priority=0), "it is held at priority 0"),
        (
            make_job(reason="None", dependency="afterok:812(unfulfilled)", eligible_s=None),
            "it waits for another job (afterok:812(unfulfilled))",
        ),
        (make_job(reason="SomethingNew"), "Slurm says why: SomethingNew"),
        (
            make_job(reason="PartitionTimeLimit"),
            "it asks for more time than its partition gives: PartitionTimeLimit",
        ),
    ],
)
def test_blocker_says_what_keeps_the_job_beside_its_score(job: Job, text: str) -> None:
    """Case 23: what blocks is named instead of the score; Slurm's words stand behind it."""
    assert blocker(job) == text


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("ReqNodeNotAvail, Reserved for maintenance", id="case 23"),
        pytest.param(
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            id="case 45",
        ),
        pytest.param("launch failed requeued held", id="case 34, as squeue writes it"),
    ],
)
def test_slurms_reason_is_kept_word_for_word(reason: str) -> None:
    """Commas and blanks in it cut nothing off."""
    assert blocker(make_job(reason=reason, priority=0)).endswith(f": {reason}")
