"""slurm_score/counterfactual.py: what a change promises, worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from slurm_score.counterfactual import Counterfactual, counterfactuals
from slurm_score.gres import GpuCount, gpu_request
from slurm_score.hints import Hints
from slurm_score.model import Cluster, Job, Offsets, Predicted, Queue
from slurm_score.policy import Policy
from slurm_score.score import score_queue
from slurm_score.standing import Standing
from tests.unit.builders import DAY, HOUR, drained, make_cluster, make_gpu_job, make_job, make_queue

BIG = make_gpu_job(2, "gpu:a100:4", user="bob", qos="high")


def nothing(_: Sequence[Job]) -> Mapping[int, Predicted]:
    """Predict nothing, as before any run has ended."""
    return {}


def by_queue(queue: Queue, i: int = 0, others: Sequence[Job] = ()) -> dict[str, Counterfactual]:
    """Return what would help job i under the default policy, by words."""
    scores = score_queue(queue, Policy())
    found = counterfactuals(queue, scores, Policy(), i, nothing, {}, (*queue.jobs, *others))
    return {one.words: one for one in found}


def found(
    *jobs: Job, cluster: Cluster | None = None, others: Sequence[Job] = ()
) -> dict[str, Counterfactual]:
    """Return what would help the first of these jobs."""
    return by_queue(make_queue(*jobs, cluster=cluster), others=others)


def in_use(cluster: Cluster, *names: str) -> Cluster:
    """Return the cluster with one GPU of each of these nodes taken."""
    return replace(
        cluster,
        nodes=tuple(
            replace(node, gpus_used=GpuCount(1, dict.fromkeys(node.gpus.types, 1)))
            if node.name in names
            else node
            for node in cluster.nodes
        ),
    )


def test_another_type_is_promised_the_score_under_the_pressure_that_it_leaves() -> None:
    """Now 150 + 25 + 100 x 1.25 / 2.25 for 5 of 4 a100; then 150 + 25 + 100 x 0.25 / 1.25 for 1 of 4 v100.

    35.6 points less, and yet four GPUs fewer in front of it.
    """
    told = found(make_gpu_job(1, "gpu:a100:1"), BIG)["v100 instead of a100"]
    assert told.score == pytest.approx(195.0)
    assert told.gain == pytest.approx(195.0 - 175.0 - 125.0 / 2.25)
    assert told.helps == ("has fewer GPUs ahead",)
    assert told.standings == (Standing("gpu", ("v100",), 1, 1, 0),)
    assert (told.rank, told.of, told.ranks_gained) == (2, 2, 0)
    assert told.resubmitted == told.score
    assert (told.options, told.update) == ("--gpus=v100:1", "")


def test_another_type_that_is_free_fits_now() -> None:
    """One a100 of each of two nodes is taken: two on one node can't be had, two v100 can."""
    job = make_job(partitions=("gpu",), gpus=gpu_request(per_node="gpu:a100:2"))
    told = found(job, cluster=in_use(make_cluster(), "g1", "g2"))
    assert "fits what is free now" in told["v100 instead of a100"].helps
    assert (
        "fits what is free now"
        not in told["limit 00:30:00 instead of 01:00:00 (if it surely ends by then)"].helps
    )


def test_fewer_gpus_cost_points_and_fit_now() -> None:
    """200 x 4/8 + 100 x 1/2 become 200 x 2/8 + 100 x 0.5 / 1.5: 66.7 less; two of the four are free."""
    cluster = in_use(make_cluster(), "g1", "g2")
    told = found(make_gpu_job(1, "gpu:a100:4"), cluster=cluster)["2 GPUs instead of 4"]
    assert told.gain == pytest.approx(-50.0 - 50.0 + 100.0 / 3)
    assert told.helps == ("fits what is free now",)


