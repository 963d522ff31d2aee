"""GRES and TRES texts: what jobs ask for and what nodes have. Pure.

One grammar for every spelling from 20.11 to 26.05: `gpu`, `gpu:2`, `gpu:a100:2`, `gres:gpu:a100:2`
(up to 23.02), `gres/gpu:a100:2` (from 23.11), `gres/gpu:a100=2` (TRES), with `(S:0-1)` or
`(IDX:0,2-3)` behind a node's items.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypedDict, Unpack

from slurm_score.errors import ParseError, shown
from slurm_score.units import parse_count

_NOTHING = frozenset({"", "(null)", "n/a", "none"})
_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(r"\d+[KMGTP]?", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[^\s:=,()]+")
_FLAGS = frozenset({"no_consume"})
_NO_TYPE = ":(null)"
_MIG = re.compile(r"(?:^|[_.-])\d+[cg]\.(?:\d+[cg]\.)?\d+gb(?:[_.+-]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gres:
    """One item: `name` (gpu, shard, …), `type` as written or None, `count` >= 0."""

    name: str
    type: str | None
    count: int


@dataclass(frozen=True, slots=True)
class GpuCount:
    """GPUs, MIG slices or shards: their total, and how many of them by type (untyped ones left out)."""

    total: int = 0
    types: Mapping[str, int] = field(default_factory=dict)

    def __mul__(self, times: int) -> "GpuCount":
        """Return the count `times` over."""
        return GpuCount(self.total * times, {t: n * times for t, n in self.types.items()})


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs (MIG slices, shards) that one job (one task of an array) asks for.

    `types` holds (type, count) in order of name and is empty where any type will do; `per_node` is
    how many must stand on one node together, 0 where the job left that to Slurm.
    """

    total: int = 0
    types: tuple[tuple[str, int], ...] = ()
    per_node: int = 0


NO_GPUS = GpuRequest()


class GresRequest(NamedTuple):
    """What a job asks for of each unit: whole GPUs, MIG slices of GPUs, shards of GPUs."""

    gpus: GpuRequest = NO_GPUS
    slices: GpuRequest = NO_GPUS
    shards: GpuRequest = NO_GPUS


class Asked(TypedDict, total=False):
    """The arguments of `gres_request`."""

    per_job: str
    per_node: str
    per_socket: str
    per_task: str
    total: str
    nodes: int
    tasks: int


@dataclass(frozen=True, slots=True)
class GresCount:
    """What a text holds, by unit: whole GPUs, MIG slices of GPUs, shards, MPS shares, and the rest.

    A slice, a shard or a share is a part of a GPU and never counts as one. `other` is by `name` or
    `name:type`, as written.
    """

    gpu: GpuCount = field(default_factory=GpuCount)
    mig: GpuCount = field(default_factory=GpuCount)
    shard: GpuCount = field(default_factory=GpuCount)
    mps: GpuCount = field(default_factory=GpuCount)
    other: Mapping[str, int] = field(default_factory=dict)


def parse_gres(text: str) -> tuple[Gres, ...]:
    """Return the GRES items of a request, an inventory or a TRES string; other TRES are left out.

    A missing count is 1. `cpu=`, `mem=`, `node=`, `billing=` and TRES of other groups (`license/`,
    `bb/`, …) are not GRES.

    Raises:
        ParseError: an item that is none of the known forms, or a text that Slurm cut off.
    """
    if text.strip().lower() in _NOTHING:
        return ()
    if text.rstrip()[-1] in "=,:":
        raise ParseError("a GRES text that was cut off", text, "ask squeue for the field without a width")
    bare = _PARENTHESES.sub("", text.replace(_NO_TYPE, ""))
    if "(" in bare or ")" in bare:
        raise ParseError("unbalanced parentheses in a GRES text", text)
    items = (_parse_item(item.strip(), text) for item in bare.split(",") if item.strip())
    return tuple(item for item in items if item is not None)


def is_mig_type(gpu_type: str) -> bool:
    """Return whether a GPU type names a MIG slice, such as `nvidia_h200_nvl_4g.71gb` or `1g.10gb`."""
    return _MIG.search(gpu_type) is not None


def count_gres(items: Iterable[Gres]) -> GresCount:
    """Return what the items hold, by unit, each thing counted once; types are shown as written.

    A TRES string names a total and the types it is made of (`gres/gpu=8,gres/gpu:h100=8`): the total
    is the larger of the two, less the MIG slices, which Slurm counts among the GPUs. Types that
    differ in case only are the same.
    """
    untyped: dict[str, int] = {}
    types: dict[str, dict[str, int]] = {unit: {} for unit in ("gpu", "mig", "shard", "mps")}
    other: dict[str, int] = {}
    for item in items:
        unit = "mig" if item.name == "gpu" and item.type and is_mig_type(item.type) else item.name
        if unit not in types:
            _add(other, item.name if item.type is None else f"{item.name}:{item.type}", item.count)
        elif item.type is None:
            _add(untyped, unit, item.count)
        else:
            _add(types[unit], item.type, item.count)
    untyped["gpu"] = max(0, untyped.get("gpu", 0) - sum(types["mig"].values()))
    counts = {
        unit: GpuCount(max(untyped.get(unit, 0), sum(found.values())), found) for unit, found in types.items()
    }
    return GresCount(**counts, other=other)


