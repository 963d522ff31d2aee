"""slurm_score/factors: wait, remaining, size and qos, each value worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from slurm_score.factors import registry
from slurm_score.factors.size import SizeParams
from slurm_score.factors.wait import RequeueCause, WaitParams, waits_s
from slurm_score.hints import Hints, Urgency
from slurm_score.model import Job, Partition, PastRun, Predicted, Queue
from tests.unit.builders import (
    DAY,
    HOUR,
    NOW,
    drained,
    make_cluster,
    make_gpu_job,
    make_job,
    make_queue,
    typed,
)

KEEP: tuple[RequeueCause, ...] = ("NODE_FAIL", "PREEMPTED")


def value(name: str, job: Job, queue: Queue | None = None, **params: Any) -> float:
    """Return a factor's value for one job, with its default parameters but for those given."""
    factor = registry()[name]
    term = factor.compute(queue or make_queue(job), factor.params(**params))
    assert term.values.shape == (1,)
    return float(term.values[0])


def wait_of(job: Job, keep_after: tuple[RequeueCause, ...]) -> float:
    """Return the wait in s of one job."""
    return float(waits_s(make_queue(job), WaitParams(keep_after=keep_after))[0])


def words(name: str, job: Job) -> str:
    """Return how a factor describes its value for one job."""
    factor = registry()[name]
    return factor.describe(make_queue(job), factor.params(), 0)


# wait: min(1, wait / 54 h)


@pytest.mark.parametrize(
    ("wait_s", "factor"),
    [(0, 0.0), (27 * HOUR, 0.5), (54 * HOUR - 1944, 0.99), (54 * HOUR, 1.0), (400 * HOUR, 1.0)],
)
def test_wait_grows_to_1_over_max_wait(wait_s: int, factor: float) -> None:
    """Case 58: bounded by 1, and proportional below it, unlike OAR's max() where min() was meant."""
    assert value("wait", make_job(wait_s=wait_s)) == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "wait_s"),
    [
        pytest.param({"submit_s": NOW - 100, "eligible_s": NOW - 100}, 100, id="eligible when submitted"),
        pytest.param({"submit_s": NOW - 500, "eligible_s": NOW - 100}, 100, id="begin time, dependency over"),
        pytest.param({"submit_s": NOW - 100, "eligible_s": NOW - 10 * DAY}, 100, id="begin time in the past"),
        pytest.param({"submit_s": NOW - 500, "eligible_s": None}, 0, id="dependency open"),
        pytest.param({"submit_s": NOW - 500, "eligible_s": NOW + 60}, 0, id="begin time to come"),
        pytest.param({"submit_s": NOW - 500, "eligible_s": NOW - 500, "priority": 0}, 0, id="held"),
        pytest.param({"submit_s": NOW + 5, "eligible_s": NOW - 5}, 0, id="submitted after the reading"),
    ],
)
def test_wait_runs_while_the_job_could_start(changes: dict[str, Any], wait_s: float) -> None:
    """Wait = now - max(eligible, submit); --begin in the past earns nothing (slurm-facts 8.30)."""
    assert wait_of(make_job(**changes), KEEP) == wait_s


@pytest.mark.parametrize(
    ("past_runs", "keep_after", "wait_s"),
    [
        pytest.param([], KEEP, 100, id="never ran"),
        pytest.param([("NODE_FAIL", 1000)], KEEP, 1100, id="node failed"),
        pytest.param([("PREEMPTED", 1000)], KEEP, 1100, id="preempted"),
        pytest.param([("REQUEUED", 1000)], KEEP, 100, id="requeued by hand"),
        pytest.param([("REQUEUED", 1000)], (*KEEP, "REQUEUED"), 1100, id="requeue kept by the switch"),
        pytest.param([("NODE_FAIL", 1000)], (), 100, id="nothing kept by the switch"),
        pytest.param([("NODE_FAIL", 1000), ("PREEMPTED", 10)], KEEP, 1110, id="two runs kept"),
        pytest.param([("NODE_FAIL", 1000), ("REQUEUED", 10)], KEEP, 100, id="a requeue by hand ends it"),
        pytest.param([("REQUEUED", 1000), ("NODE_FAIL", 10)], KEEP, 110, id="kept since the last requeue"),
        pytest.param([("FAILED", 1000)], KEEP, 100, id="another end"),
    ],
)
def test_requeued_job_keeps_its_wait_by_the_rule(
    past_runs: list[tuple[str, float]], keep_after: tuple[str, ...], wait_s: float
) -> None:
    """Case 44: NODE_FAIL and preemption keep the earned wait, a requeue by the user does not, unless told."""
    job = make_job(wait_s=100, restarts=len(past_runs), past_runs=tuple(PastRun(*run) for run in past_runs))
    params = WaitParams.model_validate({"keep_after": keep_after})
    assert wait_of(job, params.keep_after) == wait_s


