"""slurm-score policy: what a policy says, whether it is right, and what another one changes."""

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel

from slurm_score.cli import policy_option, snapshot_option
from slurm_score.conditions import BASE, Load
from slurm_score.errors import PolicyError, Problem, SnapshotError
from slurm_score.factors import Duration
from slurm_score.model import Cluster, Queue
from slurm_score.plan import GUARD_ROOM
from slurm_score.policy import Policy
from slurm_score.profiles import (
    NO_PROFILES,
    ProfileState,
    Zone,
    effective,
    load_of,
    next_change,
    profile_at,
    shares,
)
from slurm_score.report.policy import format_policy
from slurm_score.score import guard_tier, score_queue
from slurm_score.slurm.commands import CommandGateway
from slurm_score.snapshot import read_snapshot
from slurm_score.units import MINUTE_S, format_duration
from slurm_score.watch import read_policy
from slurm_score.whatif import influences
from slurm_score.zone import clock_text, instant, zone_of

existing = click.Path(path_type=Path, dir_okay=False, readable=False)


@click.group("policy")
def command() -> None:
    """Look at policies; nothing here changes anything.

    \b
    Examples:
      slurm-score policy show
      slurm-score policy validate /etc/slurm/slurm-score.yaml
    """


@command.command("show")
@policy_option
@snapshot_option
@click.option("--at", "at", metavar="TIME", help="Show that time, such as 2026-12-01T20:00, instead of now.")
@click.option("--slurm", is_flag=True, help="Ask Slurm, not the snapshot, for its own weights and the load.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, durations in s.")
def show(policy: Path, snapshot: Path, at: str | None, slurm: bool, as_json: bool) -> None:
    """Print the weights in force, the next change, the bound on starvation and the range of SiteFactor.

    MOVES is the share of the spread of today's scores that a factor makes, by the queue of the snapshot;
    below 0 it works against the others. A weight that moves nothing is named.

    \b
    Examples:
      slurm-score policy show
      slurm-score policy show --at 2026-12-01T20:00 --json
    """
    read = read_policy(policy)
    try:
        at_s = time.time() if at is None else instant(at, read.timezone)
    except ValueError as error:
        raise click.BadParameter(f"{error}, got {at!r}", param_hint="--at") from None
    try:
        seen, missing = read_snapshot(snapshot), ""
    except SnapshotError as error:
        seen, missing = None, str(error)
    queue = _queue_of_slurm() if slurm else (seen.queue() if seen else None)
    told = {"file": str(policy), **told_of(read, at_s, queue, seen.profiles if seen else NO_PROFILES)}
    told["influence"] = [] if slurm or queue is None else _influence(read, queue, told["weights"])
    told["remarks"] = [*([missing] if missing and not slurm else []), *told["remarks"]]
    click.echo(json.dumps(told, indent=2) if as_json else format_policy(told))


@command.command("validate")
@click.argument("files", nargs=-1, required=True, type=existing)
def validate(files: tuple[Path, ...]) -> None:
    """Read policies and print every problem of all FILES; exit code 2 if there is one.

    \b
    Examples:
      slurm-score policy validate /etc/slurm/slurm-score.yaml
    """
    problems: list[Problem] = []
    for path in files:
        try:
            policy = read_policy(path)
        except PolicyError as error:
            problems += error.problems
        else:
            click.echo(f"{path}: valid, mode {policy.mode}, hash {policy.hash}")
    if problems:
        raise PolicyError(problems)


@command.command("diff")
@click.argument("old", type=existing)
@click.argument("new", type=existing)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def diff(ctx: click.Context, old: Path, new: Path, as_json: bool) -> None:
    """Print the settings that policy NEW changes, one a line; exit code 1 if there are any.

    What a policy leaves out counts with its default.

    \b
    Examples:
      slurm-score policy diff /etc/slurm/slurm-score.yaml /etc/slurm/slurm-score.yaml
    """
    changes = changed_settings(read_policy(old), read_policy(new))
    if as_json:
        click.echo(json.dumps([{"setting": s, "old": o, "new": n} for s, o, n in changes], indent=2))
    else:
        for setting, before, after in changes:
            click.echo(f"{setting}: {_or_unset(before)} -> {_or_unset(after)}")
    ctx.exit(1 if changes else 0)


