"""The writer of the audit: one call a cycle, one transaction, and never a reason to stop the loop."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_score.audit.contention import note_contention
from slurm_score.audit.decisions import Decision, Outcome, array_id, decisions, last_whys, text
from slurm_score.audit.store import pragma, transaction, writing
from slurm_score.errors import AuditError
from slurm_score.model import Queue
from slurm_score.policy import Mode, Policy
from slurm_score.units import DAY_S, MINUTE_S

KEEP_S = 30.0 * DAY_S
RETRY_S = 10.0 * MINUTE_S
PRUNED_ROWS = 2000
VACUUMED_PAGES = 1000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRecord:
    """One cycle: when it began, by which policy, what it came to, how many RPCs and seconds it took.

    `policy` is None where it was never good. `error` is the sentence of a cycle that was given up;
    it has an outcome if a plan had been made by then.
    """

    start_s: float
    policy: Policy | None = None
    outcome: Outcome | None = None
    rpcs: int = 0
    read_s: float = 0.0
    score_s: float = 0.0
    plan_s: float = 0.0
    write_s: float = 0.0
    error: str = ""


class AuditTrail:
    """Writes cycles into the file at `path`, and keeps those of the last `keep_s` seconds."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time, keep_s: float = KEEP_S) -> None:
        self._path = path
        self._clock = clock
        self._keep_s = keep_s
        self._before: dict[int, str] | None = None
        self._stopped_s: float | None = None
        self._said = ""
        self._missed = 0

    def record(self, cycle: CycleRecord) -> None:
        """Write a cycle and what it decided.

        Where that fails the log says so once; it is tried again after ten minutes, and what happens
        until then isn't recorded.
        """
        now = self._clock()
        if self._stopped_s is not None and 0 <= now - self._stopped_s < RETRY_S:
            self._missed += 1
            return
        try:
            self._write(cycle, now)
        except AuditError as error:
            self._stop(str(error), now)
        else:
            self._go_on()

    def _write(self, cycle: CycleRecord, now: float) -> None:
        with writing(self._path) as connection:
            before = self._whys_before(connection, cycle.outcome)
            news = _news(cycle, before)
            with transaction(connection):
                cycle_id = _insert_cycle(connection, cycle)
                _insert_policy(connection, cycle)
                _insert_decisions(connection, cycle_id, news)
                if cycle.outcome is not None:
                    note_contention(connection, cycle.outcome.queue)
                _prune(connection, now - self._keep_s, PRUNED_ROWS + 2 * len(news))
            _shrink(connection)
        if cycle.outcome is not None:
            self._before = last_whys(cycle.outcome.queue, before, news)

    def _whys_before(self, connection: sqlite3.Connection, outcome: Outcome | None) -> dict[int, str]:
        """What this process wrote last; after a start, or into a new file, what the file says."""
        new_file = not connection.execute("SELECT 1 FROM cycle LIMIT 1").fetchall()
        if self._before is not None and not new_file:
            return self._before
        return dict(_stored_whys(connection, outcome.queue)) if outcome is not None else {}

    def _stop(self, sentence: str, now: float) -> None:
        self._stopped_s = now
        self._missed += 1
        if sentence != self._said:
            log.error("the audit stops and is tried again every 10 minutes: %s", sentence)
        self._said = sentence

    def _go_on(self) -> None:
        if self._stopped_s is not None:
            log.warning("%s: the audit goes on; %d cycles were not recorded", self._path, self._missed)
        self._stopped_s, self._said, self._missed = None, "", 0


def _news(cycle: CycleRecord, before: dict[int, str]) -> list[Decision]:
    if cycle.outcome is None or cycle.policy is None:
        return []
    return decisions(cycle.outcome, cycle.policy, before, given_up=bool(cycle.error))


def _stored_whys(connection: sqlite3.Connection, queue: Queue) -> Iterator[tuple[int, str]]:
    query = "SELECT why FROM decision WHERE array_id = ? AND job_id = ? ORDER BY cycle DESC LIMIT 1"
    for job in queue.jobs:
        found = connection.execute(query, (array_id(job), job.job_id)).fetchone()
        if found:
            yield job.job_id, found[0]


