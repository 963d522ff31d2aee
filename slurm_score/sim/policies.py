"""The policies that can be simulated: by name, as Slurm's multifactor, and as a policy of ours. Pure.

Sources: SJF, SAF; WFP3 and UNICEP: Tang et al., Fault-aware, utility-based job scheduling on Blue
Gene/P, 2009; F1-F4: Carastan-Santos and de Camargo, Obtaining dynamic scheduling policies with
simulation and machine learning, SC'17; QSSF: Hu et al., Characterization and prediction of deep
learning workloads, SC'21.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from slurm_score.errors import Problem, SimulationError, shown
from slurm_score.factors import qos, size
from slurm_score.model import Floats
from slurm_score.policy import Policy
from slurm_score.settings import meant
from slurm_score.sim import state
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.workload import Workload

PREDICTORS = {
    "request": state.REQUEST,
    "clairvoyant": state.CLAIRVOYANT,
    "tsafrir": state.TSAFRIR,
    "recent": state.RECENT,
    "similar": state.TOLD,
    "told": state.TOLD,
}
"""Where a run time comes from: the time limit; the run itself; the user's last two ended runs; the median
of the last five of the same user, size and limit, else those two; the product's own predictor; one that is
passed in."""

FIXED = ("request", "clairvoyant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A machine of equal processors; `qos` maps a QOS to its priority."""

    procs: int
    qos: Mapping[str, int] = field(default_factory=dict)


class Ranked(NamedTuple):
    """What the kernels need of a policy: its code, columns float64[n_jobs], and other parameters."""

    rank: int
    fixed: Floats
    size_points: Floats
    qos_points: Floats
    guard: Floats
    parameters: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """An order of the queue: by `rule` with the run times of `predictor`. `name` is what reports say."""

    name: str
    rule: "str | Multifactor | Policy"
    predictor: str = "request"


Columns = Callable[[Workload, Floats], Floats]
"""The fixed part of a rank from a workload and the run times in s, float64[n_jobs]."""


def _log10(values: Any) -> Floats:
    """The common logarithm; of 0.1 where there is nothing to take it of, as RLScheduler does."""
    return np.array([math.log10(v if v > 0 else 0.1) for v in values.tolist()], np.float64)


def _submitted(w: Workload, weight: float) -> Floats:
    return weight * _log10(w.submit_s)


STATIC: Mapping[str, Columns] = {
    "fcfs": lambda w, p: w.submit_s + 0.0 * p,
    "sjf": lambda w, p: p,  # noqa: ARG005 - all have one shape
    "saf": lambda w, p: p * w.procs,
    "qssf": lambda w, p: p * _gpus(w),
    "f1": lambda w, p: _log10(p) * w.procs + _submitted(w, 870),
    "f2": lambda w, p: np.sqrt(p) * w.procs + _submitted(w, 25600),
    "f3": lambda w, p: p * w.procs + _submitted(w, 6860000),
    "f4": lambda w, p: p * np.sqrt(w.procs) + _submitted(w, 530000),
}
SHORT: Mapping[str, Callable[[Workload], Any]] = {
    "sjf": lambda w: np.ones(len(w)),
    "saf": lambda w: w.procs,
    "qssf": lambda w: _gpus(w),
}
"""What the run time is multiplied with, where it changes while a job waits."""

LOG_OF = {"unicep": 1.0, "unicep-rl": 1e-15}
"""What is added to the processors before their logarithm is taken: in print, and in RLScheduler's code."""

NAMES = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "f2", "f3", "f4", "qssf", "unicep-rl")


def named(name: str, predictor: str = "request") -> QueuePolicy:
    """Return a policy by its name in print.

    Raises:
        SimulationError: there is none, or it can't be had with that predictor.
    """
    if name not in NAMES:
        what = "unknown policy" + meant(name, NAMES)
        raise SimulationError([Problem("policy", what, shown(name), f"(known: {', '.join(NAMES)})")])
    if name.startswith("f") and name != "fcfs" and predictor not in FIXED:
        what = f"{name} takes the logarithm or root of a run time that is known at submission"
        raise SimulationError([Problem("policy", what, predictor, f"one of {', '.join(FIXED)}")])
    label = name if predictor == "request" else f"{name}@{predictor}"
    return QueuePolicy(label, name, predictor)


