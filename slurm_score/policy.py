"""The policy: one YAML text in, a frozen Policy out, or every problem of it at once. Pure."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from slurm_score.conditions import BASE, Profile, TimeZoneName
from slurm_score.errors import PolicyError, Problem
from slurm_score.factors import STORED, Duration, registry
from slurm_score.factors.wait import WaitParams
from slurm_score.gpu_types import GpuFacts, GpuTypes
from slurm_score.settings import (
    InconsistentError,
    Path,
    Section,
    dotted,
)
from slurm_score.units import DAY_S, HOUR_S, MINUTE_S, format_duration

MAX_SITE_FACTOR = 2_147_483_645
"""The largest SiteFactor that scontrol takes. Source: slurm.h, NICE_OFFSET - 3."""

ROOM_S = 7.0 * DAY_S
MIN_ROOM, MAX_ROOM = 1000, 2

LONGEST_HANDOVER_S = 6.0 * HOUR_S


class Mode(StrEnum):
    """How far the program goes: only watch, also tell users, also set SiteFactor."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


class Guard(Section):
    """Against starvation: a job that has waited past its guard stands above every score.

    A job's guard is the least of those named for its QOS and for its partitions, `after` where none
    is. Several partitions count as named where all are, with the greatest of theirs: whoever adds a
    partition to a job wins no earlier guard in the others. Past their guard, jobs stand in the order
    in which they reached it (factors/README.md says what that proves).
    """

    after: Duration = 45.0 * HOUR_S
    qos: Mapping[str, Duration] = Field(default_factory=dict)
    partitions: Mapping[str, Duration] = Field(default_factory=dict)

    def of_qos(self, qos: str) -> float:
        """Return the guard in s that is named for a QOS, infinite where none is."""
        return self.qos.get(qos, math.inf)

    def of_partitions(self, names: tuple[str, ...]) -> float:
        """Return the guard in s that is named for the partitions of a job, infinite where none is."""
        return max((self.partitions.get(name, math.inf) for name in names), default=math.inf)

    def of(self, qos: str, partitions: tuple[str, ...]) -> float:
        """Return the guard of a job in s."""
        named = min(self.of_qos(qos), self.of_partitions(partitions))
        return self.after if math.isinf(named) else named

    def all(self) -> Iterator[tuple[Path, float]]:
        """Yield every guard in s, with its setting."""
        yield ("guard", "after"), self.after
        for name, after in self.qos.items():
            yield ("guard", "qos", name), after
        for name, after in self.partitions.items():
            yield ("guard", "partitions", name), after


def _zero_too(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    return 0.0 if value == "0s" else handler(value)


class Updates(Section):
    """How few updates are sent: see plan.py.

    The first `exact_top` jobs of each partition always stand in their exact order; below them a
    number may be off by up to `dead_band` points. A cycle sends `per_cycle` updates at most. Before
    Slurm 24.11 a job younger than `min_age` could keep the others waiting and is left for later; 0s
    leaves none.
    """

    dead_band: Annotated[float, Field(ge=0.5, le=1_000_000)] = 0.75
    exact_top: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] = 500
    per_cycle: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 2000
    min_age: Annotated[Duration, WrapValidator(_zero_too)] = 10.0


class Advice(Section):
    """What users are told at submission, in advise and enforce; each can be switched off."""

    hints: bool = True
    never: bool = True
    other_type: bool = True
    time_limit: bool = True
    wait: bool = True


class GpuType(Section):
    """What a kind of GPU can do: GiB of memory on each, and whether they have a fast link."""

    vram_gib: Annotated[float, Field(gt=0, le=4096)] | None = None
    nvlink: bool | None = None


def _within_hours(seconds: float) -> float:
    if seconds > LONGEST_HANDOVER_S:
        raise ValueError(f"must not be above {format_duration(LONGEST_HANDOVER_S)}")
    return seconds


