"""The command line: what it prints, on which stream, and with which exit code."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_score.cli import SUBCOMMANDS, main
from slurm_score.cli.reprioritize import open_gateway
from slurm_score.cli.sscore import main as sscore
from slurm_score.service.background import running_service
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot

from .builders import NOW, make_cluster, make_gpu_job, make_job, make_policy

COLUMNS = ["JOBID", "PARTITION", "USER", "SCORE", "RANK", "WAIT", "REMAIN", "SIZE", "QOS", "GRESFIT"]


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[str]:
    """The socket of a service that knows an urgent job, a plain one, a held one and an array."""
    jobs = (
        make_job(7),
        make_job(8, qos="high"),
        make_job(9, priority=0, reason="JobHeldUser", site_factor=None),
        make_gpu_job(10, "gres/gpu:a100:1", label="10_[0-4%2]", update_id="10_[0-4]", tasks="0-4"),
    )
    snapshot, policy = tmp_path / "snapshot.jsonl", tmp_path / "policy.yaml"
    write_snapshot(snapshot, Snapshot(policy=make_policy(), cluster=make_cluster(), jobs=jobs))
    policy.write_text("mode: observe\n")
    addresses = Addresses(hook=tmp_path / "hook.sock", readers=tmp_path / "score.sock")
    with running_service(State(policy, snapshot, lambda: NOW), addresses):
        yield str(addresses.readers)


def test_sscore_prints_the_jobs_that_could_start_best_first(socket: str) -> None:
    """Held jobs are left out, as sprio does; an array is one row."""
    result = CliRunner().invoke(sscore, ["--socket", socket])
    header, *rows = (line.split() for line in result.stdout.splitlines())
    assert (result.exit_code, header) == (0, COLUMNS)
    assert [row[0] for row in rows] == ["8", "10_[0-4%2]", "7"]


def test_sscore_prints_the_weights_only(socket: str) -> None:
    """`-w` prints one row, as sprio's: the sum and the weight of each factor."""
    result = CliRunner().invoke(sscore, ["--socket", socket, "-w"])
    assert [line.split() for line in result.stdout.splitlines()] == [
        COLUMNS,
        ["Weights", "1600", "350", "450", "200", "500", "100"],
    ]


def test_sscore_prints_json_with_every_pending_job(socket: str) -> None:
    """JSON holds the jobs that can't start yet as well, and says why they are left alone."""
    result = CliRunner().invoke(sscore, ["--socket", socket, "--json"])
    jobs = {job["job"]: job for job in json.loads(result.stdout)["jobs"]}
    assert set(jobs) == {"7", "8", "9", "10_[0-4%2]"}
    assert (jobs["9"]["eligible"], jobs["9"]["untouched"]) == (False, "held")


def test_explain_takes_the_id_that_squeue_prints_and_the_plain_one(socket: str) -> None:
    """Case 25: an array is found by `10` as well as by `10_[0-4%2]`."""
    texts = {
        CliRunner().invoke(main, ["explain", "--socket", socket, job]).stdout for job in ("10", "10_[0-4%2]")
    }
    assert len(texts) == 1
    assert texts.pop().startswith("Job 10_[0-4%2] of alice, partition gpu, QOS normal\n")


def test_explain_of_a_job_that_is_not_pending_is_one_sentence(socket: str) -> None:
    """Exit 1, and the sentence on standard error."""
    result = CliRunner().invoke(main, ["explain", "--socket", socket, "99"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "slurm-score: job 99: not pending in the last snapshot\n"


def test_a_service_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """No traceback: where, what, why."""
    socket = tmp_path / "none.sock"
    result = CliRunner().invoke(sscore, ["--socket", str(socket)])
    assert result.exit_code == 1
    expected = f"slurm-score: {socket}: the scoring service does not answer: No such file or directory\n"
    assert result.stderr == expected


def test_a_broken_policy_is_refused_with_every_problem_and_exit_code_2(tmp_path: Path) -> None:
    """All problems at once, one line each."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("mode: enforced\ncap: 0\n")
    result = CliRunner().invoke(main, ["reprioritize", "--once", "--policy", str(policy)])
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"slurm-score: {policy}:1: mode: input should be 'observe', 'advise' or 'enforce', got 'enforced'",
        f"slurm-score: {policy}:2: cap: input should be greater than or equal to 1, got '0'",
    ]


def test_a_duration_that_cannot_be_read_is_wrong_usage() -> None:
    """Exit 2 with the forms that are allowed."""
    result = CliRunner().invoke(main, ["reprioritize", "--every", "soon"])
    assert result.exit_code == 2
    assert "not a time, got 'soon'; 20m, 2h30m, 1d12h" in result.stderr


def test_without_slurm_s_commands_a_cycle_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 1 on a host without Slurm."""
    monkeypatch.setenv("PATH", str(tmp_path))
    policy, snapshot = tmp_path / "policy.yaml", tmp_path / "snapshot.jsonl"
    policy.write_text("mode: observe\n")
    argv = ["reprioritize", "--once", "--policy", str(policy), "--snapshot", str(snapshot)]
    result = CliRunner().invoke(main, argv)
    assert result.exit_code == 1
    assert result.stderr.endswith("slurm-score: scontrol: not found; are Slurm's commands on PATH?\n")


@pytest.mark.parametrize("name", sorted(SUBCOMMANDS))
def test_every_subcommand_has_help(name: str) -> None:
    """Each is importable and says in its first line what it does."""
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: main {name} ")


def test_an_unknown_subcommand_is_wrong_usage() -> None:
    """Exit 2."""
    assert CliRunner().invoke(main, ["rescore"]).exit_code == 2


def test_pyslurm_that_does_not_fit_gives_way_to_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The release is asked first, through a command; the log says why pyslurm isn't used."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'PriorityType = priority/basic'\necho 'SLURM_VERSION = 24.11.5'\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert type(open_gateway("pyslurm")) is type(open_gateway("commands"))
    assert "pyslurm is used with Slurm 25.11 only, got 24.11.5; Slurm's commands are used" in caplog.text
