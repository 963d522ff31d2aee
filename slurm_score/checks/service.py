"""The policy and the snapshot on disk, the service and its sockets. Pure."""

from collections.abc import Iterator

from slurm_score.checks.facts import WRITE, Check, Facts, Health, Level
from slurm_score.policy import Policy
from slurm_score.units import format_duration

MAX_SKEW_S = 60


def check_files(facts: Facts) -> Iterator[Check]:
    """Yield whether the policy is valid, with every problem of it, and the snapshot fresh."""
    policy = facts.policy.policy
    if policy is None:
        for problem in facts.policy.problems:
            yield Check("policy", Level.ERROR, problem)
    else:
        found = f"{facts.policy.path} is valid: mode {policy.mode}, hash {policy.hash}"
        yield Check("policy", Level.OK, found)
    yield _snapshot(facts, policy or Policy())


def _snapshot(facts: Facts, policy: Policy) -> Check:
    snapshot = facts.snapshot
    if snapshot.time_s is None:
        return Check("snapshot", Level.ERROR, snapshot.error, "start `slurm-score reprioritize`")
    age_s = facts.now_s - snapshot.time_s
    found = f"{snapshot.path} is {format_duration(age_s)} old"
    if age_s < -MAX_SKEW_S:
        ahead = f"{snapshot.path} was taken {format_duration(-age_s)} from now"
        return Check("snapshot", Level.WARNING, ahead, "set this host's clock and slurmctld's")
    if age_s > policy.max_snapshot_age:
        allowed = format_duration(policy.max_snapshot_age)
        remedy = "see whether `slurm-score reprioritize` runs and what it logs"
        return Check("snapshot", Level.ERROR, f"{found}, more than max_snapshot_age {allowed}", remedy)
    return Check("snapshot", Level.OK, found)


def check_service(facts: Facts) -> Iterator[Check]:
    """Yield whether the service answers the reports, by which policy, and whether the hook can reach it."""
    health = facts.service.health
    if health is None:
        yield Check("service", Level.ERROR, facts.service.error, "start `slurm-score serve` as SlurmUser")
    else:
        yield _answers(facts, health)
        yield _service_policy(facts, health)
    yield _hook_socket(facts)


def _answers(facts: Facts, health: Health) -> Check:
    found = f"{facts.service.path} answers, mode {health.mode}"
    if health.version and health.version != facts.version:
        older = f"{found}, but runs version {health.version}, and {facts.version} is installed"
        return Check("service", Level.WARNING, older, "restart `slurm-score serve`")
    return Check("service", Level.OK, found)


def _service_policy(facts: Facts, health: Health) -> Check:
    policy = facts.policy.policy
    if health.policy_error:
        found = f"the service keeps policy {health.policy}: {health.policy_error}"
        return Check("service policy", Level.ERROR, found, "correct the policy file")
    if policy is None:
        return Check(
            "service policy", Level.WARNING, f"the service keeps policy {health.policy}, mode {health.mode}"
        )
    if (policy.hash, str(policy.mode)) != (health.policy, health.mode):
        found = (
            f"the service has policy {health.policy}, mode {health.mode}; "
            f"{facts.policy.path} is {policy.hash}, mode {policy.mode}"
        )
        return Check("service policy", Level.ERROR, found, "start the service with this file as --policy")
    return Check("service policy", Level.OK, f"the service has the policy on disk, {policy.hash}")


def _hook_socket(facts: Facts) -> Check:
    hook, account, name = facts.hook, facts.slurm.slurm_user, "hook socket"
    restart = "start `slurm-score serve` as SlurmUser"
    if hook.socket is None:
        return Check(name, Level.ERROR, f"{hook.socket_path}: {hook.socket_error}", restart)
    if hook.socket.kind != "socket":
        found = f"{hook.socket_path} is a {hook.socket.kind}, not a socket"
        return Check(name, Level.ERROR, found, f"remove it and {restart}")
    if account is None:
        return Check(name, Level.WARNING, f"{hook.socket_path} is a socket; SlurmUser is not known here")
    refusal = hook.socket.refusal(account, WRITE)
    if refusal:
        found = f"{account.name} can't connect to {hook.socket_path}, kept out by {refusal}"
        return Check(name, Level.ERROR, found, f"re{restart}")
    if hook.socket.rights.mode & 0o022:
        found = (
            f"others than {account.name} may write to {hook.socket_path} (mode {hook.socket.rights.mode:04o})"
        )
        return Check(name, Level.WARNING, found, f"re{restart}")
    return Check(name, Level.OK, f"{account.name} can connect to {hook.socket_path}")
