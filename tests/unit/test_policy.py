"""slurm_score/policy.py: a YAML text, the policy that it says, and the policy's name."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from slurm_score.errors import PolicyError
from slurm_score.factors import registry
from slurm_score.policy import Mode, Policy, load_policy, parse_policy
from tests.unit.builders import HOUR, make_policy

ETC = Path(__file__).parents[2] / "etc"


def test_shipped_policy_is_the_default() -> None:
    """etc/slurm-score.yaml writes down the defaults, so that reading it is reading the program."""
    assert parse_policy((ETC / "slurm-score.yaml").read_text(encoding="utf-8")) == Policy()


def test_shipped_policy_names_every_factor() -> None:
    """A factor that the example left out would have weight 0 for everybody who copies it."""
    text = (ETC / "slurm-score.yaml").read_text(encoding="utf-8")
    assert [name for name in registry() if f"\n  {name}:" not in text] == []


def test_article_policy_is_its_two_constants() -> None:
    """One point for 600 s of wait and 0.5 / (remaining + 1) points, in thousandths."""
    policy = parse_policy((ETC / "slurm-score-article.yaml").read_text(encoding="utf-8"))
    wait, remaining = policy.factors["wait"], policy.factors["remaining"]
    assert wait.weight * 600 / wait.max_wait == 1000
    assert (remaining.weight, remaining.half_at) == (500, 1)
    assert policy.factors["size"].weight == 0


@pytest.mark.parametrize("text", ["", "# nothing", "{}", "mode: observe", "guard: {}"])
def test_empty_policy_is_the_default(text: str) -> None:
    """Every setting has a default, and the default changes nothing in Slurm."""
    assert parse_policy(text) == Policy()
    assert Policy().mode is Mode.OBSERVE


def test_factor_that_is_left_out_has_weight_0() -> None:
    """A policy that lists its factors has those and no others."""
    policy = parse_policy("factors: {qos: {weight: 7}}")
    assert {name: params.weight for name, params in policy.factors.items()} == {
        "wait": 0,
        "remaining": 0,
        "size": 0,
        "qos": 7,
        "gres_fit": 0,
    }


def test_total_weight_is_the_sum_of_all_weights() -> None:
    """350 + 450 + 200 + 500 + 100, from score-research's table."""
    assert Policy().total_weight == 1600


def test_durations_are_written_with_their_unit() -> None:
    """54h, 2-06:00 and 3240m are the same time."""
    texts = ["54h", "'2-06:00'", "3240m", "2d6h"]
    waits = [parse_policy(f"factors: {{wait: {{max_wait: {text}}}}}").factors["wait"] for text in texts]
    assert [wait.max_wait for wait in waits] == [194_400] * 4


@pytest.mark.parametrize(
    "text",
    [
        "{cap: 1000000, mode: observe}",
        "mode: observe\ncap: 1_000_000\n",
        "guard:\n  after: 2700m\n",
        "max_snapshot_age: 300s",
        "guard: {after: '1-21:00:00'} # the same",
    ],
)
def test_hash_does_not_depend_on_the_spelling(text: str) -> None:
    """The hash names what the policy says: comments, order and units of the YAML don't change it."""
    assert parse_policy(text).hash == Policy().hash


@pytest.mark.parametrize(
    "text",
    [
        "mode: advise",
        "cap: 999999",
        "guard: {after: 44h}",
        "slurm_factors: replace",
        "max_snapshot_age: 301s",
    ],
)
def test_every_setting_changes_the_hash(text: str) -> None:
    """Two policies with one hash would make stored scores ambiguous."""
    assert parse_policy(text).hash != Policy().hash


def test_hash_is_twelve_hex_digits() -> None:
    """Short enough for a log line."""
    assert len(Policy().hash) == 12
    assert int(Policy().hash, 16) >= 0


@pytest.mark.parametrize("name", ["slurm-score.yaml", "slurm-score-article.yaml"])
def test_stored_policy_is_read_back(name: str) -> None:
    """What the snapshot holds as JSON is the same policy with the same hash."""
    policy = parse_policy((ETC / name).read_text(encoding="utf-8"))
    back = load_policy(json.loads(json.dumps(policy.stored())))
    assert back == policy
    assert back.hash == policy.hash


def test_stored_policy_of_another_release_is_refused() -> None:
    """Every fault of it at once."""
    with pytest.raises(PolicyError) as caught:
        load_policy({"mode": "perhaps", "cap": "much"})
    assert [problem.where for problem in caught.value.problems] == ["stored policy", "stored policy"]


def test_bare_number_is_a_duration_only_in_a_stored_policy() -> None:
    """YAML reads 54:00 as 3240: only what the program wrote may be plain seconds."""
    assert make_policy(guard={"after": 3600.0}).guard.after == HOUR
    with pytest.raises(PolicyError):
        parse_policy("guard: {after: 3600.0}")


def test_policy_is_frozen() -> None:
    """A policy in force is changed by reading another one, never in place."""
    with pytest.raises(ValidationError):
        Policy().cap = 5  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Policy().factors["wait"].weight = 5
