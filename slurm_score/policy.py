"""The policy: one YAML text in, a frozen Policy out, or every problem of it at once. Pure."""

import difflib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from slurm_score.errors import PolicyError, Problem, shown
from slurm_score.factors import STORED, Duration, FactorParams, registry
from slurm_score.factors.wait import WaitParams
from slurm_score.units import DAY_S, HOUR_S, MINUTE_S, format_duration

MAX_SITE_FACTOR = 2_147_483_645
"""The largest SiteFactor that scontrol takes. Source: slurm.h, NICE_OFFSET - 3."""

ROOM_S = 7.0 * DAY_S
MIN_ROOM, MAX_ROOM = 1000, 2

Path = tuple[str | int, ...]


class Mode(StrEnum):
    """How far the program goes: only watch, also tell users, also set SiteFactor."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


class Section(BaseModel):
    """A part of the policy: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Guard(Section):
    """Against starvation: a job that has waited `after` stands above every score, in order of wait."""

    after: Duration = 45.0 * HOUR_S


class Updates(Section):
    """How few updates are sent: see plan.py.

    The first `exact_top` jobs of each partition always stand in their exact order; below them a
    number may be off by up to `dead_band` points. A cycle sends `per_cycle` updates at most. Before
    Slurm 24.11 a job younger than `min_age` could keep the others waiting and is left for later.
    """

    dead_band: Annotated[float, Field(ge=0.5, le=1_000_000)] = 0.75
    exact_top: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] = 500
    per_cycle: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 2000
    min_age: Duration = 10.0


class Advice(Section):
    """What users are told at submission, in advise and enforce; each can be switched off."""

    hints: bool = True
    other_type: bool = True
    time_limit: bool = True


class Policy(Section):
    """What the admin decides. The defaults are those of etc/slurm-score.yaml.

    `factors` holds the parameters of every factor that there is; a factor that the YAML leaves out
    has weight 0 there, unless the YAML has no `factors` at all.
    """

    mode: Mode = Mode.OBSERVE
    slurm_factors: Literal["complement", "replace"] = "complement"
    cap: Annotated[int, Field(ge=1, le=MAX_SITE_FACTOR, strict=True)] = 1_000_000
    max_snapshot_age: Duration = 5.0 * MINUTE_S
    advice: Advice = Advice()
    admin_comment: bool = False
    guard: Guard = Guard()
    updates: Updates = Updates()
    factors: Mapping[str, Any] = Field(default_factory=dict, validate_default=True)

    @field_validator("factors", mode="before")
    @classmethod
    def _every_factor(cls, value: object, info: ValidationInfo) -> object:
        given = value if isinstance(value, Mapping) else {}
        if not given:
            return {name: factor.params() for name, factor in registry().items()}
        return {
            name: factor.params.model_validate(given.get(name, {"weight": 0}), context=info.context)
            for name, factor in registry().items()
        }

    @model_validator(mode="after")
    def _consistent(self) -> "Policy":
        wait: WaitParams = self.factors["wait"]
        if wait.weight and wait.max_wait <= self.guard.after:
            limit = format_duration(wait.max_wait)
            after = format_duration(self.guard.after)
            raise ValueError(
                f"guard.after {after} must be below factors.wait.max_wait {limit}, "
                "else waits stop counting before the guard steps in"
            )
        if self.total_weight >= self.cap:
            raise ValueError(
                f"the weights add up to {self.total_weight}, which leaves no room below cap {self.cap}"
            )
        return self

    @cached_property
    def total_weight(self) -> int:
        """The sum of all weights: the most that a score can be outside the guard tier."""
        return sum(params.weight for params in self.factors.values())

    @property
    def drift_per_s(self) -> float:
        """How many points a second every waiting job gains, until its wait or the guard ends that."""
        wait: WaitParams = self.factors["wait"]
        return wait.weight / wait.max_wait

    @cached_property
    def room(self) -> int:
        """How far the offset of the scores may go: a week of everybody's waiting, twice a score at most."""
        week = math.ceil(self.drift_per_s * ROOM_S)
        return max(MIN_ROOM, min(week, MAX_ROOM * self.total_weight))

    @cached_property
    def hash(self) -> str:
        """Twelve hex digits that name what this policy says, however the YAML is written."""
        return hashlib.sha256(json.dumps(self.stored(), sort_keys=True).encode()).hexdigest()[:12]

    def stored(self) -> dict[str, Any]:
        """Return the policy as plain values, durations in s; `load_policy` reads it back."""
        return self.model_dump()


