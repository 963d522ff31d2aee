"""slurm_score/policy.py: what is wrong with a policy, all of it at once, each with its line."""

import pytest

from slurm_score.errors import PolicyError
from slurm_score.policy_yaml import parse_policy

EVERYTHING_WRONG = """\
mode: enfroce
cap: many
guard: {after: 45}
colour: red
factors:
  wiat: {weight: 1}
  qos: {wieght: 2}
  remaining: {weight: -1, half_at: 0m}
  size: 3
  wait:
    weight: 1.5
    keep_after: [NODE_FAIL, TIMEOUT]
  gres_fit: {weight: 1, scarcity: 0}
"""


def problems(text: str) -> list[str]:
    """Return the problems of a policy text, one line each."""
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "p.yaml")
    assert str(caught.value) == "\n".join(str(problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_every_problem_is_told_at_once_in_order_of_lines() -> None:
    """One reading of the list is enough to repair the file: where, what, got, allowed, did-you-mean."""
    assert [line.split(",")[0].split(";")[0] for line in problems(EVERYTHING_WRONG)] == [
        "p.yaml:1: mode: input should be 'observe'",
        "p.yaml:2: cap: input should be a valid integer",
        "p.yaml:3: guard.after: a duration in quotes or with its unit is needed",
        "p.yaml:4: colour: unknown setting",
        "p.yaml:6: factors.wiat: unknown factor",
        "p.yaml:7: factors.qos.wieght: unknown setting",
        "p.yaml:8: factors.remaining.weight: input should be greater than or equal to 0",
        "p.yaml:8: factors.remaining.half_at: not a duration between 1s and 100 years",
        "p.yaml:9: factors.size: not the settings of a factor",
        "p.yaml:11: factors.wait.weight: input should be a valid integer",
        "p.yaml:12: factors.wait.keep_after.1: input should be 'NODE_FAIL'",
        "p.yaml:13: factors.gres_fit: scarcity",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mode: enfroce", "p.yaml:1: mode: input should be 'observe', 'advise' or 'enforce', got 'enfroce'"),
        (
            "factors: {size: 3}",
            "p.yaml:1: factors.size: not the settings of a factor, got '3'; a mapping such as {weight: 100}",
        ),
        (
            "factors: []",
            "p.yaml:1: factors: must be a mapping of factors, got '[]'; "
            "(known: gres_fit, qos, remaining, size, wait)",
        ),
        (
            "- a",
            "p.yaml: not a policy, got \"['a']\"; a mapping of settings is needed",
        ),
    ],
)
def test_problem_says_what_was_got_and_what_is_allowed(text: str, line: str) -> None:
    """`<where>: <what is wrong>, got <value>; <what is allowed>`."""
    assert problems(text) == [line]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("factors: {wiat: {weight: 1}}", "did you mean 'wait'?"),
        ("factors: {qos: {wieght: 1}}", "did you mean 'weight'?"),
        ("guard: {aftre: 3h}", "did you mean 'after'?"),
        ("moed: observe", "did you mean 'mode'?"),
    ],
)
def test_near_miss_is_recognised(text: str, near: str) -> None:
    """Sections, settings and factors that are almost a known one are named."""
    assert near in problems(text)[0]


@pytest.mark.parametrize("after", ["54h", "60h", "'3-0'"])
def test_guard_at_or_after_max_wait_is_refused(after: str) -> None:
    """The wait factor must not saturate before the guard: score-research 1, "below max_wait on purpose"."""
    assert "must be below factors.wait.max_wait 2-06:00:00" in problems(f"guard: {{after: {after}}}")[0]


def test_guard_after_max_wait_is_allowed_where_wait_has_no_weight() -> None:
    """Without weight nothing saturates."""
    assert parse_policy("{guard: {after: 60h}, factors: {qos: {weight: 1}}}").guard.after == 216_000


@pytest.mark.parametrize("cap", [1, 1599, 1600])
def test_weights_must_leave_room_below_cap(cap: int) -> None:
    """The guard tier stands between the sum of the weights and the cap."""
    assert problems(f"cap: {cap}") == [
        f"p.yaml:1: the weights add up to 1600, which leaves no room below cap {cap}"
    ]


@pytest.mark.parametrize("cap", ["2147483646", "0", "-1", "1.0", "1e6", "true", ".inf", ".nan"])
def test_cap_is_a_whole_number_that_scontrol_takes(cap: str) -> None:
    """Cases 40 and 41: SiteFactor ends at 2,147,483,645; above it scontrol ignores the value."""
    assert problems(f"cap: {cap}")[0].startswith("p.yaml:1: cap: input should be")


def test_largest_cap_is_allowed() -> None:
    """NICE_OFFSET - 3 is the last value that Slurm takes."""
    assert parse_policy("cap: 2147483645").cap == 2_147_483_645


