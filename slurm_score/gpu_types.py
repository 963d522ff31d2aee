"""What kinds of GPU can do: memory and fast links by type, from the policy and a table of common cards. Pure.

A site names its types as it likes: `a100`, `tesla_v100-pcie-32gb`, `nvidia_h200_nvl_4g.71gb`. So the
table holds patterns, matched against the whole name in lower case; the policy's own come first.

Sources: the makers' data sheets; gres.conf(5), AutoDetect names types after the card.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from re import compile as pattern


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One type: memory in GiB and whether its GPUs have a fast link; None where nobody knows."""

    vram_gib: float | None = None
    nvlink: bool | None = None


UNKNOWN = GpuFacts()

CARDS: Mapping[str, GpuFacts] = {
    "*pcie*": GpuFacts(None, False),
    "*gb300*": GpuFacts(288, True),
    "*b300*": GpuFacts(288, True),
    "*gb200*": GpuFacts(186, True),
    "*b200*": GpuFacts(180, True),
    "*b100*": GpuFacts(192, True),
    "*gh200*144*": GpuFacts(144, True),
    "*gh200*": GpuFacts(96, True),
    "*h200*": GpuFacts(141, True),
    "*h100*nvl*": GpuFacts(94, True),
    "*h100*96gb*": GpuFacts(96, True),
    "*h100*64gb*": GpuFacts(64, True),
    "*h100*": GpuFacts(80, True),
    "*h800*": GpuFacts(80, True),
    "*h20*": GpuFacts(96, True),
    "*a100*80gb*": GpuFacts(80, True),
    "*a100*64gb*": GpuFacts(64, True),
    "*a100*40gb*": GpuFacts(40, True),
    "*a100*pcie*": GpuFacts(40, False),
    "*a100*": GpuFacts(80, True),
    "*a800*": GpuFacts(80, True),
    "*l40*": GpuFacts(48, False),
    "*l4": GpuFacts(24, False),
    "*rtx*pro*6000*": GpuFacts(96, False),
    "*rtx*6000*ada*": GpuFacts(48, False),
    "*a6000*": GpuFacts(48, False),
    "*a5000*": GpuFacts(24, False),
    "*a4000*": GpuFacts(16, False),
    "*a40": GpuFacts(48, False),
    "*a30": GpuFacts(24, False),
    "*a10": GpuFacts(24, False),
    "*a10g": GpuFacts(24, False),
    "*a16": GpuFacts(16, False),
    "*a2": GpuFacts(16, False),
    "*quadro*rtx*8000*": GpuFacts(48, False),
    "*quadro*rtx*6000*": GpuFacts(24, False),
    "*v100*32*": GpuFacts(32, True),
    "*v100*16*": GpuFacts(16, True),
    "*v100*": GpuFacts(16, True),
    "*p100*12*": GpuFacts(12, False),
    "*p100*": GpuFacts(16, False),
    "*p40*": GpuFacts(24, False),
    "*p4": GpuFacts(8, False),
    "*t4": GpuFacts(16, False),
    "*k80*": GpuFacts(12, False),
    "*titan*rtx*": GpuFacts(24, False),
    "*rtx*5090*": GpuFacts(32, False),
    "*rtx*4090*": GpuFacts(24, False),
    "*rtx*4080*": GpuFacts(16, False),
    "*rtx*3090*": GpuFacts(24, False),
    "*rtx*3080*": GpuFacts(10, False),
    "*rtx*2080*ti*": GpuFacts(11, False),
    "*gtx*1080*ti*": GpuFacts(11, False),
    "*mi355*": GpuFacts(288, True),
    "*mi350*": GpuFacts(288, True),
    "*mi325*": GpuFacts(256, True),
    "*mi300a*": GpuFacts(128, True),
    "*mi300*": GpuFacts(192, True),
    "*mi250*": GpuFacts(64, True),  # Slurm counts each of the card's two dies
    "*mi210*": GpuFacts(64, True),
    "*mi100*": GpuFacts(32, True),
    "*max_1550*": GpuFacts(128, True),
    "*gaudi3*": GpuFacts(128, True),
    "*gaudi2*": GpuFacts(96, True),
}
"""Common cards; of each fact the first pattern with the fact counts."""

_SLICE = pattern(r"(?:^|[_.-])\d+[cg]\.(?:\d+[cg]\.)?(\d+)gb(?:[_.+-]|$)")


@dataclass(frozen=True)
class GpuTypes:
    """The policy's own table before the shipped one: facts by a pattern for the type's name."""

    own: Mapping[str, GpuFacts] = field(default_factory=dict)

    @cached_property
    def _found(self) -> dict[str, GpuFacts]:
        return {}

    def facts(self, gpu_type: str) -> GpuFacts:
        """Return what is known of a type, whatever the case of its name.

        Each fact is that of the first pattern with the fact. A MIG slice has the memory in its name,
        and no fast link.
        """
        found = self._found.get(gpu_type)
        if found is None:
            found = self._found[gpu_type] = self._look_up(gpu_type.lower())
        return found

    def _look_up(self, name: str) -> GpuFacts:
        if cut := _SLICE.search(name):
            return GpuFacts(float(cut[1]), False)
        tables = (self.own.items(), CARDS.items())
        known = [facts for table in tables for p, facts in table if fnmatchcase(name, p.lower())]
        vram = next((facts.vram_gib for facts in known if facts.vram_gib is not None), None)
        return GpuFacts(vram, next((facts.nvlink for facts in known if facts.nvlink is not None), None))

    def capability(self, gpu_type: str) -> tuple[float, bool]:
        """Return a key that sorts types from the least capable: memory, then the fast link."""
        facts = self.facts(gpu_type)
        return (facts.vram_gib or 0.0, bool(facts.nvlink))

    def has_vram(self, gpu_type: str, vram_gib: float) -> bool:
        """Return whether a type has so much memory; a type that nobody knows is not said to lack it."""
        known = self.facts(gpu_type).vram_gib
        return known is None or known >= vram_gib


SHIPPED = GpuTypes()
