"""slurm_score/service/app.py: what the hook is answered over a real unix socket, and what nobody is told."""

import http.client
import json
import socket
from pathlib import Path

import pytest

from slurm_score.errors import PolicyError, ServiceError
from slurm_score.policy_yaml import parse_policy
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient
from slurm_score.service.hook import MAX_BODY
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from tests.unit import service_support
from tests.unit.builders import NOW
from tests.unit.service_support import ENFORCE, Service

# pytest finds fixtures by their names in the module.
service = service_support.service


# POST /v1/score


def test_hook_gets_its_score(service: Service) -> None:
    """QOS high, 30 min, 6 of 24 CPUs: 500 + 225 + 50."""
    answer = service.score(qos="high", time_limit_min=30, cpus_per_task=6)
    policy = parse_policy(ENFORCE).hash
    assert answer == {"site_factor": 775, "advice": [], "admin_comment": "", "reason": "", "policy": policy}


def test_one_connection_serves_many_jobs(service: Service) -> None:
    """The hook keeps its connection between submissions."""
    body = b'{"qos": "high"}'
    request = b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(service.addresses.hook))
        for _ in range(3):
            connection.sendall(request)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert (response.status, response.will_close) == (200, False)
            response.read()


@pytest.mark.parametrize(
    ("body", "field", "error"),
    [
        (b'{"min_nodes": "two"}', "min_nodes", "Input should be a valid integer"),
        (b'{"min_nodes": -1}', "min_nodes", "Input should be greater than or equal to 0"),
        (b'{"comment": 5}', "comment", "Input should be a valid string"),
        (b'{"user": "\\ud800"}', "", "Invalid JSON: "),
        (b'{"user": "\xff"}', "", "Invalid JSON: "),
        (b"not JSON", "", "Invalid JSON: "),
        (b"", "", "Invalid JSON: "),
        (b"[]", "", "Input should be an object"),
    ],
)
def test_request_that_cant_be_read_is_422_with_its_field(
    service: Service, body: bytes, field: str, error: str
) -> None:
    """All faults, by field, so that the hook's log says what to repair."""
    status, kind, text = service.ask("POST", "/v1/score", body)
    told = json.loads(text)
    assert (status, kind, told["error"]) == (422, "application/json", "invalid request")
    assert [fault["field"] for fault in told["faults"]] == [field]
    assert told["faults"][0]["error"].startswith(error)


def test_client_tells_the_status_of_a_refusal(service: Service) -> None:
    """A ServiceError holds the HTTP status."""
    with pytest.raises(ServiceError, match="invalid request") as caught:
        service.score(min_nodes="two")
    assert caught.value.status == 422


@pytest.mark.parametrize("size", [MAX_BODY + 1, 70_000])
def test_body_above_64_kib_is_413(service: Service, size: int) -> None:
    """However it is announced: the service reads no more than that."""
    body = b'{"comment": "' + b"x" * (size - 15) + b'"}'
    assert len(body) == size
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (size, body)
    for status, _, text in (
        service.ask("POST", "/v1/score", body),
        service.ask("POST", "/v1/score", chunked, "Transfer-Encoding: chunked"),
    ):
        assert (status, json.loads(text)) == (413, {"error": "request larger than 65536 bytes"})


def test_body_of_64_kib_is_read(service: Service) -> None:
    """The limit itself is allowed."""
    body = b'{"colour": "' + b"x" * (MAX_BODY - 14) + b'"}'
    assert len(body) == MAX_BODY
    assert service.ask("POST", "/v1/score", body)[0] == 200


