"""What is wanted and what Slurm holds in, the updates to send out. Pure.

Slurm's own answer (sprio's SITE) is the truth about what it holds; no memory of ours is needed. Only
differences between jobs matter to Slurm, so the planner is free to add one offset to all of them, and
takes the one that leaves most jobs as they are (README.md beside this file says why).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slurm_score.columns import Bools, Columns, Ints, columns_of
from slurm_score.model import NO_OFFSETS, Floats, Offsets, Queue
from slurm_score.policy import Policy
from slurm_score.score import Scores, guard_base, site_factors

GUARD_ROOM = 100_000
"""Points that the guard tier needs above everything else: a point a minute, so 69 days."""

FRESH_START = 0.5
"""An offset that spares less than this share of the updates isn't worth its place in the range."""

ROUNDING = 1e-6
"""What the sum of floating-point numbers may be wrong by: no reason for an update."""

LEFT_ALONE = (
    "",
    "held",
    "pinned",
    "follows its het leader",
    "may hide a held or pinned task",
    "too young",
    "not ranked by Slurm yet",
    "belongs to another cluster",
    "scrontab job",
)
"""Why a job gets no update, by code; 0 for none of these reasons."""

YOUNG, NOT_RANKED = 5, 6


@dataclass(frozen=True, slots=True)
class SiteFactorUpdate:
    """One `scontrol update JobId=<update_id> SiteFactor=<value>`; `job_id` is the record's number."""

    job_id: int
    update_id: str
    value: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The updates to send, how many jobs get none, by reason, and the offsets that they were made with.

    The jobs of `waiting` are due for an update as well, in the next cycle.
    """

    updates: tuple[SiteFactorUpdate, ...]
    skipped: Mapping[str, int]
    offsets: Offsets = NO_OFFSETS
    waiting: tuple[int, ...] = ()

    @property
    def left_over(self) -> int:
        """How many more updates are due."""
        return len(self.waiting)


def plan_updates(queue: Queue, scores: Scores, policy: Policy, scrontab: Collection[int] = ()) -> Plan:
    """Return the updates that bring Slurm's order to the wanted one, and few of them.

    Held and pinned jobs are left alone, a het job is updated through its leader, and a job that
    sprio doesn't list is left for the cycle in which it can compete. What changes the order near
    the top of a partition comes first.
    """
    columns = columns_of(queue)
    left = skip_codes(queue, policy, scrontab)
    free = left == 0
    exact = _near_the_top(columns, scores, policy)
    tolerance = np.where(exact | scores.guarded, 0.5, policy.updates.dead_band)
    base = guard_base(queue, policy)
    offsets = _best_offsets(columns, scores, free, tolerance, base, policy)
    wanted = site_factors(scores.points, scores.guarded, base, policy, offsets)
    exact_value = scores.points + np.where(scores.guarded, base + offsets.guard, offsets.score)
    off = np.abs(columns.site - np.clip(exact_value, 0, policy.cap)) > tolerance + ROUNDING
    due = np.flatnonzero(free & off & (columns.site != wanted))
    due = due[np.lexsort((columns.job_id[due], -wanted[due], _places(columns, wanted)[due]))]
    skipped = Counter(LEFT_ALONE[code] for code in left[~free].tolist())
    unchanged = int(free.sum()) - len(due)
    if unchanged:
        skipped["unchanged"] = unchanged
    sent, waiting = due[: policy.updates.per_cycle], due[policy.updates.per_cycle :]
    updates = tuple(
        SiteFactorUpdate(queue.jobs[i].job_id, queue.jobs[i].update_id, value)
        for i, value in zip(sent.tolist(), wanted[sent].tolist(), strict=True)
    )
    return Plan(updates, dict(skipped), offsets, tuple(columns.job_id[waiting].tolist()))


def plan_reset(queue: Queue) -> Plan:
    """Return the updates that put the SiteFactors of pending jobs back to 0, where they aren't.

    Held and pinned jobs are left alone here too. A job whose SiteFactor Slurm doesn't tell, since it
    can't start yet, is set to 0 to be sure.
    """
    pending = replace(queue, jobs=tuple(job for job in queue.jobs if job.pending))
    left = skip_codes(pending)
    codes = np.where((left == 0) | (left == NOT_RANKED), 0, left)
    zero = (codes == 0) & (columns_of(pending).site == 0)
    skipped = Counter(LEFT_ALONE[code] for code in codes[codes != 0].tolist())
    if zero.any():
        skipped["unchanged"] = int(zero.sum())
    updates = tuple(
        SiteFactorUpdate(pending.jobs[i].job_id, pending.jobs[i].update_id, 0)
        for i in np.flatnonzero((codes == 0) & ~zero).tolist()
    )
    return Plan(updates, dict(skipped))


def skip_codes(queue: Queue, policy: Policy | None = None, scrontab: Collection[int] = ()) -> Ints:
    """Return why each job's SiteFactor is not to be touched now, int64[n_jobs], by LEFT_ALONE.

    With a policy, jobs younger than its `min_age` are among them, where Slurm is older than 24.11:
    there an update of a job that waits for its accounting record keeps the next ones waiting. In a
    federation only the cluster that a job comes from updates it. `scrontab` are the job ids that
    Slurm has told to be scrontab's, which it lets nobody update.
    """
    columns = columns_of(queue)
    min_age = policy.updates.min_age if policy and not queue.cluster.config.updates_young_jobs else 0.0
    young = columns.submit_s > queue.now_s - min_age if min_age else np.zeros(len(queue), np.bool_)
    ours = queue.cluster.config.cluster.lower()
    foreign = columns.origin.mask(lambda origin: origin.lower() not in ("", ours))
    cron = np.isin(columns.job_id, list(scrontab))
    unranked = np.isnan(columns.site) & ~foreign & ~cron
    reasons = (columns.held, columns.pinned, columns.follows, columns.hides, young, unranked, foreign, cron)
    return np.select(reasons, range(1, len(LEFT_ALONE)), 0)


def skip_reason(queue: Queue, i: int) -> str:
    """Return why job i's SiteFactor is never to be touched now, empty if it may be."""
    codes: Ints | None = queue.memo.get("skip_codes")
    if codes is None:
        codes = queue.memo["skip_codes"] = skip_codes(queue)
    return LEFT_ALONE[int(codes[i])]


