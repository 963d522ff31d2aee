"""A cluster of nodes under Slurm's loops, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.policy import Policy
from slurm_score.sim.engine import Options
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.needs import fit
from slurm_score.sim.node_events import NodeEvent, Requeue
from slurm_score.sim.policies import QueuePolicy, named
from slurm_score.sim.scheduler import Scheduler
from tests.unit.site_support import EVERY_EVENT, SITE, Job, jobs, placed, ran, site


def starts(*rows: Job, **more: object) -> list[int]:
    """Return when each job starts."""
    start_s: list[int] = ran(rows, **more).start_s.tolist()  # type: ignore[arg-type]
    return start_s


def test_nodes_of_low_weight_come_first_then_the_best_fit() -> None:
    """n1 and n2 have weight 10; the second job goes where less is left. Source: slurm.conf(5), Weight."""
    got = placed(ran([Job(0, 9), Job(0, 9, cores=3), Job(0, 9, cores=4), Job(0, 9, cores=2)]))
    assert got == {0: ["n1"], 1: ["n1"], 2: ["n2"], 3: ["v1"]}


def test_a_job_gets_the_type_that_it_asks_for() -> None:
    """One of several types will do where it says so, any where it says nothing."""
    a100 = Job(0, 9, gpus=2, types=("a100",))
    got = placed(ran([a100, a100._replace(types=("a100", "v100")), a100._replace(types=())]))
    assert got == {0: ["a1"], 1: ["v1"], 2: ["v2"]}


def test_features_and_partitions_narrow_the_nodes() -> None:
    """& and | as Slurm writes them. Source: sbatch(1), --constraint."""
    got = placed(
        ran([Job(0, 9, features="IB&big"), Job(0, 9, features="big|nothing"), Job(0, 9, partition="gpus")])
    )
    assert got == {0: ["a1"], 1: ["a1"], 2: ["v1"]}


def test_cores_memory_and_gpus_are_shared_until_one_runs_out() -> None:
    """Two jobs fill a node's memory; a third has to wait although cores are free."""
    rows = [Job(0, 10, mem_mib=500, features="big")] * 3
    assert starts(*rows) == [0, 0, 10]
    assert starts(*[Job(0, 10, gpus=1, types=("a100",))] * 3) == [0, 0, 10]
    assert starts(*[Job(0, 10, cores=2, features="big")] * 3) == [0, 0, 10]


def test_an_exclusive_job_has_its_node_alone() -> None:
    """It waits until the node is empty, and nobody joins it. Source: sbatch(1), --exclusive."""
    rows = [Job(0, 10, features="big"), Job(1, 10, exclusive=True, features="big"), Job(2, 9, features="big")]
    assert starts(*rows) == [0, 10, 20]


def test_a_blocked_job_closes_its_partition_and_its_nodes() -> None:
    """Two small jobs wait though a1 is free: for their partition, for their node. Source: job_scheduler.c."""
    wide = Job(0, 10, nodes=2, cores=4, partition="gpus")
    small = Job(2, 10, cores=4)
    rows = [wide, wide._replace(submit_s=1), small._replace(partition="gpus"), small]
    rows += [small._replace(features="big")]
    at_once = replace(EVERY_EVENT, backfill="none")
    assert starts(*rows, options=at_once) == [0, 10, 10, 2, 20]
    assert starts(*rows[:1], *rows[2:], options=at_once) == [0, 2, 2, 12]


def test_a_reservation_takes_whole_nodes() -> None:
    """A one-core job would fit beside the wide one that is planned for 10, but waits for its start."""
    rows = [Job(0, 10, nodes=4, cores=4), Job(1, 10, nodes=5, cores=1), Job(2, 20), Job(2, 7)]
    assert starts(*rows) == [0, 10, 10, 2]


def test_what_is_free_now_stays_free_where_others_will_do() -> None:
    """The blocked job needs the node of the running one and a third; the second free node is left."""
    text = 'nodes: [{names: "n[1-4]", cores: 1, mem_mb: 1}]\npartitions: {p: {nodes: "n[1-4]"}}'
    rows = [Job(0, 10, nodes=2), Job(1, 10, nodes=3), Job(2, 50)]
    assert starts(*rows, where=site(text)) == [0, 10, 2]


