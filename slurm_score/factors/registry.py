"""What a factor is, and where the program finds them all."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from slurm_score.errors import FactorError, ParseError
from slurm_score.model import Floats, Queue
from slurm_score.units import parse_duration

ENTRY_POINTS = "slurm_score.factors"


STORED: Mapping[str, bool] = {"stored": True}
"""The validation context under which durations are plain seconds: policies that the program stored."""


def _duration(value: object, info: ValidationInfo) -> float:
    if info.context == STORED and isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        raise ValueError("a duration in quotes or with its unit is needed, such as 54h, 90m or '1-12:00'")
    try:
        return parse_duration(value)
    except ParseError as error:
        raise ValueError(f"{error.problem.what}; {error.problem.allowed}") from None


Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds in a policy, written with a unit. A bare number is refused: YAML reads 54:00 as 3240."""


Weight = Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)]
"""A factor's weight: how many points of score its value 1 is worth."""


class FactorParams(BaseModel):
    """The parameters of a factor in the policy; each factor adds its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    weight: Weight = 0


P = TypeVar("P", bound=FactorParams)


@dataclass(frozen=True, slots=True)
class Term:
    """A factor's values, float64[n_jobs] in [0, 1], and sub-terms of the same shape that explain shows."""

    values: Floats
    details: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor(Generic[P]):
    """One factor of the score.

    `compute` works on a whole queue at once; `describe` says in words how one job came by its value;
    `detail` tells every sub-term of one job, where `compute` leaves some out; `neutral` stands for
    the factor where what it reads isn't known. Columns stand in order of `position`.
    """

    name: str
    header: str
    position: int
    summary: str
    params: type[P]
    compute: Callable[[Queue, P], Term]
    describe: Callable[[Queue, P, int], str]
    detail: Callable[[Queue, P, int], Mapping[str, float]] | None = None
    neutral: float = 0.0


AnyFactor = Factor[Any]


@cache
def registry() -> dict[str, AnyFactor]:
    """Return all factors by name, in order of their columns: ours and those of installed packages.

    A factor is a module of this package, or an entry point of the group `slurm_score.factors`, that
    has a `FACTOR`.

    Raises:
        FactorError: two factors of one name, or an entry point that isn't a factor.
    """
    found = [
        _load_own(module.name)
        for module in pkgutil.iter_modules(importlib.import_module(__package__).__path__)
    ]
    found += [_load_foreign(entry) for entry in entry_points(group=ENTRY_POINTS)]
    factors: dict[str, AnyFactor] = {}
    for factor in sorted((f for f in found if f is not None), key=lambda f: (f.position, f.name)):
        if factor.name in factors:
            raise FactorError(f"factor {factor.name!r} is defined twice")
        factors[factor.name] = factor
    return factors


def _load_own(name: str) -> AnyFactor | None:
    factor = getattr(importlib.import_module(f"{__package__}.{name}"), "FACTOR", None)
    return factor if isinstance(factor, Factor) else None


def _load_foreign(entry: EntryPoint) -> AnyFactor:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise FactorError(f"entry point {entry.name!r} of {ENTRY_POINTS} can't be loaded: {error}") from error
    if not isinstance(loaded, Factor):
        raise FactorError(f"entry point {entry.name!r} of {ENTRY_POINTS} holds {loaded!r}, not a Factor")
    return loaded