def _near_the_top(columns: Columns, scores: Scores, policy: Policy) -> Bools:
    """The first `exact_top` eligible jobs of each partition, and whoever could be taken for one of them."""
    near = np.zeros(len(columns.job_id), np.bool_)
    top, margin = policy.updates.exact_top, policy.updates.dead_band + 1.0
    ranked = columns.eligible & ~scores.guarded
    for members in _by_partition(columns):
        points = scores.points[members & ranked]
        if top and points.size:
            least = np.partition(points, -top)[-top] if points.size > top else -np.inf
            near |= members & (scores.points >= least - margin)
    return near


def _by_partition(columns: Columns) -> list[Bools]:
    names = sorted({name for names in columns.partitions.values for name in names})
    return [columns.partitions.mask(partial(_holds, name)) for name in names]


def _holds(name: str, names: tuple[str, ...]) -> bool:
    return name in names


def _best_offsets(
    columns: Columns, scores: Scores, free: Bools, tolerance: Floats, base: int, policy: Policy
) -> Offsets:
    """The offset of each tier, within its range."""
    plain, guard = free & ~scores.guarded, free & scores.guarded
    needed = columns.site - scores.points
    room = max(0.0, float(min(policy.room, policy.cap - policy.total_weight)))
    guard_room = max(0.0, min(GUARD_ROOM / 2, policy.cap - base - GUARD_ROOM / 2))
    return Offsets(
        best_offset(needed[plain], tolerance[plain], room),
        best_offset(needed[guard] - base, tolerance[guard], guard_room),
    )


def best_offset(needed: Floats, tolerance: Floats, room: float) -> float:
    """Return the offset in [0, room] that is within `tolerance` of most of the numbers needed.

    `room` itself where that would spare less than half of the updates: a fresh start. Offsets only
    shrink as waits grow, so a start at the upper end lasts longest.
    """
    starts, ends = np.maximum(0.0, needed - tolerance), np.minimum(room, needed + tolerance)
    possible = starts <= ends
    starts, ends = np.sort(starts[possible]), np.sort(ends[possible])
    if starts.size < FRESH_START * needed.size or not starts.size:
        return room
    open_at = np.arange(1, starts.size + 1) - np.searchsorted(ends, starts, side="left")
    best = int(np.argmax(open_at))
    if open_at[best] < FRESH_START * needed.size:
        return room
    closes = ends[np.searchsorted(ends, starts[best], side="left")]
    return float((starts[best] + closes) / 2)


def _places(columns: Columns, wanted: Ints) -> Ints:
    """The best place of each job in a partition, now or as wanted, from 0: how much its change matters."""
    held = np.where(np.isnan(columns.site), -np.inf, columns.site)
    best = np.full(len(wanted), len(wanted), np.int64)
    for members in _by_partition(columns):
        rows = np.flatnonzero(members)
        for value in (wanted, held):
            order = rows[np.lexsort((columns.job_id[rows], columns.submit_s[rows], -value[rows]))]
            best[order] = np.minimum(best[order], np.arange(order.size))
    return best