def _insert_cycle(connection: sqlite3.Connection, cycle: CycleRecord) -> int:
    policy, outcome = cycle.policy, cycle.outcome
    row = {
        "start_s": cycle.start_s,
        "policy": policy.hash if policy else None,
        "mode": str(policy.mode) if policy else "",
        "weights": json.dumps(_weights(outcome)),
        "pending": len(outcome.queue) if outcome else 0,
        "planned": len(outcome.plan.updates) if outcome else 0,
        "sent": len(outcome.sent) if outcome else 0,
        "failed": len(outcome.failures) if outcome else 0,
        "left_over": _left_over(cycle),
        "rpcs": cycle.rpcs,
        "read_s": cycle.read_s,
        "score_s": cycle.score_s,
        "plan_s": cycle.plan_s,
        "write_s": cycle.write_s,
        "halted": text(outcome.halted) if outcome else "",
        "error": text(cycle.error),
    }
    names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    done = connection.execute(f"INSERT INTO cycle ({names}) VALUES ({values})", row)  # noqa: S608 - ours
    return int(done.lastrowid or 0)


def _left_over(cycle: CycleRecord) -> int:
    """How many updates are due and wait for a later cycle; outside enforce they wait for nothing."""
    policy, outcome = cycle.policy, cycle.outcome
    if policy is None or outcome is None:
        return 0
    halted = len(outcome.plan.updates) - len(outcome.sent) if policy.mode is Mode.ENFORCE else 0
    return outcome.plan.left_over + halted


def _weights(outcome: Outcome | None) -> dict[str, int]:
    return dict(zip(outcome.scores.names, outcome.scores.weights, strict=True)) if outcome else {}


def _insert_policy(connection: sqlite3.Connection, cycle: CycleRecord) -> None:
    if cycle.policy is not None:
        row = (cycle.policy.hash, json.dumps(cycle.policy.stored()))
        connection.execute("INSERT OR IGNORE INTO policy VALUES (?, ?)", row)


def _insert_decisions(connection: sqlite3.Connection, cycle_id: int, news: list[Decision]) -> None:
    connection.executemany(
        "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                cycle_id,
                decision.job_id,
                decision.array_id,
                decision.label,
                decision.user,
                decision.partition,
                decision.old,
                decision.new,
                decision.score,
                decision.guarded,
                json.dumps(decision.parts, separators=(",", ":")),
                decision.why,
            )
            for decision in news
        ),
    )


def _prune(connection: sqlite3.Connection, before_s: float, rows: int) -> None:
    """Delete what began before `before_s`, oldest first, at most `rows` decisions and as many cycles."""
    first_kept = connection.execute(
        "SELECT coalesce((SELECT id FROM cycle WHERE start_s >= ? ORDER BY id LIMIT 1), max(id)) FROM cycle",
        (before_s,),
    ).fetchone()[0]
    connection.execute(
        "DELETE FROM decision WHERE (cycle, job_id) IN"
        " (SELECT cycle, job_id FROM decision WHERE cycle < ? ORDER BY cycle LIMIT ?)",
        (first_kept, rows),
    )
    gone = connection.execute(
        "DELETE FROM cycle WHERE id IN (SELECT id FROM cycle WHERE id <"
        " min(?1, coalesce((SELECT cycle FROM decision ORDER BY cycle LIMIT 1), ?1)) ORDER BY id LIMIT ?2)",
        (first_kept, rows),
    )
    if gone.rowcount:
        connection.execute(
            "DELETE FROM policy WHERE NOT EXISTS (SELECT 1 FROM cycle WHERE cycle.policy = policy.hash)"
        )


def _shrink(connection: sqlite3.Connection) -> None:
    """Give room back to the disk where a quarter of the file is free; less is soon used again."""
    if pragma(connection, "freelist_count") > pragma(connection, "page_count") / 4:
        # one step a page: execute() would take the first only
        connection.executescript(f"PRAGMA incremental_vacuum({VACUUMED_PAGES})")
