"""The policy as an admin writes it: one YAML text in, a Policy out, or every problem of it at once. Pure."""

from collections.abc import Iterator

import yaml

from slurm_score.conditions import BASE, PROFILE_NAME, Profile
from slurm_score.errors import PolicyError, Problem, shown
from slurm_score.factors import FactorParams, registry
from slurm_score.policy import Policy
from slurm_score.settings import Lines, Path, meant, problem_at, settings_of, validated


def parse_policy(text: str, where: str = "policy") -> Policy:
    """Return the policy of a YAML text.

    Raises:
        PolicyError: with every problem, each with its line, what was got and what is allowed.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # PyYAML lets the last two through
        raise PolicyError([_yaml_problem(error, where)]) from None
    if not isinstance(data, dict | None):
        raise PolicyError(
            [Problem(where, "not a policy", shown(str(data)), "a mapping of settings is needed")]
        )
    lines = Lines(node, where)
    data = dict(data or {})
    problems = list(lines.duplicates())
    if "factors" in data:
        data["factors"], found = _read_factors(data["factors"], lines)
        problems += found
    if "profiles" in data:
        data["profiles"], found = _read_profiles(data["profiles"], lines)
        problems += found
    if "base_weights" in data:
        del data["base_weights"]
        allowed = f"(known: {', '.join(settings_of(Policy))})"
        problems.append(problem_at(("base_weights",), "unknown setting", "", allowed, lines))
    policy: Policy | None
    policy, found = validated(Policy, data, lines, ())
    if problems or found or policy is None:
        raise PolicyError(sorted(problems + found, key=lines.order))
    return policy


def _read_factors(given: object, lines: Lines) -> tuple[dict[str, FactorParams], list[Problem]]:
    factors: dict[str, FactorParams] = {}
    if not isinstance(given, dict) or not given:
        return {}, [
            problem_at(("factors",), "must be a mapping of factors", shown(str(given)), _known(), lines)
        ]
    problems: list[Problem] = []
    for name, values in given.items():
        path = ("factors", str(name))
        factor = registry().get(str(name))
        if factor is None:
            problems.append(
                problem_at(path, "unknown factor" + meant(str(name), registry()), "", _known(), lines)
            )
        elif not isinstance(values, dict):
            allowed = "a mapping such as {weight: 100}"
            problems.append(
                problem_at(path, "not the settings of a factor", shown(str(values)), allowed, lines)
            )
        else:
            params, found = validated(factor.params, values, lines, path)
            problems += found
            factors |= {} if params is None else {factor.name: params}
    return factors, problems


def _read_profiles(given: object, lines: Lines) -> tuple[dict[str, Profile], list[Problem]]:
    if not isinstance(given, dict):
        allowed = "a mapping such as {night: {when: {hours: '20:00-06:00'}, weights: {size: 400}}}"
        return {}, [problem_at(("profiles",), "not profiles", shown(str(given)), allowed, lines)]
    profiles: dict[str, Profile] = {}
    problems: list[Problem] = []
    for name, values in given.items():
        path = ("profiles", str(name))
        if not PROFILE_NAME.fullmatch(str(name)) or name == BASE:
            allowed = f"letters, digits, - and _, but not {BASE}"
            problems.append(problem_at(path, "not a name for a profile", "", allowed, lines))
        profile, found = validated(Profile, values, lines, path)
        problems += [*found, *_unknown_weights(values, lines, path)]
        profiles |= {} if profile is None else {str(name): profile}
    return profiles, problems


def _unknown_weights(values: object, lines: Lines, path: Path) -> Iterator[Problem]:
    weights = values.get("weights") if isinstance(values, dict) else None
    for name in weights if isinstance(weights, dict) else ():
        if str(name) not in registry():
            what = "unknown factor" + meant(str(name), registry())
            yield problem_at((*path, "weights", str(name)), what, "", _known(), lines)


def _yaml_problem(error: Exception, where: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    place = where if mark is None else f"{where}:{mark.line + 1}"
    return Problem(place, f"not YAML: {getattr(error, 'problem', None) or error}")


def _known() -> str:
    return f"(known: {', '.join(sorted(registry()))})"
