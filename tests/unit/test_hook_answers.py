"""slurm_score/service/hook.py: what is remembered of a question, and what never is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_score.service import hook as hook_module
from slurm_score.service.hook import Hook
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
    monkeypatch.setattr("slurm_score.service.handlers.score_queue", None)
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
