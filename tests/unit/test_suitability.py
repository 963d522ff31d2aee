"""slurm_score/suitability.py: whether SiteFactor can work here, who may set it, what counts twice."""

from typing import Any

import pytest

from slurm_score.errors import NotPermittedError, UnsuitableSlurmError
from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.slurm.gateway import Identity
from slurm_score.suitability import counted_twice, remarks, require_right_to_write, require_suitable
from tests.unit.builders import make_policy

OBSERVE, ADVISE = Policy(), parse_policy("mode: advise")
COMPLEMENT = parse_policy("{mode: enforce, slurm_factors: complement}")
REPLACE = parse_policy("{mode: enforce, slurm_factors: replace}")


def config(**changes: Any) -> SlurmConfig:
    """Return a configuration under which SiteFactor works."""
    return SlurmConfig(**{"priority_type": "priority/multifactor", "slurm_user": "slurm"} | changes)


@pytest.mark.parametrize("policy", [OBSERVE, COMPLEMENT])
@pytest.mark.parametrize("priority_type", ["priority/basic", ""])
def test_slurm_without_multifactor_is_unsuitable_in_every_mode(policy: Policy, priority_type: str) -> None:
    """Case 35: priority/basic stores SiteFactor and ignores it, so there is nothing to observe either."""
    with pytest.raises(UnsuitableSlurmError) as caught:
        require_suitable(config(priority_type=priority_type), policy)
    assert str(caught.value) == (
        f"{priority_type}: SiteFactor has no effect; PriorityType=priority/multifactor is needed"
    )


def test_site_factor_plugin_is_unsuitable_in_enforce() -> None:
    """slurm-facts 3: the plugin would overwrite what we set at its next update."""
    with pytest.raises(UnsuitableSlurmError, match="PrioritySiteFactorPlugin=site_factor/x would overwrite"):
        require_suitable(config(site_factor_plugin="site_factor/x"), COMPLEMENT)


def test_slurm_that_still_weighs_what_we_replace_is_unsuitable() -> None:
    """slurm-facts 8.11: the policy says replace, so age and QOS must not count a second time."""
    weights = {"age": 1000, "qos": 0, "job_size": 20, "fairshare": 5000}
    with pytest.raises(UnsuitableSlurmError) as caught:
        require_suitable(config(priority_weights=weights), REPLACE)
    assert str(caught.value) == (
        "the policy says slurm_factors: replace, but Slurm still has PriorityWeightAge=1000, "
        "PriorityWeightJobSize=20; set them to 0 or say complement"
    )


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        pytest.param({}, COMPLEMENT, id="plain"),
        pytest.param({"priority_weights": {"age": 1000, "qos": 500}}, COMPLEMENT, id="complement"),
        pytest.param({"priority_weights": {"fairshare": 5000}}, REPLACE, id="what we have no factor for"),
        pytest.param({"priority_weights": {"age": 1000}}, OBSERVE, id="observe changes nothing"),
        pytest.param({"site_factor_plugin": "site_factor/x"}, ADVISE, id="advise sets nothing"),
    ],
)
def test_other_slurm_is_suitable(changes: dict[str, Any], policy: Policy) -> None:
    """A cycle may go on."""
    require_suitable(config(**changes), policy)


@pytest.mark.parametrize(
    ("policy", "doubled"),
    [
        (Policy(), ("PriorityWeightAge=1000", "PriorityWeightQOS=500", "PriorityWeightJobSize=20")),
        (parse_policy("factors: {wait: {weight: 1}}"), ("PriorityWeightAge=1000",)),
        (parse_policy("factors: {gres_fit: {weight: 1}}"), ()),
    ],
)
def test_what_counts_twice_is_named_as_slurm_names_it(policy: Policy, doubled: tuple[str, ...]) -> None:
    """Wait and age, QOS and QOS, size and job size; only where both sides have a weight."""
    weights = {"age": 1000, "qos": 500, "job_size": 20, "fairshare": 5000, "tres": 1}
    assert counted_twice(config(priority_weights=weights), policy) == doubled
    assert counted_twice(config(), policy) == ()


