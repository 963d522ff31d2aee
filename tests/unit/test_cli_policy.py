"""slurm-score policy: what it prints, and with which exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slurm_score.cli import main
from slurm_score.cli.policy import changed_settings
from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.snapshot import Snapshot, write_snapshot

from .builders import HOUR, MINUTE, make_cluster, make_gpu_job, make_job, make_policy

TEXT = """\
timezone: Europe/Zurich
guard: {after: 45h, qos: {high: 12h, urgnet: 6h}, partitions: {gpu: 2h}}
profiles:
  night: {when: {hours: 20:00-06:00, days: mon-fri}, weights: {remaining: 300, size: 400}}
  busy: {when: {pending_per_free_gpu: ">2"}, weights: {qos: 800}}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """The path of a policy with guards and profiles."""
    path = tmp_path / "policy.yaml"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """The path of a snapshot of a Slurm that adds up to 120 by itself, its GPUs in demand."""
    path = tmp_path / "snapshot.jsonl"
    config = SlurmConfig(priority_weights={"age": 100, "qos": 20})
    jobs = (make_gpu_job(1, "gpu:a100:4", tasks="0-5"),)
    write_snapshot(path, Snapshot(policy=make_policy(), cluster=make_cluster(config=config), jobs=jobs))
    return str(path)


def run(*argv: str) -> Result:
    """Run `slurm-score policy`."""
    return CliRunner().invoke(main, ["policy", *argv])


def shown(policy: str, snapshot: str, at: str) -> dict[str, Any]:
    """Return what show tells as JSON."""
    result = run("show", "--policy", policy, "--snapshot", snapshot, "--at", at, "--json")
    assert result.exit_code == 0
    told: dict[str, Any] = json.loads(result.stdout)
    return told


# show


def test_show_tells_the_weights_in_force_and_the_next_change(policy: str, tmp_path: Path) -> None:
    """Ten minutes into the night a third of the hand-over is done."""
    told = shown(policy, str(tmp_path / "none"), "2026-11-30T20:10")
    assert (told["profile"], told["at"]) == ("night", "2026-11-30 20:10 +0100")
    assert told["shares"] == pytest.approx({"base": 2 / 3, "night": 1 / 3})
    assert told["weights"] == {"wait": 350, "remaining": 400, "size": 266, "qos": 500, "gres_fit": 100}
    assert told["next_change"] == {"at_s": 1_796_101_200.0, "at": "2026-12-01 06:00 +0100", "profile": "base"}
    assert told["hash"] == parse_policy(TEXT).hash != told["in_force_hash"]


def test_show_tells_bound_and_range_with_what_slurm_itself_adds(policy: str, snapshot: str) -> None:
    """121 minutes past its guard no job is put before it any more; the tier is above 1900 + 1089 + 120."""
    told = shown(policy, snapshot, "2026-12-01T12:00")
    closed_s = 121 * MINUTE
    assert [(row["for"], row["after_s"], row["closed_s"]) for row in told["guards"]] == [
        ("QOS high", 12 * HOUR, 12 * HOUR + closed_s),
        ("QOS urgnet", 6 * HOUR, 6 * HOUR + closed_s),
        ("partition gpu", 2 * HOUR, 2 * HOUR + closed_s),
        ("all others", 45 * HOUR, 45 * HOUR + closed_s),
    ]
    assert told["site_factor"] == {
        "scores_to": 1900,
        "offset_to": 1089,
        "slurm_range": 120,
        "guard_from": 3110,
        "cap": 1_000_000,
        "order_kept_s": (1_000_000 - 3110 - 50_000) * 60,
    }


def test_show_takes_the_load_of_the_snapshot(policy: str, snapshot: str) -> None:
    """24 GPUs are asked for and 8 are free: the profile for that is in force by day."""
    told = shown(policy, snapshot, "2026-12-01T12:00")
    assert told["load"] == {"pending_jobs": 6.0, "pending_per_free_gpu": 3.0}
    assert (told["profile"], told["weights"]["qos"]) == ("busy", 800)


