"""The weights of GPU fit: which of them do harm in the order, and why. Pure.

Source of the bounds: simulations over two GPU traces, see the README of the factors.
"""

from collections.abc import Iterator

from slurm_score.checks.facts import Check, Facts, Level
from slurm_score.factors.gres_fit import GresFitParams
from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.units import format_duration

MOST_OF_FREE, MOST_OF_BASE = 1 / 3, 1 / 4
USUAL_PASS_S = {"sched_interval": 60.0, "bf_interval": 30.0}
"""How often Slurm's scheduler and its backfill run by default. Source: slurm.conf(5)."""

NAME = "gpu fit"


def check_fit(facts: Facts) -> Iterator[Check]:
    """Yield what of gres_fit's weights would do harm; one result if nothing does."""
    policy = facts.policy.policy
    if policy is None:
        return
    found = [*_weights(policy), *_stale(facts, policy)]
    yield from found or [Check(NAME, Level.OK, "gres_fit weighs no more than does good")]


def _weights(policy: Policy) -> Iterator[Check]:
    fit: GresFitParams = policy.factors["gres_fit"]
    if not fit.weight:
        return
    base = sum(policy.weights.values()) - fit.weight
    if fit.share_of_free > MOST_OF_FREE:
        found = (
            f"{fit.share_of_free:.0%} of gres_fit hangs on what is free now (ready, match, packing, spread)"
        )
        why = "in simulations jobs of 16 GPUs and more then waited 44 % longer and others no less"
        yield Check(NAME, Level.WARNING, f"{found}: {why}", "leave scarcity at least two thirds of it")
    if fit.weight > MOST_OF_BASE * base:
        found = f"gres_fit weighs {fit.weight} beside {base} for all other factors"
        why = "above a quarter it pays to ask for a scarcer type than one needs"
        yield Check(NAME, Level.WARNING, f"{found}: {why}", f"give it {int(MOST_OF_BASE * base)} at most")


def _stale(facts: Facts, policy: Policy) -> Iterator[Check]:
    fit: GresFitParams = policy.factors["gres_fit"]
    if not (fit.weight and fit.share_of_free) or facts.snapshot.time_s is None:
        return
    age_s, pass_s = facts.now_s - facts.snapshot.time_s, _pass_s(facts.slurm.config or SlurmConfig())
    if age_s > pass_s:
        found = f"gres_fit uses what is free, by a snapshot {format_duration(age_s)} old"
        why = (
            f"Slurm looks for jobs to start every {format_duration(pass_s)}, and what it left free is what "
            "nobody could use"
        )
        yield Check(NAME, Level.WARNING, f"{found}: {why}", "set ready, match, packing and spread to 0")


def _pass_s(config: SlurmConfig) -> float:
    """How often Slurm looks for jobs to start, in s: the scheduler or backfill, whichever is more often."""
    given = dict(parameter.partition("=")[::2] for parameter in config.scheduler_parameters)
    every = [
        float(given[name]) if given.get(name, "").isdecimal() and int(given[name]) else usual
        for name, usual in USUAL_PASS_S.items()
    ]
    return min(every)
