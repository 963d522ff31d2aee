"""slurm_score/audit/contention.py: how contended types were, by the hour, and files of an earlier schema."""

import logging
import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_score.audit import CycleRecord, read_contention, read_cycles
from slurm_score.audit.store import CONTENTION_TABLES, MIGRATIONS, TABLES, VERSION
from slurm_score.errors import AuditError
from slurm_score.model import Job, Queue
from slurm_score.tuning import Extent, Hour, hour_of

from .audit_support import ENFORCE, cycle_of, history_of, outcome_of, trail_at
from .builders import DAY, HOUR, MINUTE, NOW, drained, make_cluster, make_gpu_job, make_job

NOW_H = hour_of(NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the audit stands."""
    return tmp_path / "audit.sqlite"


def cycle_at(at_s: float, jobs: Sequence[Job] = (), **changes: Any) -> CycleRecord:
    """Return the record of a cycle over jobs at a time of the cluster."""
    outcome = outcome_of(*jobs)
    queue = replace(outcome.queue, now_s=at_s, **changes)
    return CycleRecord(start_s=at_s, policy=ENFORCE, outcome=replace(outcome, queue=queue))


def test_cycles_of_an_hour_are_added_up(path: Path) -> None:
    """Pressure and cycles are sums, the queue's extent is the most; who isn't asked for has no row."""
    trail = trail_at(path)
    trail.record(
        cycle_at(NOW, [make_gpu_job(1, "gpu:a100:2"), make_gpu_job(2, "gpu:a100:1", time_limit_s=7200.0)])
    )
    trail.record(cycle_at(NOW + MINUTE, [make_gpu_job(1, "gpu:a100:2")]))
    trail.record(cycle_at(NOW + HOUR, [make_gpu_job(3, "gpu:v100:4", time_limit_s=math.inf)]))
    assert read_contention(path) == (
        Hour(hour=NOW_H, cycles=2, extent=Extent(2, 7200.0), pressure={"a100": (2 + 1) / 4 + 2 / 4}),
        Hour(hour=NOW_H + 1, cycles=1, extent=Extent(1, 0.0, True), pressure={"v100": 1.0}),
    )


def test_a_cycle_over_an_empty_queue_counts(path: Path) -> None:
    """Nobody waiting is a measurement too."""
    trail_at(path).record(cycle_at(NOW))
    assert read_contention(path) == (Hour(hour=NOW_H, cycles=1),)


def test_a_cycle_that_read_nothing_does_not_count(path: Path) -> None:
    """Slurm was down: nothing is known of the queue."""
    trail_at(path).record(CycleRecord(start_s=NOW, policy=ENFORCE, error="slurmctld does not answer"))
    assert read_contention(path) == ()


def test_infinite_pressure_is_counted_apart(path: Path) -> None:
    """v100 is drained in the first cycle, and back in the second."""
    trail, jobs = trail_at(path), [make_gpu_job(1, "gpu:v100:2")]
    trail.record(cycle_at(NOW, jobs, cluster=drained(make_cluster(), "g3"), pressure={"v100": math.inf}))
    trail.record(cycle_at(NOW + 1, jobs))
    (hour,) = read_contention(path)
    assert (hour.cycles, hour.pressure, hour.unusable) == (2, {"v100": 0.5}, {"v100": 1})
    assert hour.mean("v100") == 0.5


def test_hours_are_kept_for_14_days(path: Path) -> None:
    """Whatever the retention of the rest; a week takes some kB."""
    trail = trail_at(path, keep_s=30.0 * DAY)
    for day in range(20):
        trail.record(
            cycle_at(NOW + day * DAY, [make_gpu_job(1, "gpu:a100:1"), make_gpu_job(2, "gpu:v100:1")])
        )
    hours = read_contention(path)
    assert [hour.hour for hour in hours] == [NOW_H + day * 24 for day in range(6, 20)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM contention").fetchone() == (28,)


def test_any_name_of_a_type_can_be_stored(path: Path) -> None:
    """Slurm takes what a site writes into gres.conf."""
    outcome = outcome_of(make_job(1))
    queue = Queue(jobs=(), cluster=outcome.queue.cluster, now_s=NOW, pressure={"a';--\udcff": 1.0})
    record = CycleRecord(start_s=NOW, policy=ENFORCE, outcome=replace(outcome_of(), queue=queue))
    trail_at(path).record(record)
    assert read_contention(path)[0].pressure == {"a';--\\udcff": 1.0}


def make_schema_1(path: Path) -> None:
    """Make the audit what an earlier release left: one cycle, one decision, no hours."""
    trail_at(path).record(cycle_of(make_job(7)))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE hour")
        connection.execute("DROP TABLE contention")
        connection.execute("PRAGMA user_version = 1")


def test_an_audit_of_schema_1_is_brought_up_to_date(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By the first cycle that is written; what it held stays, and the log has nothing to say."""
    make_schema_1(path)
    trail_at(path).record(cycle_of(make_job(8), start_s=NOW + 60))
    assert [cycle.cycle for cycle in read_cycles(path, 10)] == [1, 2]
    assert len(history_of(path, 7)) == 1
    assert [hour.cycles for hour in read_contention(path)] == [1]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_an_audit_of_schema_1_can_be_read_before(path: Path) -> None:
    """Cycles and decisions are the same in both; hours are not there yet, and that is said."""
    make_schema_1(path)
    assert len(read_cycles(path, 10)) == len(history_of(path, 7)) == 1
    with pytest.raises(AuditError) as caught:
        read_contention(path)
    assert str(caught.value) == (
        f"{path}: of a release that didn't record contention; "
        "the first cycle of this one brings it up to date"
    )


def test_a_migration_that_fails_leaves_the_audit_as_it_was(path: Path) -> None:
    """All or nothing: with a table in the way the file keeps its schema, and the cycle is not written."""
    make_schema_1(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE contention (x)")
    trail_at(path).record(cycle_of(make_job(8)))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'hour'").fetchone() == (0,)
    assert len(read_cycles(path, 10)) == 1


def test_a_new_audit_has_what_a_migrated_one_has() -> None:
    """Every statement of every migration is among those that make a new file."""
    assert {statement for step in MIGRATIONS.values() for statement in step} <= set(TABLES)
    assert sorted(MIGRATIONS) == list(range(1, VERSION))
    assert MIGRATIONS[1] == CONTENTION_TABLES


def test_a_missing_audit_is_one_sentence(path: Path) -> None:
    """As for the other readers."""
    with pytest.raises(AuditError, match="no audit yet; is the reprioritizer running, with this file"):
        read_contention(path)
