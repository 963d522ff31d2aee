"""Whether SiteFactor can work on this Slurm, and what would count twice. Pure."""

from slurm_score.errors import NotPermittedError, UnsuitableSlurmError
from slurm_score.model import SlurmConfig
from slurm_score.policy import Mode, Policy
from slurm_score.slurm.gateway import Identity

GUARD_ROOM = 100_000
"""Points that the guard tier needs above everything else: a point a minute, so 69 days."""

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
    if config.priority_type != "priority/multifactor":
        raise UnsuitableSlurmError(
            f"{config.priority_type}: SiteFactor has no effect; PriorityType=priority/multifactor is needed"
        )
    if policy.mode is not Mode.ENFORCE:
        return
    if config.site_factor_plugin:
        plugin = config.site_factor_plugin
        raise UnsuitableSlurmError(f"PrioritySiteFactorPlugin={plugin} would overwrite what we set; unset it")
    needed = policy.total_weight + config.priority_range + GUARD_ROOM
    if needed > policy.cap:
        raise UnsuitableSlurmError(
            f"cap {policy.cap} leaves the guard tier no room above our weights ({policy.total_weight}) and "
            f"Slurm's own ({config.priority_range}); set cap to {needed} or more"
        )
    doubled = counted_twice(config, policy)
    if policy.slurm_factors == "replace" and doubled:
        raise UnsuitableSlurmError(
            f"the policy says slurm_factors: replace, but Slurm still has {', '.join(doubled)}; "
            "set them to 0 or say complement"
        )


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


def counted_twice(config: SlurmConfig, policy: Policy) -> tuple[str, ...]:
    """Return Slurm's settings, as `Name=weight`, that weigh what a factor of ours weighs too."""
    return tuple(
        f"{setting}={weight}"
        for factor, (name, setting) in TWINS.items()
        if (weight := config.priority_weights.get(name, 0)) and policy.factors[factor].weight
    )
