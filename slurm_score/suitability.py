"""Whether SiteFactor can work on this Slurm, and what would count twice. Pure."""

import math

from slurm_score.errors import NotPermittedError, UnsuitableSlurmError
from slurm_score.model import SlurmConfig
from slurm_score.pace import updates_per_s
from slurm_score.plan import GUARD_ROOM
from slurm_score.policy import Mode, Policy
from slurm_score.slurm.gateway import Identity

TWINS = {
    "wait": ("age", "PriorityWeightAge"),
    "qos": ("qos", "PriorityWeightQOS"),
    "size": ("job_size", "PriorityWeightJobSize"),
}
"""Our factors that Slurm's multifactor knows as well: its name there and the setting."""


def require_suitable(config: SlurmConfig, policy: Policy) -> None:
    """Let a cycle go on, or raise because what it would do is void or against the policy.

    Raises:
        UnsuitableSlurmError: SiteFactor has no effect here; or, in enforce, a plugin overwrites it,
            the cap is too low for the guard, or Slurm still weighs what the policy says we replace.
    """
    for sentence in obstacles(config, policy).values():
        raise UnsuitableSlurmError(sentence)


def obstacles(config: SlurmConfig, policy: Policy) -> dict[str, str]:
    """Return why a cycle may not go on, one sentence for each matter; empty if it may."""
    found: dict[str, str] = {}
    if config.priority_type != "priority/multifactor":
        found["priority type"] = (
            f"{config.priority_type}: SiteFactor has no effect; PriorityType=priority/multifactor is needed"
        )
    if policy.mode is not Mode.ENFORCE:
        return found
    if config.site_factor_plugin:
        plugin = config.site_factor_plugin
        found["site factor plugin"] = (
            f"PrioritySiteFactorPlugin={plugin} would overwrite what we set; unset it"
        )
    needed = policy.total_weight + policy.room + config.priority_range + GUARD_ROOM
    if needed > policy.cap:
        found["cap"] = (
            f"cap {policy.cap} leaves the guard tier no room above our weights ({policy.total_weight}), "
            f"their offset ({policy.room}) and Slurm's own ({config.priority_range}); "
            f"set cap to {needed} or more"
        )
    doubled = counted_twice(config, policy)
    if policy.slurm_factors == "replace" and doubled:
        found["weights"] = (
            f"the policy says slurm_factors: replace, but Slurm still has {', '.join(doubled)}; "
            "set them to 0 or say complement"
        )
    return found


def require_right_to_write(identity: Identity, config: SlurmConfig) -> None:
    """Let an enforce cycle go on, or raise because slurmctld would refuse every update.

    Raises:
        NotPermittedError: with the remedy.
    """
    if not identity.may_set_site_factor(config.slurm_user):
        raise NotPermittedError(
            f"user {identity.user} may not set SiteFactor (AdminLevel={identity.admin_level}); "
            f"run as {config.slurm_user}, as root, or as a user with AdminLevel=Operator"
        )


def remarks(config: SlurmConfig, identity: Identity, policy: Policy) -> tuple[str, ...]:
    """Return what an admin should know of this Slurm, one sentence each; nothing of it stops a cycle."""
    return tuple(remarks_by_matter(config, identity, policy).values())


def remarks_by_matter(config: SlurmConfig, identity: Identity, policy: Policy) -> dict[str, str]:
    """Return the remarks, each under what it is about."""
    doubled = counted_twice(config, policy)
    rate = updates_per_s(config, identity)
    twice = f"counted twice, by Slurm and by us (slurm_factors: {policy.slurm_factors})"
    found = {
        "weights": (f"{twice}: {', '.join(doubled)}", bool(doubled)),
        "site factor plugin": (
            f"PrioritySiteFactorPlugin={config.site_factor_plugin} would overwrite what enforce sets",
            bool(config.site_factor_plugin),
        ),
        "priority flags": (
            "PriorityFlags=INCR_ONLY: a job in several partitions keeps its highest SiteFactor",
            "INCR_ONLY" in config.priority_flags,
        ),
        "backfill": (
            "SchedulerParameters lacks bf_continue: updates can end a backfill cycle before its time",
            not config.backfill_continues,
        ),
        "rate limit": (
            f"SlurmctldParameters has rl_enable: user {identity.user} gets {rate:g} requests a second; "
            f"{config.slurm_user} and root are exempt",
            rate < math.inf,
        ),
        "backups": (
            f"backup controllers ({', '.join(config.controllers[1:])}): "
            "of several reprioritizers only the one beside the acting controller acts",
            len(config.controllers) > 1,
        ),
    }
    return {matter: sentence for matter, (sentence, applies) in found.items() if applies}


def counted_twice(config: SlurmConfig, policy: Policy) -> tuple[str, ...]:
    """Return Slurm's settings, as `Name=weight`, that weigh what a factor of ours weighs too."""
    ours = policy.weight_sets.values()
    return tuple(
        f"{setting}={weight}"
        for factor, (name, setting) in TWINS.items()
        if (weight := config.priority_weights.get(name, 0)) and any(weights[factor] for weights in ours)
    )
