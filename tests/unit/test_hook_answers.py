"""slurm_score/service/hook.py: what is remembered of a question, and what never is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_score.service import hook as hook_module
from slurm_score.service.hook import Hook
from slurm_score.service.state import State
from tests.unit.builders import NOW
from tests.unit.service_support import Service, answering


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Service]:
    """A service on no socket: its files, its clock, its state."""
    with answering(tmp_path) as service:
        yield service


@pytest.fixture
def hook(files: Service) -> Hook:
    """What answers by the files."""
    return Hook(files.state)


def ask(hook: Hook, **submission: Any) -> dict[str, Any]:
    """Return the answer, the same at the second time of asking."""
    body = json.dumps(submission).encode()
    reply = hook.answer(body)
    assert reply.status == 200
    assert hook.answer(bytes(bytearray(body))) == reply
    answer: dict[str, Any] = json.loads(reply.message.partition(b"\r\n\r\n")[2])
    return answer


def test_question_is_answered_anew_by_a_new_snapshot_and_policy(files: Service, hook: Hook) -> None:
    """What is remembered goes with them."""
    assert ask(hook, qos="high")["site_factor"] == 510
    files.policy.write_text("mode: enforce\nfactors: {qos: {weight: 7}}\n", encoding="utf-8")
    files.state.refresh()
    assert ask(hook, qos="high")["site_factor"] == 7
    files.now_s = NOW + 301
    assert ask(hook, qos="high")["reason"] == "the snapshot is 301 s old"
    files.publish()
    files.state.refresh()
    assert ask(hook, qos="high")["reason"] == ""
    files.snapshot.with_name("STOP").touch()
    files.state.refresh()
    assert ask(hook, qos="high")["site_factor"] is None


def test_what_no_score_depends_on_makes_no_new_job(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that differ in a number in their name, as those of a script in a loop, are scored once."""
    answer = ask(hook, qos="high", name="train-1")
    monkeypatch.setattr("slurm_score.service.handlers.scores_of", None)
    assert ask(hook, qos="high", name="train-27", licenses="matlab") == answer


def test_what_a_score_depends_on_makes_a_new_job(hook: Hook) -> None:
    """Every field that is read tells two questions apart."""
    assert ask(hook, time_limit_min=60)["site_factor"] != ask(hook, time_limit_min=61)["site_factor"]


@pytest.mark.parametrize(("size", "count"), [(10, 5), (3000, 0)])
def test_memory_has_a_bound_whatever_is_asked(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, size: int, count: int
) -> None:
    """So many questions, and no long ones; all are answered the same."""
    monkeypatch.setattr(hook_module, "MAX_KNOWN", 5)
    for number in range(20):
        assert ask(hook, qos="high", name=f"{number}".rjust(size))["site_factor"] == 510
        assert len(hook.known) <= count
    assert len(hook.known) == count


def test_questions_asked_lately_are_answered_before_they_are_asked_again(
    files: Service, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a new snapshot or policy has come: the latest first, some at a time, the others as they come."""
    monkeypatch.setattr(hook_module, "MAX_RENEWED", 4)
    monkeypatch.setattr(hook_module, "RENEWED_AT_ONCE", 3)
    bodies = [json.dumps({"qos": "high", "time_limit_min": minutes}).encode() for minutes in range(1, 7)]
    for body in bodies:
        hook.answer(body)
    hook.answer(bodies[3])
    hook.settle()
    files.policy.write_text("mode: enforce\nfactors: {qos: {weight: 7}}\n", encoding="utf-8")
    files.state.refresh()
    hook.settle()
    assert list(hook.known) == [bodies[3], bodies[5], bodies[4]]
    hook.settle()
    assert list(hook.known) == [bodies[3], bodies[5], bodies[4], bodies[2]]
    hook.settle()
    monkeypatch.setattr("slurm_score.service.handlers.scores_of", None)
    assert all(b'"site_factor": ' in hook.answer(body).message for body in bodies[2:])
    with pytest.raises(TypeError):
        hook.answer(bodies[0])


def test_fault_of_ours_between_two_questions_is_logged(
    files: Service, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server goes on, and who asks gets the fault."""
    ask(hook, qos="high")
    hook.settle()
    files.publish()
    files.state.refresh()
    monkeypatch.setattr("slurm_score.service.handlers.scores_of", None)
    hook.settle()
    hook.settle()
    assert [record.message for record in caplog.records] == [
        "a fault of ours: questions are not answered beforehand"
    ]


def test_without_a_snapshot_nothing_is_answered_beforehand(
    files: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no fault."""
    hook = Hook(State(files.policy, files.folder / "none.jsonl", files.clock))
    assert ask(hook, qos="high")["reason"]
    caplog.clear()
    hook.settle()
    assert not caplog.records


def test_invalid_question_is_not_remembered(hook: Hook) -> None:
    """Who asks it again is told the same again."""
    replies = [hook.answer(b'{"min_nodes": "two"}') for _ in range(2)]
    assert [reply.status for reply in replies] == [422, 422]
    assert len(hook.known) == 0


def test_answers_are_counted_when_nobody_waits(files: Service, hook: Hook) -> None:
    """Nothing is lost between two countings."""
    metrics = files.state.metrics

    def counted() -> float | None:
        return metrics.registry.get_sample_value("slurm_score_answers_total", {"outcome": "scored"})

    ask(hook, qos="high")
    assert counted() is None
    hook.settle()
    assert counted() == 2
    hook.settle()
    assert counted() == 2
