"""slurm_score/gres.py: what jobs ask for and what nodes have."""

from typing import Any

import pytest

from slurm_score.errors import ParseError
from slurm_score.gres import (
    NO_GPUS,
    GpuCount,
    GpuRequest,
    Gres,
    count_gpus,
    gpu_request,
    gpu_shards,
    gpu_slices,
    least_cpus,
    parse_gres,
)


def gpu(count: int, gpu_type: str | None = None) -> Gres:
    """Return GPUs as one item."""
    return Gres("gpu", gpu_type, count)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        pytest.param("gpu:k80:4(IDX:0-3)", [gpu(4, "k80")], id="case 1"),
        pytest.param("gpu:h100:4(S:0-3)", [gpu(4, "h100")], id="case 2"),
        pytest.param("gpu:tesla:2,gpu:kepler:2", [gpu(2, "tesla"), gpu(2, "kepler")], id="case 3"),
        pytest.param(
            "gpu:nvidia_h200_nvl_4g.71gb:2(S:0-1)", [gpu(2, "nvidia_h200_nvl_4g.71gb")], id="case 4"
        ),
        pytest.param("gpu", [gpu(1)], id="case 10, name alone"),
        pytest.param("gpu:a100", [gpu(1, "a100")], id="case 10, name and type"),
        pytest.param("gres/gpu", [gpu(1)], id="case 10, with prefix"),
        pytest.param("gpu:tesla_v100-sxm3-32gb:16", [gpu(16, "tesla_v100-sxm3-32gb")], id="case 11"),
        pytest.param("gpu:a100-40gb:4", [gpu(4, "a100-40gb")], id="case 11, digits last"),
        pytest.param("(null)", [], id="case 13, null"),
        pytest.param("N/A", [], id="case 13, N/A"),
        pytest.param("", [], id="case 13, empty"),
        pytest.param("  ", [], id="case 13, blank"),
        pytest.param("tmp:844G", [Gres("tmp", None, 844 * 2**30)], id="case 13, not a GPU"),
        pytest.param("gpu:a100:2,shard:20", [gpu(2, "a100"), Gres("shard", None, 20)], id="case 14"),
        pytest.param(
            "gpu:kepler:2,bandwidth:lustre:no_consume:4G",
            [gpu(2, "kepler"), Gres("bandwidth", "lustre", 4 * 2**30)],
            id="case 16",
        ),
        pytest.param("gpu:a100:2(IDX:0,2-3),gpu:v100:0(IDX:N/A)", [gpu(2, "a100"), gpu(0, "v100")], id="IDX"),
        pytest.param("shard:a100:3(1/4,2/4)", [Gres("shard", "a100", 3)], id="shards per GPU"),
        pytest.param("gpu:1080:2", [gpu(2, "1080")], id="type of digits"),
        pytest.param("gpu:2, gpu:a100:1", [gpu(2), gpu(1, "a100")], id="blank after the comma"),
        pytest.param("GPU:A100:2", [gpu(2, "A100")], id="capitals"),
        pytest.param("cpu=1,mem=4000M,node=1,billing=1", [], id="no GRES in a TRES string"),
        pytest.param("license/foo=2,bb/datawarp=1,gres/gpu=1", [gpu(1)], id="other groups"),
    ],
)
def test_gres_text_is_read_item_by_item(text: str, items: list[Gres]) -> None:
    """Each kind of item that jobs and nodes have had; the case number stands at the row."""
    assert parse_gres(text) == tuple(items)


@pytest.mark.parametrize(
    "text", ["gpu:a100:2", "gres:gpu:a100:2", "gres/gpu:a100:2", "gres/gpu:a100=2", "gpu:a100:2(S:0-1)"]
)
def test_every_release_spells_the_same_request(text: str) -> None:
    """Case 7: up to 23.02 with gres:, from 23.11 with gres/, in TRES strings with an equals sign."""
    assert gpu_request(per_job=text) == GpuRequest(2, (("a100", 2),))


@pytest.mark.parametrize("text", ["gpu:2", "gres:gpu:2", "gres/gpu:2", "gres/gpu=2"])
def test_request_without_type_accepts_any(text: str) -> None:
    """Case 7: `gpu` is the name, never the type."""
    assert gpu_request(per_job=text) == GpuRequest(2)


