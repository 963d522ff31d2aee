"""slurm_score/snapshot.py: the file between reprioritizer and service, whole or not at all."""

import json
import math
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_score.errors import SnapshotError
from slurm_score.gres import GpuCount, gpu_request, gpu_shards, gpu_slices
from slurm_score.hints import parse_hints
from slurm_score.model import (
    Cluster,
    EndedRun,
    Node,
    Partition,
    PastRun,
    Predicted,
    Reservation,
    RunTimes,
    SlurmConfig,
)
from slurm_score.policy_yaml import parse_policy
from slurm_score.predict.estimator import Estimator
from slurm_score.snapshot import FORMAT, Snapshot, read_snapshot, write_snapshot
from tests.unit.builders import NOW, make_cluster, make_job


def taught() -> Estimator:
    """Return an estimator that knows runs of two users, and what one of them claimed."""
    estimator = Estimator(0.7, 600.0)
    estimator.observe(
        EndedRun(
            user=user,
            limit_s=limit_s,
            claim_s=claim_s,
            submit_s=NOW + 60 * i,
            end_s=NOW + 60 * i + 50,
            elapsed_s=50.0,
        )
        for i in range(3)
        for user, limit_s, claim_s in (("zoë", math.inf, 10.0), ("bob", 3600.0, None))
    )
    return estimator


FULL = Snapshot(
    policy=parse_policy("{mode: enforce, factors: {wait: {weight: 3, keep_after: [REQUEUED]}}}"),
    cluster=Cluster(
        time_s=NOW + 0.25,
        config=SlurmConfig(priority_weights={"age": 1000}, priority_flags=("A", "B"), site_factor_plugin="x"),
        partitions={"main": Partition(name="main", default=True, max_time_s=math.inf, default_time_s=None)},
        nodes=(
            Node(
                name="g1",
                states=("MIXED", "DRAIN"),
                usable=False,
                gpus=GpuCount(4, {"a100": 4}),
                gpus_used=GpuCount(1, {"a100": 1}),
                partitions=("main",),
                features=("nvlink",),
            ),
            Node(
                name="m1",
                mig=GpuCount(2, {"1g.10gb": 2}),
                mig_used=GpuCount(1, {"1g.10gb": 1}),
                shards=GpuCount(8),
                shards_used=GpuCount(3),
                weight=7,
                switch="s1",
            ),
        ),
        qos={"normal": 0, "high": 1000},
        reservations={"course": Reservation(name="course", active=True, nodes=("g1", "m1"))},
    ),
    pressure={"a100": 1.5, "v100": math.inf},
    demand={"a100": ((900, 4), (3, 1))},
    run_times={"zoë": RunTimes(7, 1.5)},
    estimator=taught(),
    predicted={10: Predicted(60.5, "last 2 of zoë's 1-CPU jobs", 12.5), 9: Predicted(math.inf, "time limit")},
    jobs=(
        make_job(
            9,
            label="9_[3-9%3]",
            update_id="9_[3-9]",
            tasks="3-9",
            time_limit_s=math.inf,
            gpus=gpu_request(per_node="gpu:a100:2", nodes=2),
            past_runs=(PastRun("NODE_FAIL", 12.5),),
            hints=parse_hints("score: est=20m fast"),
            restarts=1,
            pinned=True,
            het_job_id=9,
        ),
        make_job(10, eligible_s=None, time_limit_s=None, site_factor=None, user="zoë\n\x1b\ufffd"),
        make_job(11, state="RUNNING", start_s=NOW, node_list="g[1-2]"),
        make_job(
            12,
            max_nodes=4,
            mem_mib=4000,
            slices=gpu_slices(per_job="gpu:1g.10gb:2"),
            shards=gpu_shards(per_node="shard:a100:3"),
            features="[a100*2&v100*1]",
            prefer="nvlink",
            req_nodes="g1",
            exc_nodes="g[2-3]",
            reservation="course",
        ),
    ),
)


