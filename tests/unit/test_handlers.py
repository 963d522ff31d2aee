"""slurm_score/service/handlers.py: what the service answers to the hook."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from slurm_score.contention import gpu_pressure
from slurm_score.gres import NO_GPUS, GpuRequest
from slurm_score.model import Job
from slurm_score.policy import Mode, Policy
from slurm_score.service.handlers import (
    NewJob,
    ScoreAnswer,
    ScoreRequest,
    job_from_request,
    neutral_answer,
)
from slurm_score.snapshot import Snapshot
from tests.unit.builders import NOW, make_cluster, make_policy, typed

ENFORCE = make_policy(mode="enforce")
LIMIT_WORD = "time_limit_min.literal['UNLIMITED']"


def snapshot(*jobs: Job, policy: Policy = ENFORCE) -> Snapshot:
    """Return a snapshot of now with these jobs."""
    cluster = make_cluster()
    return Snapshot(policy=policy, cluster=cluster, pressure=gpu_pressure(jobs, cluster), jobs=jobs)


def ask(policy: Policy = ENFORCE, now_s: float = NOW, **fields: Any) -> ScoreAnswer:
    """Return the answer to a submission."""
    return NewJob(ScoreRequest(**fields), snapshot(), policy).answer_at(now_s)


def new_job(**fields: Any) -> Job:
    """Return the job that a request describes."""
    return job_from_request(ScoreRequest(**fields), make_cluster())


# modes


def test_enforce_answers_with_the_score() -> None:
    """30 min, QOS high, 6 of main's 24 CPUs: 225 + 500 + 50, and no wait yet."""
    answer = ask(qos="high", time_limit_min=30, cpus_per_task=6, partition="main")
    assert answer == ScoreAnswer(site_factor=775, policy=ENFORCE.hash)


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        (Mode.OBSERVE, ()),
        (Mode.ADVISE, ("slurm-score: hint 'fast' ignored: not key=value",)),
    ],
)
def test_observe_and_advise_set_nothing(mode: Mode, advice: tuple[str, ...]) -> None:
    """observe is silent, advise tells the user; neither touches the job."""
    policy = make_policy(mode=mode)
    assert ask(policy, comment="score: fast") == ScoreAnswer(
        site_factor=None, advice=advice, reason=f"mode is {mode}", policy=policy.hash
    )


def test_job_that_is_asked_for_again_is_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What doesn't depend on the time is worked out at the first question only."""
    job = NewJob(ScoreRequest(qos="high"), snapshot(), ENFORCE)
    first = job.answer_at(NOW)
    monkeypatch.setattr("slurm_score.service.handlers.scores_of", None)
    assert job.answer_at(NOW + 1) is first


@pytest.mark.parametrize(
    ("mode", "fields", "noted"),
    [
        (Mode.ENFORCE, {"time_limit_min": 30}, True),
        (Mode.ENFORCE, {"priority": 0}, False),
        (Mode.ADVISE, {"time_limit_min": 30}, False),
        (Mode.OBSERVE, {"time_limit_min": 30}, False),
    ],
)
def test_note_goes_with_the_first_score_only(mode: Mode, fields: dict[str, int], noted: bool) -> None:
    """admin_comment is written to Slurm: outside enforce, and without a score, there is none."""
    policy = make_policy(mode=mode, admin_comment=True)
    answer = ask(policy, **fields)
    note = f"slurm-score:site={answer.site_factor},policy={policy.hash}"
    assert answer.admin_comment == (note if noted else "")
    assert ask(make_policy(mode=mode), **fields).admin_comment == ""


def test_ignored_hint_is_told_in_enforce_too() -> None:
    """The job is scored without it."""
    answer = ask(comment="score: est=soon", time_limit_min=30)
    assert answer.advice == (
        "slurm-score: hint 'est=soon' ignored: not a duration such as 20m, 2h30m or 1-12:00",
    )
    assert answer.site_factor == 233


def test_at_most_three_lines_are_told() -> None:
    """The user's terminal is not ours."""
    assert len(ask(comment="score: a b c d e f").advice) == 3