class Policy(Section):
    """What the admin decides. The defaults are those of etc/slurm-score.yaml.

    `factors` holds the parameters of every factor that there is; a factor that the YAML leaves out
    has weight 0 there, unless the YAML has no `factors` at all. `profiles` are tried in their order;
    `effective` (profiles.py) makes the policy whose `factors` have the weights in force, which keeps
    the YAML's own as `base_weights`.
    """

    mode: Mode = Mode.OBSERVE
    slurm_factors: Literal["complement", "replace"] = "complement"
    cap: Annotated[int, Field(ge=1, le=MAX_SITE_FACTOR, strict=True)] = 1_000_000
    max_snapshot_age: Duration = 5.0 * MINUTE_S
    advice: Advice = Advice()
    admin_comment: bool = False
    gpu_types: Mapping[str, GpuType] = Field(default_factory=dict)
    guard: Guard = Guard()
    updates: Updates = Updates()
    factors: Mapping[str, Any] = Field(default_factory=dict, validate_default=True)
    profiles: Mapping[str, Profile] = Field(default_factory=dict)
    handover: Annotated[Duration, AfterValidator(_within_hours)] = 30.0 * MINUTE_S
    timezone: TimeZoneName = ""
    base_weights: Mapping[str, int] = Field(default_factory=dict, repr=False)

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
        found = [*self._late_guards(), *self._too_heavy()]
        if found:
            raise InconsistentError(found)
        return self

    def _late_guards(self) -> Iterator[tuple[tuple[Path, ...], str]]:
        wait: WaitParams = self.factors["wait"]
        if not any(weights["wait"] for weights in self.weight_sets.values()):
            return
        for path, after in self.guard.all():
            if wait.max_wait <= after < math.inf:
                yield (
                    (path, ("factors", "wait", "max_wait")),
                    f"{dotted(path)} {format_duration(after)} must be below factors.wait.max_wait "
                    f"{format_duration(wait.max_wait)}, else waits stop counting before the guard steps in",
                )

    def _too_heavy(self) -> Iterator[tuple[tuple[Path, ...], str]]:
        for name, weights in self.weight_sets.items():
            total = sum(weights.values())
            if total >= self.cap:
                paths: tuple[Path, ...] = (("cap",), ("factors",))
                told = "" if name == BASE else f"profiles.{name}: "
                yield (
                    paths if name == BASE else (("profiles", name, "weights"), *paths),
                    f"{told}the weights add up to {total}, which leaves no room below cap {self.cap}",
                )

    @cached_property
    def gpu_table(self) -> GpuTypes:
        """What is known of GPU types: the policy's own facts before those of common cards."""
        return GpuTypes({name: GpuFacts(row.vram_gib, row.nvlink) for name, row in self.gpu_types.items()})

    @property
    def weights(self) -> dict[str, int]:
        """The weight of every factor, as in force."""
        return {name: params.weight for name, params in self.factors.items()}

    @cached_property
    def weight_sets(self) -> Mapping[str, Mapping[str, int]]:
        """The weights that the YAML gives: its own, named base, and those of each profile."""
        own = {name: self.base_weights.get(name, weight) for name, weight in self.weights.items()}
        return {BASE: own} | {
            name: {factor: profile.weights.get(factor, weight) for factor, weight in own.items()}
            for name, profile in self.profiles.items()
        }

    @cached_property
    def total_weight(self) -> int:
        """The most that a score can be outside the guard tier, whatever profile is in force."""
        return max(sum(weights.values()) for weights in self.weight_sets.values())

    @property
    def drift_per_s(self) -> float:
        """How many points a second every waiting job gains, until its wait or the guard ends that."""
        wait: WaitParams = self.factors["wait"]
        return wait.weight / wait.max_wait

    @cached_property
    def room(self) -> int:
        """How far the offset may go: a week of everybody's waiting, twice a score at most, in any profile."""
        wait: WaitParams = self.factors["wait"]
        most = max(weights["wait"] for weights in self.weight_sets.values())
        week = math.ceil(most / wait.max_wait * ROOM_S)
        return max(MIN_ROOM, min(week, MAX_ROOM * self.total_weight))

    @cached_property
    def hash(self) -> str:
        """Twelve hex digits that name what the YAML says, however it is written."""
        return self._digest(self.weight_sets[BASE])

    @property
    def in_force_hash(self) -> str:
        """Twelve hex digits that name the policy with the weights in force; `hash` where they are its own."""
        return self._digest(self.weights)

    def with_weights(self, weights: Mapping[str, int]) -> "Policy":
        """Return the policy with other weights in force; it still knows its own."""
        own = self.weight_sets[BASE]
        values = {name: getattr(self, name) for name in type(self).model_fields}
        values["factors"] = {
            name: params.model_copy(update={"weight": weights[name]}) for name, params in self.factors.items()
        }
        values["base_weights"] = {} if weights == own else own
        return Policy.model_validate(values, context=STORED)

    def _digest(self, weights: Mapping[str, int]) -> str:
        said = self.stored()
        del said["base_weights"]
        for name, weight in weights.items():
            said["factors"][name]["weight"] = weight
        text = json.dumps([said, list(self.profiles)], sort_keys=True)  # the order of profiles counts
        return hashlib.sha256(text.encode()).hexdigest()[:12]

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