def test_a_shorter_limit_is_promised_its_points_and_ranks() -> None:
    """450 x 30/90 becomes 450 x 30/60: 75 more, which brings it before two of the three in front."""
    job = make_job(1)
    rivals = (
        make_job(2, time_limit_s=3000.0),  # 168.8
        make_job(3, time_limit_s=2400.0),  # 192.9
        make_job(4, time_limit_s=600.0),  # 337.5
    )
    told = found(job, *rivals)["limit 00:30:00 instead of 01:00:00 (if it surely ends by then)"]
    assert (told.gain, told.ranks_gained, told.rank, told.of) == (75.0, 2, 2, 4)
    assert (told.helps, told.exact) == (("scores higher",), True)


def test_another_qos_gives_its_points() -> None:
    """low is 250 of 1000: 125 points; the other job runs, and tells that alice may use it."""
    running = make_job(9, qos="low", state="RUNNING")
    told = found(make_job(1), others=[running])["QOS low instead of normal, as job 9 has it"]
    assert told.gain == pytest.approx(125.0)
    assert told.update == "scontrol update JobId=1 QOS=low"


def test_another_partition_with_less_in_front_of_it_helps() -> None:
    """The same points, and nobody there."""
    cluster = make_cluster()
    nodes = tuple(
        replace(node, partitions=("main", "gpu")) if node.gpus.total else node for node in cluster.nodes
    )
    told = found(make_gpu_job(1, "gpu:a100:1"), BIG, cluster=replace(cluster, nodes=nodes))
    main = told["partition main instead of gpu"]
    assert main.gain == pytest.approx(0.0)
    assert (main.rank, main.of, main.ranks_gained) == (1, 1, 1)
    assert main.helps == ("has fewer GPUs ahead",)
    assert main.standings == (Standing("main", ("a100",), 1, 1, 0),)


def test_what_is_submitted_anew_has_not_waited() -> None:
    """27 of 54 h are 175 points, which only the change in place keeps."""
    (told,) = found(make_job(1, wait_s=27 * HOUR, time_limit_s=3.0 * DAY)).values()
    assert told.score - told.resubmitted == pytest.approx(175.0)


def test_what_can_only_be_submitted_anew_is_promised_no_wait() -> None:
    """175 points of 27 h are lost with it, and the places with them: a job of an hour ago goes first."""
    later = make_gpu_job(3, "gpu:v100:1", wait_s=HOUR)
    told = found(make_gpu_job(1, "gpu:a100:1", wait_s=27 * HOUR), BIG, later)["v100 instead of a100"]
    assert told.score == told.resubmitted == pytest.approx(175.0 + 100 / 3)  # 2 of 4 v100: 0.5 / 1.5
    assert told.gain == pytest.approx(175.0 + 100 / 3 - (350.0 + 125.0 / 2.25))
    assert told.standings == (Standing("gpu", ("v100",), 2, 2, 1),)
    assert told.ranks_gained == -1


def test_another_type_for_each_node_keeps_the_wait() -> None:
    """Slurm changes that of a waiting job."""
    each = gpu_request(per_node="gpu:a100:1")
    told = found(make_job(1, wait_s=27 * HOUR, partitions=("gpu",), gpus=each), BIG)["v100 instead of a100"]
    assert told.update == "scontrol update JobId=1 Gres=gpu:v100:1"
    assert (round(told.score, 6), round(told.resubmitted, 6)) == (370.0, 195.0)


def test_the_greatest_gain_comes_first() -> None:
    """125 points of the QOS, 75 of the limit; what gives nothing is left out."""
    running = make_job(9, qos="low", state="RUNNING")
    queue = make_queue(make_job(1))
    scores = score_queue(queue, Policy())
    told = counterfactuals(queue, scores, Policy(), 0, nothing, {}, (*queue.jobs, running))
    assert [(one.kind, round(one.gain, 6)) for one in told] == [("QOS", 125.0), ("time limit", 75.0)]


