"""A site's cluster from YAML: what it says, and every problem with its line."""

import math

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.sim.cluster import parse_site, pool_site
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.scheduler import Scheduler
from tests.unit.sim_support import DATA, needs_data
from tests.unit.site_support import SITE, site


def problems(text: str) -> list[str]:
    """Return what is wrong with a text."""
    with pytest.raises(SimulationError) as caught:
        parse_site(text, "site.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_nodes_stand_in_columns() -> None:
    """Types in lower case, one column each; a range is so many nodes."""
    read = site()
    assert read.node_names == ("n1", "n2", "a1", "v1", "v2")
    assert read.gpu_types == ("a100", "v100")
    assert read.gpus.tolist() == [[0, 0], [0, 0], [2, 0], [0, 2], [0, 2]]
    assert read.weight.tolist() == [10, 10, 30, 20, 20]
    assert read.features[2] == {"IB", "big"}
    assert read.procs == 20
    assert [(p.name, p.nodes, p.default) for p in read.partitions] == [
        ("all", (0, 1, 2, 3, 4), True),
        ("gpus", (2, 3, 4), False),
    ]
    assert read.default_partition == "all"
    assert read.preempts == {"high": {"low"}}


@needs_data
def test_the_week_s_cluster_is_read() -> None:
    """217 nodes in two partitions, with Slurm's own settings."""
    read = parse_site((DATA / "slurm-sites" / "ubhpc-site.yaml").read_text("utf-8"))
    assert (read.procs, len(read.node_names), read.gpus.sum(axis=0).tolist()) == (7968, 217, [4, 16])
    first, debug = read.partitions
    assert (first.max_time_s, first.default_time_s, first.mem_per_core_mib) == (259200, 86400, 2800)
    assert (debug.max_time_s, debug.default_time_s, debug.priority_job_factor) == (3600, 3600, 700)
    assert read.scheduler == Scheduler(
        queue_depth=2500, bf_interval_s=120, bf_max_job_test=2500, bf_max_job_user=100, bf_window_s=259200
    )
    assert read.multifactor == Multifactor(
        age=70000, size=200000, qos=50000, fairshare=120000, partition=1000000, gpu=30000, damping=5,
        max_age=604800, decay_half_life=2592000,
    )  # fmt: skip


def test_a_pool_is_a_cluster_of_one_core_nodes() -> None:
    """All in one partition without a limit."""
    pool = pool_site(3)
    assert (pool.procs, pool.partitions[0].max_time_s) == (3, math.inf)
    assert np.array_equal(pool.cores, [1, 1, 1])


def test_every_wrong_value_is_named_with_its_line() -> None:
    """What can't be a value at all comes first."""
    assert problems(
        """nodes:
  - {names: "n[1-3]", cores: 0, mem_mb: 3}
  - {names: "n4", cores: 2, mem_mb: much, gress: "gpu:1"}
partitions: {}
"""
    ) == [
        "site.yaml:2: nodes.0.cores: input should be greater than or equal to 1, got '0'",
        "site.yaml:3: nodes.1.mem_mb: input should be a valid integer, got 'much'",
        "site.yaml:3: nodes.1.gress: unknown setting, did you mean 'gres'?; "
        "(known: names, cores, mem_mb, gres, features, weight)",
        "site.yaml:4: partitions: dictionary should have at least 1 item after validation, not 0, got '{}'",
    ]


def test_every_contradiction_is_named_with_its_line() -> None:
    """What is right by itself but doesn't go with the rest."""
    found = problems(
        """nodes:
  - {names: "n[1-3]", cores: 1, mem_mb: 3}
  - {names: "n3", cores: 2, mem_mb: 3, gres: "gpu:"}
  - {names: "n[", cores: 2, mem_mb: 3}
partitions: {a: {nodes: "n[1-9]", max_time: soon}}
qos: {a: 1}
preempts: {b: [a]}
multifactor: {PriorityWeightAgee: 3}
backfill: {bf_windw: 3, bf_window: 4, bf_window_min: 5}
"""
    )
    assert [problem.partition(", got")[0].partition("; ")[0] for problem in found] == [
        "site.yaml:3: nodes.1.names: n3 stands twice",
        "site.yaml:3: nodes.1.gres: a GRES text that was cut off",
        "site.yaml:4: nodes.2.names: not a host list",
        "site.yaml:5: partitions.a.nodes: n4 is no node of this file",
        "site.yaml:5: partitions.a.max_time: not a time",
        "site.yaml:7: preempts.b: unknown QOS",
        "site.yaml:8: PriorityWeightAgee: isn't simulated, did you mean 'PriorityWeightAge'? (known: "
        "PriorityWeightAge, PriorityWeightJobSize, PriorityWeightQOS, PriorityWeightFairshare, "
        "PriorityWeightPartition, PriorityWeightTRES_gres_gpu, PriorityMaxAge, PriorityDecayHalfLife, "
        "PriorityCalcPeriod, FairShareDampeningFactor, PriorityFavorSmall, PriorityFlags)",
        "site.yaml:9: bf_windw isn't simulated, did you mean 'bf_window'?",
        "site.yaml:9: bf_window stands twice isn't simulated",
    ]


def test_of_priority_flags_one_is_simulated() -> None:
    """Source: slurm.conf(5), PriorityFlags."""
    text = "nodes: [{names: n1, cores: 1, mem_mb: 1}]\npartitions: {p: {nodes: n1}}\n"
    flags = text + "multifactor: {PriorityWeightJobSize: 9, PriorityFlags: %s}\n"
    assert parse_site(flags % "SMALL_RELATIVE_TO_TIME").multifactor == Multifactor(
        age=0.0, size=9.0, small_relative=True
    )
    assert problems(flags % "MAX_TRES") == [
        "site.yaml:3: PriorityFlags: only SMALL_RELATIVE_TO_TIME is simulated, got 'MAX_TRES'"
    ]


@pytest.mark.parametrize("text", ["nodes: [", "- 1", "", "nodes: 3"])
def test_what_is_no_site_is_one_sentence(text: str) -> None:
    """Not a traceback."""
    assert problems(text)


def test_a_key_that_stands_twice_is_a_problem() -> None:
    """YAML would take the last in silence."""
    assert problems(SITE + "qos: {a: 1}\n") == ["site.yaml:11: qos: stands twice; remove one of them"]
