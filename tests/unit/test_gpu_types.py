"""slurm_score/gpu_types.py: memory and fast link by the names that sites and Slurm give to types."""

import pytest

from slurm_score.gpu_types import CARDS, SHIPPED, UNKNOWN, GpuFacts, GpuTypes


@pytest.mark.parametrize(
    ("gpu_type", "vram_gib", "nvlink"),
    [
        ("a100", 80, True),
        ("A100", 80, True),
        ("nvidia_a100-sxm4-40gb", 40, True),
        ("nvidia_a100-pcie-40gb", 40, False),
        ("nvidia_a100_80gb_pcie", 80, False),
        ("nvidia_a100-sxm-64gb", 64, True),
        ("a100_pcie", 40, False),
        ("nvidia_h100_80gb_hbm3", 80, True),
        ("nvidia_h100_nvl", 94, True),
        ("nvidia_h100_pcie", 80, False),
        ("nvidia_h200", 141, True),
        ("nvidia_gh200_480gb", 96, True),
        ("h20", 96, True),
        ("tesla_v100-sxm2-32gb", 32, True),
        ("tesla_v100-pcie-32gb", 32, False),
        ("tesla_v100-pcie-16gb", 16, False),
        ("v100m32", 32, True),
        ("v100", 16, True),
        ("tesla_t4", 16, False),
        ("nvidia_l4", 24, False),
        ("nvidia_l40s", 48, False),
        ("nvidia_a40", 48, False),
        ("nvidia_a10", 24, False),
        ("nvidia_a10g", 24, False),
        ("nvidia_rtx_6000_ada_generation", 48, False),
        ("quadro_rtx_6000", 24, False),
        ("nvidia_geforce_rtx_2080_ti", 11, False),
        ("p40", 24, False),
        ("p4", 8, False),
        ("mi300a", 128, True),
        ("mi300x", 192, True),
        ("shard:a40", 48, False),
    ],
)
def test_common_cards_are_known_by_many_names(gpu_type: str, vram_gib: float, nvlink: bool) -> None:
    """Data sheets; names as AutoDetect makes them of the card's."""
    assert SHIPPED.facts(gpu_type) == GpuFacts(vram_gib, nvlink)


@pytest.mark.parametrize(
    ("gpu_type", "vram_gib"),
    [
        ("1g.10gb", 10),
        ("nvidia_h200_nvl_4g.71gb", 71),
        ("nvidia_a100_3g.20gb", 20),
        ("1c.3g.20gb", 20),
        ("a100_1g.5gb+me", 5),
    ],
)
def test_slice_has_the_memory_in_its_name(gpu_type: str, vram_gib: float) -> None:
    """Not that of the card, and no fast link."""
    assert SHIPPED.facts(gpu_type) == GpuFacts(vram_gib, False)


@pytest.mark.parametrize("gpu_type", ["gpu", "shard", "kepler", "g2", ""])
def test_of_other_names_nothing_is_known(gpu_type: str) -> None:
    """And nothing is made up; least capable, but not said to lack memory."""
    assert SHIPPED.facts(gpu_type) == UNKNOWN
    assert SHIPPED.capability(gpu_type) == (0.0, False)
    assert SHIPPED.has_vram(gpu_type, 4000)


def test_policys_own_table_comes_first_fact_by_fact() -> None:
    """Memory of the site's own a100, its link from the shipped table; a pattern in any case."""
    own = GpuTypes({"A100*": GpuFacts(vram_gib=40), "g2": GpuFacts(24, nvlink=False)})
    assert own.facts("a100") == GpuFacts(40, True)
    assert own.facts("G2") == GpuFacts(24, False)
    assert own.facts("v100") == SHIPPED.facts("v100")


def test_capability_sorts_by_memory_then_link() -> None:
    """The least capable first."""
    names = ["a100", "v100", "t4", "gpu", "a40"]
    assert sorted(names, key=SHIPPED.capability) == ["gpu", "t4", "v100", "a40", "a100"]


@pytest.mark.parametrize(("vram_gib", "enough"), [(15.9, True), (16, True), (16.1, False)])
def test_type_has_memory_up_to_its_own(vram_gib: float, enough: bool) -> None:
    """16 GiB serve who asks for 16."""
    assert SHIPPED.has_vram("v100", vram_gib) is enough


def test_no_pattern_of_the_table_is_hidden_by_an_earlier_one() -> None:
    """A name made of the pattern itself must find its own memory."""
    hidden = [
        pattern
        for pattern, facts in CARDS.items()
        if facts.vram_gib and SHIPPED.facts(pattern.replace("*", "_").strip("_")).vram_gib != facts.vram_gib
    ]
    assert hidden == []
