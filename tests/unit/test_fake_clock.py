"""The shipped fake Slurm behaves as Slurm does: backfill, the clock, requeues and what is cancelled.

Each docstring names the rule and where it comes from.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from slurm_score.errors import CommandFailedError
from slurm_score.model import Partition, PastRun
from slurm_score.slurm.fake import FakeSlurm, JobRun, Submission
from tests.unit.fake_support import (
    A100,
    QOS,
    T0,
    V100,
    fill,
    gpu_node,
    job_of,
    one_node,
    reasons,
    starts,
    two_components,
    two_nodes,
    write,
)

# Backfill


def test_backfill_starts_a_job_that_ends_before_the_blocked_one_could_start() -> None:
    """EASY: by its time limit the later job is gone at the shadow time (Lifka 1995).

    1 ends by its limit at 600; 2 needs both GPUs then. 3 (600 s) may run, 4 (660 s) would be late.
    """
    slurm = FakeSlurm([gpu_node("a", A100, 3)], [Partition(name="gpu", default=True)], QOS, backfill=True)
    slurm.submit(Submission(gres="gpu:1", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres="gpu:3", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=660, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=600, run_time_s=60))
    assert slurm.schedule() == (1, 4)
    assert reasons(slurm) == {"2": "Resources", "3": "Priority"}
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "4": 0, "2": 600, "3": 660}


def test_backfill_starts_a_longer_job_on_what_the_blocked_one_does_not_need() -> None:
    """EASY: a later job of any length may take what is left beside the reservation (Lifka 1995)."""
    slurm = two_nodes(backfill=True)
    slurm.submit(Submission(gres=f"gpu:{A100}:1", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", time_limit_s=6000, run_time_s=6000))
    assert slurm.schedule() == (1, 3)


def test_backfill_looks_for_nodes_that_the_reservation_spares() -> None:
    """A job that would delay the blocked one on the first node starts on another (Lifka 1995)."""
    slurm = two_nodes(backfill=True)
    slurm.submit(Submission(gres=f"gpu:{A100}:1", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=6000, run_time_s=60))
    assert slurm.schedule() == (1, 3)
    assert [node.gpus_used.total for node in slurm.read_cluster().nodes] == [1, 1]


def test_backfill_counts_what_it_started_before() -> None:
    """Two later jobs that are harmless one by one are not together (Lifka 1995)."""
    slurm = FakeSlurm([gpu_node("a", A100, 4)], [Partition(name="gpu", default=True)], QOS, backfill=True)
    slurm.submit(Submission(gres="gpu:2", time_limit_s=600, run_time_s=600))
    slurm.submit(Submission(gres="gpu:3", time_limit_s=600, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=6000, run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", time_limit_s=6060, run_time_s=60))
    assert slurm.schedule() == (1, 3)


def test_blocked_job_without_a_shadow_time_stops_nobody() -> None:
    """Behind an UNLIMITED job there is no time to reserve for, so backfill goes on (Lifka 1995)."""
    slurm = FakeSlurm([gpu_node("a", A100, 2)], [Partition(name="gpu", default=True)], QOS, backfill=True)
    slurm.submit(Submission(gres="gpu:1", run_time_s=600))
    slurm.submit(Submission(gres="gpu:2", run_time_s=60))
    slurm.submit(Submission(gres="gpu:1", run_time_s=60))
    assert slurm.schedule() == (1, 3)


def test_strict_order_is_the_default() -> None:
    """Without backfill nothing passes a blocked job of its partition (_schedule)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{A100}:1", run_time_s=600))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", run_time_s=60))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", time_limit_s=60, run_time_s=60))
    assert slurm.schedule() == (1,)


# The clock


def test_job_ends_after_its_run_time_or_at_its_limit() -> None:
    """The time limit ends a job as TIMEOUT, else it is COMPLETED (sbatch(1), --time)."""
    slurm = one_node(cpus=3)
    slurm.submit(Submission(run_time_s=50, time_limit_s=60))
    slurm.submit(Submission(run_time_s=70, time_limit_s=60))
    slurm.submit(Submission(time_limit_s=120))
    slurm.run_until_idle()
    ends = [(run.state, (run.end_s or 0) - T0) for run in slurm.history.values()]
    assert ends == [("COMPLETED", 50), ("TIMEOUT", 60), ("TIMEOUT", 120)]


