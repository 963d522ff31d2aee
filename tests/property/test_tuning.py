"""Laws of the advice to admins: no order of nodes matters, and advice that was taken is not given again."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slurm_score.hosts import parse_hosts
from slurm_score.model import Cluster, Node, Partition, SlurmConfig
from slurm_score.tuning import Contention, Extent
from slurm_score.tuning_scheduler import advise_scheduler
from slurm_score.tuning_weights import WeightChange, advise_weights, clearly_less
from tests.unit.builders import make_cluster, make_node

TYPES = ("a100", "h100", "t4", "v100")
PARAMETERS = (
    "bf_continue",
    "bf_window=1440",
    "BF_WINDOW=9",
    "bf_max_job_test=7",
    "default_queue_depth=5000",
    "bf_job_part_count_reserve=4",
    "defer",
    "max_rpc_cnt=150",
    "bf_window_linear=30",
)

levels = st.floats(0, 5) | st.just(float("inf"))
contentions = st.dictionaries(st.sampled_from(TYPES), st.builds(Contention, levels, levels))
extents = st.builds(Extent, st.integers(0, 3_000_000), st.floats(0, 1e8), st.booleans())
limits = st.none() | st.floats(60, 1e8) | st.just(float("inf"))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw nodes with one type or none, and any weights."""
    gpus = st.sampled_from(("", *(f"{name}:4" for name in TYPES)))
    drawn = draw(st.lists(st.tuples(gpus, st.integers(1, 60)), max_size=12))
    nodes = (make_node(f"n{i}", has, weight=weight) for i, (has, weight) in enumerate(drawn))
    return make_cluster(nodes=tuple(nodes))


def taken(cluster: Cluster, changes: tuple[WeightChange, ...]) -> Cluster:
    """Return the cluster with the weights that were advised."""
    weights = {host: change.weight for change in changes for host in parse_hosts(change.hosts)}
    nodes = tuple(replace(node, weight=weights.get(node.name, node.weight)) for node in cluster.nodes)
    return replace(cluster, nodes=nodes)


def type_of(node: Node) -> str:
    """Return the type of a node's GPUs, empty where it has none."""
    return next(iter(node.gpus.types), "")


@given(cluster=clusters(), contention=contentions)
def test_the_order_of_the_nodes_does_not_matter(cluster: Cluster, contention: dict[str, Contention]) -> None:
    """Slurm lists them by name, a fake as it likes."""
    other = replace(cluster, nodes=cluster.nodes[::-1])
    assert advise_weights(cluster, contention) == advise_weights(other, contention)


@given(cluster=clusters(), contention=contentions)
def test_weights_that_were_taken_are_not_advised_again(
    cluster: Cluster, contention: dict[str, Contention]
) -> None:
    """There is nothing to change then."""
    assert advise_weights(taken(cluster, advise_weights(cluster, contention)), contention) == ()


@given(cluster=clusters(), contention=contentions)
def test_whoever_is_clearly_less_contended_is_used_first(
    cluster: Cluster, contention: dict[str, Contention]
) -> None:
    """After the advice: of two nodes the one of the clearly less contended type weighs less."""
    nodes = taken(cluster, advise_weights(cluster, contention)).nodes
    none = Contention()
    for a in nodes:
        for b in nodes:
            less = clearly_less(
                contention.get(type_of(a), none).level, contention.get(type_of(b), none).level
            )
            if type_of(b) and (less or not type_of(a)):
                assert a.weight < b.weight


@given(
    parameters=st.lists(st.sampled_from(PARAMETERS), max_size=6).map(tuple),
    limit_s=limits,
    reached=extents,
)
def test_parameters_that_were_taken_are_not_advised_again(
    parameters: tuple[str, ...], limit_s: float | None, reached: Extent
) -> None:
    """The line says what was meant to somebody who reads it as Slurm does, and loses no other parameter."""
    partitions = (Partition(name="main", max_time_s=limit_s),)
    first = advise_scheduler(SlurmConfig(scheduler_parameters=parameters), partitions, reached)
    line = tuple(first.line.removeprefix("SchedulerParameters=").split(",")) if first.line else parameters
    assert advise_scheduler(SlurmConfig(scheduler_parameters=line), partitions, reached).changes == ()
    assert set(parameters) & {"defer", "max_rpc_cnt=150", "bf_window_linear=30"} <= set(line)
