"""slurm_score/node_gres.py: what a node has of GPUs, MIG slices and shards, and what of it is taken."""

import pytest

from slurm_score.gres import GpuCount
from slurm_score.node_gres import gpus_in_use, node_gres, shards_in_use

TWO = "gpu:a100:2,gpu:v100:2"


@pytest.mark.parametrize(
    ("has", "used", "count"),
    [
        pytest.param("gpu:a100:4", "gpu:a100:2(IDX:0,2)", GpuCount(2, {"a100": 2}), id="no shares"),
        pytest.param(
            "gpu:a100:2,shard:a100:8",
            "gpu:a100:1(IDX:1),shard:a100:3(3/4,-/4)",
            GpuCount(2, {"a100": 2}),
            id="26.05, one GPU lent",
        ),
        pytest.param(
            "gpu:A100:2,shard:A100:8",
            "gpu:A100:0(IDX:N/A),shard:A100:0(0/4,0/4)",
            GpuCount(0, {"a100": 0}),
            id="24.11, nothing in use",
        ),
        pytest.param(
            "gpu:4,shard:16",
            "gpu:(null):1(IDX:1),shard:(null):7(3/4,0/4,4/4,0/4)",
            GpuCount(3),
            id="24.11, no type",
        ),
        pytest.param(
            "gpu:a100:2,shard:a100:8",
            "gpu:a100:0(IDX:N/A),shard:a100:2(IDX:0-1)",
            GpuCount(2, {"a100": 2}),
            id="22.05, where shards are",
        ),
        pytest.param("gpu:4,shard:16", "gpu:2,shard:(null):3(IDX:0-2)", GpuCount(4), id="22.05 lends twice"),
        pytest.param(
            "gpu:a100:2,shard:a100:8",
            "bandwidth:0,gpu:a100:0(IDX:N/A),shard:a100:0(IDX:N/A)",
            GpuCount(0, {"a100": 0}),
            id="22.05, nothing in use",
        ),
        pytest.param("gpu:a100:2,shard:8", "gpu:a100:0,shard:0", GpuCount(0, {"a100": 0}), id="22.05, none"),
        pytest.param("gpu:a100:4,mps:400", "gpu:a100:0,mps:3", GpuCount(3, {"a100": 3}), id="nowhere said"),
        pytest.param("gpu:a100:4,mps:4K", "gpu:a100:0,mps:2K", GpuCount(4, {"a100": 4}), id="many shares"),
        pytest.param(TWO, f"{TWO},shard:v100:1(1/4,0/4)", GpuCount(4, {"a100": 2, "v100": 2}), id="full"),
        pytest.param(
            TWO, "gpu:a100:0,gpu:v100:0,shard:v100:1(1/4,0/4)", GpuCount(1, {"a100": 0, "v100": 1}), id="one"
        ),
        pytest.param(
            TWO, "gpu:a100:0,gpu:v100:0,shard:1(1/4,0/4)", GpuCount(1, {"a100": 1, "v100": 1}), id="of either"
        ),
        pytest.param("gpu:a100:2", "gpu:a100:1,bandwidth:lustre:3", GpuCount(1, {"a100": 1}), id="others"),
    ],
)
def test_gpu_that_is_lent_in_part_is_not_free(has: str, used: str, count: GpuCount) -> None:
    """Slurm gives a GPU of which a shard or an MPS share is in use to nobody as a whole (gres.conf(5))."""
    assert gpus_in_use(has, used) == count


A100 = "gpu:A100-SXM4-40GB:2,shard:A100-SXM4-40GB:8"


