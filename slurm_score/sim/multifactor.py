"""Slurm's own multifactor priority, as far as the simulator has it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from slurm_score.errors import ParseError, Problem, SimulationError, shown
from slurm_score.model import Floats
from slurm_score.settings import meant
from slurm_score.sim.workload import Workload
from slurm_score.units import DAY_S, MINUTE_S, parse_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Multifactor:
    """Weights and times of priority/multifactor; on a flat pool a job's nodes are its processors.

    `age` + `size` + `qos` + `fairshare` + `partition` + `gpu` are the PriorityWeights, the last that of
    the TRES gres/gpu. `small_relative` is the flag SMALL_RELATIVE_TO_TIME, `favor_small` is
    PriorityFavorSmall, `damping` FairShareDampeningFactor. Source: Slurm 24.11, priority_multifactor.c;
    slurm.conf(5).
    """

    age: float = 1000.0
    size: float = 0.0
    qos: float = 0.0
    fairshare: float = 0.0
    partition: float = 0.0
    gpu: float = 0.0
    damping: float = 1.0
    max_age: float = 7.0 * DAY_S
    decay_half_life: float = 7.0 * DAY_S
    calc_period: float = 5.0 * MINUTE_S
    small_relative: bool = False
    favor_small: bool = False

    def fixed(
        self, workload: Workload, procs: int, qos_values: Floats, nodes_part: Floats | None = None
    ) -> Floats:
        """Return the points that don't change while a job waits, float64[n_jobs].

        `nodes_part` is each job's part of the nodes; with it, size is the mean of both parts.
        """
        part = workload.procs / procs
        if nodes_part is not None:
            part = (part + nodes_part) / 2
        if self.small_relative:
            part = part / np.maximum(1.0, np.ceil(workload.request_s / MINUTE_S))
        if self.favor_small:
            part = 1.0 - part
        return self.size * part + self.qos * qos_values

    def parameters(self) -> Mapping[str, float]:
        """Return what the kernels need besides."""
        return {
            "wait_weight": self.age,
            "max_wait_s": self.max_age,
            "share_weight": self.fairshare,
            "share_damping": self.damping,
            "half_life_s": self.decay_half_life,
            "calc_period_s": int(self.calc_period),
        }


def parse_multifactor(text: str) -> Multifactor:
    """Return the multifactor of a text such as `age=1000,size=30000,small_relative,max_age=14d`.

    Raises:
        SimulationError: with every part that can't be read.
    """
    known = {f.name: f.default for f in fields(Multifactor)}
    values: dict[str, float | bool] = {}
    problems: list[Problem] = []
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        try:
            if key not in known:
                raise ValueError(f"unknown setting{meant(key, known)} (known: {', '.join(known)})")
            values[key] = _read(key, value, flag=isinstance(known[key], bool), given=bool(equals))
        except ValueError as error:
            problems.append(Problem("multifactor", str(error), shown(part)))
    if problems:
        raise SimulationError(problems)
    return Multifactor(**values)  # type: ignore[arg-type]


_SLURM: Mapping[str, str] = {
    "PriorityWeightAge": "age",
    "PriorityWeightJobSize": "size",
    "PriorityWeightQOS": "qos",
    "PriorityWeightFairshare": "fairshare",
    "PriorityWeightPartition": "partition",
    "PriorityWeightTRES_gres_gpu": "gpu",
    "PriorityMaxAge": "max_age",
    "PriorityDecayHalfLife": "decay_half_life",
    "PriorityCalcPeriod": "calc_period",
    "FairShareDampeningFactor": "damping",
    "PriorityFavorSmall": "favor_small",
    "PriorityFlags": "small_relative",
}
"""slurm.conf's names."""


def parse_multifactor_settings(given: Mapping[str, object], where: str) -> Multifactor:
    """Return the multifactor of settings by slurm.conf's names; a weight that isn't there is 0.

    Raises:
        SimulationError: with every setting that can't be read.
    """
    values: dict[str, float | bool] = {"age": 0.0}
    problems: list[Problem] = []
    for name, value in given.items():
        field = _SLURM.get(name, "")
        try:
            if not field:
                raise ValueError(f"isn't simulated{meant(name, _SLURM)} (known: {', '.join(_SLURM)})")
            values[field] = _setting(field, value)
        except ValueError as error:
            problems.append(Problem(where, f"{name}: {error}", shown(str(value))))
    if problems:
        raise SimulationError(problems)
    return Multifactor(**values)  # type: ignore[arg-type]


def _setting(field: str, value: object) -> float | bool:
    if field == "favor_small":
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value
    if field == "small_relative":
        if value != "SMALL_RELATIVE_TO_TIME":
            raise ValueError("only SMALL_RELATIVE_TO_TIME is simulated")
        return True
    return _read(field, str(value), flag=False, given=True)


def _read(key: str, value: str, *, flag: bool, given: bool) -> float | bool:
    if flag:
        if given:
            raise ValueError(f"{key} is a flag and takes no value")
        return True
    if key in ("max_age", "decay_half_life", "calc_period"):
        try:
            seconds = parse_duration(value)
        except ParseError as error:
            raise ValueError(f"{key}: {error.problem.what}; {error.problem.allowed}") from None
        if not 1 <= seconds < float("inf"):
            raise ValueError(f"{key} must be at least 1 s and not unlimited")
        return seconds
    if not (value.isascii() and value.isdecimal()) or (key == "damping" and int(value) == 0):
        raise ValueError(f"{key} must be a whole number, {1 if key == 'damping' else 0} or more")
    return float(value)
