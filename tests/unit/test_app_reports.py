"""slurm_score/service/app.py: jobs, health and metrics, over a real unix socket."""

import contextlib
import json
import socket
import time

import pytest

from slurm_score import __version__
from slurm_score.errors import ServiceError
from slurm_score.policy_yaml import parse_policy
from slurm_score.service.server import MAX_CONNECTIONS
from slurm_score.service.state import MAX_REPORTS
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
    healthy: dict[str, object] = {
        "version": __version__,
        "mode": "enforce",
        "policy": parse_policy(ENFORCE).hash,
    }
    healthy |= {"policy_error": "", "snapshot_age_s": 12.0, "snapshot_error": "", "kill_switch": ""}
    nobody = {"last_s": None, "version": "", "lua": "", "loaded_s": None, "failed": 0, "resting": 0}
    none = {"count": 0.0, "mean_s": 0.0, "slow": 0.0}
    assert (status, json.loads(text)) == (200, healthy | {"hook": nobody, "answers": none})


def test_health_tells_how_long_the_hook_waits_for_answers(service: Service) -> None:
    """Three answers: 1 ms, 4 ms and 40 ms, which is above the 20 ms that the hook waits."""
    for seconds in (0.001, 0.004, 0.04):
        service.state.metrics.note("scored", seconds)
    told = json.loads(service.ask("GET", "/healthz")[2])["answers"]
    assert told == {"count": 3.0, "mean_s": pytest.approx(0.015), "slow": 1.0}


def test_health_names_the_hook_that_asked_last(service: Service) -> None:
    """By its User-Agent: which version, on which Lua, loaded when; other clients aren't the hook."""
    service.now_s = NOW + 3
    agent = "User-Agent: slurm_score.lua/0.1.0 (Lua 5.1; loaded 1700000001)"
    service.ask("POST", "/v1/score", b"{}", agent)
    service.ask("POST", "/v1/score", b"{}", "User-Agent: curl/8")
    told = json.loads(service.ask("GET", "/healthz")[2])["hook"]
    seen = {"last_s": NOW + 3, "version": "0.1.0", "lua": "5.1", "loaded_s": 1700000001}
    assert told == seen | {"failed": 0, "resting": 0}
    assert counter(service, "slurm_score_hook_last_seconds") == NOW + 3


def test_submissions_that_passed_without_an_answer_are_counted(service: Service) -> None:
    """The hook tells them with its next question; a hook that was loaded again begins at 0."""
    agent = "User-Agent: slurm_score.lua/0.1.0 (Lua 5.1; loaded 1700000001; failed 3; resting 41)"
    service.ask("POST", "/v1/score", b"{}", agent)
    counted = {why: counter(service, hook_sample(why)) for why in ("failed", "resting")}
    assert counted == {"failed": 3, "resting": 41}
    told = json.loads(service.ask("GET", "/healthz")[2])["hook"]
    assert (told["failed"], told["resting"]) == (3, 41)


def hook_sample(why: str) -> str:
    """Return the sample of the submissions without an answer."""
    return f'slurm_score_hook_without_answer_total{{why="{why}"}}'


def test_health_tells_of_a_snapshot_that_cant_be_read(service: Service) -> None:
    """The one before stays in force, so there is an age, and the sentence beside it."""
    service.snapshot.write_bytes(b"garbage")
    service.state.refresh()
    told = json.loads(service.ask("GET", "/healthz")[2])
    assert (told["snapshot_age_s"], "not a snapshot" in told["snapshot_error"]) == (0.0, True)


def test_reports_beyond_the_limit_are_turned_away(service: Service) -> None:
    """503 at once, with the time to ask again: the service doesn't queue work that nobody waits for."""
    service.state.reports = MAX_REPORTS
    status, _, text = service.ask("GET", "/v1/jobs")
    assert (status, json.loads(text)) == (503, {"error": "4 reports are being made; ask again"})
    assert counter(service, "slurm_score_reports_shed_total") == 1
    service.state.reports = 0
    assert service.ask("GET", "/v1/jobs")[0] == 200
    assert service.state.reports == 0


def test_connections_beyond_the_limit_are_turned_away(service: Service) -> None:
    """And the hook's socket has a limit of its own, which readers can't use up."""
    with contextlib.ExitStack() as held:
        for _ in range(MAX_CONNECTIONS):
            connection = held.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(service.addresses.readers))
        with pytest.raises(ServiceError, match="the scoring service is busy; ask again") as caught:
            service.client.jobs()
        assert caught.value.status == 503
        assert service.score(qos="high")["reason"] == ""


@pytest.mark.parametrize(
    ("broken", "method", "path", "told"),
    [
        ("service.handlers.scores_of", "POST", "/v1/score", '{"error": "internal error: KeyError"}'),
        ("service.reports.dump_jobs", "GET", "/v1/jobs", '{"error":"internal error: KeyError"}'),
    ],
)
def test_fault_of_ours_is_one_line_to_the_client(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    broken: str,
    method: str,
    path: str,
    told: str,
) -> None:
    """The traceback stands in the log, where an admin looks for it."""

    def fails(*_: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(f"slurm_score.{broken}", fails)
    status, _, text = service.ask(method, path, b"{}")
    assert (status, text) == (500, told)
    deadline = time.monotonic() + 30
    while "KeyError: 'secret'" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_metrics_count_answers_by_outcome(service: Service) -> None:
    """In Prometheus' text format."""
    service.score(qos="high")
    service.ask("POST", "/v1/score", b"not JSON")
    service.ask("POST", "/v1/score", b"x" * 70_000)
    service.score(priority=0)
    service.now_s = NOW + 301
    service.score()
    service.score()
    outcomes = ("scored", "invalid", "too_large", "none", "neutral")
    names = [f'slurm_score_answers_total{{outcome="{outcome}"}}' for outcome in outcomes]
    assert [counter(service, name) for name in names] == [1, 1, 1, 1, 2]
    assert counter(service, "slurm_score_answer_seconds_count") == 6
    assert counter(service, "slurm_score_snapshot_age_seconds") == 301


def test_metrics_name_the_policy_in_force_only(service: Service) -> None:
    """One series, whatever policies there were before."""
    service.ask("GET", "/metrics")
    service.policy.write_text("mode: advise\n", encoding="utf-8")
    service.state.refresh()
    series = [
        line
        for line in service.ask("GET", "/metrics")[2].splitlines()
        if line.startswith("slurm_score_policy{")
    ]
    advise = parse_policy("mode: advise").hash
    assert series == [f'slurm_score_policy{{hash="{advise}",mode="advise"}} 1.0']
