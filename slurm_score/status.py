"""How the product does, on one screen: what is fine, what isn't, and what waits. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slurm_score.audit.read import StoredCycle
from slurm_score.checks.facts import Check, Level
from slurm_score.columns import columns_of
from slurm_score.contention import accepted_types
from slurm_score.figures import NO_GPU, waits_of
from slurm_score.inventory import inventory_of
from slurm_score.model import Queue
from slurm_score.policy import Policy
from slurm_score.score import score_queue
from slurm_score.snapshot import Snapshot
from slurm_score.units import format_duration

EXIT_CODES = {Level.OK: 0, Level.WARNING: 1, Level.ERROR: 2}
"""As Nagios reads them."""
FAILED_IN_A_ROW = 3
"""So many cycles that failed one after the other are an error."""
MAX_ERRORS = 3
HOOK_GRACE_S = 5.0
"""A job that was submitted so long after the hook asked last is one that the hook didn't ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of the product at `now_s`; a text says why a part isn't known, empty where it is.

    `cycles` are the last ones of the audit, newest last; `health` is the service's own word of itself.
    """

    now_s: float
    policy: Policy | None = None
    policy_error: str = ""
    snapshot: Snapshot | None = None
    snapshot_error: str = ""
    health: Mapping[str, Any] | None = None
    service_error: str = ""
    cycles: tuple[StoredCycle, ...] = ()
    audit_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeQueue:
    """What waits for one GPU type, and what there is of it in the partition that has most.

    `jobs` counts those that could start and accept it, whatever else they accept.
    """

    gpu_type: str
    partition: str = ""
    jobs: int = 0
    asked: int = 0
    flexible: int = 0
    longest_wait_s: float = 0.0
    total: int = 0
    used: int = 0
    free: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The lines of the screen, and the queue by GPU type; `level` is the worst of the lines."""

    checks: tuple[Check, ...]
    queue: tuple[TypeQueue, ...] = field(default=())

    @property
    def level(self) -> Level:
        """The worst of all."""
        return max((check.level for check in self.checks), key=EXIT_CODES.__getitem__)


def status_of(seen: Seen) -> Status:
    """Return the status of what was seen."""
    parts = (_mode(seen), _cycle(seen), _service(seen), _hook(seen), _fragmentation(seen), _errors(seen))
    queue = tuple(_queue(seen.snapshot)) if seen.snapshot else ()
    return Status(tuple(check for part in parts for check in part), queue)


def _mode(seen: Seen) -> Iterator[Check]:
    if seen.policy is None:
        yield Check("mode", Level.ERROR, seen.policy_error, "correct the policy file")
        return
    found = f"{seen.policy.mode}, policy {seen.policy.hash}"
    killed = "" if seen.health is None else seen.health.get("kill_switch", "")
    if killed:
        yield Check("mode", Level.WARNING, f"{found}; nothing is written: {killed}", "remove the file")
    else:
        yield Check("mode", Level.OK, found)


def _cycle(seen: Seen) -> Iterator[Check]:
    """Yield how old the last cycle is that told of the cluster, and what the last one came to."""
    if seen.snapshot is None:
        yield Check("cycle", Level.ERROR, seen.snapshot_error, "start `slurm-score reprioritize`")
    else:
        age_s, most_s = seen.now_s - seen.snapshot.cluster.time_s, (seen.policy or Policy()).max_snapshot_age
        found = f"the last good one {format_duration(age_s)} ago, {len(seen.snapshot.queue())} jobs pending"
        if age_s > most_s:
            late = f"{found}, more than max_snapshot_age {format_duration(most_s)}"
            yield Check("cycle", Level.ERROR, late, "see what `slurm-score reprioritize` logs")
        else:
            yield Check("cycle", Level.OK, found)
    if seen.audit_error:
        yield Check("updates", Level.WARNING, seen.audit_error)
    if seen.cycles:
        yield _last(seen.cycles)


def _last(cycles: tuple[StoredCycle, ...]) -> Check:
    last = cycles[-1]
    found = f"{last.planned} planned, {last.sent} sent, {last.failed} failed, {last.left_over} left over"
    row = cycles[-FAILED_IN_A_ROW:]
    if last.error:
        all_failed = len(row) == FAILED_IN_A_ROW and all(cycle.error for cycle in row)
        level = Level.ERROR if all_failed else Level.WARNING
        many = f"the last {FAILED_IN_A_ROW} cycles failed" if all_failed else "the last cycle failed"
        return Check("updates", level, f"{many}: {last.error}")
    if last.halted:
        return Check("updates", Level.WARNING, f"{found}; stopped: {last.halted}")
    return Check("updates", Level.WARNING if last.failed else Level.OK, found)


