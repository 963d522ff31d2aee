"""Laws of every schedule on a cluster, over random clusters and jobs small enough for brute force."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from slurm_score.policy import Policy
from slurm_score.sim.cluster import Site, pool_site
from slurm_score.sim.engine import Options
from slurm_score.sim.hetero import ClusterSchedule, simulate_cluster
from slurm_score.sim.metrics import littles_law
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.needs import fit
from slurm_score.sim.node_events import NodeEvent, Requeue
from slurm_score.sim.policies import QueuePolicy, named
from slurm_score.sim.scheduler import ONE_RESERVATION, Scheduler
from slurm_score.sim.state import NEVER
from slurm_score.sim.workload import Workload
from tests.property.test_sim_laws import PROCS, workloads
from tests.unit.busy_nodes import BusyNodes
from tests.unit.sim_support import schedule
from tests.unit.site_support import Job, jobs, site

SITES = [
    site(),
    site(
        """
nodes:
  - {names: "n1", cores: 6, mem_mb: 100, gres: "gpu:a:2,gpu:b:1", features: [x], weight: 2}
  - {names: "n2", cores: 2, mem_mb: 300, gres: "gpu:3", features: [y]}
  - {names: "n3", cores: 3, mem_mb: 200, features: [x, y], weight: 3}