def test_offsets_that_all_share_change_no_rank() -> None:
    """What is compared are SiteFactors with the same offset."""
    jobs = (make_job(1), make_job(2, time_limit_s=2400.0))
    plain = found(*jobs)
    moved = by_queue(replace(make_queue(*jobs), offsets=Offsets(333.3, 12.0)))
    assert [one.ranks_gained for one in plain.values()] == [one.ranks_gained for one in moved.values()] == [1]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(priority=0), id="held"),
        pytest.param(make_job(pinned=True, priority=5000), id="pinned"),
        pytest.param(make_job(het_job_id=1), id="part of a het job"),
        pytest.param(make_job(wait_s=46 * HOUR), id="past its guard"),
        pytest.param(make_job(hints=Hints(ckpt=True), restarts=1), id="goes on from a checkpoint"),
    ],
)
def test_whom_no_score_can_help_is_promised_nothing(job: Job) -> None:
    """Or of whom too little is known."""
    assert found(job) == {}


def test_a_job_that_waits_for_another_is_told_what_it_will_be_worth() -> None:
    """It presses on nobody yet, so the others' pressure stays."""
    told = found(make_gpu_job(1, "gpu:a100:1", eligible_s=None, dependency="afterok:2"), BIG)
    assert told["limit 00:30:00 instead of 01:00:00 (if it surely ends by then)"].gain == 75.0


def test_types_on_drained_nodes_are_not_what_helps() -> None:
    """No v100 starts jobs now: its contention is infinite, which would give 100 points, and none is ahead."""
    told = found(make_gpu_job(1, "gpu:a100:1"), BIG, cluster=drained(make_cluster(), "g3"))
    assert "v100 instead of a100" not in told


def test_points_for_a_longer_line_are_no_help() -> None:
    """An a100 would give 35.6 points more, since it is more in demand: four GPUs stand in front of it."""
    assert "a100 instead of v100" not in found(make_gpu_job(1, "gpu:v100:1"), BIG)


def test_points_for_a_line_that_is_no_longer_help() -> None:
    """With g2 drained one of two a100 is asked for, not one of four v100: 33.3 points for 20, none ahead."""
    told = found(make_gpu_job(1, "gpu:v100:1"), cluster=drained(make_cluster(), "g2"))["a100 instead of v100"]
    assert told.gain == pytest.approx(100 / 3 - 20)
    assert told.helps == ("scores higher",)


@pytest.mark.parametrize(("days", "told"), [pytest.param(18, 1, id="0.519"), pytest.param(20, 0, id="0.467")])
def test_less_than_half_a_point_is_not_worth_a_word(days: int, told: int) -> None:
    """450 x 0.5 h / (0.5 h + limit), for half of the limit and for all of it."""
    assert len(found(make_job(time_limit_s=days * float(DAY)))) == told


@pytest.mark.parametrize(
    "job",
    [make_job(hints=Hints(ckpt=True)), make_job(restarts=1), make_job(hints=Hints(ckpt=False), restarts=1)],
)
def test_who_begins_anew_is_promised_as_others_are(job: Job) -> None:
    """A checkpoint before the first run, or a requeue without one, saves nothing."""
    assert len(found(job)) == 1


def test_an_array_is_quoted_for_the_shell() -> None:
    """A shell would take the brackets for a pattern."""
    (told,) = found(make_job(1, update_id="1_[0-9]", tasks="0-9")).values()
    assert told.update == "scontrol update 'JobId=1_[0-9]' TimeLimit=30"


def test_without_its_users_runs_the_run_time_is_taken_as_predicted_now() -> None:
    """The file of the service holds the runs of the last users only; such a promise says that it is none."""
    queue = replace(make_queue(make_job(1)), predicted={1: Predicted(600.0, "last 5 of alice's jobs")})
    scores = score_queue(queue, Policy())
    running = make_job(9, qos="low", state="RUNNING")

    def by_site(jobs: Sequence[Job]) -> Mapping[int, Predicted]:
        return {job.job_id: Predicted(900.0, "the site's last jobs") for job in jobs}

    (told,) = counterfactuals(queue, scores, Policy(), 0, by_site, {}, (running,))
    assert (told.kind, round(told.gain, 6), told.exact) == ("QOS", 125.0, False)
