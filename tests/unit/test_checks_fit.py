"""slurm_score/checks/fit.py: weights of GPU fit that do harm, each with its reason."""

from typing import Any

import pytest

from slurm_score.checks import Facts
from slurm_score.policy import Policy
from tests.unit.builders import make_policy
from tests.unit.check_facts import HEALTHY, NOW, changed, found, with_config


def policy(**fit: Any) -> Policy:
    """Return the default policy with other parameters of gres_fit; the others weigh 1,500."""
    factors = Policy().stored()["factors"]
    return make_policy(factors=factors | {"gres_fit": factors["gres_fit"] | fit})


def told(facts: Facts, **fit: Any) -> list[str]:
    """Return what check says of GPU fit under a policy."""
    return [line for line in found(changed("policy", facts, policy=policy(**fit))) if " gpu fit: " in line]


@pytest.mark.parametrize(
    "fit",
    [
        pytest.param({}, id="the default"),
        pytest.param({"weight": 375}, id="a quarter of the rest"),
        pytest.param({"weight": 0, "scarcity": 0.0, "ready": 1.0}, id="it weighs nothing"),
    ],
)
def test_weights_that_do_no_harm_are_not_spoken_of(fit: dict[str, Any]) -> None:
    """The bounds themselves are allowed."""
    assert told(HEALTHY, **fit) == []


def test_too_much_of_what_is_free_now_is_warned_of() -> None:
    """Half of gres_fit is more than a third."""
    fresh = changed("snapshot", time_s=NOW - 10)
    assert told(fresh, ready=0.5) == []
    assert told(fresh, ready=0.5, packing=0.5) == [
        "warning gpu fit: 50% of gres_fit hangs on what is free now (ready, match, packing, spread): in "
        "simulations jobs of 16 GPUs and more then waited 44 % longer and others no less; "
        "leave scarcity at least two thirds of it"
    ]


def test_gres_fit_above_a_quarter_of_the_base_is_warned_of() -> None:
    """350 + 450 + 200 + 500 are 1,500, a quarter is 375."""
    assert told(HEALTHY, weight=376) == [
        "warning gpu fit: gres_fit weighs 376 beside 1500 for all other factors: above a quarter it pays to "
        "ask for a scarcer type than one needs; give it 375 at most"
    ]


@pytest.mark.parametrize(
    ("parameters", "age_s", "warned"),
    [
        pytest.param((), 30, False, id="as old as a backfill pass"),
        pytest.param((), 31, True, id="older"),
        pytest.param(("bf_interval=120", "sched_interval=300"), 119, False, id="passes are rare here"),
        pytest.param(("bf_interval=120", "sched_interval=300"), 121, True, id="older than the frequent one"),
        pytest.param(("bf_interval=soon",), 31, True, id="not a number"),
    ],
)
def test_a_snapshot_older_than_a_scheduler_pass_is_warned_of(
    parameters: tuple[str, ...], age_s: float, warned: bool
) -> None:
    """What the last pass left free is what nobody could use (score-research 4)."""
    slurm = with_config(scheduler_parameters=("bf_continue", *parameters))
    facts = changed("snapshot", slurm, time_s=NOW - age_s)
    assert bool(told(facts, ready=0.25)) is warned
    assert told(facts) == []