def test_show_names_guards_for_what_slurm_does_not_have(policy: str, snapshot: str) -> None:
    """A slip of the pen there would guard nobody, in silence."""
    assert shown(policy, snapshot, "2026-12-01T12:00")["remarks"] == [
        "guard.qos.urgnet: Slurm has none of this name (known: high, low, normal)"
    ]


def test_show_prints_text_that_people_read(policy: str, snapshot: str) -> None:
    """The weights of every profile, the guards, the range."""
    lines = run(
        "show", "--policy", policy, "--snapshot", snapshot, "--at", "2026-11-30T20:10"
    ).stdout.splitlines()
    assert lines[0] == f"{policy}: mode observe, hash {parse_policy(TEXT).hash}"
    assert lines[1].split("; hash")[0] == (
        "2026-11-30 20:10 +0100: profile night, handed over so far: 67% busy, 33% night"
    )
    assert lines[2] == "Next change by the clock: 2026-12-01 06:00 +0100 to busy"
    table = [line.split() for line in lines]
    assert ["NAME", "IN", "FORCE", "MOVES", "base", "night", "busy"] in table
    assert ["remaining", "400", "0%", "450", "300", "450"] in table
    assert ["QOS", "high", "12:00:00", "14:01:00"] in table
    assert ["all", "others", "1-21:00:00", "1-23:01:00"] in table


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    """The path of a snapshot of an urgent short job and a plain one, both just submitted."""
    path = tmp_path / "mixed.jsonl"
    jobs = (make_job(1, qos="high", time_limit_s=1800.0), make_job(2))
    write_snapshot(path, Snapshot(policy=make_policy(), cluster=make_cluster(), jobs=jobs))
    return str(path)


def test_show_tells_what_each_factor_moves_in_todays_queue(mixed: str, tmp_path: Path) -> None:
    """500 of the 575 points between the two are the QOS's; three weights move nothing, and are named."""
    default = tmp_path / "default.yaml"
    default.write_text("")
    lines = run("show", "--policy", str(default), "--snapshot", mixed).stdout.splitlines()
    at = lines.index(next(line for line in lines if line.startswith("NAME")))
    assert [line.split() for line in lines[at : at + 6]] == [
        ["NAME", "IN", "FORCE", "MOVES", "base"],
        ["wait", "350", "0%", "350"],
        ["remaining", "450", "13%", "450"],
        ["size", "200", "0%", "200"],
        ["qos", "500", "87%", "500"],
        ["gres_fit", "100", "0%", "100"],
    ]
    idle = "Weights that move nothing in today's queue, as all jobs are alike in it"
    assert f"{idle}: wait (350), size (200), gres_fit (100)." in lines


def test_show_weighs_by_the_weights_in_force(mixed: str, tmp_path: Path) -> None:
    """By a policy without QOS the remaining time moves all; a weight of 0 isn't called idle."""
    other = tmp_path / "other.yaml"
    other.write_text("factors: {wait: {}, remaining: {}, size: {}, gres_fit: {}}\n")
    told = shown(str(other), mixed, "2026-12-01T12:00")["influence"]
    assert {one["name"]: round(one["share"], 6) for one in told if one["share"]} == {"remaining": 1.0}
    assert [one["name"] for one in told if one["idle"]] == ["wait", "size", "gres_fit"]


def test_show_without_a_snapshot_says_what_is_not_known(policy: str, tmp_path: Path) -> None:
    """It still tells the rest."""
    result = run("show", "--policy", policy, "--snapshot", str(tmp_path / "none"))
    assert result.exit_code == 0
    assert "What Slurm's own factors can add is not known" in result.stdout
    assert f"Note: {tmp_path / 'none'}: no snapshot yet; is the reprioritizer running?" in result.stdout