# jobs that are left alone, and neutral answers


@pytest.mark.parametrize(
    ("priority", "reason"), [(0, "submitted held"), (5000, "submitted with its own priority")]
)
def test_job_with_its_own_priority_is_left_alone(priority: int, reason: str) -> None:
    """sbatch --hold and --priority: the user or an admin has decided."""
    assert ask(priority=priority) == ScoreAnswer(site_factor=None, reason=reason, policy=ENFORCE.hash)


@pytest.mark.parametrize(
    ("age_s", "site", "reason"),
    [(0, 158, ""), (300, 158, ""), (301, 225, "the snapshot is 301 s old"), (-60, 158, "")],
)
def test_stale_snapshot_gives_the_neutral_answer(age_s: float, site: int, reason: str) -> None:
    """Decision 4: after max_snapshot_age (5 min) it says so; one hour and one CPU are 150 + 8 before."""
    answer = ask(time_limit_min=60, now_s=NOW + age_s)
    assert (answer.site_factor, answer.reason) == (site, reason)


def test_neutral_answer_needs_no_snapshot() -> None:
    """Every factor at its neutral value, and the reason."""
    assert neutral_answer("no snapshot yet", ENFORCE) == ScoreAnswer(
        site_factor=225, reason="no snapshot yet", policy=ENFORCE.hash
    )


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_neutral_answer_sets_nothing_outside_enforce(mode: Mode) -> None:
    """The reason is still told."""
    policy = make_policy(mode=mode)
    assert neutral_answer("no snapshot yet", policy) == ScoreAnswer(
        site_factor=None, reason="no snapshot yet", policy=policy.hash
    )


# the job of a request


