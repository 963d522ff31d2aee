"""slurm_score/checks: Slurm, the policy, the snapshot and the service. Facts in, results out."""

import dataclasses
from typing import Any

import pytest

from slurm_score.checks import Check, Level, checks
from slurm_score.checks.facts import FileFacts, Health
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.slurm.gateway import Identity
from tests.unit.check_facts import HEALTHY, NOW, SOCKET, changed, found, make_file, with_config

HEALTH = HEALTHY.service.health or Health()
SERVE = "start `slurm-score serve` as SlurmUser"


def test_a_healthy_cluster_has_nothing_but_ok() -> None:
    """Every matter is named, once each."""
    assert found(HEALTHY) == []
    assert [check.name for check in checks(HEALTHY)] == [
        "commands",
        "slurmctld",
        "priority type",
        "weights",
        "site factor plugin",
        "cap",
        "priority flags",
        "backfill",
        "rate limit",
        "backups",
        "right",
        "policy",
        "snapshot",
        "gpu fit",
        "service",
        "service policy",
        "hook socket",
        "job submit plugins",
        "lua",
        "luasocket",
        "hook script",
        "hook rights",
        "hook modules",
        "hook options",
        "hook loaded",
    ]


def test_a_result_is_one_line_that_ends_with_the_remedy() -> None:
    """Level, name, what was found; what to do."""
    line = "error    hook script         x is broken; mend it"
    assert str(Check("hook script", Level.ERROR, "x is broken", "mend it")) == line
    assert str(Check("policy", Level.OK, "a\n\x1bb")) == "ok       policy              a  b"
    assert str(Check("backups", Level.OK, "one controller")) == "ok       backups             one controller"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"priority_type": "priority/basic"},
            "error priority type: priority/basic: SiteFactor has no effect; "
            "PriorityType=priority/multifactor is needed",
        ),
        (
            {"priority_weights": {"age": 1000}},
            "warning weights: counted twice, by Slurm and by us (slurm_factors: complement): "
            "PriorityWeightAge=1000; set the weights to 0 and say replace",
        ),
        (
            {"site_factor_plugin": "site_factor/x"},
            "warning site factor plugin: PrioritySiteFactorPlugin=site_factor/x would overwrite what enforce "
            "sets; unset it before mode: enforce",
        ),
        (
            {"priority_flags": ("INCR_ONLY",)},
            "warning priority flags: PriorityFlags=INCR_ONLY: a job in several partitions keeps its highest "
            "SiteFactor; take it out if jobs name several partitions",
        ),
        (
            {"scheduler_parameters": ()},
            "warning backfill: SchedulerParameters lacks bf_continue: updates can end a backfill cycle "
            "before its time; add bf_continue",
        ),
        (
            {"controllers": ("a", "b")},
            "warning backups: backup controllers (b): of several reprioritizers only the one beside the "
            "acting controller acts; run one on each controller's host, so that another can take over",
        ),
    ],
)
def test_what_is_wrong_with_slurm_is_said_as_a_cycle_says_it(settings: dict[str, Any], sentence: str) -> None:
    """The sentences are those of suitability (case 35 among them)."""
    assert found(with_config(**settings)) == [sentence]


def test_every_obstacle_to_enforce_is_named_at_once() -> None:
    """A cycle stops at the first; an admin wants all of them."""
    facts = with_config(site_factor_plugin="site_factor/x", priority_weights={"age": 2_000_000})
    policy = parse_policy("{mode: enforce, slurm_factors: replace}")
    facts = changed("policy", facts, policy=policy)
    facts = changed("service", facts, health=dataclasses.replace(HEALTH, mode="enforce", policy=policy.hash))
    assert [line.partition(": ")[0] for line in found(facts)] == [
        "error weights",
        "error site factor plugin",
        "error cap",
    ]


@pytest.mark.parametrize(
    ("mode", "level"), [("observe", "warning"), ("advise", "warning"), ("enforce", "error")]
)
def test_the_right_to_set_site_factor_matters_in_enforce(mode: str, level: str) -> None:
    """Nothing is set in the other modes; the sentence is that of the cycle."""
    policy = parse_policy(f"mode: {mode}")
    facts = changed("slurm", identity=Identity("bob", "None"))
    facts = changed("policy", facts, policy=policy)
    facts = changed("service", facts, health=dataclasses.replace(HEALTH, mode=mode, policy=policy.hash))
    assert found(facts) == [
        f"{level} right: user bob may not set SiteFactor (AdminLevel=None); "
        "run as slurm, as root, or as a user with AdminLevel=Operator"
    ]


def test_the_rate_limit_is_told_to_whom_it_holds() -> None:
    """rl_enable spares root and SlurmUser."""
    limited = with_config(slurmctld_parameters=("rl_enable",))
    assert found(limited) == []
    assert found(changed("slurm", limited, identity=Identity("ops", "Operator"))) == [
        "warning rate limit: SlurmctldParameters has rl_enable: user ops gets 2 requests a second; "
        "slurm and root are exempt; run the reprioritizer as SlurmUser"
    ]


def test_a_slurmctld_that_is_down_hides_nothing_else() -> None:
    """What Slurm's own settings are is not judged; files, service and hook are."""
    down = changed("slurm", answers=False, error="scontrol show config: exit 1: no route", identity=None)
    assert found(down) == [
        "error slurmctld: scontrol show config: exit 1: no route; "
        "start slurmctld; the end of its log says why it ended"
    ]
    names = {check.name for check in checks(down)}
    assert names >= {"policy", "snapshot", "service", "hook socket", "hook script", "hook modules"}
    assert names.isdisjoint({"priority type", "right", "hook loaded"})


