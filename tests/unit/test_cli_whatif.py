"""slurm-score whatif: the last snapshot under another policy."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_score.cli import main
from slurm_score.policy_yaml import parse_policy
from slurm_score.profiles import ProfileState
from slurm_score.snapshot import Snapshot, write_snapshot

from .builders import NOW, make_cluster, make_job, make_policy

WITHOUT_QOS = "factors: {wait: {}, remaining: {}, size: {}, gres_fit: {}}\n"
BUSY = """\
profiles:
  busy: {when: {pending_jobs: ">1"}, weights: {qos: 0}}
"""


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A snapshot of an urgent long job and a plain short one, by the default policy."""
    path = tmp_path / "snapshot.jsonl"
    jobs = (make_job(7, qos="high", time_limit_s=36_000.0), make_job(8, time_limit_s=600.0))
    write_snapshot(path, Snapshot(policy=make_policy(), cluster=make_cluster(), jobs=jobs))
    return path


def run(snapshot: Path, text: str, *argv: str) -> Result:
    """Run `slurm-score whatif` for a policy of this text."""
    policy = snapshot.parent / "new.yaml"
    policy.write_text(text)
    return CliRunner().invoke(main, ["whatif", "--snapshot", str(snapshot), str(policy), *argv])


def test_it_tells_what_moves_and_writes_nothing(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no command of Slurm's on PATH that it could call; the files stay as they are."""
    monkeypatch.setenv("PATH", str(snapshot.parent))
    before = snapshot.read_bytes()
    result = run(snapshot, f"mode: enforce\n{WITHOUT_QOS}")
    assert (result.exit_code, result.stderr, snapshot.read_bytes()) == (0, "", before)
    lines = result.stdout.splitlines()
    weights = "wait=350 remaining=450 size=200"
    assert (
        lines[0]
        == f"in force: mode observe, hash {make_policy().hash}, weights {weights} qos=500 gres_fit=100"
    )
    assert lines[1].endswith(f"weights {weights} qos=0 gres_fit=100")
    assert lines[2] == "2 of 2 jobs that could start change their place."
    assert lines[-1] == "Note: mode enforce instead of observe: updates are sent in enforce only"


def test_json_names_both_policies(snapshot: Path) -> None:
    """By their hash, with the time of the snapshot."""
    text = "factors: {wait: {}, remaining: {quantile: 0.8, half_at: 10m}, size: {}, qos: {}, gres_fit: {}}\n"
    told = json.loads(run(snapshot, text, "--json").stdout)
    assert (told["old"], told["new"]) == (make_policy().hash, parse_policy(text).hash)
    assert (told["time_s"], told["moved"], told["eligible"]) == (float(NOW), 0, 2)
    assert told["notes"] == [
        "run times are still predicted for quantile 0.6, 0.8 would be learned anew",
        "predictions still count as they do for half_at 00:30:00",
    ]


def test_profiles_of_the_other_policy_count_by_its_time_and_load(snapshot: Path) -> None:
    """Two jobs wait, so its busy profile holds: without QOS the short job comes first."""
    told = json.loads(run(snapshot, BUSY, "--json").stdout)
    assert {move["job"]: move["after"] for move in told["moves"]} == {"7": 2, "8": 1}


def test_the_policy_in_force_itself_changes_nothing_in_the_midst_of_a_hand_over(snapshot: Path) -> None:
    """What is remembered of the load holds for the same profiles: half of half an hour is over."""
    policy = parse_policy(BUSY)
    state = ProfileState(((0.0, ()), (NOW - 900.0, ("busy",))))
    in_force = policy.with_weights({**policy.weights, "qos": 250})
    jobs = (make_job(7, qos="high", time_limit_s=36_000.0), make_job(8, time_limit_s=600.0))
    seen = Snapshot(policy=in_force, cluster=make_cluster(), jobs=jobs, profiles=state)
    write_snapshot(snapshot, seen)
    result = run(snapshot, BUSY)
    assert "qos=250" in result.stdout.splitlines()[1]
    assert result.stdout.splitlines()[2] == "0 of 2 jobs that could start change their place."


def test_a_broken_policy_is_exit_2_with_every_problem(snapshot: Path) -> None:
    """As validate tells them."""
    result = run(snapshot, "mode: enforced\ncap: 0\n")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 2)


def test_without_a_snapshot_it_says_so(tmp_path: Path) -> None:
    """Exit 1."""
    result = run(tmp_path / "none", "")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no snapshot yet; is the reprioritizer running?" in result.stderr