@pytest.mark.parametrize("text", ["cpu=2,mem=512M,node=", "cpu=2,mem=512M,", "gpu:a100:", "gres/gpu:"])
def test_text_that_slurm_cut_off_is_named(text: str) -> None:
    """Case 12: squeue cuts a field with a width, and the GPUs are behind the cut."""
    with pytest.raises(ParseError, match="cut off"):
        parse_gres(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("gpu:a100:2(S:0", "unbalanced parentheses in a GRES text"),
        ("gpu:a100:2)", "unbalanced parentheses in a GRES text"),
        ("gpu:a100:2:x", "can't read the GRES item 'gpu:a100:2:x'"),
        ("gpu::2", "can't read the GRES item 'gpu::2'"),
        ("gres/gpu=two words", "can't read the GRES item 'gres/gpu=two words'"),
        ("gpu:" + "9" * 19, "not a count"),
    ],
)
def test_other_gres_text_is_refused(text: str, what: str) -> None:
    """A text that fits no form is an error with its own words, never a guess of 0 GPUs."""
    with pytest.raises(ParseError) as caught:
        parse_gres(text)
    assert caught.value.problem.what == what


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(
            "cpu=8,mem=64G,node=1,gres/gpu:nvidia_geforce_rtx_2080_ti=1",
            GpuCount(1, {"nvidia_geforce_rtx_2080_ti": 1}),
            id="case 5",
        ),
        pytest.param(
            "cpu=64,node=1,gres/gpu=8,gres/gpu:h100=8", GpuCount(8, {"h100": 8}), id="case 6, each GPU once"
        ),
        pytest.param(
            "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=2,gres/gpu:a100=2",
            GpuCount(2, {"a100": 2}),
            id="tres-alloc of a pending job",
        ),
        pytest.param("gres/shard:4", GpuCount(), id="case 14, shards are no GPUs"),
        pytest.param("gpu:tesla:2,gpu:kepler:2", GpuCount(4, {"tesla": 2, "kepler": 2}), id="case 3"),
        pytest.param("gpu:A100:1,gpu:a100:2", GpuCount(3, {"a100": 3}), id="a type's capitals don't matter"),
        pytest.param("gres/gpu=3,gres/gpu:a100=1", GpuCount(3, {"a100": 1}), id="not all types listed"),
    ],
)
def test_gpus_are_counted_once(text: str, count: GpuCount) -> None:
    """Where a text has a total and its types, the total is the larger of the two sums."""
    assert count_gpus(parse_gres(text)) == count


@pytest.mark.parametrize(
    ("texts", "request_"),
    [
        pytest.param({"per_job": "gres/gpu:4", "per_node": "N/A"}, GpuRequest(4), id="case 8"),
        pytest.param({"per_job": "gres/gpu:1"}, GpuRequest(1), id="case 9"),
        pytest.param(
            {"per_node": "gpu:p100:2", "nodes": 4}, GpuRequest(8, (("p100", 8),), per_node=2), id="case 15"
        ),
        pytest.param(
            {"per_node": "gpu:a100:1,gpu:v100:2", "nodes": 3},
            GpuRequest(9, (("a100", 3), ("v100", 6)), per_node=3),
            id="two types on each node",
        ),
        pytest.param({"per_task": "gres/gpu=1", "tasks": 6}, GpuRequest(6), id="for each task"),
        pytest.param({"per_task": "cpu=2", "tasks": 6}, NO_GPUS, id="CPUs for each task"),
        pytest.param({"per_socket": "gpu:2", "nodes": 3}, GpuRequest(6), id="for each socket, at least"),
        pytest.param(
            {"per_socket": "gpu:a100:1", "total": "cpu=8,gres/gpu=4"},
            GpuRequest(4, (("a100", 4),)),
            id="only Slurm knows the sockets",
        ),
        pytest.param(
            {"per_job": "gpu:2", "total": "gres/gpu=2,gres/gpu:a100=2"},
            GpuRequest(2, (("a100", 2),)),
            id="a type that Slurm added",
        ),
        pytest.param(
            {"per_job": "gpu:a100:1,gpu:v100:2"}, GpuRequest(3, (("a100", 1), ("v100", 2))), id="two types"
        ),
        pytest.param(
            {"per_job": "gpu:4", "per_node": "gpu:a100:2", "nodes": 2},
            GpuRequest(4, (("a100", 4),), per_node=2),
            id="the type stands in only one of the texts",
        ),
        pytest.param({"per_node": "shard:4", "nodes": 2}, NO_GPUS, id="case 14, shards"),
        pytest.param({}, NO_GPUS, id="nothing"),
    ],
)
def test_request_adds_up_to_whole_job(texts: dict[str, Any], request_: GpuRequest) -> None:
    """GPUs for each node, socket or task are multiplied; Slurm's own sum wins over ours."""
    assert gpu_request(**texts) == request_


@pytest.mark.parametrize(
    ("texts", "request_"),
    [
        pytest.param(
            {"per_node": "gpu:2", "nodes": 2, "total": "cpu=12,node=1,gres/gpu=2"},
            GpuRequest(4, per_node=2),
            id="--ntasks=12 --gpus-per-node=2 on nodes of 8 CPUs",
        ),
        pytest.param(
            {"per_node": "gpu:a100:2", "nodes": 3, "total": "cpu=1,node=2,gres/gpu=4,gres/gpu:a100=4"},
            GpuRequest(6, (("a100", 6),), per_node=2),
            id="--nodes=2-3 --gres=gpu:a100:2",
        ),
        pytest.param(
            {"per_job": "gpu:4", "per_node": "gpu:2", "nodes": 3, "total": "node=2,gres/gpu=4"},
            GpuRequest(4, per_node=2),
            id="--gpus=4 is a limit for the job",
        ),
        pytest.param(
            {"per_job": "gpu:8", "nodes": 2, "total": "cpu=1,node=1,gres/gpu=8"},
            GpuRequest(8),
            id="--gpus=8 over two nodes",
        ),
    ],
)
def test_gpus_of_each_node_count_on_all_nodes_that_slurm_means_to_give(
    texts: dict[str, Any], request_: GpuRequest
) -> None:
    """Slurm adds TRES up for the fewest nodes, before it looks for a place (observed on 22.05 to 26.05)."""
    assert gpu_request(**texts) == request_