def _service(seen: Seen) -> Iterator[Check]:
    health = seen.health
    if health is None:
        yield Check("service", Level.ERROR, seen.service_error, "start `slurm-score serve`")
        return
    for key in ("policy_error", "snapshot_error"):
        if health.get(key):
            yield Check("service", Level.WARNING, health[key])
    if not health.get("policy_error") and not health.get("snapshot_error"):
        yield Check("service", Level.OK, f"answers, version {health.get('version', 'unknown')}")


def _hook(seen: Seen) -> Iterator[Check]:
    """Yield when the hook asked last, and whether jobs came since for which it didn't.

    It rests after failures without a word, so that jobs that came without a question are the sign.
    """
    if seen.health is None:
        yield Check("hook", Level.WARNING, "not known: only the service sees it")
        return
    hook = seen.health.get("hook") or {}
    last_s = hook.get("last_s")
    if last_s is None:
        yield Check("hook", Level.OK, "has not asked since the service started")
        return
    found = f"asked {format_duration(seen.now_s - last_s)} ago, version {hook.get('version')}"
    found += _answered(seen.health.get("answers") or {})
    for name, words in (("failed", "of its questions had no answer"), ("resting", "passed while it rested")):
        found += f", {hook[name]} {words} by then" if hook.get(name) else ""
    missed = _missed(seen.snapshot, last_s)
    if missed:
        since = f"{found}; {missed} jobs came since that it didn't ask for"
        yield Check(
            "hook", Level.WARNING, since, "see slurmctld's log for slurm_score: its breaker may be open"
        )
    else:
        yield Check("hook", Level.OK, found)


def _answered(answers: Mapping[str, float]) -> str:
    if not answers.get("count"):
        return ""
    mean = f"{1000 * answers['mean_s']:.2g} ms on average"
    return f", {answers['count']:.0f} answers in {mean}, {answers['slow']:.0f} in more than 20 ms"


def _missed(snapshot: Snapshot | None, last_s: float) -> int:
    jobs = () if snapshot is None else snapshot.jobs
    return sum(job.submit_s > last_s + HOOK_GRACE_S and not job.restarts for job in jobs if job.pending)


def _fragmentation(seen: Seen) -> Iterator[Check]:
    """Yield how many free GPUs of each type stand on nodes that are in part use."""
    if seen.snapshot is None:
        return
    nodes = inventory_of(seen.snapshot.cluster)
    said = []
    for row in range(nodes.kinds[0].start, nodes.kinds[0].stop):
        free = np.where(nodes.usable, nodes.free[row], 0)
        if free.sum():
            said.append(
                f"{nodes.types[row]} {int(free[free < nodes.total[row]].sum())} of {int(free.sum())}, "
                f"at most {int(free.max())} on one"
            )
    found = f"free GPUs on nodes in part use: {'; '.join(said)}" if said else "no GPU is free"
    yield Check("fragmentation", Level.OK, found)


def _errors(seen: Seen) -> Iterator[Check]:
    """Yield what went wrong in the cycles that are known, the last first, each sentence once."""
    said: dict[str, float] = {}
    for cycle in reversed(seen.cycles):
        if cycle.error or cycle.halted:
            said.setdefault(cycle.error or cycle.halted, cycle.start_s)
    for sentence, start_s in list(said.items())[:MAX_ERRORS]:
        yield Check("last error", Level.OK, f"{format_duration(seen.now_s - start_s)} ago: {sentence}")


def _queue(snapshot: Snapshot) -> Iterator[TypeQueue]:
    queue = snapshot.queue()
    longest = waits_of(queue, score_queue(queue, snapshot.policy), snapshot.policy).longest_by_type_s
    counts = _jobs_by_type(queue)
    most = {row.gpu_type: row for row in sorted(snapshot.supply, key=lambda row: (row.total, row.partition))}
    for name in sorted({*counts, *most} - {NO_GPU}):
        row, jobs, wait_s = most.get(name), counts.get(name, 0), longest.get(name, 0.0)
        if row is None:
            yield TypeQueue(gpu_type=name, jobs=jobs, longest_wait_s=wait_s)
        else:
            yield TypeQueue(
                gpu_type=name,
                partition=row.partition,
                jobs=jobs,
                asked=row.asked,
                flexible=row.flexible,
                longest_wait_s=wait_s,
                total=row.total,
                used=row.used,
                free=row.free,
                broken=row.broken,
            )
    yield TypeQueue(gpu_type=NO_GPU, jobs=counts.get(NO_GPU, 0), longest_wait_s=longest.get(NO_GPU, 0.0))


def _jobs_by_type(queue: Queue) -> dict[str, int]:
    columns = columns_of(queue)
    counts = np.bincount(columns.asks.codes[columns.eligible], minlength=len(columns.asks.values))
    found: dict[str, int] = {}
    for ask, count in zip(columns.asks.values, counts.tolist(), strict=True):
        for name in accepted_types(ask, queue.cluster) if ask else (NO_GPU,):
            found[name] = found.get(name, 0) + count
    return found
