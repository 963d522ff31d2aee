"""slurm-score explain: what it asks whom, and what it prints."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_score.cli import main
from slurm_score.model import SlurmConfig
from slurm_score.service import reports
from slurm_score.service.background import running_service
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot
from slurm_score.users import user_name

from .builders import NOW, make_cluster, make_job, make_policy

JOBS = (make_job(7), make_job(8, qos="high", user="bob"))


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[str]:
    """The socket of a service that knows two jobs."""
    snapshot, policy = tmp_path / "snapshot.jsonl", tmp_path / "policy.yaml"
    write_snapshot(snapshot, Snapshot(policy=make_policy(), cluster=make_cluster(), jobs=JOBS))
    policy.write_text("mode: observe\n")
    addresses = Addresses(hook=tmp_path / "hook.sock", readers=tmp_path / "score.sock")
    with running_service(State(policy, snapshot, lambda: NOW + 43), addresses):
        yield str(addresses.readers)


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only command on PATH; it notes how it was called."""
    path = tmp_path / "bin" / "squeue"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\nexec cat {tmp_path}/start\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/bin:/usr/bin")
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "start").write_text("1700003600\n")
    return tmp_path


def run(socket: str, *argv: str) -> Result:
    """Run `slurm-score explain`."""
    return CliRunner().invoke(main, ["explain", "--socket", socket, *argv])


def test_the_service_alone_is_asked(socket: str, squeue: Path) -> None:
    """What the last cycle saw is enough; slurmctld has other things to do."""
    result = run(socket, "7")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Job 7 of alice, partition main, QOS normal\n")
    assert "It is 2nd of 2 in main.\n" in result.stdout
    assert result.stdout.endswith(f"\nPolicy {make_policy().hash}, as the cycle saw it 00:00:43 ago.\n")
    assert not (squeue / "called").exists()


def test_start_asks_slurmctld_once(socket: str, squeue: Path) -> None:
    """On demand only: squeue --start makes backfill's plan known."""
    result = run(socket, "7", "--start")
    assert "Slurm expects it to start at 2023-11-14" in result.stdout.splitlines()[-1]
    assert (squeue / "called").read_text().split() == ["-h", "--start", "-j", "7", "-o", "%S"]


def test_start_that_slurm_does_not_know_is_a_sentence(socket: str, squeue: Path) -> None:
    """Backfill plans for some jobs only."""
    (squeue / "start").write_text("N/A\n")
    told = run(socket, "7", "--start").stdout.splitlines()[-1]
    assert told == "Slurm doesn't tell when it expects it to start: backfill has not planned it."


def test_json_holds_all_of_it(socket: str, squeue: Path) -> None:
    """Terms, standing, obstacles and changes, the expected start where it was asked for."""
    told = json.loads(run(socket, "7", "--json").stdout)
    assert sum(term["part"] for term in told["terms"]) == pytest.approx(told["score"])
    assert [one["name"] for one in told["terms"]] == ["wait", "remaining", "size", "qos", "gres_fit"]
    assert told["standings"] == [{"partition": "main", "types": [], "rank": 2, "of": 2, "gpus_ahead": 0}]
    assert told["obstacles"] == []
    assert [change["update"] for change in told["changes"]] == ["scontrol update JobId=7 TimeLimit=30"]
    assert (told["expected_start_s"], told["age_s"]) == (None, 43.0)
    assert json.loads(run(socket, "7", "--json", "--start").stdout)["expected_start_s"] == 1_700_003_600


def test_who_may_not_see_other_users_jobs_is_told_of_none(tmp_path: Path) -> None:
    """PrivateData=jobs: the own job is explained, its place among all; another's isn't pending to him."""
    name = user_name(12345)
    jobs = (make_job(7, user=name), make_job(8, qos="high", user="bob"))
    cluster = make_cluster(config=SlurmConfig(private_data=("jobs",)))
    path = tmp_path / "snapshot.jsonl"
    write_snapshot(path, Snapshot(policy=make_policy(), cluster=cluster, jobs=jobs))
    told = reports.explain_job(path, 12345, "7")
    assert told is not None
    assert (told["rank"], told["of"]) == (2, 2)
    assert "bob" not in json.dumps(told)
    assert reports.explain_job(path, 12345, "8") is None
    assert reports.explain_job(path, os.geteuid(), "8") is not None


def test_the_number_of_a_het_job_is_its_leaders(tmp_path: Path) -> None:
    """Its other components are updated by that number too, and squeue may list them first."""
    parts = (
        make_job(9, label="8+1", update_id="8", het_job_id=8),
        make_job(8, label="8+0", update_id="8", het_job_id=8),
    )
    path = tmp_path / "snapshot.jsonl"
    write_snapshot(path, Snapshot(policy=make_policy(), cluster=make_cluster(), jobs=parts))
    found = {asked: reports.explain_job(path, 0, asked) for asked in ("8", "8+0", "9", "8+1")}
    assert {asked: told and told["job_id"] for asked, told in found.items()} == {
        "8": 8,
        "8+0": 8,
        "9": 9,
        "8+1": 9,
    }


def test_a_job_that_is_not_pending_is_one_sentence(socket: str) -> None:
    """Exit 1."""
    result = run(socket, "99")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "slurm-score: job 99: not pending in the last snapshot\n"