@pytest.mark.parametrize(
    ("cpus", "nodes", "gpus", "cpus_per_tres", "least"),
    [
        (6, 1, 2, "gres/gpu:3", 6),
        (1, 1, 2, "gres:gpu:3", 6),  # up to 22.05 NumCPUs is that of one task
        (2, 2, 4, "gres:gpu:3", 12),
        (1, 2, 8, "N/A", 2),
        (16, 2, 2, "gres/gpu:3", 16),
    ],
)
def test_a_job_is_given_a_cpu_on_each_node_and_those_of_its_gpus(
    cpus: int, nodes: int, gpus: int, cpus_per_tres: str, least: int
) -> None:
    """--cpus-per-gpu=3; --gpus=8 over two nodes with one task."""
    assert least_cpus(cpus, nodes, GpuRequest(gpus), cpus_per_tres) == least


@pytest.mark.parametrize(
    ("texts", "gpus", "slices", "shards"),
    [
        pytest.param(
            {"per_job": "gres/gpu:1g.10gb:2", "total": "cpu=1,gres/gpu=2,gres/gpu:1g.10gb=2"},
            NO_GPUS,
            GpuRequest(2, (("1g.10gb", 2),)),
            NO_GPUS,
            id="--gpus=1g.10gb:2, counted by type",
        ),
        pytest.param(
            {"per_node": "gres:gpu:1g.10gb:1", "nodes": 3, "total": "cpu=3,node=3,gres/gpu=3"},
            NO_GPUS,
            GpuRequest(3, (("1g.10gb", 3),), per_node=1),
            NO_GPUS,
            id="22.05, slices that Slurm counts among the GPUs",
        ),
        pytest.param(
            {"per_node": "gpu:NVIDIA_H200_NVL_4g.71gb:2,gpu:1g.10gb:1"},
            NO_GPUS,
            GpuRequest(3, (("1g.10gb", 1), ("nvidia_h200_nvl_4g.71gb", 2)), per_node=3),
            NO_GPUS,
            id="two profiles",
        ),
        pytest.param(
            {"per_node": "gpu:a100:1,gpu:1g.10gb:2", "total": "gres/gpu=3"},
            GpuRequest(1, (("a100", 1),), per_node=1),
            GpuRequest(2, (("1g.10gb", 2),), per_node=2),
            NO_GPUS,
            id="a whole GPU beside slices",
        ),
        pytest.param(
            {"per_task": "gres/gpu:1g.10gb=1", "tasks": 2, "total": "cpu=2,gres/gpu=2,gres/gpu:1g.10gb=2"},
            NO_GPUS,
            GpuRequest(2, (("1g.10gb", 2),)),
            NO_GPUS,
            id="a slice of each task",
        ),
        pytest.param(
            {"per_node": "gres:shard:3", "total": "cpu=1,mem=4000M,node=1"},
            NO_GPUS,
            NO_GPUS,
            GpuRequest(3, per_node=3),
            id="shards that Slurm doesn't count",
        ),
        pytest.param(
            {"per_node": "gres/shard:4", "nodes": 2, "total": "cpu=2,node=2,gres/shard=8"},
            NO_GPUS,
            NO_GPUS,
            GpuRequest(8, per_node=4),
            id="shards on each of two nodes",
        ),
        pytest.param(
            {"per_node": "gres/shard:A100-SXM4-40GB:2"},
            NO_GPUS,
            NO_GPUS,
            GpuRequest(2, (("a100-sxm4-40gb", 2),), per_node=2),
            id="shards of a type",
        ),
        pytest.param(
            {"per_task": "gres/shard:1", "tasks": 3},
            NO_GPUS,
            NO_GPUS,
            GpuRequest(3),
            id="a shard of each task",
        ),
        pytest.param({"per_node": "mps:50"}, NO_GPUS, NO_GPUS, NO_GPUS, id="MPS shares are none of them"),
    ],
)
def test_slices_and_shards_are_requests_of_their_own(
    texts: dict[str, Any], gpus: GpuRequest, slices: GpuRequest, shards: GpuRequest
) -> None:
    """Cases 4 and 14; observed in squeue on 22.05, 24.11 and 26.05."""
    assert (gpu_request(**texts), gpu_slices(**texts), gpu_shards(**texts)) == (gpus, slices, shards)


def test_unreadable_request_says_what_it_was() -> None:
    """The message shows the text, escaped and cut, since a user wrote it."""
    with pytest.raises(ParseError) as caught:
        gpu_request(per_job="gpu:\x1b[31m:" + "x" * 10_000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000