def test_requeued_job_that_cant_start_yet_has_no_wait() -> None:
    """What it earned comes back when it can start."""
    job = make_job(eligible_s=None, past_runs=(PastRun("NODE_FAIL", 1000.0),))
    assert wait_of(job, KEEP) == 0


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (make_job(wait_s=HOUR), "has waited 01:00:00 of 2-06:00:00"),
        (
            make_job(wait_s=HOUR, past_runs=(PastRun("NODE_FAIL", 60.0),)),
            "has waited 01:01:00 of 2-06:00:00, earlier runs included",
        ),
        (make_job(eligible_s=None), "can't start yet, so the wait doesn't count"),
    ],
)
def test_wait_is_described_in_words(job: Job, text: str) -> None:
    """Explain shows the time that was counted."""
    assert words("wait", job) == text


# remaining: 30 min / (30 min + remaining)


@pytest.mark.parametrize(
    ("limit_s", "factor"),
    [
        pytest.param(1800.0, 0.5, id="half_at"),
        pytest.param(5400.0, 0.25, id="30 / (30 + 90)"),
        pytest.param(600.0, 0.75, id="30 / (30 + 10)"),
        pytest.param(0.0, 1.0, id="nothing left"),
        pytest.param(float("inf"), 0.0, id="case 17: UNLIMITED"),
    ],
)
def test_remaining_is_higher_for_shorter_jobs(limit_s: float, factor: float) -> None:
    """Cases 57 and 59: seconds throughout, bounded, and no gain from a tiny limit beyond 1."""
    assert value("remaining", make_job(time_limit_s=limit_s)) == factor


@pytest.mark.parametrize(
    ("job", "text"),
    [
        pytest.param(
            make_job(hints=Hints(est_s=600.0, left_s=300.0)),
            "00:05:00 to run by its hint left=; one half at 00:30:00",
            id="what is left comes before the estimate",
        ),
        pytest.param(
            make_job(hints=Hints(est_s=600.0)),
            "00:10:00 to run by its hint est=; one half at 00:30:00",
            id="the estimate before the limit",
        ),
        pytest.param(
            make_job(hints=Hints(est_s=7200.0)),
            "01:00:00 to run by its hint est= capped by the time limit; one half at 00:30:00",
            id="no hint above the limit",
        ),
        pytest.param(
            make_job(), "01:00:00 to run by its time limit; one half at 00:30:00", id="its own limit"
        ),
        pytest.param(
            make_job(time_limit_s=None, partitions=("gpu",)),
            "02:00:00 to run by its partition's default time; one half at 00:30:00",
            id="case 22: unset, partition's DefaultTime",
        ),
        pytest.param(
            make_job(time_limit_s=None),
            "7-00:00:00 to run by its partition's maximum time; one half at 00:30:00",
            id="case 22: unset, no DefaultTime, MaxTime",
        ),
        pytest.param(
            make_job(time_limit_s=None, partitions=("gone",)),
            "nothing tells how long it runs: counted as 0.5",
            id="nothing known",
        ),
        pytest.param(
            make_job(time_limit_s=None, partitions=("gpu",), hints=Hints(left_s=DAY)),
            "02:00:00 to run by its hint left= capped by the partition's default time; one half at 00:30:00",
            id="a hint is capped by the default time that will be in force",
        ),
    ],
)
def test_remaining_takes_the_first_source_that_tells(job: Job, text: str) -> None:
    """Hint left=, hint est=, time limit, partition's default, partition's maximum; then `unknown`."""
    assert words("remaining", job) == text