@pytest.mark.parametrize(
    ("user", "admin_level", "may"),
    [
        ("root", "None", True),
        ("slurm", "None", True),
        ("ops", "Operator", True),
        ("boss", "Administrator", True),
        ("bob", "None", False),
        ("bob", "Not Set", False),
        ("", "None", False),
    ],
)
def test_only_operators_may_set_site_factors(user: str, admin_level: str, may: bool) -> None:
    """slurm-facts 2 and 8.18: root, SlurmUser, and AdminLevel Operator or above (validate_operator)."""
    assert Identity(user, admin_level).may_set_site_factor("slurm") is may


def test_missing_right_is_told_with_its_remedy() -> None:
    """Before the first update, not after ten thousand refusals."""
    require_right_to_write(Identity("slurm", "None"), config())
    with pytest.raises(NotPermittedError) as caught:
        require_right_to_write(Identity("bob", "None"), config())
    assert str(caught.value) == (
        "user bob may not set SiteFactor (AdminLevel=None); "
        "run as slurm, as root, or as a user with AdminLevel=Operator"
    )


def test_a_cap_without_room_for_the_guard_is_refused_in_enforce() -> None:
    """The guard tier stands above Slurm's own factors too; clipped at the cap it would lose its order."""
    config = SlurmConfig(priority_type="priority/multifactor", priority_weights={"fairshare": 2_000_000})
    require_suitable(config, make_policy())
    with pytest.raises(UnsuitableSlurmError) as caught:
        require_suitable(config, make_policy(mode="enforce"))
    assert str(caught.value) == (
        "cap 1000000 leaves the guard tier no room above our weights (1600), their offset (1089) and "
        "Slurm's own (2000000); set cap to 2102689 or more"
    )
    require_suitable(config, make_policy(mode="enforce", cap=2_102_689))


QUIET: dict[str, Any] = {"priority_type": "priority/multifactor", "slurm_user": "slurm"} | {
    "scheduler_parameters": ("bf_continue",)
}


@pytest.mark.parametrize(
    ("settings", "user", "sentence"),
    [
        (
            {"priority_weights": {"age": 1000}},
            "slurm",
            "counted twice, by Slurm and by us (slurm_factors: complement): PriorityWeightAge=1000",
        ),
        (
            {"site_factor_plugin": "site_factor/x"},
            "slurm",
            "PrioritySiteFactorPlugin=site_factor/x would overwrite what enforce sets",
        ),
        (
            {"priority_flags": ("ACCRUE_ALWAYS", "INCR_ONLY")},
            "slurm",
            "PriorityFlags=INCR_ONLY: a job in several partitions keeps its highest SiteFactor",
        ),
        (
            {"scheduler_parameters": ("bf_interval=30",)},
            "slurm",
            "SchedulerParameters lacks bf_continue: updates can end a backfill cycle before its time",
        ),
        (
            {"slurmctld_parameters": ("rl_enable", "rl_bucket_size=50")},
            "op",
            "SlurmctldParameters has rl_enable: user op gets 2 requests a second; slurm and root are exempt",
        ),
        (
            {"controllers": ("ctl1", "ctl2", "ctl3")},
            "slurm",
            "backup controllers (ctl2, ctl3): "
            "of several reprioritizers only the one beside the acting controller acts",
        ),
    ],
)
def test_what_an_admin_should_know_is_remarked(settings: dict[str, Any], user: str, sentence: str) -> None:
    """Traps 11, 14, 15, 18 and 29, and the yielding backfill: found at the start, said in one sentence."""
    config = SlurmConfig(**QUIET | settings)
    assert remarks(config, Identity(user, "Operator"), make_policy()) == (sentence,)


def test_a_slurm_that_suits_is_not_remarked_upon() -> None:
    """No sentence where there is nothing to know; the rate limit spares SlurmUser and root."""
    config = SlurmConfig(**QUIET | {"slurmctld_parameters": ("rl_enable",), "controllers": ("ctl",)})
    assert remarks(config, Identity("root", "None"), make_policy()) == ()
