"""Laws of what would put a job forward: the promise is what the next cycle finds once it is done."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.counterfactual import Counterfactual, counterfactuals
from slurm_score.factors.remaining import limits_s
from slurm_score.gres import NO_GPUS, Asked, GpuCount, gpu_request
from slurm_score.hints import NO_HINTS, Hints
from slurm_score.model import Cluster, EndedRun, Job, Predicted, Queue, RunTimes
from slurm_score.policy import Policy
from slurm_score.predict.estimator import Estimator
from slurm_score.ranks import rank_queue
from slurm_score.score import queue_order, score_queue
from slurm_score.standing import standings
from tests.property.strategies import policies, queue_of
from tests.unit.builders import NOW, make_cluster, make_job, make_node

USUAL = {"alice": RunTimes(7, 1800.0)}
run_times_s = st.lists(st.integers(60, 20_000).map(float), max_size=4)


def gpus_of(gpu_type: str, count: int) -> GpuCount:
    """Return a count of one type."""
    return GpuCount(count, {gpu_type: count})


def learned(elapsed_s: Sequence[float]) -> Estimator:
    """Return what is known once alice's jobs ran for so long."""
    estimator = Estimator()
    estimator.observe(
        EndedRun(user="alice", limit_s=36_000.0, submit_s=NOW - 90_000, end_s=NOW - 50_000 + i, elapsed_s=one)
        for i, one in enumerate(elapsed_s)
    )
    return estimator


CLUSTER = make_cluster(
    nodes=(
        *(
            make_node(f"a{i}", "a100:2", partitions=("gpu",), gpus_used=gpus_of("a100", i % 3))
            for i in range(4)
        ),
        *(make_node(f"v{i}", "v100:4", partitions=("gpu", "main")) for i in range(2)),
        make_node("c1", cpus=24),
    )
)
KINDS = {"GPU type", "size", "time limit", "partition", "QOS"}


@st.composite
def realistic_jobs(draw: st.DrawFn, job_id: int) -> Job:
    """Draw a job that Slurm would take on CLUSTER, and which only waits its turn."""
    gres = draw(
        st.sampled_from(("", "gpu:1", "gpu:2", "gpu:a100:1", "gpu:a100:2", "gpu:v100:2", "gpu:v100:4"))
    )
    nodes = draw(st.integers(1, 4))
    by_node = draw(st.booleans())
    texts: Asked = {"per_node": gres, "nodes": nodes} if by_node else {"per_job": gres}
    return make_job(
        job_id,
        user=draw(st.sampled_from(("alice", "bob"))),
        qos=draw(st.sampled_from(("normal", "low", "high"))),
        partitions=("gpu",) if gres else draw(st.sampled_from((("main",), ("gpu",), ("main", "gpu")))),
        wait_s=draw(st.integers(0, 50 * 3600)),
        time_limit_s=draw(st.one_of(st.none(), st.integers(1, 1440).map(lambda minutes: 60.0 * minutes))),
        nodes=nodes if by_node or not gres else 1,
        cpus=nodes,
        gpus=gpu_request(**texts) if gres else NO_GPUS,
        tasks=draw(st.sampled_from(("", "", "0-9"))),
        hints=draw(st.sampled_from((NO_HINTS, NO_HINTS, Hints(est_s=600.0), Hints(gpu=("a100",))))),
        eligible_s=draw(st.sampled_from((0, 0, 0, None))),
    )


@st.composite
def realistic_queues(draw: st.DrawFn) -> Queue:
    """Draw a queue of up to eight such jobs."""
    return queue_of(tuple(draw(realistic_jobs(i + 1)) for i in range(draw(st.integers(1, 8)))), CLUSTER)


def advised(job: Job, promise: Counterfactual) -> Job:
    """Return the job as the advice makes it, read anew from its text: changed in place, or submitted anew."""
    if not promise.update:
        (option,) = shlex.split(promise.options)
        return submitted(changed(job, *option.removeprefix("--").split("=", 1)))
    scontrol, verb, named, setting = shlex.split(promise.update)
    assert (scontrol, verb, named) == ("scontrol", "update", f"JobId={job.update_id}")
    return changed(job, *setting.split("=", 1))


def changed(job: Job, key: str, value: str) -> Job:
    """Return the job with one setting of scontrol's or option of sbatch's changed."""
    match key:
        case "TimeLimit":
            return replace(job, time_limit_s=60.0 * int(value))
        case "Partition":
            return replace(job, partitions=(value,))
        case "QOS":
            return replace(job, qos=value)
        case "Gres":
            return replace(job, gpus=gpu_request(per_node=value, nodes=job.nodes))
        case "gpus":
            return replace(job, gpus=gpu_request(per_job=f"gpu:{value}"))
        case "nodes":
            return on_nodes(job, int(value))
    raise AssertionError(key)


