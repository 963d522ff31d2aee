"""slurm_score/policy.py: a YAML text, the policy that it says, and the policy's name."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from slurm_score.errors import PolicyError
from slurm_score.factors import registry
from slurm_score.gpu_types import GpuFacts
from slurm_score.policy import Mode, Policy, load_policy
from slurm_score.policy_yaml import parse_policy
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
        "guard: {qos: {urgent: 45h}}",
        "guard: {partitions: {debug: 45h}}",
        "handover: 31m",
        "timezone: Europe/Zurich",
        "profiles: {night: {when: {hours: 20:00-06:00}, weights: {size: 400}}}",
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


# guard

GUARD = parse_policy(
    "guard: {after: 45h, qos: {urgent: 12h, slow: 50h}, partitions: {debug: 2h, gpu: 20h}}"
).guard


@pytest.mark.parametrize(
    ("qos", "partitions", "hours"),
    [
        pytest.param("normal", ("main",), 45, id="nothing named"),
        pytest.param("", (), 45, id="neither QOS nor partition"),
        pytest.param("urgent", ("main",), 12, id="its QOS"),
        pytest.param("slow", ("main",), 50, id="its QOS, later than after"),
        pytest.param("normal", ("debug",), 2, id="its partition"),
        pytest.param("urgent", ("debug",), 2, id="both: the least"),
        pytest.param("urgent", ("gpu",), 12, id="both: the least, of the QOS"),
        pytest.param("normal", ("debug", "gpu"), 20, id="two partitions: the greatest"),
        pytest.param("normal", ("main", "debug"), 45, id="not all partitions named: none counts"),
        pytest.param("slow", ("main", "debug"), 50, id="adding a partition wins nothing"),
    ],
)
def test_guard_of_a_job_is_the_least_named_for_it(qos: str, partitions: tuple[str, ...], hours: int) -> None:
    """Each named guard is kept, and no job buys one of a partition for the others that it asks for."""
    assert GUARD.of(qos, partitions) == hours * HOUR


# weights in force

PROFILES = """
profiles:
  night: {when: {hours: 20:00-06:00}, weights: {remaining: 300, size: 900}}
  steep: {when: {days: [sat, sun]}, weights: {wait: 700, qos: 0}}
"""


def test_weights_that_a_profile_leaves_out_are_the_policys_own() -> None:
    """Each set is whole: nobody has to know which are written where."""
    assert parse_policy(PROFILES).weight_sets == {
        "base": {"wait": 350, "remaining": 450, "size": 200, "qos": 500, "gres_fit": 100},
        "night": {"wait": 350, "remaining": 300, "size": 900, "qos": 500, "gres_fit": 100},
        "steep": {"wait": 700, "remaining": 450, "size": 200, "qos": 0, "gres_fit": 100},
    }


def test_range_is_that_of_the_heaviest_profile() -> None:
    """The guard tier begins at the same number in every profile: a change of profile moves nobody there."""
    policy = parse_policy(PROFILES)
    night = policy.with_weights(policy.weight_sets["night"])
    assert (policy.total_weight, night.total_weight) == (2150, 2150)
    assert (policy.room, night.room) == (2178, 2178)  # a week of 700 points in 54 h
    assert night.drift_per_s == 350 / (54 * HOUR)


def test_policy_with_other_weights_knows_its_own_and_keeps_its_hash() -> None:
    """`hash` names the YAML, `in_force_hash` what scores are made with."""
    policy = parse_policy(PROFILES)
    night = policy.with_weights(policy.weight_sets["night"])
    assert night.weights == policy.weight_sets["night"]
    assert night.weight_sets == policy.weight_sets
    assert night.hash == policy.hash == policy.in_force_hash
    assert night.in_force_hash != night.hash
    assert night.with_weights(policy.weights) == policy


def test_stored_policy_with_other_weights_is_read_back() -> None:
    """A snapshot holds the weights in force and the YAML's own."""
    policy = parse_policy(PROFILES)
    night = policy.with_weights(policy.weight_sets["night"])
    back = load_policy(json.loads(json.dumps(night.stored())))
    assert back == night
    assert (back.hash, back.in_force_hash) == (night.hash, night.in_force_hash)


def test_order_of_profiles_changes_the_hash() -> None:
    """The first that applies counts, so two orders are two policies."""
    night, steep = PROFILES.strip().splitlines()[1:]
    assert parse_policy(f"profiles:\n{steep}\n{night}").hash != parse_policy(PROFILES).hash


@pytest.mark.parametrize(
    "when",
    [
        "{hours: '8:00 - 12:00,13:00-24:00', days: mon-wed}",
        "{hours: '08:00-12:00,13:00-24:00', days: [Wed, tue, Mon]}",
    ],
)
def test_hash_does_not_depend_on_the_spelling_of_a_condition(when: str) -> None:
    """Blanks, leading zeros and ranges say nothing."""
    text = "profiles: {day: {when: {hours: '08:00-12:00,13:00-24:00', days: mon-wed}, weights: {qos: 1}}}"
    other = f"profiles: {{day: {{when: {when}, weights: {{qos: 1}}}}}}"
    assert parse_policy(other).hash == parse_policy(text).hash


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0.0), ("30s", 30.0)])
def test_young_jobs_may_be_updated_at_once(text: str, seconds: float) -> None:
    """0s switches trap 22's rule off; it is read back as it was stored."""
    policy = parse_policy(f"updates: {{min_age: {text}}}")
    assert policy.updates.min_age == seconds
    assert load_policy(policy.stored()) == policy


def test_own_gpu_types_come_before_the_shipped_ones() -> None:
    """Each fact for itself: who gives the memory only keeps what is known of the link."""
    table = parse_policy(
        "gpu_types: {A100: {vram_gib: 40}, '*_mi50*': {vram_gib: 16, nvlink: false}}"
    ).gpu_table
    assert table.facts("a100") == GpuFacts(40.0, True)
    assert table.facts("amd_mi50_x") == GpuFacts(16.0, False)
    assert table.facts("h100") == GpuFacts(80.0, True)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{vram: 40}", "gpu_types.a100.vram: unknown setting"),
        ("{vram_gib: 0}", "gpu_types.a100.vram_gib: input should be greater than 0, got '0'"),
        ("80", "gpu_types.a100: "),
    ],
)
def test_wrong_gpu_type_is_named(row: str, problem: str) -> None:
    """Where, what, got, allowed."""
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"gpu_types: {{a100: {row}}}", "p.yaml")
    assert str(caught.value).startswith(f"p.yaml:1: {problem}")