def count_gpus(items: Iterable[Gres]) -> GpuCount:
    """Return the whole GPUs among the items, types in lower case."""
    return lower_types(count_gres(items).gpu)


def lower_types(count: GpuCount) -> GpuCount:
    """Return the count with its types in lower case."""
    return GpuCount(count.total, {gpu_type.lower(): n for gpu_type, n in count.types.items()})


@lru_cache(maxsize=4096)
def gres_request(
    *,
    per_job: str = "",
    per_node: str = "",
    per_socket: str = "",
    per_task: str = "",
    total: str = "",
    nodes: int = 1,
    tasks: int = 1,
) -> GresRequest:
    """Return the GPUs, MIG slices and shards that a job asks for, from its tres_per_* strings and its size.

    `total` is the whole request as Slurm added it up (squeue's tres-alloc of a pending job) and
    wins over our own sum: only Slurm knows how many sockets or tasks there will be. But it is added
    up for the fewest nodes, where `nodes` is how many Slurm means to give: what is asked for on each
    node counts on all of those. Types come from the request, since Slurm adds them up only where
    AccountingStorageTRES lists them; so do MIG slices, which it counts among the GPUs.

    Raises:
        ParseError: one of the texts can't be read.
    """
    texts = ((per_job, 1), (per_node, nodes), (per_socket, nodes), (per_task, tasks))
    asked = [(count_gres(parse_gres(text)), times) for text, times in texts]
    added_up = count_gres(parse_gres(total))
    slices = max(has.mig.total * times for has, times in asked)
    unseen_slices = 0 if added_up.mig.total else slices
    gpus = GpuCount(max(0, added_up.gpu.total - unseen_slices), added_up.gpu.types)
    return GresRequest(
        _request([(has.gpu, times) for has, times in asked], gpus),
        _request([(has.mig, times) for has, times in asked], added_up.mig),
        _request([(has.shard, times) for has, times in asked], added_up.shard),
    )


def gpu_request(**asked: Unpack[Asked]) -> GpuRequest:
    """Return the whole GPUs of a `gres_request`."""
    return gres_request(**asked).gpus


def gpu_slices(**asked: Unpack[Asked]) -> GpuRequest:
    """Return the MIG slices of a `gres_request`; `types` are their profiles, `1g.10gb`."""
    return gres_request(**asked).slices


def gpu_shards(**asked: Unpack[Asked]) -> GpuRequest:
    """Return the shards of a `gres_request`; `types` are those of the GPUs, where the job names one."""
    return gres_request(**asked).shards


def _request(asked: Sequence[tuple[GpuCount, int]], added_up: GpuCount) -> GpuRequest:
    """Return the request for one unit: what stands in each text and how many times, and Slurm's own sum."""
    wholes = [lower_types(count) * times for count, times in asked]
    total = added_up.total or max(whole.total for whole in wholes)
    if not wholes[0].total:
        total = max(total, wholes[1].total)
    types = max(wholes, key=lambda whole: sum(whole.types.values())).types or lower_types(added_up).types
    if len(types) == 1:
        types = dict.fromkeys(types, total)
    return GpuRequest(total, tuple(sorted(types.items())), asked[1][0].total)


def for_each_gpu(per_tres: str, gpus: int) -> int:
    """Return what `--cpus-per-gpu` or `--mem-per-gpu` adds up to: `gres/gpu:4` for 2 GPUs is 8; 0 without it.

    Raises:
        ParseError: the text can't be read.
    """
    return _gpus_in(per_tres) * gpus


@lru_cache(maxsize=4096)
def _gpus_in(text: str) -> int:
    return count_gpus(parse_gres(text)).total


def least_cpus(cpus: int, nodes: int, gpus: GpuRequest, cpus_per_tres: str) -> int:
    """Return the CPUs that a job is given at least, of the number that Slurm tells.

    For a job that waits that number may lack what comes of its nodes, one each, and up to 22.05 what
    comes of --cpus-per-gpu.

    Raises:
        ParseError: `cpus_per_tres` can't be read.
    """
    return max(cpus, nodes, for_each_gpu(cpus_per_tres, gpus.total))


def format_gres(items: Iterable[Gres]) -> str:
    """Return the items as Slurm writes a request from 23.11 on: `gres/gpu:a100:2,gres/shard:4`."""
    return ",".join(f"gres/{i.name}{f':{i.type}' if i.type else ''}:{i.count}" for i in items)


def _add(counts: dict[str, int], name: str, count: int) -> None:
    """Add to the count of a name, whatever its case; the first spelling is kept."""
    known = next((key for key in counts if key.lower() == name.lower()), name)
    counts[known] = counts.get(known, 0) + count


def _parse_item(item: str, text: str) -> Gres | None:
    prefixed = item.startswith(("gres:", "gres/"))
    body = item[5:] if prefixed else item
    if not prefixed and ("/" in body or "=" in body):
        return None
    head, equals, counted = body.partition("=")
    words = [word for word in head.split(":") if word not in _FLAGS]
    if equals:
        words.append(counted)
    count = parse_count(words.pop()) if len(words) > 1 and _NUMBER.fullmatch(words[-1]) else 1
    if not words or len(words) > 2 or not all(_WORD.fullmatch(word) for word in words):
        raise ParseError(f"can't read the GRES item {shown(item)}", text, "name[:type][:count]")
    return Gres(words[0].lower(), words[1] if len(words) == 2 else None, count)
