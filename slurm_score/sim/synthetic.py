"""An invented workload: the same for the same seed, for tests and for a first try without data of one's own.

Users submit by day more than by night, jobs of a few kinds of their own, mostly small and short, and
ask for far more time than they need.
"""

import math
from dataclasses import dataclass

import numpy as np

from slurm_score.columns import Ints
from slurm_score.errors import Problem, SimulationError
from slurm_score.model import Floats
from slurm_score.sim.workload import Workload
from slurm_score.units import HOUR_S, MINUTE_S

HOURLY = (3, 2, 2, 2, 2, 2, 3, 4, 7, 10, 12, 12, 11, 12, 13, 13, 12, 11, 8, 7, 6, 5, 5, 4)
"""How many jobs come in each hour of the day, relative to each other."""

LIMITS_S = tuple(
    int(minutes * MINUTE_S) for minutes in (5, 10, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 4320)
)
"""The time limits that users ask for."""

SHORTEST_S, LONGEST_S = 10.0, 18 * HOUR_S
KINDS_PER_USER = 4
SPREAD = 0.5
"""Standard deviation of the logarithm of the run times of one kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What to invent. `load` is the work submitted over what the machine can do; `gpu_types` may be empty.

    With GPU types, a third of the kinds ask for GPUs, half of these for any type.
    """

    jobs: int = 2000
    procs: int = 128
    users: int = 40
    load: float = 0.9
    gpu_types: tuple[str, ...] = ()


def synthetic(seed: int, recipe: Recipe = Recipe()) -> Workload:
    """Return an invented workload.

    Raises:
        SimulationError: the recipe asks for nothing or for what can't be.
    """
    _require(recipe)
    random = np.random.Generator(np.random.PCG64(seed))
    user, kind = _who(random, recipe)
    procs = _sizes(random, recipe)[kind]
    typical_s = np.exp(
        random.uniform(math.log(SHORTEST_S), math.log(LONGEST_S), recipe.users * KINDS_PER_USER)
    )
    run_s = np.clip(typical_s[kind] * np.exp(random.normal(0.0, SPREAD, recipe.jobs)), 1, LIMITS_S[-1])
    run = np.ceil(run_s).astype(np.int64)
    limit = _limits(random, typical_s)[kind]
    gpus, gpu_type = _gpus(random, recipe, kind)
    return Workload(
        name=f"synthetic-{seed}",
        job_id=np.arange(1, recipe.jobs + 1),
        submit_s=_arrivals(random, recipe, float((procs * run).sum())),
        run_s=np.minimum(run, limit),  # Slurm ends a job at its limit
        procs=procs,
        request_s=limit,
        user=user,
        users=tuple(f"user{i:02}" for i in range(recipe.users)),
        gpus=gpus,
        gpu_type=gpu_type,
        gpu_types=recipe.gpu_types,
        procs_total=recipe.procs,
    )


def _who(random: np.random.Generator, recipe: Recipe) -> tuple[Ints, Ints]:
    """Whose each job is and of which of his kinds; few users submit most, and in bursts of one kind."""
    shares = 1.0 / np.arange(1, recipe.users + 1)
    user = random.choice(recipe.users, recipe.jobs, p=shares / shares.sum())
    kind = user * KINDS_PER_USER + random.integers(KINDS_PER_USER, size=recipe.jobs)
    again = random.random(recipe.jobs) < 0.5
    last = np.where(again, -1, np.arange(recipe.jobs))
    last[0] = 0
    source = np.maximum.accumulate(last)
    return user[source].astype(np.int64), kind[source].astype(np.int64)


def _sizes(random: np.random.Generator, recipe: Recipe) -> Ints:
    """The processors of each kind: log-uniform up to half the machine, mostly powers of two."""
    most = math.log2(max(1, recipe.procs // 2))
    exponent = random.uniform(0.0, most, recipe.users * KINDS_PER_USER)
    even = random.random(len(exponent)) < 0.75
    size = 2.0 ** np.where(even, np.round(exponent), exponent)
    return np.clip(np.floor(size), 1, recipe.procs).astype(np.int64)


def _limits(random: np.random.Generator, typical_s: Floats) -> Ints:
    """The limit of each kind: the run time times 1.2 to 20, rounded up to a usual one."""
    asked = typical_s * np.exp(random.uniform(math.log(1.2), math.log(20.0), len(typical_s)))
    place = np.minimum(np.searchsorted(LIMITS_S, asked), len(LIMITS_S) - 1)
    limits: Ints = np.array(LIMITS_S, np.int64)[place]
    return limits


def _arrivals(random: np.random.Generator, recipe: Recipe, work: float) -> Ints:
    """Times of submission in s, rising: a Poisson process whose rate follows the hour of the day."""
    length_s = work / (recipe.procs * recipe.load)
    hours = np.arange(math.ceil(length_s / HOUR_S) + 1)
    coming = np.r_[0.0, np.cumsum(np.array(HOURLY)[hours % 24])]
    total = float(np.interp(length_s, np.r_[hours, len(hours)] * HOUR_S, coming))
    spaced = np.cumsum(random.exponential(size=recipe.jobs + 1))
    at: Floats = np.interp(spaced[:-1] / spaced[-1] * total, coming, np.r_[hours, len(hours)] * HOUR_S)
    seconds: Ints = at.astype(np.int64)
    return seconds


def _gpus(random: np.random.Generator, recipe: Recipe, kind: Ints) -> tuple[Ints | None, Ints | None]:
    """GPUs and their type, a place in `gpu_types` or -1 for any, of each job."""
    if not recipe.gpu_types:
        return None, None
    count = recipe.users * KINDS_PER_USER
    gpus = np.where(random.random(count) < 1 / 3, 2 ** random.integers(0, 4, count), 0)
    any_type = random.random(count) < 0.5
    gpu_type = np.where(any_type | (gpus == 0), -1, random.integers(len(recipe.gpu_types), size=count))
    return gpus[kind].astype(np.int64), gpu_type[kind].astype(np.int64)


def _require(recipe: Recipe) -> None:
    problems = [
        Problem("synthetic", f"{name} must be above 0", str(value))
        for name, value in (("jobs", recipe.jobs), ("procs", recipe.procs), ("users", recipe.users))
        if value < 1
    ]
    if not 0 < recipe.load < math.inf:
        problems.append(Problem("synthetic", "load must be above 0", str(recipe.load)))
    if problems:
        raise SimulationError(problems)
