"""slurm_score/status.py and its report: the lines of the screen, and which level each has."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from slurm_score.audit.read import StoredCycle
from slurm_score.checks.facts import Level
from slurm_score.gres import GpuCount
from slurm_score.model import Cluster, Job
from slurm_score.policy import Policy
from slurm_score.report.status import format_status, told_of
from slurm_score.snapshot import Snapshot
from slurm_score.status import Seen, TypeQueue, status_of
from slurm_score.supply import supply_of
from tests.unit.builders import (
    HOUR,
    MINUTE,
    NOW,
    drained,
    make_cluster,
    make_gpu_job,
    make_job,
    make_policy,
    make_queue,
)

HEALTH: dict[str, Any] = {
    "version": "1.0",
    "policy_error": "",
    "snapshot_error": "",
    "kill_switch": "",
    "hook": {"last_s": NOW - 20, "version": "1.0", "failed": 0, "resting": 0},
    "answers": {"count": 812.0, "mean_s": 0.00021, "slow": 3.0},
}


def snapshot_of(*jobs: Job, cluster: Cluster | None = None) -> Snapshot:
    """Return what a cycle saw."""
    at = cluster or make_cluster()
    return Snapshot(policy=Policy(), cluster=at, jobs=jobs, supply=supply_of(make_queue(*jobs, cluster=at)))


def cycle(start_s: float = NOW, **changes: Any) -> StoredCycle:
    """Return a cycle as the audit holds it, in which all went well."""
    values: dict[str, Any] = {"cycle": 1, "policy": "0123", "mode": "enforce", "pending": 9, "planned": 4}
    values |= {
        "sent": 4,
        "failed": 0,
        "left_over": 0,
        "rpcs": 7,
        "read_s": 0.1,
        "score_s": 0.1,
        "plan_s": 0.1,
    }
    return StoredCycle(start_s=start_s, **values | {"write_s": 0.1, "halted": "", "error": ""} | changes)


def seen(**changes: Any) -> Seen:
    """Return what is seen ten seconds after a good cycle, with one job waiting."""
    values: dict[str, Any] = {
        "now_s": NOW + 10.0,
        "policy": make_policy(mode="enforce"),
        "snapshot": snapshot_of(make_job(submit_s=NOW - 60)),
        "health": HEALTH,
        "cycles": (cycle(),),
    }
    return Seen(**values | changes)


def lines(name: str, **changes: Any) -> list[tuple[str, str]]:
    """Return level and words of the lines of one matter."""
    return [(str(c.level), c.found) for c in status_of(seen(**changes)).checks if c.name == name]


def test_a_good_day_is_a_line_for_each_matter() -> None:
    """All of them ok."""
    status = status_of(seen())
    assert status.level is Level.OK
    policy = make_policy(mode="enforce").hash
    asked = "asked 00:00:30 ago, version 1.0, 812 answers in 0.21 ms on average, 3 in more than 20 ms"
    free = "a100 0 of 4, at most 2 on one; v100 0 of 4, at most 4 on one"
    assert [(check.name, check.found) for check in status.checks] == [
        ("mode", f"enforce, policy {policy}"),
        ("cycle", "the last good one 00:00:10 ago, 1 jobs pending"),
        ("updates", "4 planned, 4 sent, 0 failed, 0 left over"),
        ("service", "answers, version 1.0"),
        ("hook", asked),
        ("fragmentation", f"free GPUs on nodes in part use: {free}"),
    ]


def test_nothing_that_can_be_read_is_an_error_for_each() -> None:
    """Why, and what to do."""
    status = status_of(
        Seen(
            now_s=NOW,
            policy_error="p.yaml: can't be read",
            snapshot_error="s.jsonl: no snapshot yet",
            service_error="x.sock: does not answer",
            audit_error="a.sqlite: no audit",
        )
    )
    assert status.level is Level.ERROR
    assert [(check.name, str(check.level), check.found, check.remedy) for check in status.checks] == [
        ("mode", "error", "p.yaml: can't be read", "correct the policy file"),
        ("cycle", "error", "s.jsonl: no snapshot yet", "start `slurm-score reprioritize`"),
        ("updates", "warning", "a.sqlite: no audit", ""),
        ("service", "error", "x.sock: does not answer", "start `slurm-score serve`"),
        ("hook", "warning", "not known: only the service sees it", ""),
    ]
    assert status.queue == ()


def test_a_kill_switch_is_a_warning() -> None:
    """The mode says enforce, and nothing is written."""
    (line,) = lines("mode", health=HEALTH | {"kill_switch": "kill switch STOP"})
    assert line[0] == "warning"
    assert line[1].endswith("; nothing is written: kill switch STOP")


@pytest.mark.parametrize(
    ("age_s", "level"),
    [pytest.param(300.0, "ok", id="as old as it may be"), pytest.param(301.0, "error", id="older")],
)
def test_a_cycle_may_be_as_old_as_the_policy_lets_a_snapshot_be(age_s: float, level: str) -> None:
    """The same limit after which the hook gives neutral scores."""
    policy = make_policy(max_snapshot_age=300.0)
    (line,) = lines("cycle", now_s=NOW + age_s, policy=policy)
    assert line[0] == level


@pytest.mark.parametrize(
    ("cycles", "line"),
    [
        pytest.param(
            [cycle(failed=1)], ("warning", "4 planned, 4 sent, 1 failed, 0 left over"), id="refused"
        ),
        pytest.param(
            [cycle(sent=2, left_over=2, halted="kill switch STOP")],
            ("warning", "4 planned, 2 sent, 0 failed, 2 left over; stopped: kill switch STOP"),
            id="stopped",
        ),
        pytest.param(
            [cycle(), cycle(error="squeue: timed out")],
            ("warning", "the last cycle failed: squeue: timed out"),
            id="one failed",
        ),
        pytest.param(
            [cycle(error="a"), cycle(error="b"), cycle(error="squeue: timed out")],
            ("error", "the last 3 cycles failed: squeue: timed out"),
            id="three failed",
        ),
        pytest.param(
            [cycle(error="a"), cycle(), cycle(error="squeue: timed out")],
            ("warning", "the last cycle failed: squeue: timed out"),
            id="not in a row",
        ),
        pytest.param(
            [cycle(error="a"), cycle()], ("ok", "4 planned, 4 sent, 0 failed, 0 left over"), id="well again"
        ),
    ],
)
def test_the_last_cycle_tells_of_its_updates(cycles: Sequence[StoredCycle], line: tuple[str, str]) -> None:
    """One that failed may be chance, three in a row are none."""
    assert lines("updates", cycles=tuple(cycles)) == [line]


def test_errors_are_told_once_each_the_last_first() -> None:
    """Three sentences at most, with the time of the last of each; they make no level, the lines above do."""
    cycles = [
        cycle(NOW - 6000, error="e"),
        cycle(NOW - 5000, error="d"),
        cycle(NOW - 4000, halted="c"),
        cycle(NOW - 3000, error="b"),
        cycle(NOW - 2000, error="c"),
        cycle(NOW),
    ]
    assert lines("last error", cycles=tuple(cycles), now_s=float(NOW)) == [
        ("ok", "00:33:20 ago: c"),
        ("ok", "00:50:00 ago: b"),
        ("ok", "01:23:20 ago: d"),
    ]


def test_the_service_tells_what_it_cannot_read() -> None:
    """It goes on with what it read before."""
    health = HEALTH | {"policy_error": "p.yaml:1: bad", "snapshot_error": "s.jsonl: gone"}
    assert lines("service", health=health) == [("warning", "p.yaml:1: bad"), ("warning", "s.jsonl: gone")]


# the hook


def hook(**changes: Any) -> dict[str, Any]:
    """Return the service's word with another one of the hook."""
    return HEALTH | {"hook": HEALTH["hook"] | changes, "answers": {}}


