"""slurm_score/predict/store.py: what goes in comes out, once, and what is wrong is one sentence."""

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_score.errors import HistoryError
from slurm_score.model import EndedRun
from slurm_score.predict.store import CHUNK, add_in_chunks, open_history

RUN = EndedRun(
    user="zoë", limit_s=math.inf, cpus=4, gpus=2, gpu_types="a100", account="lab", name="train-#",
    partition="main", qos="high", claim_s=60.0, submit_s=100, end_s=200, elapsed_s=50.5, job_id=7,
    state="TIMEOUT", restarts=2,
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the history stands."""
    return tmp_path / "history.sqlite"


def test_a_run_comes_out_as_it_went_in_and_only_once(path: Path) -> None:
    """An import that is repeated adds nothing."""
    with open_history(path) as store:
        assert [store.add([RUN, RUN]), store.add([RUN])] == [1, 0]
        assert list(store.each()) == [RUN]
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_last_runs_of_each_user_are_found(path: Path) -> None:
    """Those of users who ran something since a time, so many of each, in the order of their ends."""
    runs = [
        replace(RUN, user=user, job_id=i, end_s=end)
        for i, (user, end) in enumerate([("ann", 10), ("ann", 30), ("ben", 20), ("ann", 40), ("cho", 5)])
    ]
    with open_history(path) as store:
        store.add(runs)
        assert [run.end_s for run in store.last_of_user("ann", 2)] == [40, 30]
        assert [(run.user, run.end_s) for run in store.recent(15, 2)] == [
            ("ben", 20),
            ("ann", 30),
            ("ann", 40),
        ]


def test_how_far_a_source_is_imported_stands_or_falls_with_its_runs(path: Path) -> None:
    """An interrupted import goes on where it stopped: half a chunk is no chunk."""

    def broken() -> Iterator[EndedRun]:
        yield RUN
        raise KeyboardInterrupt

    with open_history(path) as store:
        store.add([], "sacct", 100)
        with pytest.raises(KeyboardInterrupt):
            store.add(broken(), "sacct", 200)
        assert (store.imported_until("sacct"), store.count(), store.imported_until("x")) == (100, 0, None)


def test_many_runs_are_added_in_chunks(path: Path) -> None:
    """Years of accounting don't fill the memory, and progress is told."""
    told: list[int] = []
    many = (replace(RUN, job_id=i) for i in range(CHUNK + 5))
    with open_history(path) as store:
        assert add_in_chunks(store, many, told.append) == CHUNK + 5
    assert told == [CHUNK, CHUNK + 5]


def test_what_ended_too_long_ago_is_forgotten(path: Path) -> None:
    """Retention is by the end of a run."""
    with open_history(path) as store:
        store.add([RUN, replace(RUN, job_id=8, end_s=500)])
        assert (store.forget(300), [run.end_s for run in store.each()]) == (1, [500])


def test_an_anonymous_history_holds_digests_only(path: Path) -> None:
    """The same user has the same digest in it, and no name goes beside it or comes back."""
    with open_history(path) as store:
        store.add([RUN], anonymise=True)
        store.add([replace(RUN, job_id=8)], anonymise=True)
        one, other = store.each()
        assert store.anonymous
    assert (one.user, one.account, one.name) == (other.user, other.account, other.name)
    assert len({one.user, one.account, one.name, RUN.user}) == 4
    assert b"zo\xc3\xab" not in path.read_bytes()


def test_names_and_digests_are_not_mixed(path: Path) -> None:
    """Who anonymises starts with a new file."""
    with open_history(path) as store:
        store.add([RUN])
        with pytest.raises(HistoryError, match="holds real names already; anonymise into a new file"):
            store.add([replace(RUN, job_id=9)], anonymise=True)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no database " * 99, "file is not a database; move it away"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "move it away"),
    ],
)
def test_a_damaged_file_is_one_sentence(path: Path, content: bytes, told: str) -> None:
    """With the path, what SQLite says and what to do."""
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=f"^{path}: can't use the history: .*{told}"), open_history(path):
        pass


def test_a_locked_file_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds it is to be found."""
    monkeypatch.setattr("slurm_score.predict.store.BUSY_S", 0.01)
    with open_history(path):
        pass
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with (
            pytest.raises(HistoryError, match="locked; another program holds it"),
            open_history(path) as store,
        ):
            store.add([RUN])
    finally:
        holder.close()


def test_another_database_is_left_alone(path: Path) -> None:
    """Ours is known by its application id."""
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.commit()
    foreign.close()
    with (
        pytest.raises(HistoryError, match="not a history of slurm-score; name another file"),
        open_history(path),
    ):
        pass


def test_a_missing_history_is_told_where_none_is_to_be_made(path: Path) -> None:
    """With the command that makes one."""
    with (
        pytest.raises(HistoryError, match="no history yet; slurm-score history import makes one"),
        open_history(path, create=False),
    ):
        pass