@pytest.mark.parametrize(
    ("job", "seconds", "factor", "text"),
    [
        pytest.param(
            make_job(hints=Hints(est_s=60.0)),
            1800.0,
            0.5,
            "00:30:00 to run, predicted: why; one half at 00:30:00",
            id="before hint and limit",
        ),
        pytest.param(
            make_job(time_limit_s=600.0),
            1800.0,
            0.75,
            "00:10:00 to run, predicted: why, capped by the time limit; one half at 00:30:00",
            id="never above the limit",
        ),
        pytest.param(
            make_job(time_limit_s=None, partitions=("nowhere",)),
            1800.0,
            0.5,
            "00:30:00 to run, predicted: why; one half at 00:30:00",
            id="where nothing else tells",
        ),
    ],
)
def test_what_is_predicted_comes_before_all_else(job: Job, seconds: float, factor: float, text: str) -> None:
    """With its source in words; hints are in it already, as far as they are believed."""
    queue = replace(make_queue(job), predicted={job.job_id: Predicted(seconds, "why")})
    assert value("remaining", job, queue) == factor
    assert registry()["remaining"].describe(queue, registry()["remaining"].params(), 0) == text


@pytest.mark.parametrize(
    ("equivalent_s", "factor", "counts"),
    [
        (600.0, 0.75, "; 60% end within that, by what all may take it counts as 00:10:00"),
        (1800.0, 0.5, ""),
        (9999999.0, 1 / 3, "; 60% end within that, by what all may take it counts as 01:00:00"),
    ],
)
def test_a_prediction_counts_by_its_certainty_equivalent(
    equivalent_s: float, factor: float, counts: str
) -> None:
    """Both are told: the time that most end within and the one that is scored, never above the limit."""
    job = make_job(time_limit_s=3600.0)
    queue = replace(make_queue(job), predicted={job.job_id: Predicted(1800.0, "why", equivalent_s)})
    remaining = registry()["remaining"]
    assert value("remaining", job, queue) == pytest.approx(factor)
    text = remaining.describe(queue, remaining.params(), 0)
    assert text == f"00:30:00 to run, predicted: why{counts}; one half at 00:30:00"


def test_jobs_without_a_prediction_keep_their_limit() -> None:
    """Half of the queue may be known."""
    queue = replace(make_queue(make_job(1), make_job(2)), predicted={2: Predicted(1800.0, "why")})
    remaining = registry()["remaining"]
    assert remaining.compute(queue, remaining.params()).values.tolist() == [pytest.approx(1 / 3), 0.5]


def test_unlimited_partition_gives_no_gain() -> None:
    """Case 21: a job without limit in a partition without limit is accepted and runs for ever."""
    cluster = make_cluster(partitions={"main": Partition(name="main")})
    job = make_job(time_limit_s=None)
    assert value("remaining", job, make_queue(job, cluster=cluster)) == 0.0


def test_unknown_remaining_is_the_policys_value() -> None:
    """The admin says what a job about which nothing is known is worth."""
    job = make_job(time_limit_s=None, partitions=("gone",))
    assert value("remaining", job) == 0.5
    assert value("remaining", job, unknown=0.1) == 0.1


# size: asked / capacity of the partition


@pytest.mark.parametrize(
    ("job", "factor"),
    [
        pytest.param(make_job(cpus=6), 0.25, id="6 of main's 24 CPUs"),
        pytest.param(make_job(cpus=24), 1.0, id="all of them"),
        pytest.param(make_job(cpus=48), 1.0, id="more than there are"),
        pytest.param(make_gpu_job(1, "gpu:a100:2"), 0.25, id="2 of gpu's 8 GPUs, whatever their type"),
        pytest.param(make_gpu_job(1, "gpu:8", cpus=1), 1.0, id="GPUs count, not the CPUs beside them"),
        pytest.param(make_job(cpus=6, partitions=("main", "gpu")), 0.25, id="the larger of two partitions"),
        pytest.param(make_job(cpus=6, partitions=("gone",)), 0.0, id="a partition that nobody knows"),
        pytest.param(make_job(cpus=6, partitions=()), 0.0, id="no partition"),
        pytest.param(make_job(partitions=(), gpus=typed("a100", 1)), 0.0, id="GPUs of no partition"),
    ],
)
def test_size_is_the_share_of_the_partition(job: Job, factor: float) -> None:
    """Asked GPUs over the partition's GPUs, or CPUs over CPUs for a job without GPUs."""
    assert value("size", job) == factor


def test_size_counts_broken_nodes_as_capacity() -> None:
    """Else every job would look larger while nodes are drained, and the order would flap."""
    job = make_gpu_job(1, "gpu:2")
    assert value("size", job, make_queue(job, cluster=drained(make_cluster(), "g1", "g3"))) == 0.25


