"""Laws of GPU fit, over random clusters and requests of every kind."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_score.contention import accepted_types, gpu_pressure
from slurm_score.factors.gres_fit import TERMS, GresFitParams, compute, detail
from slurm_score.gres import GpuCount, GpuRequest
from slurm_score.hints import NO_HINTS, Hints
from slurm_score.model import Cluster, Job, Node, Partition, Queue, Reservation
from slurm_score.never import could_fit, why_never
from slurm_score.placement import fit_now, ready_now
from slurm_score.request import ask_of
from tests.unit.builders import NOW

ALL = GresFitParams(scarcity=1, ready=1, match=1, packing=1, spread=1)
TYPES, PROFILES, PARTITIONS, FEATURES = ("a100", "v100", ""), ("1g.10gb",), ("gpu", "far"), ("f", "g")
CONSTRAINTS = ("", "f", "f|g", "f&g", "[f|g]", "f*1", "f*2&g*1", "(f", "gone")
MOSTLY = 6
"""How often a draw is the plain one, for each of the others: most jobs fit somewhere."""


@st.composite
def counts(draw: st.DrawFn, names: tuple[str, ...]) -> GpuCount:
    """Draw how many a node has of some types, those without one under an empty name."""
    found = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 4), min_size=1, max_size=2))
    return GpuCount(sum(found.values()), {name: n for name, n in found.items() if name})


@st.composite
def used(draw: st.DrawFn, has: GpuCount) -> GpuCount:
    """Draw how many of them are in use."""
    if draw(st.booleans()):
        return GpuCount()
    types = {name: draw(st.integers(0, n)) for name, n in has.types.items()}
    rest = draw(st.integers(0, has.total - sum(has.types.values())))
    return GpuCount(sum(types.values()) + rest, types)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node of any kind, in any state, partly in use."""
    gpus, mig, shards = draw(counts(TYPES)), draw(counts(PROFILES)), draw(counts(("",)))
    cpus, mem_mib = draw(st.integers(4, 16)), draw(st.integers(2, 8)) * 1024
    states = draw(st.sampled_from((("IDLE",),) * MOSTLY + (("IDLE", "DRAIN"), ("IDLE", "RESERVED"))))
    return Node(
        name=name,
        states=states,
        usable=len(states) == 1,
        cpus=cpus,
        cpus_used=draw(st.integers(0, cpus)) if draw(st.booleans()) else 0,
        mem_mib=mem_mib,
        mem_used_mib=draw(st.integers(0, mem_mib)) if draw(st.booleans()) else 0,
        gpus=gpus,
        gpus_used=draw(used(gpus)),
        mig=mig,
        mig_used=draw(used(mig)),
        shards=shards,
        shards_used=draw(used(shards)),
        partitions=tuple(draw(st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique=True))),
        features=tuple(draw(st.lists(st.sampled_from(FEATURES), max_size=2, unique=True))),
        switch=draw(st.sampled_from(("", "s1", "s2"))),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw up to five nodes in two partitions, with a reservation."""
    names = [f"n{i}" for i in range(draw(st.integers(2, 5)))]
    inside = draw(st.lists(st.sampled_from(names), unique=True))
    return Cluster(
        time_s=NOW,
        nodes=tuple(draw(nodes(name)) for name in names),
        partitions={
            name: Partition(name=name, up=draw(st.sampled_from((True,) * MOSTLY + (False,))))
            for name in PARTITIONS
        },
        reservations={"course": Reservation(name="course", active=draw(st.booleans()), nodes=tuple(inside))},
    )


@st.composite
def requests(draw: st.DrawFn, names: tuple[str, ...], count: int) -> GpuRequest:
    """Draw a request for some types, on each of `count` nodes or for the job."""
    chosen = draw(st.lists(st.sampled_from((*names, names[-1])), min_size=1, max_size=2, unique=True))
    chosen = chosen if "" not in chosen else [""]
    each = {name: draw(st.integers(1, 2)) for name in chosen}
    total, per_node = sum(each.values()) * count, draw(st.booleans())
    types = tuple(sorted((name, n * count) for name, n in each.items() if name))
    return GpuRequest(total, types, total // count if per_node else 0)


@st.composite
def jobs(draw: st.DrawFn, job_id: int = 1) -> Job:
    """Draw an eligible job that asks for GPUs, slices, shards, or nothing, and wishes for something."""
    count = draw(st.integers(1, 2))
    kind = draw(st.sampled_from(("gpus",) * MOSTLY + ("slices", "shards", "")))
    names = {"gpus": TYPES, "slices": PROFILES, "shards": ("",)}
    job = Job(
        job_id=job_id,
        partitions=tuple(draw(st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique=True))),
        eligible_s=NOW,
        tasks=draw(st.sampled_from(("", "", "0-3"))),
        nodes=draw(st.sampled_from((1, count))),
        max_nodes=draw(st.sampled_from((0, 0, count, count + 1))),
        cpus=draw(st.integers(count, 6)),
        mem_mib=draw(st.integers(0, 3)) * 1024,
        features=draw(st.sampled_from(("",) * MOSTLY + CONSTRAINTS)),
        req_nodes=draw(st.sampled_from(("",) * MOSTLY + ("n0", "n[0-1]"))),
        exc_nodes=draw(st.sampled_from(("",) * MOSTLY + ("n2",))),
        reservation=draw(st.sampled_from(("",) * MOSTLY + ("course", "gone"))),
        prefer=draw(st.sampled_from(("", "f"))),
        hints=draw(st.sampled_from((NO_HINTS, Hints(gpu=("a100", "v100")), Hints(vram_gib=40.0)))),
    )
    if not kind:
        return job
    asked: dict[str, Any] = {kind: draw(requests(names[kind], count))}
    return replace(job, **asked)


def queue_of(some: tuple[Job, ...], cluster: Cluster) -> Queue:
    """Return a queue of jobs with the pressure that they make."""
    return Queue(jobs=some, cluster=cluster, now_s=NOW, pressure=gpu_pressure(some, cluster))


queues = st.builds(
    queue_of, st.integers(1, 4).flatmap(lambda n: st.tuples(*(jobs(i + 1) for i in range(n)))), clusters()
)


def details(queue: Queue) -> dict[int, dict[str, float]]:
    """Return every sub-term of every job by its id."""
    return {job.job_id: detail(queue, ALL, i) for i, job in enumerate(queue.jobs)}


def readiness(job: Job, cluster: Cluster) -> float:
    """Return what share of a job's request could start now, 0 without one."""
    ask = ask_of(job)
    return fit_now(ask, cluster).ready if ask else 0.0