def test_backfill_runs_at_its_interval() -> None:
    """The small job is submitted at 2 and found at 5."""
    rows = [Job(0, 10, nodes=4, cores=4), Job(1, 10, nodes=5), Job(2, 3)]
    how = Options(
        backfill="slurm", scheduler=Scheduler(batch_sched_delay_s=0, bf_interval_s=5, bf_resolution_s=1)
    )
    assert starts(*rows, options=how) == [0, 10, 5]


def test_jobs_that_no_nodes_could_run_are_left_out() -> None:
    """A remark counts them."""
    got = ran([Job(0, 5), Job(0, 5, cores=5), Job(0, 5, gpus=1, types=("h100",)), Job(0, 5, nodes=6)])
    assert got.workload.job_id.tolist() == [1]
    assert got.workload.remarks == ("small: 3 jobs ask for more than small.yaml has and are left out",)


FAILS = [NodeEvent(4, "n1", "fail"), NodeEvent(5, "n1", "resume")]


@pytest.mark.parametrize(
    ("requeue", "start", "end"),
    [
        (Requeue(), 20, 30),  # submitted anew at 4, it stands behind the one submitted at 1
        (Requeue(keeps_wait=True), 5, 15),
        (Requeue(keeps_wait=True, checkpoints=True), 5, 11),
    ],
)
def test_a_failure_makes_a_job_wait_again(requeue: Requeue, start: int, end: int) -> None:
    """It keeps its wait and its progress if it may; the lost run counts as wait."""
    text = 'nodes: [{names: "n1", cores: 1, mem_mb: 1}]\npartitions: {p: {nodes: n1}}'
    got = ran([Job(0, 10, request_s=15), Job(1, 15)], site(text), happens=FAILS, requeue=requeue)
    assert (got.start_s[0], got.end_s[0], got.restarts[0]) == (start, end, 1)
    assert got.wait_s[0] == end - 10
    assert got.use.end_s.min() == 4


def test_a_drained_node_ends_its_jobs_in_peace_and_takes_no_new_ones() -> None:
    """Until it is resumed. Source: scontrol(1), State=DRAIN."""
    drains = [NodeEvent(3, "a1", "drain"), NodeEvent(30, "a1", "resume")]
    rows = [Job(0, 10, features="big"), Job(5, 1, features="big")]
    assert starts(*rows, happens=drains) == [0, 30]


def test_jobs_that_wait_for_a_broken_node_for_ever_are_an_error() -> None:
    """One sentence instead of a loop without end."""
    with pytest.raises(SimulationError, match="1 jobs wait for nodes"):
        ran([Job(5, 10, features="big")], happens=[NodeEvent(0, "a1", "fail")])


def test_a_high_qos_preempts_the_low_one_that_started_last() -> None:
    """The normal one is left alone; the preempted job starts again from nothing."""
    rows = [
        Job(0, 100, cores=2, qos="low", features="big"), Job(1, 100, cores=1, qos="low", features="big"),
        Job(2, 100, cores=1, qos="normal", features="big"), Job(10, 20, cores=1, qos="high", features="big"),
    ]  # fmt: skip
    got = ran(rows)
    assert got.start_s.tolist() == [0, 30, 2, 10]
    assert got.restarts.tolist() == [0, 1, 0, 0]


def test_nobody_is_preempted_in_vain() -> None:
    """The low job alone would not make room enough."""
    rows = [Job(0, 50, cores=1, qos="low", features="big"), Job(1, 50, cores=3, qos="normal", features="big"),
            Job(10, 5, cores=2, qos="high", features="big")]  # fmt: skip
    assert ran(rows).restarts.tolist() == [0, 0, 0]