def test_setting_that_stands_twice_is_a_problem() -> None:
    """YAML would let the last one win in silence."""
    assert problems("mode: observe\ncap: 5000\nmode: enforce\nguard:\n  after: 3h\n  after: 4h\n") == [
        "p.yaml:3: mode: stands twice; remove one of them",
        "p.yaml:6: guard.after: stands twice; remove one of them",
    ]


@pytest.mark.parametrize(
    "text", ["&a {guard: *a}", "factors: &f {wait: *f}", "&a [*a]", "factors: &f {wait: {max_wait: *f}}"]
)
def test_policy_that_holds_itself_is_refused(text: str) -> None:
    """An alias inside its own anchor is a loop; it is a problem like any other, not an endless walk."""
    assert len(problems(text)) == 1


def test_aliases_are_read() -> None:
    """A value may be written once and used twice."""
    assert parse_policy("max_snapshot_age: &a 10m\nguard: {after: *a}").guard.after == 600


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mode: [", "p.yaml:1: not YAML: expected the node content, but found '<stream end>'"),
        ("mode: observe\n\tcap: 3", "p.yaml:2: not YAML: "),
        ("cap: *nowhere", "p.yaml:1: not YAML: found undefined alias 'nowhere'"),
        ("a: 1\n---\nb: 2", "p.yaml:2: not YAML: "),
        ("cap: !!python/object:os.system {}", "p.yaml:1: not YAML: could not determine a constructor"),
        ("mode: \x00", "p.yaml: not YAML: "),
    ],
)
def test_text_that_is_no_yaml_is_one_problem_with_its_line(text: str, line: str) -> None:
    """Nothing in a policy can run code: only plain YAML is read."""
    assert problems(text)[0].startswith(line)


@pytest.mark.parametrize("value", ["54", "54:00", "1:30", "true", "[1h]", "null"])
def test_duration_without_unit_is_refused(value: str) -> None:
    """YAML 1.1 reads 54:00 as the number 3240; nobody should have to know that."""
    assert "a duration in quotes or with its unit is needed" in problems(f"max_snapshot_age: {value}")[0]


@pytest.mark.parametrize(
    "text",
    [
        "factors: {remaining: {unknown: 1.1}}",
        "factors: {remaining: {unknown: .nan}}",
        "factors: {gres_fit: {scarcity: -1}}",
        "factors: {gres_fit: {scarcity: .inf}}",
        "factors: {qos: {weight: 1000000001}}",
        "factors: {qos: {weight: true}}",
        "slurm_factors: both",
        "guard: 5",
        "1: 2",
        "null: 2",
    ],
)
def test_value_out_of_range_is_refused(text: str) -> None:
    """Weights are whole numbers from 0, shares and factor values are finite."""
    assert len(problems(text)) == 1


def test_value_from_the_file_is_shown_escaped_and_cut() -> None:
    """No policy text can steer the terminal of the admin who reads about it."""
    line = problems('mode: "\\e[31m' + "x" * 5000 + '"')[0]
    assert "\x1b" not in line
    assert len(line) < 300


@pytest.mark.parametrize("text", ["cap: 2020-13-45\n", "cap: !!int abc\n", "[" * 3000])
def test_what_pyyaml_stumbles_over_is_a_problem_too(text: str) -> None:
    """A broken edit must never end a daemon: PyYAML lets ValueError and RecursionError through."""
    assert problems(text)[0].startswith("p.yaml: not YAML: ")


def test_nested_aliases_are_walked_once() -> None:
    """Thirty levels of two aliases each would be a thousand million mappings."""
    levels = [f"a{i + 1}: &a{i + 1} {{x: *a{i}, y: *a{i}}}" for i in range(30)]
    assert problems("\n".join(["a0: &a0 {x: 1}", *levels]))[0].startswith("p.yaml:1: a0: unknown setting")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "guard:\n  after: 45h\n  qos:\n    urgent: 12h\n    slow: 10d\n  partitions: {debug: 54h}",
            [
                "p.yaml:5: guard.qos.slow 10-00:00:00 must be below factors.wait.max_wait 2-06:00:00",
                "p.yaml:6: guard.partitions.debug 2-06:00:00 must be below factors.wait.max_wait 2-06:00:00",
            ],
        ),
        (
            "mode: observe\nfactors:\n  wait: {weight: 1, max_wait: 40h}",
            ["p.yaml:3: guard.after 1-21:00:00 must be below factors.wait.max_wait 1-16:00:00"],
        ),
        (
            "factors: {qos: {weight: 1}}\nguard: {after: 60h}\n"
            "profiles: {night: {when: {days: sat}, weights: {wait: 1}}}",
            ["p.yaml:2: guard.after 2-12:00:00 must be below factors.wait.max_wait 2-06:00:00"],
        ),
    ],
)
def test_every_guard_must_come_before_the_wait_saturates(text: str, lines: list[str]) -> None:
    """In whatever profile wait has a weight; the line is that of the setting that the file has."""
    assert [line.split(", else")[0] for line in problems(text)] == lines