def test_size_is_described_in_words() -> None:
    """Explain shows both numbers and the unit."""
    assert words("size", make_job(cpus=6)) == "asks for 6 of the 24 CPUs of its partition"
    assert words("size", make_gpu_job(1, "gpu:2")) == "asks for 2 of the 8 GPUs of its partition"


# qos: priority / highest priority


@pytest.mark.parametrize(
    ("qos", "factor"), [("normal", 0.0), ("low", 0.25), ("high", 1.0), ("gone", 0.0), ("", 0.0)]
)
def test_qos_is_its_share_of_the_highest(qos: str, factor: float) -> None:
    """QOS normal 0, low 250, high 1,000; an unknown QOS, as after a requeue in hold (case 34), has 0."""
    assert value("qos", make_job(qos=qos)) == factor


@pytest.mark.parametrize("qos", [{}, {"normal": 0, "high": 0}])
def test_qos_is_0_where_no_qos_has_a_priority(qos: dict[str, int]) -> None:
    """Nothing to divide by: the site doesn't use QOS priorities."""
    job = make_job(qos="high")
    assert value("qos", job, make_queue(job, cluster=make_cluster(qos=qos))) == 0.0


@pytest.mark.parametrize(
    ("qos", "text"),
    [
        ("low", "QOS low has priority 250 of at most 1000"),
        ("gone", "QOS gone is not known to slurmctld"),
        ("", "QOS (none) is not known to slurmctld"),
    ],
)
def test_qos_is_described_in_words(qos: str, text: str) -> None:
    """Explain says what the site gave it."""
    assert words("qos", make_job(qos=qos)) == text


# all


@pytest.mark.parametrize(
    ("name", "neutral"), [("wait", 0.0), ("remaining", 0.5), ("size", 0.0), ("qos", 0.0), ("gres_fit", 0.0)]
)
def test_neutral_value_is_that_of_an_ordinary_new_job(name: str, neutral: float) -> None:
    """What a factor is worth when the snapshot is missing: no wait, a middling length, nothing else."""
    assert registry()[name].neutral == neutral


@pytest.mark.parametrize("name", ["wait", "remaining", "size", "qos", "gres_fit"])
def test_empty_queue_has_no_values(name: str) -> None:
    """No job, no special case."""
    factor = registry()[name]
    assert factor.compute(make_queue(), factor.params()).values.shape == (0,)


def test_values_stand_in_the_order_of_the_queue() -> None:
    """Row i belongs to job i."""
    queue = make_queue(make_job(1, cpus=24), make_job(2, cpus=6), make_job(3, cpus=12))
    assert registry()["size"].compute(queue, SizeParams()).values.tolist() == [1.0, 0.25, 0.5]


def test_the_limit_of_several_partitions_is_the_longest_that_one_of_them_gives() -> None:
    """main has no default time but 7 days at most, gpu a default of 2 h: either may run the job."""
    job = make_job(partitions=("main", "gpu"), time_limit_s=None)
    assert words("remaining", job).startswith("7-00:00:00 to run by its partition's maximum time")


def test_progress_shortens_what_is_left() -> None:
    """60 % of an hour's limit is done: 24 minutes are left; of the estimate, 8 of 20."""
    by_limit = make_job(hints=Hints(progress=0.6))
    assert words("remaining", by_limit).startswith("00:24:00 to run by its time limit and hint progress=")
    by_hint = make_job(hints=Hints(est_s=1200.0, progress=0.6))
    assert words("remaining", by_hint).startswith("00:08:00 to run by its hints est= and progress=")


@pytest.mark.parametrize(
    ("qos", "urgency", "factor"),
    [
        ("low", "low", 0.125),
        ("low", "normal", 0.25),
        ("low", "high", 0.25),  # not open to this QOS
        ("high", "low", 0.5),
        ("normal", "high", 0.5),  # half-way from 0 to 1
    ],
)
def test_urgency_moves_the_qos_as_far_as_the_policy_allows(qos: str, urgency: Urgency, factor: float) -> None:
    """Everyone may say low; high is for the QOS that the policy names."""
    job = make_job(qos=qos, hints=Hints(urgency=urgency))
    assert value("qos", job, urgent=("normal",)) == factor