def test_empty_request_is_the_smallest_job() -> None:
    """Case 39: a user without association has no account and no QOS, and still gets a score."""
    assert new_job() == Job(
        job_id=0, label="new", partitions=("main",), submit_s=NOW, eligible_s=NOW, time_limit_s=None
    )
    assert ask().reason == ""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"time_limit_min": None}, {"time_limit_s": None}, id="case 22: unset"),
        pytest.param({"time_limit_min": "UNLIMITED"}, {"time_limit_s": math.inf}, id="case 17"),
        pytest.param({"time_limit_min": 90}, {"time_limit_s": 5400}, id="minutes"),
        pytest.param(
            {"partition": "main,gpu"}, {"partitions": ("main", "gpu")}, id="case 55: two partitions"
        ),
        pytest.param({"partition": ",gpu,"}, {"partitions": ("gpu",)}, id="empty names"),
        pytest.param({"qos": "high", "default_qos": "low"}, {"qos": "high"}, id="asked QOS"),
        pytest.param({"default_qos": "low"}, {"qos": "low"}, id="default QOS"),
        pytest.param({"account": "a", "default_account": "b"}, {"account": "a"}, id="asked account"),
        pytest.param({"default_account": "b"}, {"account": "b"}, id="default account"),
        pytest.param({"num_tasks": 6, "cpus_per_task": 2}, {"cpus": 12}, id="tasks times CPUs"),
        pytest.param({"ntasks_per_node": 4, "min_nodes": 2}, {"cpus": 8, "nodes": 2}, id="tasks on a node"),
        pytest.param({"min_cpus": 16}, {"cpus": 16}, id="CPUs asked"),
        pytest.param({"min_cpus": 2, "num_tasks": 8}, {"cpus": 8}, id="the larger of both"),
        pytest.param({"tres_per_job": "gres/gpu:1"}, {"gpus": GpuRequest(1)}, id="case 9"),
        pytest.param(
            {"tres_per_node": "gres:gpu:a100:2", "min_nodes": 2}, {"gpus": typed("a100", 4, 2)}, id="22.05"
        ),
        pytest.param({"tres_per_task": "gres/gpu:1", "num_tasks": 3}, {"gpus": GpuRequest(3)}, id="per task"),
        pytest.param({"tres_per_socket": "gpu:2", "min_nodes": 2}, {"gpus": GpuRequest(4)}, id="per socket"),
        pytest.param({"tres_per_node": "gpu:2"}, {"gpus": GpuRequest(2, (), 2)}, id="on one node"),
        pytest.param({"tres_per_job": "gpu:::"}, {"gpus": NO_GPUS}, id="Slurm itself will refuse it"),
        pytest.param(
            {"tres_per_job": "gres/gpu:1g.10gb:2", "tres_per_node": "gres/shard:3"},
            {"gpus": NO_GPUS, "slices": typed("1g.10gb", 2), "shards": GpuRequest(3, (), 3)},
            id="slices and shards",
        ),
        pytest.param({"min_nodes": 1, "max_nodes": 1}, {"nodes": 1, "max_nodes": 1}, id="--nodes=1"),
        pytest.param({"mem_per_node_mib": 4000, "min_nodes": 2}, {"mem_mib": 8000}, id="--mem"),
        pytest.param({"mem_per_node_mib": 0}, {"mem_mib": 0}, id="--mem=0"),
        pytest.param({"mem_per_cpu_mib": 100, "num_tasks": 3}, {"mem_mib": 300}, id="--mem-per-cpu"),
        pytest.param(
            {"mem_per_tres": "gres/gpu:100", "tres_per_job": "gres/gpu:2"},
            {"mem_mib": 200},
            id="--mem-per-gpu",
        ),
        pytest.param(
            {"features": "a100|v100", "prefer": "nvlink", "reservation": "course"},
            {"features": "a100|v100", "prefer": "nvlink", "reservation": "course"},
            id="--constraint, --prefer, --reservation",
        ),
        pytest.param(
            {"req_nodes": "g[1-2]", "exc_nodes": "g3"},
            {"req_nodes": "g[1-2]", "exc_nodes": "g3"},
            id="--nodelist, --exclude",
        ),
    ],
)
def test_request_becomes_the_job_that_will_stand_in_the_queue(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The tres_per_* texts are job_desc's, since job_desc.gpus is always nil (case 37)."""
    job = new_job(**fields)
    assert {name: getattr(job, name) for name in expected} == expected


def test_huge_numbers_are_scored() -> None:
    """Nothing that the hook can send makes the service fail."""
    counts = ("time_limit_min", "min_nodes", "max_nodes", "num_tasks", "ntasks_per_node")
    sizes = ("cpus_per_task", "min_cpus", "mem_per_node_mib", "mem_per_cpu_mib")
    fields: dict[str, Any] = dict.fromkeys((*counts, *sizes), 2**63)
    answer = ask(**fields, tres_per_node="gpu:999999999999999999P")
    assert answer.site_factor is not None
    assert 0 <= answer.site_factor <= ENFORCE.total_weight


def test_unknown_fields_of_a_request_are_ignored() -> None:
    """A newer hook may say more than an older service knows."""
    request = ScoreRequest.model_validate_json('{"user": "bob", "colour": "red", "nested": {"a": [1]}}')
    assert request == ScoreRequest(user="bob")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ('{"min_nodes": "two"}', ["min_nodes"]),
        ('{"min_nodes": -1, "user": 5}', ["user", "min_nodes"]),
        ('{"time_limit_min": "forever"}', ["time_limit_min.constrained-int", LIMIT_WORD]),
        ('{"comment": "' + "x" * 8193 + '"}', ["comment"]),
        ('{"priority": 1.5}', ["priority"]),
        ("[]", [""]),
        ("not JSON", [""]),
    ],
)
def test_bad_fields_of_a_request_are_reported(body: str, fields: list[str]) -> None:
    """All at once, by name."""
    with pytest.raises(ValidationError) as caught:
        ScoreRequest.model_validate_json(body)
    assert [".".join(map(str, error["loc"])) for error in caught.value.errors()] == fields


def test_a_held_job_is_left_alone_whatever_the_age_of_the_snapshot() -> None:
    """Held and pinned jobs are never touched, not with the neutral score either."""
    answer = ask(now_s=NOW + 3600, priority=0)
    assert (answer.site_factor, answer.reason) == (None, "submitted held")