def test_show_of_slurm_without_its_commands_is_one_sentence(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for Slurm gets it or the reason."""
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("show", "--policy", policy, "--slurm")
    assert (result.exit_code, result.stderr) == (
        1,
        "slurm-score: scontrol: not found; are Slurm's commands on PATH?\n",
    )


def test_time_that_cannot_be_read_is_wrong_usage(policy: str) -> None:
    """Exit 2, with a form that can."""
    result = run("show", "--policy", policy, "--at", "soon")
    assert result.exit_code == 2
    assert "not a time; such as 2026-12-01T20:00 or 2026-12-01, got 'soon'" in result.stderr


# validate


def test_validate_prints_every_problem_of_every_file(policy: str, tmp_path: Path) -> None:
    """Exit 2; the good ones are told on standard output."""
    bad, none = tmp_path / "bad.yaml", tmp_path / "none.yaml"
    bad.write_text("mode: enforced\ncap: 0\n")
    result = run("validate", str(bad), policy, str(none))
    assert result.exit_code == 2
    assert result.stdout == f"{policy}: valid, mode observe, hash {parse_policy(TEXT).hash}\n"
    assert result.stderr.splitlines() == [
        f"slurm-score: {bad}:1: mode: input should be 'observe', 'advise' or 'enforce', got 'enforced'",
        f"slurm-score: {bad}:2: cap: input should be greater than or equal to 1, got '0'",
        f"slurm-score: {none}: can't read the policy: No such file or directory",
    ]


def test_validate_of_good_files_is_exit_0(policy: str) -> None:
    """One line each."""
    result = run("validate", policy, policy)
    assert (result.exit_code, len(result.stdout.splitlines()), result.stderr) == (0, 2, "")


# diff


def test_diff_prints_a_line_for_each_changed_setting(policy: str, tmp_path: Path) -> None:
    """As paths in the YAML, what is left out with its default; exit 1."""
    old = tmp_path / "old.yaml"
    old.write_text(
        "mode: enforce\nguard: {after: 44h, partitions: {debug: 2h}}\nhandover: 1h\n"
        "profiles: {night: {when: {hours: 20:00-06:00}, weights: {remaining: 300}}}\n"
    )
    result = run("diff", str(old), policy)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        'mode: "enforce" -> "observe"',
        "guard.after: 1-20:00:00 -> 1-21:00:00",
        "guard.partitions.debug: 02:00:00 -> (not set)",
        "handover: 01:00:00 -> 00:30:00",
        "guard.qos.high: (not set) -> 12:00:00",
        "guard.qos.urgnet: (not set) -> 06:00:00",
        "guard.partitions.gpu: (not set) -> 02:00:00",
        "profiles (order): (not set) -> night, busy",
        'profiles.night.when.days: (not set) -> "mon,tue,wed,thu,fri"',
        "profiles.night.weights.size: (not set) -> 400",
        'profiles.busy.when.pending_per_free_gpu: (not set) -> ">2 <1.5"',
        "profiles.busy.weights.qos: (not set) -> 800",
        'timezone: (not set) -> "Europe/Zurich"',
    ]


def test_diff_of_policies_that_say_the_same_is_exit_0(tmp_path: Path) -> None:
    """However they are written."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("guard: {after: 45h} # the default\n")
    new.write_text("")
    result = run("diff", str(old), str(new))
    assert (result.exit_code, result.stdout) == (0, "")


def test_diff_as_json(policy: str, tmp_path: Path) -> None:
    """One object for each setting, null where it isn't set."""
    old = tmp_path / "old.yaml"
    old.write_text(TEXT.replace("after: 45h", "after: 44h").replace(", urgnet: 6h", ""))
    result = run("diff", str(old), policy, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {"setting": "guard.after", "old": "1-20:00:00", "new": "1-21:00:00"},
        {"setting": "guard.qos.urgnet", "old": None, "new": "06:00:00"},
    ]


def test_diff_with_a_broken_policy_is_exit_2(policy: str, tmp_path: Path) -> None:
    """As diff does with a file that it can't read."""
    assert run("diff", policy, str(tmp_path / "none")).exit_code == 2


def test_other_order_of_profiles_is_a_change() -> None:
    """The first that applies counts."""
    one, two = (f"{name}: {{when: {{days: sat}}, weights: {{qos: 1}}}}" for name in "ab")
    policies = [parse_policy(f"profiles: {{{x}, {y}}}") for x, y in ((one, two), (two, one))]
    assert changed_settings(*policies) == [("profiles (order)", "a, b", "b, a")]
    assert changed_settings(Policy(), Policy()) == []
