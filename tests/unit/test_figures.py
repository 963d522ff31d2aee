"""slurm_score/figures.py: waits of a queue in numbers, predictions against the truth, sums over cycles."""

import math
from pathlib import Path

import pytest

from slurm_score.figures import MOST_TOLD, Judge, Judged, Waits, waits_of
from slurm_score.model import EndedRun, Predicted
from slurm_score.policy import Mode, Policy
from slurm_score.score import score_queue
from slurm_score.snapshot import read_snapshot
from tests.unit.builders import DAY, HOUR, NOW, make_gpu_job, make_job, make_policy, make_queue
from tests.unit.reprioritizer_support import busy_slurm, reprioritizer_of, waiting


def waits(*jobs: object) -> Waits:
    """Return the waits of jobs under the default policy."""
    queue, policy = make_queue(*jobs), make_policy()  # type: ignore[arg-type]
    return waits_of(queue, score_queue(queue, policy), policy)


def test_an_empty_queue_has_no_waits() -> None:
    """No job, no percentile: all numbers are 0 and no label is invented."""
    assert waits() == Waits()


def test_the_longest_wait_is_told_by_qos_and_gpu_type() -> None:
    """An untyped GPU job accepts every type of its partition; jobs without GPUs stand under none."""
    found = waits(
        make_job(1, wait_s=HOUR),
        make_job(2, wait_s=2 * HOUR, qos="high"),
        make_gpu_job(3, "gpu:a100:1", wait_s=3 * HOUR),
        make_gpu_job(4, "gpu:1", wait_s=4 * HOUR, qos="high"),
        make_gpu_job(5, "gpu:v100:1", wait_s=5 * HOUR),
        make_gpu_job(6, "gpu:h100:1", wait_s=6 * HOUR, qos="low"),  # no node has one
    )
    assert found.longest_by_qos_s == {"normal": 5 * HOUR, "high": 4 * HOUR, "low": 6 * HOUR}
    assert found.longest_by_type_s == {"a100": 4 * HOUR, "none": 2 * HOUR, "v100": 5 * HOUR}


def test_held_and_future_jobs_wait_for_nothing() -> None:
    """Their wait doesn't count in the score, nor here."""
    held = make_job(1, wait_s=DAY, priority=0)
    later = make_job(2, eligible_s=NOW + HOUR)
    able = make_job(3, wait_s=60)
    assert waits(held, later, able) == Waits(1, 0, 60.0, {"normal": 60.0}, {"none": 60.0})


def test_jobs_past_their_guard_are_counted() -> None:
    """The default guard is 45 h; one of three jobs has waited longer."""
    assert waits(*(make_job(i, wait_s=hours * HOUR) for i, hours in enumerate((1, 44, 46)))).guarded == 1


def test_the_percentile_is_that_of_all_waits() -> None:
    """Of the waits 0, 1, …, 100 s it is 95 s."""
    assert waits(*(make_job(i, wait_s=i) for i in range(101))).p95_s == 95.0


def run(job_id: int, elapsed_s: float, state: str = "COMPLETED") -> EndedRun:
    """Return an ended run."""
    return EndedRun(
        user="alice",
        limit_s=3600.0,
        submit_s=NOW,
        end_s=NOW + 100,
        elapsed_s=elapsed_s,
        job_id=job_id,
        state=state,
    )


def test_predictions_are_compared_with_what_came() -> None:
    """60 s too long, 40 s too short; the last word before the start counts, and each run once."""
    judge = Judge()
    judge.tell({1: Predicted(500.0, ""), 2: Predicted(100.0, "")})
    judge.tell({1: Predicted(160.0, "")})
    judge.judge([run(1, 100.0), run(2, 140.0)])
    judge.judge([run(1, 100.0)])
    assert judge.sums == Judged(runs=2, too_short=1, error_s=100.0, elapsed_s=240.0)


def test_runs_that_tell_nothing_are_not_judged() -> None:
    """Not told of, told "no limit", or ended by a node's failure."""
    judge = Judge()
    judge.tell({1: Predicted(math.inf, "time limit"), 2: Predicted(50.0, "")})
    judge.judge([run(1, 10.0), run(2, 10.0, "NODE_FAIL"), run(3, 10.0)])
    assert judge.sums == Judged()


def test_memory_of_predictions_has_a_bound() -> None:
    """The oldest go first."""
    judge = Judge()
    judge.tell({i: Predicted(1.0, "") for i in range(MOST_TOLD)})
    judge.tell({MOST_TOLD: Predicted(1.0, "")})
    judge.judge([run(0, 1.0), run(1, 1.0), run(MOST_TOLD, 1.0)])
    assert judge.sums.runs == 2


def test_cycles_add_up_also_over_a_restart(tmp_path: Path) -> None:
    """Prometheus' counters must not go back: a new process goes on from the snapshot."""
    slurm = busy_slurm()
    waiting(slurm, 3)
    first = reprioritizer_of(slurm, tmp_path)
    sent = first.cycle().sent
    first.cycle()
    reprioritizer_of(slurm, tmp_path).cycle()
    figures = read_snapshot(tmp_path / "snapshot.jsonl", with_jobs=False).figures
    assert (figures.cycles, figures.sent, figures.failed, figures.left_over) == (3, sent, 0, 0)
    assert sent == 3
    assert figures.waits.jobs == 3
    assert set(figures.seconds) == {"read", "score", "plan", "write"}


@pytest.mark.parametrize(("mode", "left_over"), [(Mode.ENFORCE, 2), (Mode.OBSERVE, 0)])
def test_left_over_updates_are_told_in_enforce_only(tmp_path: Path, mode: Mode, left_over: int) -> None:
    """Three are due and one may be sent; outside enforce none waits for anything."""
    slurm = busy_slurm()
    waiting(slurm, 3)
    policy = Policy.model_validate({"mode": mode, "updates": {"per_cycle": 1}})
    reprioritizer_of(slurm, tmp_path, policy).cycle()
    assert read_snapshot(tmp_path / "snapshot.jsonl").figures.left_over == left_over
