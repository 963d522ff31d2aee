"""slurm_score/audit: what a cycle leaves behind, for how long, and who may read it."""

import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_score.audit import (
    CycleRecord,
    StoredCycle,
    read_cycles,
    read_history,
)
from slurm_score.audit.read import History
from slurm_score.audit.store import reading, writing
from slurm_score.errors import AuditError
from slurm_score.jobid import parse_job_id
from slurm_score.slurm.gateway import UpdateFailure

from .audit_support import ENFORCE, Clock, cycle_of, history_of, outcome_of, trail_at, without_rights
from .builders import DAY, MINUTE, NOW, make_job, make_policy

ALL = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the audit stands."""
    return tmp_path / "audit.sqlite"


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can enter, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def count(path: Path, table: str) -> int:
    """Return how many rows a table has."""
    with reading(path) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_cycle_in_enforce_is_read_back_as_it_was(path: Path) -> None:
    """Counts, RPCs, seconds and the hash of the policy; every update with its numbers."""
    outcome = outcome_of(make_job(1), make_job(2, qos="high"), make_job(3, priority=0))
    failure = UpdateFailure(outcome.plan.updates[1], "Invalid job id specified")
    cycle = CycleRecord(
        start_s=NOW + 0.5,
        policy=ENFORCE,
        outcome=replace(outcome, failures=(failure,)),
        rpcs=7,
        read_s=0.25,
        score_s=0.5,
        plan_s=0.75,
        write_s=1.25,
    )
    trail_at(path).record(cycle)
    expected = StoredCycle(
        1, NOW + 0.5, ENFORCE.hash, "enforce", 3, 2, 2, 1, 0, 7, 0.25, 0.5, 0.75, 1.25, halted="", error=""
    )
    assert read_cycles(path, ALL) == (expected,)
    (sent,) = history_of(path, 2)
    update = outcome.plan.updates[0]
    assert (update.job_id, sent.why, sent.old, sent.new) == (2, "sent", 0, update.value)
    assert (sent.cycle, sent.start_s, sent.policy) == (1, NOW + 0.5, ENFORCE.hash)
    assert (sent.job, sent.user, sent.partition) == ("2", "alice", "main")
    assert sent.parts == pytest.approx(
        dict(zip(outcome.scores.names, outcome.scores.parts[1].tolist(), strict=True)), abs=0.01
    )
    assert sent.weights == {name: params.weight for name, params in ENFORCE.factors.items()}
    assert sent.score == pytest.approx(sum(sent.parts.values()), abs=0.05)
    assert [row.why for row in history_of(path, 1)] == ["Invalid job id specified"]
    assert [row.why for row in history_of(path, 3)] == ["held"]


def test_a_cycle_in_observe_is_told_once_for_each_job(path: Path) -> None:
    """Planned, not sent; the same plan a minute later adds a cycle and no decision."""
    policy = make_policy(mode="observe")
    trail = trail_at(path)
    for minute in range(3):
        trail.record(cycle_of(make_job(1), make_job(2), policy=policy, start_s=NOW + minute * MINUTE))
    assert [(c.mode, c.planned, c.sent) for c in read_cycles(path, ALL)] == [("observe", 2, 0)] * 3
    assert [(row.cycle, row.why) for row in history_of(path, 1)] == [(1, "mode is observe")]
    assert count(path, "decision") == 2


def test_left_over_counts_what_the_plan_had_no_room_for_and_what_was_halted(path: Path) -> None:
    """One update of three went out: one was halted, one is beyond the limit."""
    policy = make_policy(mode="enforce", updates={"per_cycle": 2})
    jobs = (make_job(1), make_job(2), make_job(3))
    outcome = outcome_of(*jobs, policy=policy, sent=1, halted="deadline")
    trail_at(path).record(CycleRecord(start_s=NOW, policy=policy, outcome=outcome))
    (cycle,) = read_cycles(path, ALL)
    assert (cycle.planned, cycle.sent, cycle.left_over, cycle.halted) == (2, 1, 2, "deadline")
    assert sorted(history_of(path, i)[0].why for i in (1, 2, 3)) == [
        "left over",
        "left over: deadline",
        "sent",
    ]


def test_a_cycle_that_was_given_up_is_kept_with_its_sentence(path: Path) -> None:
    """Also where there was no policy to go by."""
    trail = trail_at(path)
    trail.record(CycleRecord(start_s=NOW, error="policy.yaml: no such file"))
    trail.record(CycleRecord(start_s=NOW + 60, policy=ENFORCE, error="slurmctld does not answer\udcff"))
    found = [(c.policy, c.mode, c.pending, c.error) for c in read_cycles(path, ALL)]
    assert found == [
        (None, "", 0, "policy.yaml: no such file"),
        (ENFORCE.hash, "enforce", 0, "slurmctld does not answer\\udcff"),
    ]


def test_a_restart_adds_nothing(path: Path) -> None:
    """A new process reads in the file what was said of each job last."""
    sites = {u.job_id: u.value for u in outcome_of(make_job(1), make_job(2)).plan.updates}
    trail_at(path).record(cycle_of(make_job(1), make_job(2), make_job(3, priority=0)))
    after = [make_job(i, site_factor=sites[i]) for i in (1, 2)]
    trail_at(path).record(cycle_of(*after, make_job(3, priority=0), make_job(4, priority=0)))
    assert [len(history_of(path, i)) for i in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert history_of(path, 4)[0].cycle == 2


def test_an_audit_that_was_moved_away_is_made_anew(path: Path) -> None:
    """A running process goes on in the new file, and says there what holds of each job."""
    trail = trail_at(path)
    trail.record(cycle_of(make_job(1, priority=0)))
    path.rename(path.with_name("old.sqlite"))
    trail.record(cycle_of(make_job(1, priority=0)))
    assert [row.why for row in history_of(path, 1)] == ["held"]
    assert [row.why for row in history_of(path.with_name("old.sqlite"), 1)] == ["held"]


def test_a_policy_is_stored_once_as_a_whole(path: Path) -> None:
    """What the hash stands for can be looked up as long as a cycle names it."""
    trail = trail_at(path)
    for policy in (ENFORCE, ENFORCE, make_policy(mode="advise")):
        trail.record(cycle_of(make_job(1), policy=policy))
    assert count(path, "policy") == 2
    history = read_history(path, parse_job_id("1"))
    assert set(history.policies) == {ENFORCE.hash, make_policy(mode="advise").hash}
    assert history.policies[ENFORCE.hash]["mode"] == "enforce"


def test_what_is_older_than_the_retention_is_deleted(path: Path) -> None:
    """Cycles, decisions, and policies that no cycle names any more."""
    clock = Clock()
    trail = trail_at(path, clock, keep_s=30.0 * DAY)
    for day in range(40):
        clock.now_s = float(NOW + day * DAY)
        policy = make_policy(mode="advise") if day < 5 else ENFORCE
        trail.record(cycle_of(make_job(day + 1), policy=policy, start_s=clock.now_s))
    assert [(c.start_s - NOW) / DAY for c in read_cycles(path, ALL)] == list(range(9, 40))
    assert (count(path, "decision"), count(path, "policy")) == (31, 1)
    assert history_of(path, 9) == []
    assert len(history_of(path, 10)) == 1


def test_much_is_deleted_in_small_steps_and_the_file_shrinks(path: Path) -> None:
    """9,000 decisions that are all too old go 2,000 a cycle; then the disk gets its room back."""
    clock = Clock()
    trail = trail_at(path, clock, keep_s=float(DAY))
    trail.record(cycle_of(*(make_job(i, priority=0) for i in range(1, 9001))))
    full, left = path.stat().st_size, []
    clock.now_s += 2 * DAY
    for _ in range(6):
        trail.record(cycle_of(start_s=clock.now_s))
        left.append(count(path, "decision"))
    assert left == [7000, 5000, 3000, 1000, 0, 0]
    assert len(read_cycles(path, ALL)) == 6
    assert path.stat().st_size < full / 2


def test_the_newest_cycle_is_kept_however_old_its_clock_says_it_is(path: Path) -> None:
    """A clock that jumps loses no more than what is old by it."""
    clock = Clock()
    trail = trail_at(path, clock, keep_s=60.0)
    clock.now_s += DAY
    trail.record(cycle_of(make_job(1)))
    assert len(history_of(path, 1)) == 1


def test_audit_is_for_owner_and_group_only(path: Path) -> None:
    """Mode 0640: it names users and their jobs."""
    trail_at(path).record(cycle_of(make_job(1)))
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("asked", "jobs"),
    [
        ("9", {"9_[0-4]", "9_[3-4]", "9_1", "9_2"}),
        ("9_[0-4]", {"9_[0-4]", "9_[3-4]", "9_1", "9_2"}),
        ("9_1", {"9_[0-4]", "9_1"}),
        ("9_4", {"9_[0-4]", "9_[3-4]"}),
        ("9_7", set()),
        ("51", {"9_1"}),
        ("20", {"20+0", "20+1"}),
        ("20+1", {"20+1"}),
        ("21", {"20+1"}),
        ("30_7", {"30_[0-5,..."}),
        ("1", set()),
    ],
)
def test_a_job_is_found_by_every_id_that_slurm_has_for_it(path: Path, asked: str, jobs: set[str]) -> None:
    """Case 25: an array with its tasks, a task also while it was in the array's record, a het component."""
    trail = trail_at(path)
    trail.record(cycle_of(make_job(9, label="9_[0-4]", priority=0), make_job(20, label="20+0")))
    trail.record(
        cycle_of(
            make_job(9, label="9_[3-4]", pinned=True),
            make_job(51, label="9_1", priority=0),
            make_job(52, label="9_2", priority=0),
            make_job(21, label="20+1", het_job_id=20),
            make_job(30, label="30_[0-5,..."),
        )
    )
    assert {row.job for row in read_history(path, parse_job_id(asked)).decisions} == jobs


