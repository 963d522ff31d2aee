"""slurm_score/contention.py: which GPUs a request accepts, how contended they are, which match it best.

The cluster has four a100 (two nodes of two) and four v100 (one node) in partition gpu, none in main.
"""

import math
from itertools import product

import pytest

from slurm_score.contention import (
    acceptable_types,
    accepted_types,
    contention,
    demand_with,
    gpu_demand,
    gpu_pressure,
    match_now,
    of_type,
    preferred_types,
    pressure_of,
    usable_units,
)
from slurm_score.gpu_types import SHIPPED, GpuFacts, GpuTypes
from slurm_score.gres import GpuCount, GpuRequest
from slurm_score.hints import parse_hints
from slurm_score.model import Job, Node
from slurm_score.request import Ask, ask_of
from tests.unit.builders import drained, make_cluster, make_gpu_job, make_job, make_node, typed


def ask(request: GpuRequest, *partitions: str, hint: str = "", prefer: str = "") -> Ask:
    """Return the request of a job for GPUs in some partitions, in gpu if none is named."""
    hints = parse_hints(f"score: {hint}")
    found = ask_of(make_job(gpus=request, partitions=partitions or ("gpu",), hints=hints, prefer=prefer))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("request_", "partitions", "types"),
    [
        pytest.param(typed("a100", 1), ("gpu",), ("a100",), id="its own type"),
        pytest.param(GpuRequest(1), ("gpu",), ("a100", "v100"), id="any type"),
        pytest.param(typed("h100", 1), ("gpu",), (), id="a type that nobody has"),
        pytest.param(typed("a100", 5), ("gpu",), (), id="more than exist"),
        pytest.param(typed("a100", 1), ("main",), (), id="a partition without GPUs"),
        pytest.param(typed("a100", 1), ("main", "gpu"), ("a100",), id="the other partition has it"),
        pytest.param(GpuRequest(2, (("a100", 1), ("v100", 1))), ("gpu",), ("a100", "v100"), id="both types"),
        pytest.param(GpuRequest(2, (("a100", 1), ("h100", 1))), ("gpu",), (), id="one of two is missing"),
    ],
)
def test_accepted_types_are_those_that_could_serve(
    request_: GpuRequest, partitions: tuple[str, ...], types: tuple[str, ...]
) -> None:
    """A typed request takes its types if they are all there; an untyped one takes what there is."""
    assert accepted_types(ask(request_, *partitions), make_cluster()) == types


def test_no_request_accepts_no_type() -> None:
    """A job without GPUs competes for none."""
    assert accepted_types(None, make_cluster()) == ()
    assert contention(None, make_cluster(), {"a100": 2.0}) == 0.0


def test_drained_nodes_count_as_types_but_not_as_supply() -> None:
    """They come back: a job for them isn't hopeless, but nothing of it can run now."""
    cluster = drained(make_cluster(), "g1", "g2")
    assert accepted_types(ask(typed("a100", 1)), cluster) == ("a100",)
    assert usable_units(["a100"], ask(GpuRequest(1)), cluster) == 0
    assert usable_units(["a100", "v100", "v100", "h100"], ask(GpuRequest(1)), cluster) == 4


@pytest.mark.parametrize(
    ("jobs", "pressure"),
    [
        pytest.param([], {}, id="no job"),
        pytest.param([make_gpu_job(1, "gpu:a100:2")], {"a100": 0.5}, id="two of four"),
        pytest.param([make_gpu_job(1, "gpu:4")], {"a100": 0.5, "v100": 0.5}, id="four of eight, any type"),
        pytest.param(
            [make_gpu_job(1, "gpu:a100:3", tasks="1-2"), make_gpu_job(2, "gpu:4")],
            {"a100": 2.0, "v100": 0.5},
            id="6/4 + 4/8 for a100, 4/8 for v100",
        ),
        pytest.param([make_gpu_job(1, "gpu:a100:1", tasks="1-8")], {"a100": 2.0}, id="every task counts"),
        pytest.param([make_gpu_job(1, "gpu:h100:1")], {}, id="a type that nobody has"),
        pytest.param([make_job(1)], {}, id="no GPU asked"),
        pytest.param([make_gpu_job(1, "gpu:a100:2", priority=0)], {}, id="held"),
        pytest.param([make_gpu_job(1, "gpu:a100:2", eligible_s=None)], {}, id="dependency open"),
        pytest.param([make_gpu_job(1, "gpu:a100:2", state="RUNNING")], {}, id="running"),
    ],
)
def test_pressure_is_gpus_asked_over_gpus_usable(jobs: list[Job], pressure: dict[str, float]) -> None:
    """P_t = sum of asked / supply over the eligible jobs that accept t; score-research 4."""
    assert gpu_pressure(jobs, make_cluster()) == pressure


