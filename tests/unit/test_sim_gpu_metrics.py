"""How GPUs were used, worked out by hand on one node of four and one of two."""

import pytest

from slurm_score.sim.gpu_metrics import by_type, gpus_stranded, gpus_used
from slurm_score.sim.hetero import ClusterSchedule
from slurm_score.sim.metrics import by_gpu_type, used_over_time
from tests.unit.site_support import Job, ran, site

SITE = """
nodes:
  - {names: "a1", cores: 8, mem_mb: 100, gres: "gpu:a100:4"}
  - {names: "v1", cores: 8, mem_mb: 100, gres: "gpu:v100:2"}
partitions: {p: {nodes: "a1,v1"}}
"""


def schedule() -> ClusterSchedule:
    """From 0 to 10 one a100, from 0 to 20 two more, from 5 to 15 both v100; all is over at 20."""
    return ran(
        [Job(0, 10, gpus=1, types=("a100",)), Job(0, 20, gpus=2, types=("a100",)),
         Job(5, 10, gpus=2, types=("v100",)), Job(0, 1)],
        site(SITE),
    )  # fmt: skip


def test_gpus_in_use_over_time() -> None:
    """Three, five, four, two, none."""
    at_s, used = gpus_used(schedule())
    assert dict(zip(at_s.tolist(), used.tolist(), strict=True)) == {0: 3, 5: 5, 10: 4, 15: 2, 20: 0}


def test_stranded_gpus_are_free_beside_taken_ones() -> None:
    """One a100 until 10, then two; v1 is empty or full."""
    at_s, stranded = gpus_stranded(schedule())
    assert dict(zip(at_s.tolist(), stranded.tolist(), strict=True)) == {0: 1, 5: 1, 10: 2, 15: 2, 20: 0}


def test_shares_by_type() -> None:
    """Of 80 a100 seconds 50 are used and all 30 others stranded; of 40 v100 seconds 20 are used."""
    rows = {row.name: row for row in by_type(schedule())}
    assert {name: row.gpus for name, row in rows.items()} == {"a100": 4, "v100": 2, "all": 6}
    assert [row.used for row in rows.values()] == pytest.approx([50 / 80, 20 / 40, 70 / 120])
    assert [row.stranded for row in rows.values()] == pytest.approx([30 / 80, 0.0, 30 / 120])
    assert rows["a100"].fragmentation == pytest.approx(1.0)
    assert rows["all"].fragmentation == pytest.approx(30 / 50)


def test_a_cluster_without_gpus_has_no_rows() -> None:
    """And nothing is in use."""
    bare = ran([Job(0, 5)], site("nodes: [{names: n1, cores: 1, mem_mb: 1}]\npartitions: {p: {nodes: n1}}"))
    assert by_type(bare) == []
    assert [len(values) for values in (*gpus_used(bare), *gpus_stranded(bare))] == [0, 0, 0, 0]


def test_cores_in_use_count_what_an_exclusive_job_has() -> None:
    """It asks for one core and has eight."""
    at_s, used = used_over_time(ran([Job(0, 10, exclusive=True)], site(SITE)))
    assert (at_s.tolist(), used.tolist()) == ([0, 10], [8, 0])


def test_rows_by_the_types_that_will_do() -> None:
    """A row for each set of types, and one for those without GPUs."""
    some = [Job(0, 5, gpus=1, types=("a100", "v100")), Job(0, 5, gpus=1), Job(0, 5)]
    assert {row.name: row.jobs for row in by_gpu_type(ran(some, site(SITE)))} == {
        "a100|v100": 1, "any": 1, "no GPU": 1,
    }  # fmt: skip