def test_cycles_are_the_last_ones_newest_last(path: Path) -> None:
    """By number and by time."""
    trail = trail_at(path)
    for minute in range(5):
        trail.record(CycleRecord(start_s=NOW + minute * MINUTE))
    assert [c.cycle for c in read_cycles(path, 2)] == [4, 5]
    assert [c.cycle for c in read_cycles(path, ALL, NOW + 3 * MINUTE)] == [4, 5]
    assert [c.cycle for c in read_cycles(path, 1, NOW + 3 * MINUTE)] == [5]


def test_a_reader_sees_whole_cycles_while_the_writer_writes(path: Path) -> None:
    """In the middle of a transaction a reader reads what was there before it, and does not wait."""
    trail_at(path).record(cycle_of(make_job(1)))
    with writing(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM decision")
        assert len(history_of(path, 1)) == 1
        connection.execute("COMMIT")
        assert history_of(path, 1) == []


def test_readers_and_a_writer_do_not_disturb_each_other(path: Path) -> None:
    """Two readers read all the time while 30 cycles are written; nobody fails, no cycle is seen in part."""
    trail = trail_at(path)
    trail.record(cycle_of(make_job(1), make_job(2)))
    done, seen = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            with reading(path) as connection:
                query = "SELECT (SELECT 2 * count(*) FROM cycle), (SELECT count(*) FROM decision)"
                seen.append(connection.execute(query).fetchone())

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for minute in range(1, 30):
        trail.record(cycle_of(make_job(1), make_job(2), start_s=NOW + minute))
    done.set()
    for reader in readers:
        reader.join(60)
    assert len(read_cycles(path, ALL)) == 30
    assert seen
    assert all(cycles == decisions for cycles, decisions in seen)


def test_a_reader_cannot_write(path: Path) -> None:
    """It opens the file read-only."""
    trail_at(path).record(cycle_of(make_job(1)))
    with pytest.raises(AuditError, match="attempt to write a readonly database"), reading(path) as connection:
        connection.execute("DELETE FROM decision")


def test_who_may_only_read_the_folder_reads_between_cycles_and_during_one(public: Path) -> None:
    """SQLite wants to make files beside one in WAL mode; where it may not, the file is read as it stands."""
    path = public / "audit.sqlite"
    trail_at(path).record(cycle_of(make_job(1)))
    path.chmod(0o644)
    with writing(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO policy VALUES ('x', '{}')")
        public.chmod(0o555)
        with without_rights():
            assert len(history_of(path, 1)) == 1
        public.chmod(0o755)
        connection.execute("COMMIT")
    public.chmod(0o555)
    with without_rights():
        assert len(history_of(path, 1)) == 1
    public.chmod(0o755)


def test_a_missing_audit_says_what_to_start(path: Path) -> None:
    """And none is made by reading."""
    with pytest.raises(AuditError) as caught:
        read_cycles(path, ALL)
    assert str(caught.value) == f"{path}: no audit yet; is the reprioritizer running, with this file?"
    assert not path.exists()


def test_an_empty_file_has_nothing_recorded(path: Path) -> None:
    """So it is for a moment before the first cycle."""
    path.touch()
    with pytest.raises(AuditError, match=r"audit\.sqlite: nothing is recorded yet$"):
        read_cycles(path, ALL)
    trail_at(path).record(cycle_of(make_job(1)))
    assert len(read_cycles(path, ALL)) == 1


def test_a_job_that_was_never_seen_has_no_history(path: Path) -> None:
    """No rows, no policies."""
    trail_at(path).record(cycle_of(make_job(1)))
    assert read_history(path, parse_job_id("2")) == History((), {})


def test_connections_are_closed_after_each_cycle(path: Path) -> None:
    """Nothing is left beside the file, so that it can be copied and moved."""
    trail_at(path).record(cycle_of(make_job(1)))
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    connection.close()