PROFILES_WRONG = """\
timezone: Europe/Zurihc
handover: 7h
profiles:
  night:
    when: {hours: 20-6, days: mon-frid, pending_job: ">3"}
    weights: {remaning: 300, size: -1}
  base: {when: {days: sat}, weights: {qos: 1}}
  busy:
    when:
      pending_per_free_gpu: >2
      pending_jobs: "2"
    weights: {}
  "on call": {when: {}, weights: {qos: 1.5}}
  idle: 3
  late: {when: {hours: 08:00-25:00}, weights: {qos: 1}}
  never: {when: {hours: 08:00-08:00, pending_jobs: ">2 <3"}, weights: {qos: 1}}
"""


def test_every_problem_of_a_profile_is_told_with_its_line() -> None:
    """Unquoted, YAML takes >2 for an empty text: it is no silent "always"."""
    assert [line.split(",")[0].split(";")[0] for line in problems(PROFILES_WRONG)] == [
        "p.yaml:1: timezone: not a time zone",
        "p.yaml:2: handover: must not be above 06:00:00",
        "p.yaml:5: profiles.night.when.hours: not hours",
        "p.yaml:5: profiles.night.when.days: not days of the week",
        "p.yaml:5: profiles.night.when.pending_job: unknown setting",
        "p.yaml:6: profiles.night.weights.size: input should be greater than or equal to 0",
        "p.yaml:6: profiles.night.weights.remaning: unknown factor",
        "p.yaml:7: profiles.base: not a name for a profile",
        "p.yaml:10: profiles.busy.when.pending_per_free_gpu: text is needed",
        "p.yaml:11: profiles.busy.when.pending_jobs: not a load condition",
        "p.yaml:12: profiles.busy.weights: dictionary should have at least 1 item after validation",
        "p.yaml:13: profiles.on call: not a name for a profile",
        "p.yaml:13: profiles.on call.when: says nothing",
        "p.yaml:13: profiles.on call.weights.qos: input should be a valid integer",
        "p.yaml:14: profiles.idle: input should be a valid dictionary or instance of Profile",
        "p.yaml:15: profiles.late.when.hours: not hours: a day ends at 24:00",
        "p.yaml:16: profiles.never.when.hours: not hours: begins and ends at the same time",
        "p.yaml:16: profiles.never.when.pending_jobs: can never be entered and kept: "
        "the second limit is on the wrong side of the first",
    ]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("timezone: Europe/Zurihc", "did you mean 'Europe/Zurich'?, got 'Europe/Zurihc'"),
        (
            "profiles: {a: {when: {horus: 1}, weights: {qos: 1}}}",
            "did you mean 'hours'?; (known: hours, days, ",
        ),
        (
            "profiles: {a: {when: {days: sat}, weights: {szie: 1}}}",
            "did you mean 'size'?; (known: gres_fit, ",
        ),
        ("guard: {qsos: {}}", "did you mean 'qos'?; (known: after, qos, partitions)"),
    ],
)
def test_near_miss_below_a_section_is_recognised(text: str, near: str) -> None:
    """What is known there is what may stand there."""
    assert near in problems(text)[0]


def test_weights_of_every_profile_must_leave_room_below_cap() -> None:
    """A profile's own and those that it leaves as they are: 350 + 450 + 200 + 4000 + 100."""
    text = "cap: 5000\nprofiles:\n  a:\n    when: {days: sat}\n    weights: {qos: 4000}"
    assert problems(text) == [
        "p.yaml:5: profiles.a: the weights add up to 5100, which leaves no room below cap 5000"
    ]


def test_what_the_program_keeps_is_no_setting() -> None:
    """`base_weights` is for policies that the program stored."""
    assert problems("base_weights: {qos: 1}")[0].startswith(
        "p.yaml:1: base_weights: unknown setting; (known: mode,"
    )


@pytest.mark.parametrize("text", ["profiles: 3", "profiles: [a]", "profiles: null"])
def test_profiles_must_be_a_mapping(text: str) -> None:
    """With an example of one."""
    assert problems(text)[0].startswith("p.yaml:1: profiles: not profiles, got")


def test_profiles_may_overlap() -> None:
    """The first that applies counts."""
    days = "{when: {days: mon-fri}, weights: {qos: 1}}"
    assert list(parse_policy(f"profiles: {{a: {days}, b: {days}}}").profiles) == ["a", "b"]


def test_name_in_a_guard_must_be_text() -> None:
    """A QOS named 1 needs quotes."""
    assert problems("guard: {qos: {1: 2h}}") == [
        "p.yaml:1: guard.qos.1: input should be a valid string, got '1'"
    ]