def test_without_slurms_commands_that_is_what_is_said() -> None:
    """Not that slurmctld should be started."""
    facts = changed(
        "slurm", missing_commands=("scontrol", "sprio"), answers=False, config=None, identity=None
    )
    assert found(facts)[:2] == [
        "error commands: not on PATH: scontrol, sprio; install Slurm's client commands here",
        "error slurmctld: it can't be asked without scontrol",
    ]


def test_an_identity_that_cant_be_read_is_an_error() -> None:
    """slurmctld answered the first question and not the second."""
    assert found(changed("slurm", identity=None, error="scontrol show assoc_mgr: no answer within 60 s")) == [
        "error slurmctld: scontrol show assoc_mgr: no answer within 60 s"
    ]


def test_every_problem_of_the_policy_is_listed() -> None:
    """One line each; the service's own policy can then not be compared."""
    facts = changed("policy", policy=None, problems=("p.yaml:1: a", "p.yaml:2: b"))
    assert found(facts) == [
        "error policy: p.yaml:1: a",
        "error policy: p.yaml:2: b",
        f"warning service policy: the service keeps policy {Policy().hash}, mode observe",
    ]


@pytest.mark.parametrize(
    ("age_s", "line"),
    [
        (300, None),
        (
            301,
            "error snapshot: /var/lib/slurm-score/snapshot.jsonl is 00:05:01 old, more than max_snapshot_age "
            "00:05:00; see whether `slurm-score reprioritize` runs and what it logs",
        ),
        (
            -61,
            "warning snapshot: /var/lib/slurm-score/snapshot.jsonl was taken 00:01:01 from now; "
            "set this host's clock and slurmctld's",
        ),
    ],
)
def test_a_snapshot_is_as_fresh_as_the_policy_wants(age_s: float, line: str | None) -> None:
    """An older one gives every new job a neutral score."""
    assert found(changed("snapshot", time_s=NOW - age_s)) == ([line] if line else [])


def test_a_missing_snapshot_is_an_error() -> None:
    """With the sentence that the service gives."""
    assert found(changed("snapshot", time_s=None, error="s.jsonl: no snapshot yet")) == [
        "error snapshot: s.jsonl: no snapshot yet; start `slurm-score reprioritize`"
    ]


def test_a_service_that_does_not_answer_is_an_error() -> None:
    """The hook's socket is looked at all the same."""
    facts = changed("service", health=None, error="x.sock: does not answer")
    assert found(facts) == [f"error service: x.sock: does not answer; {SERVE}"]


@pytest.mark.parametrize(
    ("health", "line"),
    [
        (
            {"policy_error": "p.yaml:3: cap: not a number"},
            f"error service policy: the service keeps policy {Policy().hash}: p.yaml:3: cap: not a number; "
            "correct the policy file",
        ),
        (
            {"policy": "0123456789ab"},
            "error service policy: the service has policy 0123456789ab, mode observe; "
            f"/etc/slurm/slurm-score.yaml is {Policy().hash}, mode observe; "
            "start the service with this file as --policy",
        ),
        (
            {"version": "0.0.9"},
            "warning service: /run/slurm-score/slurm-score.sock answers, mode observe, but runs version "
            "0.0.9, and 0.1.0 is installed; restart `slurm-score serve`",
        ),
    ],
)
def test_the_service_works_by_the_policy_on_disk(health: dict[str, Any], line: str) -> None:
    """Another file, a broken edit or an older program show in what it says of itself."""
    assert found(changed("service", health=dataclasses.replace(HEALTH, **health))) == [line]


HOOK_SOCKET = "/run/slurm-score/hook.sock"


@pytest.mark.parametrize(
    ("socket", "line"),
    [
        (None, f"error hook socket: {HOOK_SOCKET}: gone; {SERVE}"),
        (
            make_file(HOOK_SOCKET),
            f"error hook socket: {HOOK_SOCKET} is a file, not a socket; remove it and {SERVE}",
        ),
        (
            make_file(HOOK_SOCKET, kind="socket", mode=0o600),
            f"error hook socket: slurm can't connect to {HOOK_SOCKET}, kept out by {HOOK_SOCKET} "
            f"(mode 0600, owner 0:0); re{SERVE}",
        ),
        (
            dataclasses.replace(SOCKET, folders=make_file("/run", mode=0o700).folders),
            None,
        ),
        (
            make_file(HOOK_SOCKET, kind="socket", uid=64030, mode=0o666),
            f"warning hook socket: others than slurm may write to {HOOK_SOCKET} (mode 0666); re{SERVE}",
        ),
    ],
)
def test_slurm_user_alone_can_connect_to_the_hooks_socket(socket: FileFacts | None, line: str | None) -> None:
    """To connect takes the right to write; nobody but slurmctld has business there."""
    assert found(changed("hook", socket=socket, socket_error="gone")) == ([line] if line else [])


def test_an_unknown_slurm_user_is_a_warning() -> None:
    """Whether it may connect or read can't be told; the rest can."""
    assert found(changed("slurm", slurm_user=None)) == [
        f"warning hook socket: {HOOK_SOCKET} is a socket; SlurmUser is not known here",
        "warning hook rights: SlurmUser is not known here, nor whether it can read the hook",
    ]


def test_without_any_configuration_the_hook_is_judged_mildly() -> None:
    """Neither slurmctld nor slurm.conf could be read: nothing says that lua is configured."""
    facts = changed("slurm", answers=False, error="down", config=None, identity=None)
    facts = changed("hook", facts, lua=dataclasses.replace(facts.hook.lua, plugin=None))
    assert found(facts)[1:] == [
        "warning job submit plugins: it is not known whether JobSubmitPlugins has lua",
        "warning lua: PluginDir is not known, so job_submit_lua.so was not looked at",
    ]
