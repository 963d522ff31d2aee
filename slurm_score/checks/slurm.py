"""Slurm: does it answer, can SiteFactor work, may we set it. Pure."""

from collections.abc import Iterator

from slurm_score.checks.facts import Check, Facts, Level, SlurmFacts
from slurm_score.errors import NotPermittedError
from slurm_score.model import SlurmConfig
from slurm_score.policy import Mode, Policy
from slurm_score.slurm.gateway import Identity
from slurm_score.suitability import obstacles, remarks_by_matter, require_right_to_write

MATTERS = {
    "priority type": ("PriorityType=priority/multifactor", ""),
    "weights": ("Slurm and the policy weigh different things", "set the weights to 0 and say replace"),
    "site factor plugin": ("no PrioritySiteFactorPlugin", "unset it before mode: enforce"),
    "cap": ("the guard tier has room below the policy's cap", ""),
    "priority flags": ("no PriorityFlags=INCR_ONLY", "take it out if jobs name several partitions"),
    "backfill": ("SchedulerParameters has bf_continue", "add bf_continue"),
    "rate limit": ("slurmctld does not slow our updates down", "run the reprioritizer as SlurmUser"),
    "backups": ("one controller", "run one on each controller's host, so that another can take over"),
}
"""What is said where suitability finds nothing, and what to do about its remarks."""


def check_slurm(facts: Facts) -> Iterator[Check]:
    """Yield what Slurm's side of it is; where slurmctld is down, what slurm.conf alone tells."""
    slurm = facts.slurm
    policy = facts.policy.policy or Policy()
    yield _commands(slurm)
    yield _slurmctld(slurm)
    if slurm.config is None or not slurm.answers:
        return
    identity = slurm.identity or Identity("", "None")
    yield from _suitability(slurm.config, identity, policy)
    if slurm.identity is not None:
        yield _right(slurm.config, slurm.identity, policy)


def _commands(slurm: SlurmFacts) -> Check:
    if slurm.missing_commands:
        missing = ", ".join(slurm.missing_commands)
        return Check(
            "commands", Level.ERROR, f"not on PATH: {missing}", "install Slurm's client commands here"
        )
    return Check("commands", Level.OK, "Slurm's commands are on PATH")


def _slurmctld(slurm: SlurmFacts) -> Check:
    if "scontrol" in slurm.missing_commands:
        return Check("slurmctld", Level.ERROR, "it can't be asked without scontrol")
    if not slurm.answers or slurm.config is None:
        return Check(
            "slurmctld", Level.ERROR, slurm.error, "start slurmctld; the end of its log says why it ended"
        )
    if slurm.error:
        return Check("slurmctld", Level.ERROR, slurm.error)
    return Check("slurmctld", Level.OK, f"Slurm {slurm.config.release} answers")


def _suitability(config: SlurmConfig, identity: Identity, policy: Policy) -> Iterator[Check]:
    wrong, noteworthy = obstacles(config, policy), remarks_by_matter(config, identity, policy)
    for matter, (fine, remedy) in MATTERS.items():
        if matter in wrong:
            yield Check(matter, Level.ERROR, wrong[matter])
        elif matter in noteworthy:
            yield Check(matter, Level.WARNING, noteworthy[matter], remedy)
        else:
            yield Check(matter, Level.OK, fine)


def _right(config: SlurmConfig, identity: Identity, policy: Policy) -> Check:
    try:
        require_right_to_write(identity, config)
    except NotPermittedError as error:
        level = Level.ERROR if policy.mode is Mode.ENFORCE else Level.WARNING
        return Check("right", level, str(error))
    return Check("right", Level.OK, f"user {identity.user} may set SiteFactor")