def test_everything_that_ends_in_a_second_ends_before_anything_starts() -> None:
    """Two ends free both GPUs for one job in the same second: one pass after all ends."""
    slurm = two_nodes()
    for _ in range(2):
        slurm.submit(Submission(gres=f"gpu:{A100}:1", run_time_s=20))
    slurm.submit(Submission(gres=f"gpu:{A100}:2", run_time_s=20))
    slurm.run_until_idle()
    assert starts(slurm) == {"1": 0, "2": 0, "3": 20}


def test_next_event_is_the_next_end_or_begin_time() -> None:
    """What moves the clock: ends of running jobs and begin times; nothing else happens by itself."""
    slurm = one_node(cpus=2)
    assert slurm.next_event_s() is None
    slurm.submit(Submission(begin_s=T0 + 90, run_time_s=5))
    assert slurm.next_event_s() == T0 + 90
    fill(slurm, 40)
    assert slurm.next_event_s() == T0 + 40


def test_job_without_limit_or_run_time_never_ends() -> None:
    """An UNLIMITED job whose run time isn't given runs on, and the cluster is idle of events."""
    slurm = one_node()
    slurm.submit(Submission(time_limit_s=math.inf))
    assert slurm.run_until_idle() == T0
    slurm.advance(T0 + 10**6)
    assert job_of(slurm, 1).state == "RUNNING"


def test_clock_stops_where_it_is_told_to() -> None:
    """advance goes to its time whatever happens there, run_until_idle no further than its limit."""
    slurm = one_node()
    slurm.submit(Submission(run_time_s=100))
    slurm.advance(T0 + 30)
    assert (slurm.now_s, slurm.read_cluster().time_s) == (T0 + 30, T0 + 30)
    assert slurm.run_until_idle(limit_s=50) == T0 + 30
    assert slurm.run_until_idle() == T0 + 100


def test_clock_never_goes_back() -> None:
    """Time is an event's or later; a past time is a mistake of the caller."""
    with pytest.raises(ValueError, match="the clock goes forward only"):
        two_nodes().advance(T0 - 1)


def test_history_tells_who_started_when() -> None:
    """One line a record: enough to print who started earlier or later than under another order."""
    slurm = one_node()
    slurm.submit(Submission(name="first", run_time_s=10))
    slurm.submit(Submission(name="second", run_time_s=10))
    slurm.advance(T0 + 15)
    first = JobRun(
        job_id=1,
        label="1",
        name="first",
        state="COMPLETED",
        submit_s=T0,
        eligible_s=T0,
        start_s=T0,
        end_s=T0 + 10,
    )
    second = replace(first, job_id=2, label="2", name="second", state="RUNNING", start_s=T0 + 10, end_s=None)
    assert slurm.history == {1: first, 2: second}
    assert list(slurm.started) == [1, 2]


def test_same_calls_give_the_same_schedule() -> None:
    """No wall clock and no chance: two runs of one trace are equal."""

    def trace() -> Mapping[int, JobRun]:
        slurm = two_nodes(backfill=True, priority_weights={"age": 1000, "qos": 300}, max_age_s=500)
        for i in range(40):
            slurm.advance(T0 + 7 * i)
            slurm.submit(
                Submission(
                    qos=("normal", "urgent")[i % 5 == 0],
                    gres=f"gpu:{1 + i % 2}",
                    run_time_s=10 + 13 * i % 50,
                    time_limit_s=60 + 60 * (i % 3),
                )
            )
        slurm.run_until_idle()
        return slurm.history

    assert trace() == trace()
    assert all(run.state == "COMPLETED" for run in trace().values())


# Requeue, cancel, failing nodes