def test_missing_snapshot_gives_the_neutral_answer_with_the_reason(tmp_path: Path) -> None:
    """The reprioritizer never ran: 450 / 2, and the sentence says what to start."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(ENFORCE, encoding="utf-8")
    state = State(policy, tmp_path / "snapshot.jsonl")
    addresses = Addresses(hook=tmp_path / "hook", readers=tmp_path / "readers")
    with running_service(state, addresses):
        answer = ServiceClient(addresses.hook).score({"qos": "high"})
    with_reason = f"{tmp_path / 'snapshot.jsonl'}: no snapshot yet; is the reprioritizer running?"
    assert (answer["site_factor"], answer["reason"]) == (225, with_reason)


def test_stale_snapshot_gives_the_neutral_answer_with_the_reason(service: Service) -> None:
    """The reprioritizer has stopped."""
    service.now_s = NOW + 301
    answer = service.score(qos="high")
    assert (answer["site_factor"], answer["reason"]) == (225, "the snapshot is 301 s old")


def test_new_snapshot_is_used_at_once(service: Service) -> None:
    """No restart between cycles."""
    service.now_s = NOW + 301
    service.publish()
    assert service.score(qos="high")["reason"] == ""
    assert service.client.jobs()["jobs"] == []


@pytest.mark.parametrize(
    ("address", "method", "path"),
    [("hook", "GET", "/v1/jobs"), ("hook", "GET", "/metrics"), ("readers", "POST", "/v1/score")],
)
def test_each_socket_answers_its_own_questions_only(
    service: Service, address: str, method: str, path: str
) -> None:
    """Who may read reports can't ask for scores in the hook's place, and the hook's socket tells no names."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    connection.sock.connect(str(getattr(service.addresses, address)))
    connection.request(method, path, b"{}")
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())) == (404, {"error": "Not Found"})
    connection.close()


# policy


def test_edited_policy_is_in_force_at_once(service: Service) -> None:
    """The hash in the answers names it."""
    service.policy.write_text("mode: enforce\nfactors: {qos: {weight: 7}}\n", encoding="utf-8")
    answer = service.score(qos="high")
    edited = parse_policy(service.policy.read_text(encoding="utf-8"))
    assert (answer["site_factor"], answer["policy"]) == (7, edited.hash)
    assert edited.hash != parse_policy(ENFORCE).hash


def test_broken_edit_keeps_the_former_policy(service: Service) -> None:
    """And /healthz says what is wrong with it."""
    service.policy.write_text("mode: enfroce\n", encoding="utf-8")
    assert service.score(qos="high")["policy"] == parse_policy(ENFORCE).hash
    told = json.loads(service.ask("GET", "/healthz")[2])
    assert told["policy"] == parse_policy(ENFORCE).hash
    assert told["policy_error"].startswith(f"{service.policy}:1: mode: input should be 'observe'")


def test_service_does_not_start_without_a_policy(tmp_path: Path) -> None:
    """Fail closed: there is no former one to keep."""
    with pytest.raises(PolicyError, match="can't read the policy"):
        State(tmp_path / "missing.yaml", tmp_path / "snapshot.jsonl")


def test_kill_switch_ends_first_scores_and_their_return(service: Service) -> None:
    """STOP beside the snapshot stops the reprioritizer and the first scores alike, without a restart."""
    stop = service.folder / "STOP"
    stop.touch()
    answer = service.score(qos="high")
    assert (answer["site_factor"], answer["reason"]) == (None, f"kill switch {stop}")
    assert json.loads(service.ask("GET", "/healthz")[2])["kill_switch"] == f"kill switch {stop}"
    stop.unlink()
    assert service.score(qos="high")["site_factor"] is not None


# what is never told


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/score", 405),
        ("POST", "/v1/score/x", 404),
        ("POST", "/v1/jobs", 405),
        ("DELETE", "/v1/jobs/9", 405),
    ],
)
def test_wrong_way_to_ask_is_json_too(service: Service, method: str, path: str, status: int) -> None:
    """404 and 405 have a body that every client of ours can read."""
    answered, kind, text = service.ask(method, path)
    assert (answered, kind, list(json.loads(text))) == (status, "application/json", ["error"])


def test_no_traceback_reaches_the_client(service: Service) -> None:
    """Broken files and broken requests are told in a sentence."""
    service.snapshot.write_bytes(b"\xff garbage")
    told = [
        service.ask("GET", "/v1/jobs")[2],
        service.ask("GET", "/v1/jobs/%ff%00")[2],
        service.ask("POST", "/v1/score", b"{}")[2],
        service.ask("POST", "/v1/score", b"[" * 60_000)[2],
    ]
    assert [text for text in told if "Traceback" in text or ".py" in text] == []
    assert "not a snapshot of this release" in told[0]
