"""slurm_score/explain.py: one job's score in words and numbers, and what blocks it."""

import pytest

from slurm_score.explain import Explanation, blocker, explain_job
from slurm_score.model import Job
from slurm_score.policy import Policy
from slurm_score.score import score_queue
from tests.unit.builders import HOUR, make_gpu_job, make_job, make_queue


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