@pytest.mark.parametrize(
    ("has", "used", "count"),
    [
        pytest.param(
            A100,
            "gpu:A100-SXM4-40GB:1(IDX:1),shard:A100-SXM4-40GB:3(3/4,-/4)",
            GpuCount(7, {"a100-sxm4-40gb": 7}),
            id="26.05: three shards, and the four of a GPU in use whole",
        ),
        pytest.param(
            A100,
            "gpu:A100-SXM4-40GB:1(IDX:1),shard:A100-SXM4-40GB:3(3/4,0/4)",
            GpuCount(7, {"a100-sxm4-40gb": 7}),
            id="24.11 shows a GPU in use whole as if it were free",
        ),
        pytest.param(
            A100,
            "bandwidth:0,gpu:A100-SXM4-40GB:1(IDX:1),shard:A100-SXM4-40GB:1(IDX:0)",
            GpuCount(8, {"a100-sxm4-40gb": 8}),
            id="22.05 tells GPUs, not shards",
        ),
        pytest.param(
            A100,
            "gpu:A100-SXM4-40GB:2(IDX:0-1),shard:A100-SXM4-40GB:0(0/4,0/4)",
            GpuCount(8, {"a100-sxm4-40gb": 8}),
            id="both GPUs in use whole",
        ),
        pytest.param(
            A100,
            "gpu:A100-SXM4-40GB:0(IDX:N/A),shard:A100-SXM4-40GB:0(IDX:N/A)",
            GpuCount(0, {"a100-sxm4-40gb": 0}),
            id="nothing in use",
        ),
        pytest.param(
            "gpu:2,shard:4", "gpu:0(IDX:N/A),shard:1(1/2,0/2)", GpuCount(1), id="26.05, GPUs without a type"
        ),
        pytest.param(
            "gpu:2,shard:4",
            "gpu:(null):1(IDX:1),shard:(null):1(1/2,0/2)",
            GpuCount(3),
            id="24.11, GPUs without a type",
        ),
        pytest.param(
            "gpu:a100:2,gpu:v100:2,shard:a100:8,shard:v100:4",
            "gpu:a100:1(IDX:0),gpu:v100:0(IDX:N/A),shard:a100:0(-/4,0/4),shard:v100:1(1/2,0/2)",
            GpuCount(5, {"a100": 4, "v100": 1}),
            id="two types",
        ),
        pytest.param("gpu:2,shard:5", "gpu:1(IDX:0),shard:0(-/3,0/2)", GpuCount(3), id="the more of 5 on 2"),
        pytest.param("gpu:a100:4", "gpu:a100:1(IDX:0),shard:0", GpuCount(0), id="no shards"),
        pytest.param("gpu:a100:4,mps:400", "gpu:a100:0,mps:50(50/100,0/100)", GpuCount(0), id="MPS shares"),
    ],
)
def test_shards_of_a_gpu_in_use_whole_are_taken(has: str, used: str, count: GpuCount) -> None:
    """A GPU that a job has whole lends nothing (gres.conf(5), shard); texts as observed."""
    assert shards_in_use(has, used) == count


def test_slices_are_counted_beside_gpus() -> None:
    """Case 4: a MIG slice is no GPU; profiles in lower case."""
    gres = node_gres(
        "gpu:a100:1,gpu:NVIDIA_H200_NVL_4g.71gb:2,gpu:1g.10gb:2",
        "gpu:a100:0(IDX:N/A),gpu:NVIDIA_H200_NVL_4g.71gb:1(IDX:0),gpu:1g.10gb:2(IDX:2-3)",
    )
    assert (gres.gpus, gres.gpus_used) == (GpuCount(1, {"a100": 1}), GpuCount(0, {"a100": 0}))
    assert gres.mig == GpuCount(4, {"nvidia_h200_nvl_4g.71gb": 2, "1g.10gb": 2})
    assert gres.mig_used == GpuCount(3, {"nvidia_h200_nvl_4g.71gb": 1, "1g.10gb": 2})


@pytest.mark.parametrize(
    ("used", "free"),
    [
        pytest.param("gpu:a100:0(IDX:N/A),shard:a100:0(0/4,0/4)", 4, id="nothing lent"),
        pytest.param("gpu:a100:0(IDX:N/A),shard:a100:6(3/4,3/4)", 1, id="three of each"),
        pytest.param("gpu:a100:0(IDX:N/A),shard:a100:5(4/4,1/4)", 3, id="all of one"),
        pytest.param("gpu:a100:1(IDX:0),shard:a100:1(-/4,1/4)", 3, id="26.05, one in use whole"),
        pytest.param("gpu:a100:1(IDX:0),shard:a100:3(0/4,3/4)", 1, id="24.11, one in use whole"),
        pytest.param("gpu:a100:0(IDX:N/A),shard:a100:0(IDX:N/A)", 4, id="22.05, nothing lent"),
        pytest.param("gpu:a100:0(IDX:N/A),shard:a100:1(IDX:0)", 4, id="22.05, one GPU lent"),
        pytest.param("gpu:a100:0(IDX:N/A),shard:a100:2(IDX:0-1)", 0, id="22.05, both lent"),
    ],
)
def test_a_job_gets_the_shards_of_one_gpu(used: str, free: int) -> None:
    """shard:5 of eight on two GPUs pends for ever on 22.05, 24.11 and 26.05 (observed)."""
    found = node_gres("gpu:a100:2(S:0-1),shard:a100:8(S:0-1)", used)
    assert (found.shards_of_gpu, found.shards_free_of_gpu) == (4, free)