LINES = 1 + len(FULL.cluster.nodes) + len(FULL.estimator.stored()) + len(FULL.jobs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the snapshot stands."""
    return tmp_path / "snapshot.jsonl"


def reason(path: Path) -> str:
    """Return why the snapshot can't be read."""
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(path)
    return str(caught.value)


def test_snapshot_is_read_back_as_it_was_written(path: Path) -> None:
    """Infinity, None, tuples, mappings and every character survive."""
    write_snapshot(path, FULL)
    assert read_snapshot(path) == FULL
    assert read_snapshot(path).policy.hash == FULL.policy.hash


def test_header_and_nodes_are_enough_to_score_a_new_job(path: Path) -> None:
    """The service reads no more, however long the queue is: broken job lines don't matter to it."""
    write_snapshot(path, FULL)
    with path.open("ab") as file:
        file.write(b"not a job\n")
    assert read_snapshot(path, with_jobs=False) == replace(FULL, jobs=(), predicted={})
    assert reason(path) == f"{path}: not a snapshot of this release: 1 faults"


def test_one_line_holds_the_header_and_one_each_node_user_and_job(path: Path) -> None:
    """A job's own newline can't break the file."""
    write_snapshot(path, FULL)
    assert len(path.read_bytes().split(b"\n")) == LINES + 1


def test_snapshot_is_for_owner_and_group_only(path: Path) -> None:
    """Mode 0640, whatever the umask: it names users and their jobs."""
    for umask in (0o000, 0o077):
        before = os.umask(umask)
        try:
            write_snapshot(path, FULL)
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o777 == 0o640


def test_no_reader_sees_half_a_snapshot(path: Path) -> None:
    """The file is replaced as a whole: who has the old one open reads the old one to its end."""
    write_snapshot(path, FULL)
    with path.open("rb") as old:
        write_snapshot(path, replace(FULL, jobs=()))
        assert len(old.read().splitlines()) == LINES
    assert read_snapshot(path).jobs == ()


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    """Let no file grow beyond `limit` bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_failed_write_leaves_the_old_snapshot(path: Path) -> None:
    """The disk is full after 100 bytes: the old file is whole, and nothing is left beside it."""
    write_snapshot(path, FULL)
    with pytest.raises(SnapshotError, match="can't write the snapshot: File too large"), file_size_limit(100):
        write_snapshot(path, replace(FULL, jobs=()))
    assert read_snapshot(path) == FULL
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_snapshot_that_cant_be_replaced_is_left_alone(path: Path) -> None:
    """Here a folder stands in its place."""
    path.mkdir()
    with pytest.raises(SnapshotError, match="can't write the snapshot: Is a directory"):
        write_snapshot(path, FULL)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_write_into_a_missing_folder_is_a_snapshot_error(tmp_path: Path) -> None:
    """The sentence says which file and why."""
    path = tmp_path / "missing" / "snapshot.jsonl"
    with pytest.raises(SnapshotError) as caught:
        write_snapshot(path, FULL)
    assert str(caught.value) == f"{path}: can't write the snapshot: No such file or directory"


def test_missing_snapshot_says_what_to_start(path: Path) -> None:
    """The reason is shown to users and admins as it is."""
    assert reason(path) == f"{path}: no snapshot yet; is the reprioritizer running?"


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"garbage\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b"[1]\n", b"null\n", b"[" * 100_000],
)
def test_garbage_is_not_a_snapshot(path: Path, content: bytes) -> None:
    """Whatever stands in the file, the answer is a SnapshotError."""
    path.write_bytes(content)
    assert reason(path).startswith(f"{path}: not a snapshot of this release: ")


def test_snapshot_cut_off_is_not_read(path: Path) -> None:
    """Half a line is no job; better none than some."""
    write_snapshot(path, FULL)
    path.write_bytes(path.read_bytes()[:-20])
    assert reason(path) == f"{path}: not a snapshot of this release: 1 faults"


def test_snapshot_of_another_format_is_named(path: Path) -> None:
    """After an upgrade the service waits for the new reprioritizer rather than guess."""
    write_snapshot(path, FULL)
    header, *jobs = path.read_bytes().split(b"\n")
    changed = json.loads(header)
    changed[0]["format"] = FORMAT + 1
    path.write_bytes(b"\n".join([json.dumps(changed).encode(), *jobs]))
    assert reason(path) == f"{path}: a snapshot of format {FORMAT + 1}, got by a reader of format {FORMAT}"


def test_snapshot_with_a_policy_that_does_not_fit_is_named(path: Path) -> None:
    """A policy of another release is not half understood."""
    write_snapshot(path, FULL)
    header, *jobs = path.read_bytes().split(b"\n")
    changed = json.loads(header)
    changed[0]["policy"]["colour"] = "red"
    path.write_bytes(b"\n".join([json.dumps(changed).encode(), *jobs]))
    assert reason(path) == f"{path}: stored policy: Extra inputs are not permitted"


def test_unreadable_snapshot_says_why(path: Path) -> None:
    """Here a folder stands in its place; a missing right reads the same way."""
    path.mkdir()
    assert reason(path) == f"{path}: can't read the snapshot: Is a directory"


def test_queue_of_a_snapshot_holds_its_pending_jobs() -> None:
    """Running jobs are kept for prediction, not for scoring; the time is the snapshot's."""
    queue = FULL.queue()
    assert [job.job_id for job in queue.jobs] == [9, 10, 12]
    assert (queue.now_s, queue.pressure, queue.cluster) == (NOW + 0.25, FULL.pressure, FULL.cluster)


def test_queue_of_other_jobs_stands_on_the_same_cluster() -> None:
    """How a new job is scored at submission."""
    queue = Snapshot(policy=FULL.policy, cluster=make_cluster()).queue((make_job(0),), NOW + 60.0)
    assert ([job.job_id for job in queue.jobs], queue.now_s) == ([0], NOW + 60.0)