def told_of(policy: Policy, at_s: float, queue: Queue | None, state: ProfileState) -> dict[str, Any]:
    """Return what show tells of a policy at a time; a queue tells the load and what Slurm itself weighs."""
    zone, load = zone_of(policy.timezone), None if queue is None else load_of(queue)
    in_force, state = effective(policy, at_s, load, state, zone)
    own_range = None if queue is None else queue.cluster.config.priority_range
    return {
        "mode": str(policy.mode),
        "hash": policy.hash,
        "in_force_hash": in_force.in_force_hash,
        "at_s": at_s,
        "at": clock_text(at_s, policy.timezone),
        "profile": profile_at(policy, at_s, state, zone),
        "shares": dict(shares(policy, at_s, state, zone)) if policy.profiles else {BASE: 1.0},
        "weights": in_force.weights,
        "profiles": {name: dict(weights) for name, weights in policy.weight_sets.items()},
        "load": _load(load),
        "next_change": _next(policy, at_s, state, zone),
        "guards": _guards(policy, own_range or 0),
        "site_factor": _ranges(policy, own_range),
        "remarks": [] if queue is None else list(_unknown_names(policy, queue.cluster)),
    }


def _influence(policy: Policy, queue: Queue, weights: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return what each factor moves in a queue under these weights of a policy."""
    by_policy = replace(queue, gpu_types=policy.gpu_table)
    found = influences(by_policy, score_queue(by_policy, policy.with_weights(weights)))
    return [asdict(one) | {"idle": one.idle} for one in found]


def changed_settings(old: Policy, new: Policy) -> list[tuple[str, str | None, str | None]]:
    """Return (setting, old value, new value) of what differs, None where a setting isn't there."""
    before, after = dict(_settings(old, "")), dict(_settings(new, ""))
    names = [*before, *(name for name in after if name not in before)]
    return [
        (name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    ]


def _settings(section: BaseModel, above: str) -> Iterator[tuple[str, str]]:
    for name, field in type(section).model_fields.items():
        if not field.repr:
            continue
        is_duration = _DURATION in field.metadata or any(
            _DURATION in getattr(inner, "__metadata__", ()) for inner in get_args(field.annotation)
        )
        value = getattr(section, name)
        if name == "profiles" and len(value) > 1:
            yield "profiles (order)", ", ".join(value)
        yield from _values(value, f"{above}{name}", is_duration)


def _values(value: object, path: str, is_duration: bool) -> Iterator[tuple[str, str]]:
    if value == "":
        return  # not given
    if isinstance(value, BaseModel):
        yield from _settings(value, f"{path}.")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _values(inner, f"{path}.{key}", is_duration)
    elif is_duration and isinstance(value, float) and value.is_integer():
        yield path, format_duration(value)
    else:
        yield path, f"{value}s" if is_duration else json.dumps(value)


_DURATION = get_args(Duration)[1]


def _or_unset(value: str | None) -> str:
    return "(not set)" if value is None else value


def _queue_of_slurm() -> Queue:
    gateway = CommandGateway()
    cluster = gateway.read_cluster()
    return Queue(jobs=gateway.read_jobs(), cluster=cluster, now_s=cluster.time_s)


def _load(load: Load | None) -> dict[str, float | str] | None:
    if load is None:
        return None
    per_free = load.pending_per_free_gpu
    return {
        "pending_jobs": load.pending_jobs,
        "pending_per_free_gpu": "infinite" if math.isinf(per_free) else per_free,  # JSON has no infinity
    }


def _next(policy: Policy, at_s: float, state: ProfileState, zone: Zone) -> dict[str, Any] | None:
    change = next_change(policy, at_s, state, zone)
    if change is None:
        return None
    return {"at_s": change[0], "at": clock_text(change[0], policy.timezone), "profile": change[1]}


def _guards(policy: Policy, own_range: int) -> list[dict[str, Any]]:
    """Slurm's own factors can undo a lead of as many minutes as they have points; rounding undoes one."""
    guard, slip_s = policy.guard, (own_range + 1) * MINUTE_S
    rows = [(f"QOS {name}", after) for name, after in guard.qos.items()]
    rows += [(f"partition {name}", after) for name, after in guard.partitions.items()]
    return [
        {"for": name, "after_s": after, "closed_s": after + slip_s}
        for name, after in [*rows, ("all others", guard.after)]
    ]


def _ranges(policy: Policy, own_range: int | None) -> dict[str, Any]:
    base = guard_tier(policy, own_range or 0)
    room = policy.cap - base
    offset = min(GUARD_ROOM / 2, max(0.0, room - GUARD_ROOM / 2))
    return {
        "scores_to": policy.total_weight,
        "offset_to": policy.room,
        "slurm_range": own_range,
        "guard_from": base,
        "cap": policy.cap,
        "order_kept_s": max(0.0, room - offset) * MINUTE_S,
    }


def _unknown_names(policy: Policy, cluster: Cluster) -> Iterator[str]:
    for kind, names, known in (
        ("qos", policy.guard.qos, cluster.qos),
        ("partitions", policy.guard.partitions, cluster.partitions),
    ):
        for name in names:
            if name not in known:
                yield f"guard.{kind}.{name}: Slurm has none of this name (known: {', '.join(sorted(known))})"
