"""slurm_score/service/app.py: jobs, health and metrics, over a real unix socket."""

import json

import pytest

from slurm_score.errors import ServiceError
from slurm_score.policy import parse_policy
from tests.unit import service_support
from tests.unit.builders import NOW
from tests.unit.service_support import ENFORCE, Service

# pytest finds fixtures by their names in the module.
service = service_support.service


# GET /v1/jobs


def test_jobs_are_listed_best_first(service: Service) -> None:
    """QOS high before the GPU job before the array."""
    answer = service.client.jobs()
    assert [job["job"] for job in answer["jobs"]] == ["10", "26+0", "9_[3-9%3]"]
    assert answer["policy"] == parse_policy(ENFORCE).hash


@pytest.mark.parametrize(
    ("job_id", "label"),
    [
        ("10", "10"),
        ("9_[3-9%3]", "9_[3-9%3]"),
        ("9_[3-9]", "9_[3-9%3]"),
        ("9", "9_[3-9%3]"),
        ("26+0", "26+0"),
        ("26", "26+0"),
    ],
)
def test_job_is_explained_by_each_of_its_ids(service: Service, job_id: str, label: str) -> None:
    """Brackets, plus and percent signs survive the way through the URL."""
    answer = service.client.job(job_id)
    assert answer["job"] == label
    assert sum(term["part"] for term in answer["terms"]) == pytest.approx(answer["score"])


@pytest.mark.parametrize("job_id", ["99", "x", "é", "a/b", "..", "%00", "1" * 5000])
def test_job_that_is_not_pending_is_404(service: Service, job_id: str) -> None:
    """Also what is no job id at all."""
    with pytest.raises(ServiceError) as caught:
        service.client.job(job_id)
    assert caught.value.status == 404
    assert len(str(caught.value)) < 200


def test_jobs_without_a_snapshot_are_503(service: Service) -> None:
    """There is nothing to list, and the reason is the sentence itself."""
    service.snapshot.unlink()
    with pytest.raises(ServiceError, match="no snapshot yet; is the reprioritizer running") as caught:
        service.client.jobs()
    assert caught.value.status == 503


# GET /healthz, /metrics


def counter(service: Service, name: str) -> float:
    """Return one number of /metrics."""
    lines = service.ask("GET", "/metrics")[2].splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " "))


def test_health_tells_mode_policy_and_age(service: Service) -> None:
    """Always 200 while the service runs, with or without a snapshot."""
    service.now_s = NOW + 12
    status, _, text = service.ask("GET", "/healthz")
    healthy = {"mode": "enforce", "policy": parse_policy(ENFORCE).hash, "policy_error": ""}
    assert (status, json.loads(text)) == (200, healthy | {"snapshot_age_s": 12.0})


def test_health_without_a_snapshot_has_no_age(service: Service) -> None:
    """Null, not an error."""
    service.snapshot.unlink()
    status, _, text = service.ask("GET", "/healthz")
    assert (status, json.loads(text)["snapshot_age_s"]) == (200, None)


def test_metrics_count_answers_by_outcome(service: Service) -> None:
    """Scored, neutral and invalid, in Prometheus' text format."""
    service.client.score({"qos": "high"})
    service.ask("POST", "/v1/score", b"not JSON")
    service.now_s = NOW + 301
    service.client.score({})
    service.client.score({})
    outcomes = ("scored", "invalid", "neutral")
    names = [f'slurm_score_answers_total{{outcome="{outcome}"}}' for outcome in outcomes]
    assert [counter(service, name) for name in names] == [1, 1, 2]
    assert counter(service, "slurm_score_answer_seconds_count") == 4
    assert counter(service, "slurm_score_snapshot_age_seconds") == 301


def test_metrics_name_the_policy_in_force_only(service: Service) -> None:
    """One series, whatever policies there were before."""
    service.ask("GET", "/metrics")
    service.policy.write_text("mode: advise\n", encoding="utf-8")
    series = [
        line
        for line in service.ask("GET", "/metrics")[2].splitlines()
        if line.startswith("slurm_score_policy{")
    ]
    advise = parse_policy("mode: advise").hash
    assert series == [f'slurm_score_policy{{hash="{advise}",mode="advise"}} 1.0']