def test_pressure_on_a_type_without_usable_gpu_is_infinite() -> None:
    """Whoever needs it can only wait for the nodes to come back."""
    cluster = drained(make_cluster(), "g3")
    jobs = [make_gpu_job(1, "gpu:v100:1"), make_gpu_job(2, "gpu:a100:2")]
    assert gpu_pressure(jobs, cluster) == {"a100": 0.5, "v100": math.inf}


def test_job_that_can_use_nothing_now_adds_no_pressure_for_those_who_can() -> None:
    """Else a job for a reservation to come would make its type scarcest for everybody."""
    jobs = [make_gpu_job(1, "gpu:a100:2", reservation="later"), make_gpu_job(2, "gpu:a100:2")]
    assert gpu_pressure(jobs, make_cluster()) == {"a100": 0.5}


def test_pressure_of_those_who_can_use_nothing_is_not_that_of_who_can() -> None:
    """All that wait for a100 wait for a reservation to come: a new job for a usable one meets no demand."""
    pressure = gpu_pressure([make_gpu_job(1, "gpu:a100:2", reservation="later")], make_cluster())
    assert pressure == {"a100": math.inf}
    assert contention(ask(typed("a100", 1)), make_cluster(), pressure) == 0.0


def test_pressure_is_the_same_number_in_whatever_order_and_words_jobs_ask() -> None:
    """Thirds and sevenths don't add up exactly; wishes split equal requests and must not move the sum."""
    cluster = make_cluster(nodes=(make_node("g1", "a100:7"), make_node("g2", "v100:3")))
    jobs = [make_gpu_job(i, f"gpu:a100:{1 + i % 3}") for i in range(1, 8)]
    jobs += [make_gpu_job(i, "gpu:1", hints=parse_hints(f"score: vram={i}")) for i in range(8, 15)]
    plain = [make_gpu_job(i, "gpu:1") if i > 7 else job for i, job in enumerate(jobs, 1)]
    assert gpu_pressure(jobs, cluster) == gpu_pressure(jobs[::-1], cluster) == gpu_pressure(plain, cluster)


@pytest.mark.parametrize(
    ("request_", "value"),
    [
        pytest.param(typed("a100", 1), 2.0, id="its type"),
        pytest.param(GpuRequest(1), 0.5, id="any type: the least contended"),
        pytest.param(GpuRequest(2, (("a100", 1), ("v100", 1))), 0.5, id="two types: the least"),
        pytest.param(typed("h100", 1), 0.0, id="a type that nobody has"),
    ],
)
def test_contention_is_that_of_the_least_contended_type(request_: GpuRequest, value: float) -> None:
    """A flexible job goes where there is room, so it is as contended as that."""
    assert contention(ask(request_), make_cluster(), {"a100": 2.0, "v100": 0.5}) == value


def test_contention_is_infinite_where_all_accepted_types_are_drained() -> None:
    """Also for a job whose own demand the pressure doesn't hold."""
    assert contention(ask(typed("v100", 1)), drained(make_cluster(), "g3"), {}) == math.inf


def test_a_type_without_a_usable_gpu_does_not_make_a_flexible_job_look_relaxed() -> None:
    """With v100 drained a job that takes any type competes for a100: (8 + 1) / 4 a100 = 2.25."""
    cluster = drained(make_cluster(), "g3")
    jobs = (make_gpu_job(1, "gpu:a100:4", tasks="1-2"), make_gpu_job(2, "gpu:1"))
    pressure = gpu_pressure(jobs, cluster)
    assert contention(ask_of(jobs[1]), cluster, pressure) == 2.25
    assert pressure.get("v100", 0.0) < 2.25


def test_gpus_without_a_type_are_one_type_of_their_own() -> None:
    """A site may write Gres=gpu:4 and no type: 2 asked of 4 usable."""
    node = Node(name="u1", cpus=8, partitions=("gpu",), gpus=GpuCount(4, {}))
    cluster = make_cluster(nodes=(node,))
    job = make_gpu_job(1, "gpu:2")
    assert accepted_types(ask_of(job), cluster) == ("gpu",)
    assert gpu_pressure((job,), cluster) == {"gpu": 0.5}


# match