def load_policy(stored: Mapping[str, Any]) -> Policy:
    """Return the policy that `Policy.stored` wrote down.

    Raises:
        PolicyError: it doesn't fit this release of the program.
    """
    try:
        return Policy.model_validate(stored, context=STORED)
    except ValidationError as error:
        raise PolicyError(
            [Problem("stored policy", str(detail["msg"])) for detail in error.errors()]
        ) from None


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
    lines = _Lines(node, where)
    data = dict(data or {})
    problems = list(lines.duplicates())
    if "factors" in data:
        data["factors"], found = _read_factors(data["factors"], lines)
        problems += found
    policy: Policy | None
    policy, found = _validate(Policy, data, lines, ())
    if problems or found or policy is None:
        raise PolicyError(sorted(problems + found, key=lines.order))
    return policy


class _Lines:
    """Where in the YAML text each setting stands."""

    def __init__(self, node: yaml.Node | None, where: str) -> None:
        self._where = where
        self._lines: dict[Path, int] = {}
        self._twice: list[Path] = []
        self._seen: set[int] = set()
        self._walk(node, ())

    def at(self, path: Path) -> str:
        """Return `file:line` of a setting, or of the nearest one above it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self._lines:
                return f"{self._where}:{self._lines[path[:end]]}"
        return self._where

    def order(self, problem: Problem) -> int:
        """Return the line of a problem, 0 where it has none."""
        line = problem.where.removeprefix(self._where).removeprefix(":")
        return int(line) if line else 0

    def duplicates(self) -> Iterator[Problem]:
        """Yield a problem for each key that stands twice in one mapping."""
        for path in self._twice:
            yield Problem(self.at(path), f"{_dotted(path)}: stands twice", "", "remove one of them")

    def _walk(self, node: yaml.Node | None, path: Path) -> None:
        if not isinstance(node, yaml.MappingNode) or id(node) in self._seen:
            return
        self._seen.add(id(node))  # an alias stands for what was walked before
        for key, value in node.value:
            below = (*path, str(key.value))
            if below in self._lines:
                self._twice.append(below)
            self._lines[below] = key.start_mark.line + 1
            self._walk(value, below)


def _read_factors(given: object, lines: _Lines) -> tuple[dict[str, FactorParams], list[Problem]]:
    factors: dict[str, FactorParams] = {}
    if not isinstance(given, dict) or not given:
        return {}, [
            _problem(("factors",), "must be a mapping of factors", shown(str(given)), _known(), lines)
        ]
    problems: list[Problem] = []
    for name, values in given.items():
        path = ("factors", str(name))
        factor = registry().get(str(name))
        if factor is None:
            problems.append(
                _problem(path, "unknown factor" + _meant(str(name), registry()), "", _known(), lines)
            )
        elif not isinstance(values, dict):
            allowed = "a mapping such as {weight: 100}"
            problems.append(
                _problem(path, "not the settings of a factor", shown(str(values)), allowed, lines)
            )
        else:
            params, found = _validate(factor.params, values, lines, path)
            problems += found
            factors |= {} if params is None else {factor.name: params}
    return factors, problems


def _validate(model: type[Any], data: object, lines: _Lines, path: Path) -> tuple[Any, list[Problem]]:
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        return None, [_explain(model, detail, lines, path) for detail in error.errors()]


def _explain(model: type[BaseModel], detail: ErrorDetails, lines: _Lines, path: Path) -> Problem:
    place = (*path, *detail["loc"])
    if detail["type"] == "extra_forbidden":
        section = _section(model, detail["loc"][:-1])
        known = ", ".join(section.model_fields)
        what = "unknown setting" + _meant(str(place[-1]), section.model_fields)
        return _problem(place, what, "", f"(known: {known})", lines)
    what = detail["msg"].removeprefix("Value error, ")
    got = shown(str(detail["input"])) if detail["loc"] else ""
    return _problem(place, what[:1].lower() + what[1:], got, "", lines)


def _section(model: type[BaseModel], loc: Path) -> type[BaseModel]:
    for key in loc:
        inner = model.model_fields[str(key)].annotation if str(key) in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return model


def _problem(path: Path, what: str, got: str, allowed: str, lines: _Lines) -> Problem:
    dotted = f"{_dotted(path)}: " if path else ""
    return Problem(lines.at(path), dotted + what, got, allowed)


def _yaml_problem(error: Exception, where: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    place = where if mark is None else f"{where}:{mark.line + 1}"
    return Problem(place, f"not YAML: {getattr(error, 'problem', None) or error}")


def _meant(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f", did you mean '{near[0]}'?" if near else ""


def _known() -> str:
    return f"(known: {', '.join(sorted(registry()))})"


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