def test_a_hook_that_never_asked_is_told() -> None:
    """A cluster without it is no error: first scores then come with the first cycle."""
    assert lines("hook", health=hook(last_s=None)) == [("ok", "has not asked since the service started")]


def test_failures_and_rests_of_the_hook_are_told() -> None:
    """As it said with its last question."""
    assert lines("hook", health=hook(failed=3, resting=41)) == [
        (
            "ok",
            "asked 00:00:30 ago, version 1.0, 3 of its questions had no answer by then, "
            "41 passed while it rested by then",
        )
    ]


@pytest.mark.parametrize(
    ("job", "missed"),
    [
        pytest.param(make_job(submit_s=NOW - 10), True, id="came 10 s after the last question"),
        pytest.param(make_job(submit_s=NOW - 15), False, id="5 s are for clocks that differ"),
        pytest.param(make_job(submit_s=NOW - 10, restarts=1), False, id="requeued: the hook isn't asked"),
        pytest.param(make_job(submit_s=NOW - 10, state="RUNNING"), False, id="no longer waiting"),
    ],
)
def test_jobs_that_came_without_a_question_mean_an_open_breaker(job: Job, missed: bool) -> None:
    """It rests in silence, so that is how to see it."""
    ((level, words),) = lines("hook", health=hook(), snapshot=snapshot_of(job))
    assert level == ("warning" if missed else "ok")
    assert words.endswith("; 1 jobs came since that it didn't ask for") is missed