def ranked(policy: QueuePolicy, workload: Workload, pool: Pool) -> Ranked:
    """Return what the kernels need to rank the jobs of a workload.

    Raises:
        SimulationError: the policy has something that can't be simulated.
    """
    rule = policy.rule
    if isinstance(rule, Policy):
        return _of_ours(policy.name, rule, workload, pool)
    nothing = np.zeros(len(workload))
    if isinstance(rule, Multifactor):
        fixed, parameters = rule.fixed(workload, pool.procs, qos_values(workload, pool)), rule.parameters()
        return Ranked(state.MULTIFACTOR, fixed, nothing, nothing, nothing, parameters)
    kind, fixed = _of_name(rule, policy.predictor, workload)
    return Ranked(kind, fixed + nothing, nothing, nothing, nothing, {})


def ranked_by(policy: QueuePolicy) -> int:
    """Return where the run times of the order come from; a score of ours is told certainty equivalents."""
    scored = policy.predictor == "similar" and isinstance(policy.rule, Policy)
    return state.SCORED if scored else PREDICTORS[policy.predictor]


def _of_name(name: str, predictor: str, workload: Workload) -> tuple[int, Any]:
    if name == "wfp3":
        return state.WFP3, 0.0
    if name in LOG_OF:
        return state.UNICEP, np.array([math.log2(n + LOG_OF[name]) for n in workload.procs.tolist()])
    if name in SHORT and predictor not in FIXED:
        return state.SHORT, SHORT[name](workload)
    times = workload.run_s if predictor == "clairvoyant" else workload.request_s
    return state.STATIC, STATIC[name](workload, times.astype(np.float64))


def _of_ours(name: str, policy: Policy, workload: Workload, pool: Pool) -> Ranked:
    """What a flat pool knows: wait, remaining, size, QOS and the guard; without GPUs gres_fit is 0."""
    problems = [
        Problem(name, f"factor {factor} can't be simulated", f"weight {weight}", "its weight must be 0")
        for factor, weight in policy.weights.items()
        if weight and factor not in ("wait", "remaining", "size", "qos", "gres_fit")
    ]
    if policy.profiles:
        problems.append(Problem(name, "profiles can't be simulated", "", "simulate a policy for each"))
    if workload.gpus is not None and workload.gpus.any():
        count = int((workload.gpus > 0).sum())
        problems.append(Problem(name, "a flat pool has no GPUs", f"{count} jobs that ask for some"))
    if problems:
        raise SimulationError(problems)
    factors, names = policy.factors, _qos_names(workload)
    return Ranked(
        state.SCORE,
        np.zeros(len(workload)),
        factors["size"].weight * size.value(workload.procs.astype(np.float64), float(pool.procs)),
        factors["qos"].weight * qos_values(workload, pool),
        np.array([policy.guard.of(qos_name, ()) for qos_name in names])[_qos_codes(workload)],
        {
            "wait_weight": float(factors["wait"].weight),
            "max_wait_s": factors["wait"].max_wait,
            "remaining_weight": float(factors["remaining"].weight),
            "half_at_s": factors["remaining"].half_at,
        },
    )


def qos_values(workload: Workload, pool: Pool) -> Floats:
    """Return the product's QOS factor of every job, float64[n_jobs]; 0 where none is known."""
    highest = max(pool.qos.values(), default=0)
    values = [qos.value(pool.qos.get(name, 0), highest) for name in _qos_names(workload)]
    column: Floats = np.array(values, np.float64)[_qos_codes(workload)]
    return column


def _qos_names(workload: Workload) -> tuple[str, ...]:
    return workload.qos_names if workload.qos is not None else ("",)


def _qos_codes(workload: Workload) -> Any:
    return workload.qos if workload.qos is not None else np.zeros(len(workload), np.int64)


def _gpus(workload: Workload) -> Any:
    return workload.procs if workload.gpus is None else workload.gpus