def on_nodes(job: Job, nodes: int) -> Job:
    """Return the job on fewer nodes, with what stood on each of them."""
    name = f":{job.gpus.types[0][0]}" if job.gpus.types else ""
    gpus = gpu_request(per_node=f"gpu{name}:{job.gpus.per_node}", nodes=nodes)
    cpus = max(1, job.cpus * nodes // job.nodes)
    return replace(job, nodes=nodes, cpus=cpus, gpus=gpus, max_nodes=min(nodes, job.max_nodes))


def submitted(job: Job) -> Job:
    """Return a job as it is when it was just submitted."""
    eligible_s = NOW if job.eligible(NOW) else job.eligible_s
    return replace(job, submit_s=NOW, eligible_s=eligible_s, past_runs=(), restarts=0)


class Case:
    """One queue and what is promised to its first job."""

    def __init__(self, queue: Queue, policy: Policy, elapsed_s: Sequence[float]) -> None:
        self.policy, self.estimator = policy, learned(elapsed_s)
        self.queue = self.of(queue.jobs, queue.cluster)
        scores = score_queue(self.queue, policy)
        self.promised = counterfactuals(self.queue, scores, policy, 0, self.predict, USUAL, self.queue.jobs)

    def predict(self, jobs: Sequence[Job]) -> Mapping[int, Predicted]:
        """Return the predictions, as the next cycle makes them."""
        return self.estimator.predict_jobs(jobs, self.queue.cluster, {})

    def of(self, jobs: tuple[Job, ...], cluster: Cluster) -> Queue:
        """Return the queue that a cycle scores, everything worked out of its jobs."""
        predicted = self.estimator.predict_jobs(jobs, cluster, {})
        return replace(queue_of(jobs, cluster), predicted=predicted)

    def after(self, promise: Counterfactual) -> Queue:
        """Return the queue of the next cycle, once the first job was changed as advised."""
        first, *rest = self.queue.jobs
        return self.of((advised(first, promise), *rest), self.queue.cluster)


@given(queue=realistic_queues(), policy=policies(), elapsed_s=run_times_s)
def test_every_promise_is_kept(queue: Queue, policy: Policy, elapsed_s: list[float]) -> None:
    """Score, gain and places are those of the changed queue, scored by the same code from the beginning."""
    case = Case(queue, policy, elapsed_s)
    for promise in case.promised:
        after = case.after(promise)
        scores, now = score_queue(after, policy), score_queue(case.queue, policy)
        places, before = rank_queue(after, scores), rank_queue(case.queue, now)
        assert promise.exact
        assert promise.score == pytest.approx(float(scores.score[0]), abs=1e-9)
        assert promise.gain == pytest.approx(float(scores.score[0] - now.score[0]), abs=1e-9)
        assert (promise.rank, promise.of) == (places.rank[0], places.of[0])
        assert promise.ranks_gained == before.rank[0] - promise.rank
        key = queue_order(after, scores, 0)
        assert promise.standings == standings(after, scores.site, 0, after.jobs[0], key)


@given(queue=realistic_queues(), policy=policies(), elapsed_s=run_times_s)
def test_who_submits_anew_gets_the_score_of_a_new_job(
    queue: Queue, policy: Policy, elapsed_s: list[float]
) -> None:
    """The same job with nothing waited, and no earlier run."""
    case = Case(queue, policy, elapsed_s)
    for promise in case.promised:
        first, *rest = case.after(promise).jobs
        scores = score_queue(case.of((submitted(first), *rest), queue.cluster), policy)
        assert promise.resubmitted == pytest.approx(float(scores.score[0]), abs=1e-9)


@given(queue=realistic_queues(), policy=policies(), elapsed_s=run_times_s)
def test_no_advice_makes_a_job_longer_or_larger(queue: Queue, policy: Policy, elapsed_s: list[float]) -> None:
    """It only ever asks for less, or for something else of the same size."""
    case = Case(queue, policy, elapsed_s)
    for promise in case.promised:
        before, after = case.queue.jobs[0], case.after(promise).jobs[0]
        assert after.gpus.total <= before.gpus.total
        if promise.kind == "time limit":
            (limit_s,), (former_s,) = (limits_s([job], queue.cluster) for job in (after, before))
            assert limit_s < former_s


@given(queue=realistic_queues(), policy=policies(), elapsed_s=run_times_s)
def test_what_does_not_help_is_not_told(queue: Queue, policy: Policy, elapsed_s: list[float]) -> None:
    """Each says how it helps, and the greatest gain comes first."""
    promised = Case(queue, policy, elapsed_s).promised
    assert all(promise.helps for promise in promised)
    assert all(promise.gain >= 0.5 for promise in promised if "scores higher" in promise.helps)
    gains = [promise.gain for promise in promised]
    assert gains == sorted(gains, reverse=True)


def test_the_laws_are_not_about_nothing() -> None:
    """Of random queues enough have something to promise, of every kind."""
    kinds: set[str] = set()

    @given(queue=realistic_queues(), policy=policies(), elapsed_s=run_times_s)
    def collect(queue: Queue, policy: Policy, elapsed_s: list[float]) -> None:
        kinds.update(promise.kind for promise in Case(queue, policy, elapsed_s).promised)

    collect()
    assert kinds == KINDS