@pytest.mark.parametrize(
    ("by", "state"), [("user", "REQUEUED"), ("node_fail", "NODE_FAIL"), ("preempted", "PREEMPTED")]
)
def test_requeued_job_counts_from_now_and_remembers_its_wait(by: str, state: str) -> None:
    """A requeue resets the submit time; accounting keeps the earlier run (job_requeue; sacct -D)."""
    slurm = one_node()
    fill(slurm, 100)
    slurm.submit(Submission(run_time_s=100))
    write(slurm, "2", 12)
    slurm.advance(T0 + 130)
    slurm.requeue(2, by)
    job = job_of(slurm, 2)
    assert (job.state, job.submit_s, job.eligible_s, job.start_s) == ("PENDING", T0 + 130, T0 + 130, None)
    assert (job.restarts, job.site_factor) == (1, 12)
    assert slurm.read_past_runs([1, 2, 99]) == {2: (PastRun(state, 100),)}
    slurm.run_until_idle()
    assert starts(slurm)["2"] == 130
    assert slurm.history[2].end_s == T0 + 230


def test_past_runs_are_oldest_first() -> None:
    """Each run ends up in accounting in its turn, its wait from eligible or submit time (sacct -D)."""
    slurm = one_node()
    slurm.submit(Submission(begin_s=T0 + 20, run_time_s=100))
    slurm.advance(T0 + 30)
    slurm.requeue(1)
    slurm.advance(T0 + 40)
    slurm.requeue(1, "preempted")
    assert slurm.read_past_runs([1]) == {1: (PastRun("REQUEUED", 0), PastRun("PREEMPTED", 0))}


def test_requeued_job_stays_pinned() -> None:
    """A pin survives the requeue (job_mgr.c: direct_set_prio is kept)."""
    slurm = one_node()
    slurm.submit(Submission(run_time_s=100))
    slurm.update_priority(1, 900)
    slurm.schedule()
    slurm.requeue(1)
    assert (job_of(slurm, 1).priority, job_of(slurm, 1).pinned) == (900, True)


def test_only_running_jobs_are_requeued() -> None:
    """A pending job has nothing to requeue, an ended one is gone (ESLURM_JOB_PENDING, _FINISHED)."""
    slurm = one_node()
    slurm.submit(Submission(run_time_s=5))
    with pytest.raises(CommandFailedError, match="Job is pending execution"):
        slurm.requeue(1)
    slurm.run_until_idle()
    with pytest.raises(CommandFailedError, match="Job/step already completing or completed"):
        slurm.requeue(1)


def test_failing_node_requeues_its_jobs() -> None:
    """Jobs of a node that goes DOWN are requeued as NODE_FAIL, others run on (kill_running_job_by_node)."""
    slurm = two_nodes()
    slurm.submit(Submission(gres=f"gpu:{A100}:1", array="0-1", run_time_s=100))
    slurm.submit(Submission(gres=f"gpu:{V100}:1", run_time_s=100))
    slurm.advance(T0 + 10)
    slurm.fail("a")
    assert [(job.label, job.state) for job in slurm.read_jobs()] == [
        ("1_1", "PENDING"),
        ("2", "RUNNING"),
        ("1_0", "PENDING"),
    ]
    assert slurm.read_past_runs([1, 2, 3]) == {1: (PastRun("NODE_FAIL", 0),), 3: (PastRun("NODE_FAIL", 0),)}
    slurm.advance(T0 + 50)
    slurm.resume("a")
    slurm.run_until_idle()
    assert starts(slurm) == {"2": 0, "1_1": 50, "1_0": 50}


def test_failing_node_requeues_a_het_job_as_a_whole() -> None:
    """One component's node takes the whole het job back into the queue (heterogeneous_jobs)."""
    slurm = two_nodes()
    slurm.submit_het(two_components())
    slurm.schedule()
    slurm.fail("v")
    assert [job.state for job in slurm.read_jobs()] == ["PENDING", "PENDING"]


def test_cancelled_job_frees_its_node() -> None:
    """scancel ends a job and gives back what it had (scancel(1))."""
    slurm = one_node()
    fill(slurm)
    slurm.submit(Submission(run_time_s=10))
    slurm.advance(T0 + 5)
    slurm.cancel(1)
    assert slurm.schedule() == (2,)
    assert (slurm.history[1].state, slurm.history[1].end_s) == ("CANCELLED", T0 + 5)
    with pytest.raises(CommandFailedError, match="Job/step already completing or completed"):
        slurm.cancel(1)
    with pytest.raises(CommandFailedError, match="Invalid job id specified"):
        slurm.cancel(77)