def test_multifactor_knows_partitions_nodes_and_gpus() -> None:
    """Each weight alone turns the order of two jobs for the same node."""
    text = SITE.replace('"a1,v[1-2]"}', '"a1,v[1-2]", priority_job_factor: 100}')
    first = Job(0, 10, cores=4, features="big")
    plain, other = Job(1, 10, cores=4, features="big"), Job(1, 10, cores=4, features="big", partition="gpus")
    by = QueuePolicy("mf", Multifactor(partition=1000.0))
    assert starts(first, plain, other, where=site(text), policy=by) == [0, 20, 10]
    on_gpus = Job(1, 10, cores=4, gpus=1, features="big")
    assert starts(first, plain, on_gpus, policy=QueuePolicy("mf", Multifactor(gpu=1000.0))) == [0, 20, 10]


def test_our_policy_puts_the_contended_type_first() -> None:
    """Two jobs want the first GPU that is free; one of them could have another. Source: inventory.py."""
    a100, v100 = Job(0, 10, gpus=2, types=("a100",)), Job(0, 50, gpus=2, types=("v100",))
    either = Job(1, 10, gpus=2, types=("a100", "v100"))
    rows = [a100, v100, v100, either, a100._replace(submit_s=1)]
    policy = Policy()
    fit = policy.factors["gres_fit"].model_copy(update={"weight": 0})
    without = policy.model_copy(update={"factors": {**policy.factors, "gres_fit": fit}})
    assert starts(*rows, policy=QueuePolicy("ours", policy)) == [0, 0, 0, 20, 10]
    assert starts(*rows, policy=QueuePolicy("ours", without)) == [0, 0, 0, 10, 20]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            Options(backfill="conservative"),
            "backfill can't be had on a cluster, got conservative",
        ),
        (Options(backfill="slurm", order="pyss"), "order can't be had on a cluster, got pyss; one of batch"),
        (
            Options(backfill="slurm", plan="tsafrir"),
            "plan can't be had on a cluster, got tsafrir",
        ),
    ],
)
def test_what_a_cluster_can_t_do_is_refused(options: Options, sentence: str) -> None:
    """With what is allowed."""
    with pytest.raises(SimulationError, match=sentence):
        ran([Job(0, 1)], options=options)


def test_a_predictor_outside_the_kernels_is_refused() -> None:
    """Rather than limits taken in its place."""
    with pytest.raises(SimulationError, match="a predictor outside the kernels can't be asked on a cluster"):
        ran([Job(0, 1)], policy=named("sjf", "similar"))


def test_unknown_nodes_partitions_and_features_are_named() -> None:
    """With what was meant, perhaps."""
    with pytest.raises(SimulationError) as caught:
        ran([Job(0, 1)], happens=[NodeEvent(0, "n11", "fail"), NodeEvent(0, "n1", "explode")])
    assert [str(p) for p in caught.value.problems] == [
        "small.yaml: there is no such node, did you mean 'n1'?, got 'n11'",
        "small.yaml: nothing that happens to a node, got 'explode'; one of fail, drain, resume",
    ]
    with pytest.raises(SimulationError, match="no such partition, did you mean 'gpus'"):
        ran([Job(0, 1, partition="gpu")])
    with pytest.raises(SimulationError, match="constraint can't be simulated"):
        ran([Job(0, 1, features="[IB*2]")])


def test_the_order_of_the_queue_is_the_policy_s() -> None:
    """Shortest first on one node."""
    text = 'nodes: [{names: "n1", cores: 1, mem_mb: 1}]\npartitions: {p: {nodes: n1}}'
    assert starts(Job(0, 5), Job(1, 9), Job(2, 3), where=site(text), policy=named("sjf")) == [0, 8, 5]


def test_jobs_that_know_only_processors_are_spread_over_few_nodes() -> None:
    """Ten processors are parts of three nodes of four cores; three GPUs are parts of two nodes."""
    work = jobs([Job(0, 5), Job(0, 5)])
    flat = replace(work, procs=np.array([10, 2]), gpus=np.array([0, 3]), asked=None)
    asked = fit(flat, site()).asked
    assert (asked.nodes.tolist(), asked.cores.tolist(), asked.gpus.tolist()) == ([3, 2], [4, 1], [0, 2])