@given(queue=queues)
def test_every_sub_term_is_between_0_and_1(queue: Queue) -> None:
    """The same for one job as for all of them at once."""
    terms = details(queue)
    assert all(0.0 <= value <= 1.0 for found in terms.values() for value in found.values())
    columns = compute(queue, ALL).details
    assert [list(terms[job.job_id].values()) for job in queue.jobs] == [
        [column[i] for column in columns.values()] for i in range(len(queue))
    ]


@given(queue=queues, seed=st.integers(0, 999))
def test_order_of_nodes_and_jobs_does_not_matter(queue: Queue, seed: int) -> None:
    """Slurm lists nodes and jobs as it likes: every number is the same to the last bit."""
    chance = Random(seed)
    cluster = replace(
        queue.cluster, nodes=tuple(chance.sample(queue.cluster.nodes, len(queue.cluster.nodes)))
    )
    other = queue_of(tuple(chance.sample(queue.jobs, len(queue))), cluster)
    assert details(other) == details(queue)
    assert other.pressure == queue.pressure
    for job in queue.jobs:
        if ask := ask_of(job):
            assert why_never(ask, cluster) == why_never(ask, queue.cluster)
            assert accepted_types(ask, cluster) == accepted_types(ask, queue.cluster)


@given(queue=queues)
def test_what_can_never_start_has_0_and_a_reason(queue: Queue) -> None:
    """And makes no type scarcer; what can has no reason."""
    terms = details(queue)
    could = {job.job_id: ask and could_fit(ask, queue.cluster) for job in queue.jobs for ask in [ask_of(job)]}
    for job in queue.jobs:
        if not could[job.job_id]:
            assert set(terms[job.job_id].values()) == {0.0}
        if ask := ask_of(job):
            assert bool(why_never(ask, queue.cluster)) is not could[job.job_id]
    assert gpu_pressure([job for job in queue.jobs if could[job.job_id]], queue.cluster) == queue.pressure


@given(job=jobs(), cluster=clusters())
def test_what_is_ready_now_could_start(job: Job, cluster: Cluster) -> None:
    """`never` is never said of a job that fits; packing and spread speak of those only."""
    ask = ask_of(job)
    assume(ask is not None)
    assert ask is not None
    fit = fit_now(ask, cluster)
    assert ready_now(ask, cluster) is (fit.ready == 1.0)
    assert fit.ready < 1.0 or could_fit(ask, cluster)
    assert (fit.packing > 0.0) is (fit.ready == 1.0)
    assert fit.ready == 1.0 or fit.spread == 0.0


