"""Which weights are in force: profiles by the clock and by load, and the hand-over between them. Pure.

The weights in force are the mean of those of the last `handover`: they move linearly from one
profile to the next, also where a change comes in the middle of another. For profiles by the clock
that needs no memory. Of those by load the state remembers when which of them began and ended to
hold, as far back as the hand-over; without it, what holds now is taken to have held for long.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slurm_score.columns import columns_of
from slurm_score.conditions import BASE, Load
from slurm_score.model import Queue
from slurm_score.policy import Policy
from slurm_score.units import DAY_S, MINUTE_S

Zone = Callable[[float], float]
"""How far a site's clock is before UTC, in s, at a time in s since the epoch."""

FAR_S = 8 * DAY_S
"""How far ahead the next change is looked for: a week, and a day for a change of the clocks."""

ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class ProfileState:
    """What is remembered of load: (since when in s since the epoch, profiles whose load holds).

    Oldest first; the first stands for all times before it too. Empty where nothing is remembered.
    """

    changes: tuple[tuple[float, tuple[str, ...]], ...] = ()

    def held(self, at_s: float) -> tuple[str, ...]:
        """Return the profiles whose load conditions held at a time."""
        return next((names for since_s, names in reversed(self.changes) if since_s <= at_s), self._first())

    def _first(self) -> tuple[str, ...]:
        return self.changes[0][1] if self.changes else ()


NO_PROFILES = ProfileState()


def effective(
    policy: Policy, now_s: float, load: Load | None, state: ProfileState, zone: Zone
) -> tuple[Policy, ProfileState]:
    """Return the policy with the weights in force, and what to remember for the next time.

    Without a load, those of the profiles by load hold that held before.
    """
    if not policy.profiles:
        return policy, NO_PROFILES
    state = remembered(policy, now_s, load, state)
    return policy.with_weights(_mixed(policy, shares(policy, now_s, state, zone))), state


def profile_at(policy: Policy, at_s: float, state: ProfileState, zone: Zone) -> str:
    """Return the name of the first profile that applies at a time, `base` where none does."""
    local_s, held = at_s + zone(at_s), state.held(at_s)
    for name, profile in policy.profiles.items():
        if profile.when.timely(local_s) and (not profile.when.limits or name in held):
            return name
    return BASE


def shares(policy: Policy, now_s: float, state: ProfileState, zone: Zone) -> Mapping[str, float]:
    """Return by name for what share of the last hand-over each profile applied; they add up to 1."""
    found: dict[str, float] = {}
    for start_s, end_s in pairwise(_instants(now_s - policy.handover, now_s, state)):
        name = profile_at(policy, start_s, state, zone)
        found[name] = found.get(name, 0.0) + (end_s - start_s) / policy.handover
    return found


def remembered(policy: Policy, now_s: float, load: Load | None, state: ProfileState) -> ProfileState:
    """Return what is to be remembered after a look at the load."""
    by_load = {name: profile.when for name, profile in policy.profiles.items() if profile.when.limits}
    if load is None or not by_load:
        return state if by_load else ProfileState()
    before = state.changes[-1][1] if state.changes else ()
    names = tuple(name for name, when in by_load.items() if when.loaded(load, held=name in before))
    known = [change for change in state.changes if change[0] <= now_s]  # a clock may be set back
    if not known or known[-1][1] != names:
        known.append((now_s, names))
    begins = [i for i, (since_s, _) in enumerate(known) if since_s <= now_s - policy.handover]
    return ProfileState(tuple(known[begins[-1] if begins else 0 :]))


def next_change(policy: Policy, now_s: float, state: ProfileState, zone: Zone) -> tuple[float, str] | None:
    """Return when which profile begins to apply next by the clock, None where none does within a week.

    What holds by load now is taken to go on.
    """
    if not any(profile.when.timed for profile in policy.profiles.values()):
        return None
    lasting = ProfileState(((0.0, state.held(now_s)),))
    now = profile_at(policy, now_s, lasting, zone)
    for at_s in _minutes(now_s, now_s + FAR_S):
        name = profile_at(policy, at_s, lasting, zone)
        if name != now:
            return at_s, name
    return None


def load_of(queue: Queue) -> Load:
    """Return how busy a cluster is with a queue of pending jobs."""
    columns = columns_of(queue)
    asked = float((columns.gpus * columns.tasks)[columns.eligible].sum())
    free = sum(node.free_gpus(None) for node in queue.cluster.nodes)
    per_free = asked / free if free else math.inf if asked else 0.0
    return Load(pending_jobs=float(np.sum(columns.tasks[columns.eligible])), pending_per_free_gpu=per_free)


def _mixed(policy: Policy, by_name: Mapping[str, float]) -> dict[str, int]:
    """The mean weights, rounded down: so their sum is never above that of the heaviest profile."""
    sets = policy.weight_sets
    return {
        name: math.floor(sum(share * sets[profile][name] for profile, share in by_name.items()) + ROUNDING)
        for name in sets[BASE]
    }


def _instants(start_s: float, end_s: float, state: ProfileState) -> list[float]:
    """Both ends and all times between them at which the profile may change."""
    between = {*_minutes(start_s, end_s), *(since_s for since_s, _ in state.changes)}
    return sorted({start_s, end_s} | {at_s for at_s in between if start_s < at_s < end_s})


def _minutes(start_s: float, end_s: float) -> Iterator[float]:
    """The full minutes between two times; on clocks around the world hours begin and end with one."""
    first = math.floor(start_s / MINUTE_S) + 1
    return (float(minute * MINUTE_S) for minute in range(first, math.ceil(end_s / MINUTE_S)))
