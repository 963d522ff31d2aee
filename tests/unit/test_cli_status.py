"""slurm-score status: what it looks at, and its exit code."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_score.cli import main
from slurm_score.service.background import running_service
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot

from .audit_support import cycle_of, trail_at
from .builders import make_cluster, make_job, make_policy


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A running product: policy, snapshot of just now, audit with a cycle, service."""
    now_s = time.time()
    (tmp_path / "policy.yaml").write_text("mode: enforce\n")
    snapshot = Snapshot(policy=make_policy(), cluster=make_cluster(time_s=now_s), jobs=(make_job(),))
    write_snapshot(tmp_path / "snapshot.jsonl", snapshot)
    trail_at(tmp_path / "audit.sqlite").record(cycle_of(make_job(1), make_job(2, qos="high"), start_s=now_s))
    state = State(tmp_path / "policy.yaml", tmp_path / "snapshot.jsonl")
    addresses = Addresses(hook=tmp_path / "hook.sock", readers=tmp_path / "score.sock")
    with running_service(state, addresses):
        yield tmp_path


def run(folder: Path, *argv: str) -> Result:
    """Run `slurm-score status` on the files of a folder."""
    places = {"policy": "policy.yaml", "snapshot": "snapshot.jsonl", "socket": "score.sock"}
    named = [f"--{name}={folder / file}" for name, file in (places | {"audit": "audit.sqlite"}).items()]
    return CliRunner().invoke(main, ["status", *named, *argv])


def test_all_is_well_is_exit_0(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking Slurm, whose commands aren't even there."""
    monkeypatch.setenv("PATH", str(folder))
    result = run(folder)
    assert (result.exit_code, result.stderr) == (0, "")
    words = [line.split()[:2] for line in result.stdout.splitlines()[:6]]
    assert words == [
        ["ok", name] for name in ("mode", "cycle", "updates", "service", "hook", "fragmentation")
    ]
    assert "2 planned, 2 sent, 0 failed, 0 left over" in result.stdout


def test_a_warning_is_exit_1(folder: Path) -> None:
    """No audit, and all else is well."""
    (folder / "audit.sqlite").rename(folder / "away")
    result = run(folder, "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["exit_code"], told["level"]) == (1, 1, "warning")
    (warning,) = (check for check in told["checks"] if check["level"] == "warning")
    assert warning["name"] == "updates"
    assert str(folder / "audit.sqlite") in warning["found"]


def test_nothing_there_is_exit_2_with_a_line_for_each(tmp_path: Path) -> None:
    """No traceback, no half screen."""
    result = run(tmp_path)
    assert result.exit_code == 2
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["error", "mode"],
        ["error", "cycle"],
        ["warning", "updates"],
        ["error", "service"],
        ["warning", "hook"],
    ]
    assert result.stderr == ""


def test_help_tells_the_exit_codes() -> None:
    """Monitoring goes by them."""
    text = " ".join(CliRunner().invoke(main, ["status", "--help"]).stdout.split())
    assert "0 all is well, 1 a warning, 2 an error" in text
