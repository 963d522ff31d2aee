"""Where squeue's or scontrol's text can't be read, the product reads their JSON: with the same result."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from slurm_score.errors import UnparseableAnswerError
from slurm_score.model import Node
from slurm_score.slurm import parse
from slurm_score.slurm.commands import Answer, Runner
from tests.contract.replay import RecordedCase, Replay, case_id, gateway_of, recorded

NODE_TEXT = ("scontrol", "show", "node", "-o", "-d")


def with_unreadable_nodes(case: RecordedCase) -> Runner:
    """Return a replay in which scontrol's text of the nodes is none."""
    replay = Replay(case)

    def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        return Answer(0, "???\n", "") if tuple(argv) == NODE_TEXT else replay(argv, stdin, timeout_s)

    return run


def read_nodes(case: RecordedCase, run: Runner | None = None) -> tuple[Node, ...]:
    """Return the nodes that the product reads."""
    return gateway_of(case, run).read_cluster().nodes


@pytest.mark.parametrize("case", recorded("json"), ids=case_id)
def test_jobs_are_read_from_json_as_from_text(monkeypatch: pytest.MonkeyPatch, case: RecordedCase) -> None:
    """A field that a release doesn't know makes squeue's text unreadable; 22.05 lists ended jobs as well."""
    by_text = gateway_of(case).read_jobs()
    fields = (*parse.JOB_FIELDS[:-1], "NoSuchField", parse.JOB_FIELDS[-1])
    monkeypatch.setattr(parse, "JOB_FIELDS", fields)
    replay = Replay(case)
    by_json = gateway_of(case, replay).read_jobs()
    assert ("squeue", "--json") in {argv[:2] for argv in replay.asked}
    assert sorted(by_json, key=lambda job: job.job_id) == sorted(by_text, key=lambda job: job.job_id)


@pytest.mark.parametrize("case", [case for case in recorded("json") if case.release != "22.05"], ids=case_id)
def test_nodes_are_read_from_json_as_from_text(case: RecordedCase) -> None:
    """scontrol show node --json (23.02 and later): sizes, GPUs in use, states, features, partitions."""
    assert read_nodes(case, with_unreadable_nodes(case)) == read_nodes(case)


@pytest.mark.parametrize("case", [case for case in recorded("json") if case.release == "22.05"], ids=case_id)
def test_nodes_are_not_read_where_neither_text_nor_json_can_be(case: RecordedCase) -> None:
    """scontrol of 22.05 has no --json: the error tells of both."""
    with pytest.raises(UnparseableAnswerError, match=r"scontrol show node: .*; scontrol show node"):
        read_nodes(case, with_unreadable_nodes(case))