def test_acceptable_types_have_the_memory_that_the_user_needs() -> None:
    """Of a type that nobody knows nobody can say that it lacks it."""
    cluster = make_cluster(nodes=(*make_cluster().nodes, make_node("g4", "new9:1")))
    wish = ask(GpuRequest(1), hint="vram=40")
    assert accepted_types(wish, cluster) == ("a100", "new9", "v100")
    assert acceptable_types(wish, cluster, SHIPPED) == ("a100", "new9")


def test_preferred_types_are_those_on_the_nodes_that_prefer_names() -> None:
    """--prefer names features, match speaks of types."""
    nodes = (make_node("g1", "a100:2", features=("fast",)), make_node("g2", "v100:2"))
    cluster = make_cluster(nodes=nodes)
    assert preferred_types(ask(GpuRequest(1), prefer="fast"), cluster) == frozenset({"a100"})
    assert preferred_types(ask(GpuRequest(1), prefer="gone"), cluster) == frozenset()


def test_policys_own_table_decides_what_is_least_capable() -> None:
    """A site whose a100 have 40 GiB and whose v100 have 64."""
    own = GpuTypes({"a100": GpuFacts(40), "v100": GpuFacts(64)})
    best = match_now(ask(GpuRequest(2)), make_cluster(), own)
    assert (best.gpu_type, best.value) == ("a100", 1.0)


def test_gpus_without_a_type_match_only_where_they_are_free_themselves() -> None:
    """All four untyped ones are in use, one a100 isn't: it is the a100 that would serve."""
    taken = Node(name="u1", cpus=8, cpus_used=4, partitions=("gpu",), gpus=GpuCount(4), gpus_used=GpuCount(4))
    cluster = make_cluster(nodes=(taken, make_node("g1", "a100:1")))
    assert match_now(ask(GpuRequest(1)), cluster, SHIPPED).gpu_type == "a100"


@pytest.mark.parametrize(
    ("job", "gpu_type", "types"),
    [
        pytest.param(make_gpu_job(1, "gpu:2"), "a100", (("a100", 2),), id="any type"),
        pytest.param(make_gpu_job(1, "gpu:2"), "gpu", (("gpu", 2),), id="those without a type"),
        pytest.param(make_gpu_job(1, "gpu:v100:2"), "a100", (("a100", 2),), id="another than it names"),
        pytest.param(
            make_gpu_job(1, "gpu:a100:1,gpu:v100:1"), "a100", (("a100", 1), ("v100", 1)), id="it needs two"
        ),
        pytest.param(make_gpu_job(1, "gpu:2"), "1g.10gb", (), id="a slice is no whole GPU"),
        pytest.param(make_gpu_job(1, "gpu:2"), "shard", (), id="a shard neither"),
    ],
)
def test_request_of_one_type_asks_for_all_its_gpus_of_it(
    job: Job, gpu_type: str, types: tuple[tuple[str, int], ...]
) -> None:
    """What match and advice try; a job that needs two types keeps both."""
    found = ask_of(job)
    assert found is not None
    assert of_type(found, gpu_type).gpus.types == types


@pytest.mark.parametrize(
    ("gpu_type", "types"), [("shard", (("", 3),)), ("shard:a40", (("a40", 3),)), ("a40", ())]
)
def test_shards_of_one_type_are_those_of_its_gpus(gpu_type: str, types: tuple[tuple[str, int], ...]) -> None:
    """`shard` alone are those without a type."""
    found = ask_of(make_job(shards=GpuRequest(3), partitions=("gpu",)))
    assert found is not None
    assert of_type(found, gpu_type).shards.types == types


def test_demand_with_another_job_in_place_of_one_is_that_of_the_whole_queue() -> None:
    """Arrays with all their tasks, types that only one of both accepts, and requests that ask for nothing."""
    wants = ("gpu:a100:1", "gpu:v100:2", "gpu:1", "gpu:h100:1", "")
    jobs = [
        make_gpu_job(place, gres, tasks=tasks) if gres else make_job(place)
        for place, (gres, tasks) in enumerate(product(wants, ("", "0-4")), start=1)
    ]
    cluster = make_cluster()
    for job, other in product(jobs, jobs):
        whole = [other if one is job else one for one in jobs]
        demand = demand_with(gpu_demand(jobs, cluster), job, other, cluster)
        assert demand == gpu_demand(whole, cluster)
        assert pressure_of(demand) == gpu_pressure(whole, cluster)
        alone = demand_with(gpu_demand([job], cluster), job, other, cluster)
        assert pressure_of(alone) == gpu_pressure([other], cluster)
