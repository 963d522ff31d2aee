"""slurm-score history and cycles: what they print, and what they say where there is nothing."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slurm_score.audit import CycleRecord
from slurm_score.cli import main

from .audit_support import ENFORCE, cycle_of, outcome_of, trail_at
from .builders import NOW, make_job, make_policy

OBSERVE = make_policy(mode="observe")
FACTORS = ["WAIT", "REMAIN", "SIZE", "QOS", "GRESFIT"]


@pytest.fixture
def audit(tmp_path: Path) -> str:
    """An audit with a job that was watched, then updated, then held, and an array of a strange user."""
    path = tmp_path / "audit.sqlite"
    trail = trail_at(path)
    array = make_job(9, label="9_[0-4%2]", user="al\x1b[31mice\n", priority=0)
    trail.record(cycle_of(make_job(7), policy=OBSERVE))
    trail.record(cycle_of(make_job(7), array, start_s=NOW + 60))
    trail.record(cycle_of(make_job(7, priority=0, site_factor=None), array, start_s=NOW + 120))
    trail.record(CycleRecord(start_s=NOW + 180, policy=ENFORCE, rpcs=1, error="squeue:\n\x1b no answer"))
    return str(path)


def run(*argv: str) -> Result:
    """Run a subcommand."""
    return CliRunner().invoke(main, argv)


def table(result: Result) -> list[list[str]]:
    """Return the words of each line."""
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split() for line in result.stdout.splitlines()]


def clock(time_s: float) -> str:
    """Return a time as squeue prints it, where the test runs."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time_s))


def test_history_prints_a_line_for_each_decision(audit: str) -> None:
    """Time, cycle, old and new, score and parts, why, and the hash of the policy."""
    header, *rows = table(run("history", "7", "--audit", audit))
    value = str(outcome_of(make_job(7)).plan.updates[0].value)
    assert header == ["TIME", "CYCLE", "JOBID", "CHANGE", "SCORE", *FACTORS, "WHY", "POLICY"]
    numbers = len(header) - 6
    assert [row[:6] for row in rows] == [
        [clock(NOW), "1", "7", "0", "->", value],
        [clock(NOW + 60), "2", "7", "0", "->", value],
        [clock(NOW + 120), "3", "7", "?", "->", value],
    ]
    assert [row[6 + numbers :] for row in rows] == [
        ["mode", "is", "observe", OBSERVE.hash],
        ["sent", ENFORCE.hash],
        ["held", ENFORCE.hash],
    ]
    parts = [float(word) for word in rows[1][6 : 6 + numbers]]
    assert parts[0] == pytest.approx(sum(parts[1:]), abs=0.3)


def test_history_says_that_a_job_is_past_its_guard(tmp_path: Path) -> None:
    """Its number isn't its score then."""
    path = tmp_path / "audit.sqlite"
    trail_at(path).record(cycle_of(make_job(7, wait_s=60 * 3600)))
    assert "sent, past the guard" in run("history", "7", "--audit", str(path)).stdout


@pytest.mark.parametrize("asked", ["9", "9_[0-4%2]", "9_3"])
def test_history_takes_the_id_that_squeue_prints_and_the_plain_one(audit: str, asked: str) -> None:
    """Case 25: an array is found by its number, its label and a task of it."""
    _, row = table(run("history", asked, "--audit", audit))
    assert (row[1:3], row[-2]) == (["2", "9_[0-4%2]"], "held")


def test_history_as_json_holds_the_policies(audit: str) -> None:
    """All that is known: user, partition, weighted parts by name, the policies by their hash."""
    told: dict[str, Any] = json.loads(run("history", "7", "--audit", audit, "--json").stdout)
    assert told["job"] == "7"
    assert [(row["cycle"], row["why"], row["old"]) for row in told["decisions"]] == [
        (1, "mode is observe", 0),
        (2, "sent", 0),
        (3, "held", None),
    ]
    assert told["decisions"][0]["user"] == "alice"
    assert set(told["decisions"][0]["parts"]) == set(ENFORCE.factors)
    assert told["policies"][OBSERVE.hash]["mode"] == "observe"