# the queue


def test_queue_by_type_tells_demand_beside_supply() -> None:
    """Five tasks of one a100 each, two GPUs of any type; what never fits counts nowhere; g2 is drained."""
    jobs = (
        make_gpu_job(1, "gpu:a100:1", tasks="0-4", wait_s=2 * HOUR),
        make_gpu_job(2, "gpu:2", wait_s=3 * HOUR),
        make_gpu_job(3, "gpu:h100:1"),
        make_gpu_job(4, "gpu:v100:1", priority=0),
        make_job(5, wait_s=30 * MINUTE),
    )
    assert status_of(seen(snapshot=snapshot_of(*jobs, cluster=drained(make_cluster(), "g2")))).queue == (
        TypeQueue(
            gpu_type="a100",
            partition="gpu",
            jobs=2,
            asked=5,
            flexible=2,
            longest_wait_s=3.0 * HOUR,
            total=4,
            used=0,
            free=2,
            broken=2,
        ),
        TypeQueue(
            gpu_type="v100",
            partition="gpu",
            jobs=1,
            asked=0,
            flexible=2,
            longest_wait_s=3.0 * HOUR,
            total=4,
            used=0,
            free=4,
            broken=0,
        ),
        TypeQueue(gpu_type="none", jobs=1, longest_wait_s=1800.0),
    )


def test_fragmentation_is_what_is_free_on_nodes_in_part_use() -> None:
    """One of g1's two is taken: of three free a100 one stands alone."""
    cluster = make_cluster()
    nodes = [
        replace(node, gpus_used=GpuCount(1, {"a100": 1})) if node.name == "g1" else node
        for node in cluster.nodes
    ]
    found = lines("fragmentation", snapshot=snapshot_of(cluster=replace(cluster, nodes=tuple(nodes))))
    free = "a100 1 of 3, at most 2 on one; v100 0 of 4, at most 4 on one"
    assert found == [("ok", f"free GPUs on nodes in part use: {free}")]


def test_no_free_gpu_is_a_sentence() -> None:
    """All drained."""
    cluster = drained(make_cluster(), "g1", "g2", "g3")
    assert lines("fragmentation", snapshot=snapshot_of(cluster=cluster)) == [("ok", "no GPU is free")]


# as text and JSON


def test_text_is_the_lines_and_a_table() -> None:
    """Level, matter, words; then the queue, times as Slurm writes them."""
    jobs = (make_gpu_job(1, "gpu:a100:1", wait_s=2 * HOUR, submit_s=NOW - 7200),)
    told = format_status(status_of(seen(snapshot=snapshot_of(*jobs)))).splitlines()
    assert told[1:3] == [
        "ok       cycle               the last good one 00:00:10 ago, 1 jobs pending",
        "ok       updates             4 planned, 4 sent, 0 failed, 0 left over",
    ]
    assert told[6:] == [
        "",
        "TYPE  JOBS  ASKED  FLEXIBLE   LONGEST  PARTITION  TOTAL  USED  FREE  BROKEN",
        "a100     1      1         0  02:00:00  gpu            4     0     4       0",
        "v100     0      0         0  00:00:00  gpu            4     0     4       0",
        "none     0      0         0  00:00:00                 0     0     0       0",
    ]


def test_one_screen_is_enough() -> None:
    """24 lines with three errors and three types."""
    cycles = tuple(cycle(NOW - i, error=f"error {i}") for i in range(9))
    assert len(format_status(status_of(seen(cycles=cycles))).splitlines()) <= 24


@pytest.mark.parametrize(
    ("changes", "level", "code"),
    [
        ({}, "ok", 0),
        ({"health": HEALTH | {"kill_switch": "kill switch STOP"}}, "warning", 1),
        ({"health": None, "service_error": "x.sock: does not answer"}, "error", 2),
    ],
)
def test_json_has_the_level_and_the_exit_code(changes: dict[str, Any], level: str, code: int) -> None:
    """As monitoring wants them: 0 ok, 1 warning, 2 error."""
    told = told_of(status_of(seen(**changes)))
    assert (told["level"], told["exit_code"]) == (level, code)
    assert told["checks"][1]["name"] == "cycle"
    assert [row["gpu_type"] for row in told["queue"]] == ["a100", "v100", "none"]