partitions: {p: {nodes: "n[1-3]"}, q: {nodes: "n[2-3]", def_mem_per_cpu_mb: 40, priority_job_factor: 5}}
qos: {low: 1, normal: 2, high: 3}
preempts: {high: [low, normal], normal: [low]}
"""
    ),
]


@st.composite
def queues(draw: st.DrawFn) -> tuple[Site, Workload]:
    """Draw a cluster and jobs that crowd it."""
    where = draw(st.sampled_from(SITES))
    rows, submit_s = [], 0
    for _ in range(draw(st.integers(1, 18))):
        submit_s += draw(st.sampled_from((0, 0, 1, 5, 15)))
        run_s = draw(st.integers(1, 40))
        gpus = draw(st.sampled_from((0, 0, 1, 2)))
        rows.append(
            Job(
                submit_s, run_s,
                nodes=draw(st.sampled_from((1, 1, 1, 2, 3))),
                cores=draw(st.integers(1, 4)),
                mem_mib=draw(st.sampled_from((0, 50, 100))),
                gpus=gpus,
                types=draw(st.sampled_from(((), where.gpu_types, where.gpu_types[:1]))) if gpus else (),
                request_s=draw(st.sampled_from((0, run_s + 1, 2 * run_s, 90))),
                exclusive=draw(st.integers(0, 5)) == 0,
                partition=draw(st.sampled_from([p.name for p in where.partitions])),
                features=draw(st.sampled_from(("", "", *sorted(frozenset().union(*where.features))))),
                qos=draw(st.sampled_from(list(where.qos))),
                user=draw(st.integers(0, 2)),
            )
        )  # fmt: skip
    return where, jobs(rows)


POLICIES = st.sampled_from(
    [named("fcfs"), named("sjf"), named("wfp3"), QueuePolicy("ours", Policy(), "recent"),
     QueuePolicy("mf", Multifactor(fairshare=900, partition=100, gpu=10, size=50, qos=500, calc_period=10))]
)  # fmt: skip
SCHEDULERS = st.builds(
    Scheduler,
    queue_depth=st.sampled_from((1, 3, 100)),
    batch_sched_delay_s=st.sampled_from((0, 1, 3)),
    bf_interval_s=st.sampled_from((0, 1, 7)),
    bf_max_job_test=st.sampled_from((1, 3, 500)),
    bf_max_job_user=st.sampled_from((0, 0, 2)),
    bf_job_part_count_reserve=st.sampled_from((0, 0, 1, 2)),
    bf_resolution_s=st.sampled_from((1, 4)),
    bf_window_s=st.sampled_from((20, 86400)),
)
OPTIONS = st.builds(
    Options,
    backfill=st.sampled_from(("none", "easy", "slurm", "slurm", "slurm")),
    plan=st.sampled_from(("request", "clairvoyant")),
    scheduler=SCHEDULERS,
)
REQUEUES = st.builds(Requeue, keeps_wait=st.booleans(), checkpoints=st.booleans())


@st.composite
def troubles(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    """Draw what happens to nodes, by their place; in the end all are there again."""
    what = st.tuples(st.integers(0, 120), st.integers(0, 2), st.sampled_from(("fail", "drain", "resume")))
    return [*draw(st.lists(what, max_size=5)), *((200, node, "resume") for node in range(3))]


def simulated(
    queue: tuple[Site, Workload],
    policy: QueuePolicy,
    how: Options,
    trouble: list[tuple[int, int, str]],
    requeue: Requeue,
) -> ClusterSchedule:
    """Return the schedule, if the cluster can run any of the jobs."""
    where, work = queue
    happens = [NodeEvent(at, where.node_names[node], what) for at, node, what in trouble]
    assume(_runnable(where, work))
    return simulate_cluster(work, where, policy, how, happens=happens, requeue=requeue)


def _runnable(where: Site, work: Workload) -> bool:
    return len(fit(work, where).workload) > 0


@given(queue=queues(), policy=POLICIES, how=OPTIONS, trouble=troubles(), requeue=REQUEUES)
@settings(max_examples=300)
def test_nothing_is_used_twice_and_nothing_is_lost(
    queue: tuple[Site, Workload],
    policy: QueuePolicy,
    how: Options,
    trouble: list[tuple[int, int, str]],
    requeue: Requeue,
) -> None:
    """At no second more of a node than it has; each run has all its nodes, and runs add up."""
    ran = simulated(queue, policy, how, trouble, requeue)
    use, where, work, asked = ran.use, ran.site, ran.workload, ran.workload.asked
    assert asked is not None
    for moment in np.unique(use.begin_s).tolist():
        now = (use.begin_s <= moment) & (use.end_s > moment)
        for column, total in ((use.cores, where.cores), (use.mem_mib, where.mem_mib)):
            assert (np.bincount(use.node[now], column[now], len(total)) <= total).all()
        for kind in range(len(where.gpu_types)):
            held = now & (use.gpu_type == kind)
            taken = np.bincount(use.node[held], use.gpus[held], len(where.node_names))
            assert (taken <= where.gpus[:, kind]).all()
        alone = now & asked.exclusive[use.row]
        counts = np.bincount(use.node[now], minlength=len(where.node_names))
        assert (counts[use.node[alone]] == 1).all()
    runs = defaultdict(list)
    for row, node, begin, end in zip(
        *(c.tolist() for c in (use.row, use.node, use.begin_s, use.end_s)), strict=True
    ):
        runs[row, begin, end].append(node)
    length = np.zeros(len(work), np.int64)
    for (row, begin, end), nodes in runs.items():
        assert len(set(nodes)) == len(nodes) == asked.nodes[row]
        length[row] = end - begin if not requeue.checkpoints else length[row] + end - begin
    assert length.tolist() == work.run_s.tolist()
    assert ((use.gpus > 0) == (use.gpu_type >= 0)).all()


@given(queue=queues(), policy=POLICIES, how=OPTIONS, trouble=troubles(), requeue=REQUEUES)
def test_jobs_run_where_they_may_and_not_on_nodes_that_are_away(
    queue: tuple[Site, Workload],
    policy: QueuePolicy,
    how: Options,
    trouble: list[tuple[int, int, str]],
    requeue: Requeue,
) -> None:
    """Partition, features and type; a failed node has no job, a drained one gets none."""
    ran = simulated(queue, policy, how, trouble, requeue)
    use, where, asked = ran.use, ran.site, ran.workload.asked
    assert asked is not None
    state = defaultdict(list)
    for at, node, what in sorted(trouble, key=lambda t: t[0]):
        state[node].append((at, what))
    for row, node, kind, begin, end in zip(
        *(c.tolist() for c in (use.row, use.node, use.gpu_type, use.begin_s, use.end_s)), strict=True
    ):
        partition = next(p for p in where.partitions if p.name == asked.partitions[asked.partition[row]])
        assert node in partition.nodes
        feature = asked.features[asked.feature[row]]
        assert not feature or feature in where.features[node]
        types = asked.gpu_sets[asked.gpu_set[row]]
        assert kind < 0 or not types or where.gpu_types[kind] in types
        before = [what for at, what in state[node] if at <= begin]
        assert not before or before[-1] == "resume" or begin == end
        assert not any(begin < at < end for at, what in state[node] if what == "fail")
    assert (ran.wait_s >= 0).all()
    if not any(what == "fail" for _, _, what in trouble) and not any(where.preempts.values()):
        assert not ran.restarts.any()


@given(queue=queues(), policy=POLICIES, how=OPTIONS)
def test_littles_law(queue: tuple[Site, Workload], policy: QueuePolicy, how: Options) -> None:
    """Mean queue length = arrival rate x mean wait, where nobody is requeued."""
    calm = replace(queue[0], preempts={})
    length, arrived = littles_law(simulated((calm, queue[1]), policy, how, [], Requeue()))
    assert length == pytest.approx(arrived, rel=1e-9)


@given(queue=queues(), policy=POLICIES, how=OPTIONS, trouble=troubles(), requeue=REQUEUES)
def test_result_is_the_same_with_and_without_numba(
    queue: tuple[Site, Workload],
    policy: QueuePolicy,
    how: Options,
    trouble: list[tuple[int, int, str]],
    requeue: Requeue,
) -> None:
    """Starts, ends and places."""
    pytest.importorskip("numba", reason="without numba there is nothing to compare")
    compiled = simulated(queue, policy, replace(how, numba=True), trouble, requeue)
    plain = simulated(queue, policy, replace(how, numba=False), trouble, requeue)
    assert compiled.start_s.tolist() == plain.start_s.tolist()
    assert compiled.end_s.tolist() == plain.end_s.tolist()
    assert compiled.use.node.tolist() == plain.use.node.tolist()


@given(work=workloads(), policy=st.sampled_from([named("fcfs"), named("sjf"), named("wfp3")]))
def test_one_reservation_on_a_pool_of_nodes_is_easy(work: Workload, policy: QueuePolicy) -> None:
    """Nodes of one core are processors: the flat engine and the cluster agree to the second."""
    easy = schedule(work, PROCS, policy)
    how = Options(backfill="slurm", scheduler=ONE_RESERVATION)
    assert simulate_cluster(work, pool_site(PROCS), policy, how).start_s.tolist() == easy.start_s.tolist()


@st.composite
def openings(draw: st.DrawFn) -> tuple[list[int], list[list[tuple[int, int]]], int, int]:
    """Draw when nodes are ready, when they are reserved, and how many are needed for how long."""
    ready = draw(st.lists(st.integers(5, 40), min_size=1, max_size=5))
    spans = [
        sorted(
            (begin, begin + length)
            for begin, length in draw(st.lists(st.tuples(st.integers(5, 60), st.integers(1, 15)), max_size=4))
        )
        for _ in ready
    ]
    return ready, spans, draw(st.integers(1, len(ready))), draw(st.integers(1, 25))


@given(drawn=openings())
def test_a_start_is_the_earliest_at_which_enough_nodes_are_open(
    drawn: tuple[list[int], list[list[tuple[int, int]]], int, int],
) -> None:
    """By brute force, second by second: ready, and without a reservation for the whole length.

    Slurm's own look ahead finds none before it, and none at which there are too few.
    """
    ready, spans, count, length = drawn

    def are_open(t: int) -> bool:
        free = [all(b >= t + length or e <= t for b, e in taken) for taken in spans]
        return sum(t >= when and is_free for when, is_free in zip(ready, free, strict=True)) >= count

    expected = next(t for t in range(5, 500) if are_open(t))
    assert BusyNodes(ready, spans).earliest(count, length) == expected
    foreseen = BusyNodes(ready, spans).foreseen(count, length)
    assert foreseen == NEVER or (foreseen >= expected and are_open(foreseen))