def test_an_unknown_job_is_one_sentence(audit: str) -> None:
    """Exit 1, nothing on standard output."""
    result = run("history", "99", "--audit", audit)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"slurm-score: job 99: nothing is recorded about it in {audit}\n"


def test_what_is_no_job_id_is_wrong_usage(audit: str) -> None:
    """Exit 2 with the forms that are allowed."""
    result = run("history", "seven", "--audit", audit)
    assert result.exit_code == 2
    assert "not a job id, got 'seven'; 12, 12_3, 12_[0-9%3], 12+1 or 12.batch" in result.stderr


@pytest.mark.parametrize("argv", [["history", "7"], ["cycles"]])
def test_a_missing_audit_is_one_sentence(tmp_path: Path, argv: list[str]) -> None:
    """The path may come from the environment."""
    path = str(tmp_path / "none.sqlite")
    result = CliRunner().invoke(main, argv, env={"SLURM_SCORE_AUDIT": path})
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"slurm-score: {path}: no audit yet; is the reprioritizer running, with this file?\n"
    )


def test_cycles_are_printed_newest_last(audit: str) -> None:
    """Counts, RPCs, seconds, policy; an error in one line that can't steer a terminal."""
    result = run("cycles", "--audit", audit)
    header, *rows = table(result)
    assert header[:9] == ["CYCLE", "TIME", "MODE", "PENDING", "PLANNED", "SENT", "FAILED", "LEFT", "RPCS"]
    assert header[9:] == ["READ_S", "SCORE_S", "PLAN_S", "WRITE_S", "POLICY", "TROUBLE"]
    zeros = ["0.00"] * 4
    assert rows == [
        ["1", clock(NOW), "observe", "1", "1", "0", "0", "0", "6", *zeros, OBSERVE.hash],
        ["2", clock(NOW + 60), "enforce", "2", "1", "1", "0", "0", "6", *zeros, ENFORCE.hash],
        ["3", clock(NOW + 120), "enforce", "2", "0", "0", "0", "0", "6", *zeros, ENFORCE.hash],
        ["4", clock(NOW + 180), "enforce", *"00000", "1", *zeros, ENFORCE.hash, "squeue:??", "no", "answer"],
    ]


def test_cycles_are_the_last_ones_asked_for(audit: str) -> None:
    """By number; JSON has every value."""
    told = json.loads(run("cycles", "--audit", audit, "--last", "2", "--json").stdout)
    assert [cycle["cycle"] for cycle in told["cycles"]] == [3, 4]
    assert told["cycles"][1]["error"] == "squeue:\n\x1b no answer"


def test_cycles_since_a_time_are_all_of_it(tmp_path: Path) -> None:
    """More than the twenty that are shown otherwise, and none of an hour ago; --last cuts them."""
    path, now = tmp_path / "audit.sqlite", time.time()
    trail = trail_at(path)
    for minutes in (180, *range(30, 0, -1)):
        trail.record(CycleRecord(start_s=now - minutes * 60))

    def shown(*argv: str) -> list[int]:
        result = run("cycles", "--audit", str(path), "--json", *argv)
        return [cycle["cycle"] for cycle in json.loads(result.stdout)["cycles"]]

    assert shown("--since", "1h") == list(range(2, 32))
    assert shown("--since", "1h", "--last", "3") == [29, 30, 31]
    assert shown() == list(range(12, 32))
    assert shown("--since", "4h")[0] == 1


@pytest.mark.parametrize("argv", [["--last", "0"], ["--last", "x"], ["--since", "soon"]])
def test_cycles_refuse_what_is_no_number_or_time(argv: list[str]) -> None:
    """Exit 2."""
    assert run("cycles", *argv).exit_code == 2