def one_less(used: GpuCount) -> GpuCount:
    """Return the count with one less in use, of the first type that is."""
    types = {name: n for name, n in used.types.items() if n}
    first = next(iter(types), None)
    left = {name: n - (name == first) for name, n in types.items()}
    return GpuCount(max(0, used.total - 1), left)


FREE: tuple[Callable[[Node], Node], ...] = (
    lambda node: replace(node, gpus_used=one_less(node.gpus_used)),
    lambda node: replace(node, mig_used=one_less(node.mig_used)),
    lambda node: replace(node, gpus_used=GpuCount(), shards_used=GpuCount()),
    lambda node: replace(node, cpus_used=max(0, node.cpus_used - 1)),
    lambda node: replace(node, mem_used_mib=0),
)


@given(job=jobs(), cluster=clusters(), free=st.sampled_from(FREE), place=st.integers(0, 4))
def test_what_comes_free_never_lowers_ready(
    job: Job, cluster: Cluster, free: Callable[[Node], Node], place: int
) -> None:
    """A GPU, a slice, all shards, a CPU, or the memory of one node."""
    i = place % len(cluster.nodes)
    after = replace(cluster, nodes=(*cluster.nodes[:i], free(cluster.nodes[i]), *cluster.nodes[i + 1 :]))
    assert readiness(job, after) >= readiness(job, cluster)


@given(job=jobs(), cluster=clusters(), place=st.integers(0, 4))
def test_drained_node_never_raises_ready(job: Job, cluster: Cluster, place: int) -> None:
    """Nor does it take a type from those that a job accepts: it comes back."""
    i = place % len(cluster.nodes)
    closed = replace(cluster.nodes[i], usable=False, states=("IDLE", "DRAIN"))
    after = replace(cluster, nodes=(*cluster.nodes[:i], closed, *cluster.nodes[i + 1 :]))
    assert readiness(job, after) <= readiness(job, cluster)
    assert accepted_types(ask_of(job), after) == accepted_types(ask_of(job), cluster)


@given(queue=queues, wish=st.sampled_from((Hints(gpu=("v100",)), Hints(vram_gib=999.0), NO_HINTS)))
def test_wishes_change_no_scarcity(queue: Queue, wish: Hints) -> None:
    """They bind nobody, so they must not pay: not for who wishes, nor for the others."""
    plain = queue_of(tuple(replace(job, hints=NO_HINTS, prefer="") for job in queue.jobs), queue.cluster)
    wishing = queue_of(tuple(replace(job, hints=wish, prefer="f") for job in queue.jobs), queue.cluster)
    assert wishing.pressure == plain.pressure == queue.pressure
    for job_id, terms in details(wishing).items():
        assert {name: terms[name] for name in TERMS if name != "match"} == {
            name: value for name, value in details(plain)[job_id].items() if name != "match"
        }


@given(queue=queues, job=jobs(99))
def test_scarcity_grows_with_demand(queue: Queue, job: Job) -> None:
    """One more job that waits makes nobody's types less contended."""
    more = queue_of((*queue.jobs, job), queue.cluster)
    before, after = details(queue), details(more)
    assert all(after[job_id]["scarcity"] >= terms["scarcity"] for job_id, terms in before.items())


PROGRAM = """
from tests.property.test_fit import demo, details
print(details(demo()))
"""


def demo() -> Queue:
    """Return a queue with ties and fractions, on nodes of several types and features."""
    types = ("a100", "v100", "h100", "t4", "l40")
    cluster = Cluster(
        time_s=NOW,
        partitions={name: Partition(name=name) for name in PARTITIONS},
        nodes=tuple(
            Node(
                name=f"n{i}",
                cpus=8,
                gpus=GpuCount(3 + i % 2, {types[i % 5]: 3 + i % 2}),
                partitions=PARTITIONS[i % 2 :],
                features=("f", "g", types[i % 5])[: 1 + i % 3],
                switch=f"s{i % 3}",
            )
            for i in range(12)
        ),
    )
    some = tuple(
        Job(
            job_id=i,
            partitions=PARTITIONS,
            eligible_s=NOW,
            gpus=GpuRequest(1 + i % 5, ((types[i % 5], 1 + i % 5),) if i % 3 else ()),
            features=CONSTRAINTS[i % 7],
            nodes=1 + i % 2,
        )
        for i in range(1, 30)
    )
    return queue_of(some, cluster)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_nothing_depends_on_the_order_of_hashes(seed: str) -> None:
    """Python salts the hashes of texts anew in each process."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.strip() == str(details(demo()))
