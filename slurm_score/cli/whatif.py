"""slurm-score whatif: the queue of the last snapshot under another policy."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from slurm_score.cli import snapshot_option
from slurm_score.policy import Policy
from slurm_score.profiles import NO_PROFILES, effective, load_of
from slurm_score.report.whatif import format_comparison, told_of
from slurm_score.snapshot import Snapshot, read_snapshot
from slurm_score.units import format_duration
from slurm_score.watch import read_policy
from slurm_score.whatif import compare
from slurm_score.zone import zone_of


@click.command("whatif")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False, readable=False))
@snapshot_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every job.")
def command(policy: Path, snapshot: Path, as_json: bool) -> None:
    """Show what POLICY would do to the queue as the last cycle saw it; nothing is written.

    RANK is a job's place among those that could start and share a partition with it, by the policy in
    force, THEN the one by POLICY; GAIN is how many places it moves to the front. It is followed by who
    gains and who loses, by user, QOS, GPU type and size, and by the updates that the change would cost.

    \b
    Examples:
      slurm-score whatif /etc/slurm/slurm-score.yaml
      slurm-score whatif /etc/slurm/slurm-score.yaml --json
    """
    new, seen = read_policy(policy), read_snapshot(snapshot)
    in_force = in_force_then(new, seen)
    comparison = compare(seen.queue(), seen.policy, in_force)
    notes = list(_notes(seen.policy, in_force))
    files = {
        "in force": f"mode {seen.policy.mode}, hash {seen.policy.hash}, weights {_weights(seen.policy)}",
        str(policy): f"mode {new.mode}, hash {new.hash}, weights {_weights(in_force)}",
    }
    if as_json:
        policies = {"old": seen.policy.hash, "new": new.hash, "time_s": seen.cluster.time_s, "notes": notes}
        click.echo(json.dumps(policies | told_of(comparison), indent=2))
    else:
        click.echo(format_comparison(comparison, files, notes), nl=False)


def in_force_then(policy: Policy, seen: Snapshot) -> Policy:
    """Return a policy with the weights that the time and the load of a snapshot call for.

    What is remembered of the load holds for a policy with the same profiles.
    """
    queue, zone = seen.queue(), zone_of(policy.timezone)
    state = seen.profiles if policy.profiles == seen.policy.profiles else NO_PROFILES
    return effective(policy, queue.now_s, load_of(queue), state, zone)[0]


def _weights(policy: Policy) -> str:
    return " ".join(f"{name}={weight}" for name, weight in policy.weights.items())


def _notes(old: Policy, new: Policy) -> Iterator[str]:
    was, wanted = (policy.factors["remaining"].quantile for policy in (old, new))
    if was != wanted:
        yield f"run times are still predicted for quantile {was:g}, {wanted:g} would be learned anew"
    was, wanted = (policy.factors["remaining"].half_at for policy in (old, new))
    if was != wanted:
        yield f"predictions still count as they do for half_at {format_duration(was)}"
    if new.factors["remaining"].predict and not old.factors["remaining"].predict:
        yield "run times aren't predicted now: all is told as if they never were"
    if old.mode != new.mode:
        yield f"mode {new.mode} instead of {old.mode}: updates are sent in enforce only"
