"""What a node has of GPUs, MIG slices and shards, and what of it is taken. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from slurm_score.gres import GpuCount, count_gpus, count_gres, lower_types, parse_gres
from slurm_score.units import parse_count

_SPAN = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_OF = re.compile(r"(?P<lent>\d+|-)/(?P<all>\d+)", re.ASCII)
_LENT = re.compile(
    r"(?:^|,)(?P<name>shard|mps):(?:(?P<type>\(null\)|[^\s:=,()]+):)?"
    r"(?P<count>\d+[KMGTP]?)(?:\((?P<where>[^()]*)\))?"
)


class NodeGres(NamedTuple):
    """A node's GPUs, MIG slices and shards, types in lower case, under the names that Node has for them."""

    gpus: GpuCount
    gpus_used: GpuCount
    mig: GpuCount
    mig_used: GpuCount
    shards: GpuCount
    shards_used: GpuCount
    shards_of_gpu: int
    shards_free_of_gpu: int


@lru_cache(maxsize=4096)
def node_gres(has: str, used: str) -> NodeGres:
    """Return what a node has and what of it nobody can get, from its Gres and its GresUsed.

    Raises:
        ParseError: one of the texts can't be read.
    """
    there, taken = count_gres(parse_gres(has)), count_gres(parse_gres(used))
    shards, lent = lower_types(there.shard), shards_in_use(has, used)
    each = shards.total // there.gpu.total if there.gpu.total else 0
    return NodeGres(
        gpus=lower_types(there.gpu),
        gpus_used=gpus_in_use(has, used),
        mig=lower_types(there.mig),
        mig_used=lower_types(taken.mig),
        shards=shards,
        shards_used=lent,
        shards_of_gpu=each,
        shards_free_of_gpu=min(each, shards.total - lent.total, _most_free(used, each)),
    )


def _most_free(used: str, each: int) -> int:
    """Return the most shards that one GPU has free, by what 24.11 and later print of each: `3/4,0/4`."""
    places = [item["where"] or "" for item in _LENT.finditer(used) if item["name"] == "shard"]
    parts = [_OF.fullmatch(part) for where in places for part in where.split(",")]
    told = [part for part in parts if part is not None]
    free = (int(part["all"]) - int(part["lent"]) for part in told if part["lent"] != "-")
    return max(free, default=0) if told else each


def gpus_in_use(has: str, used: str) -> GpuCount:
    """Return the GPUs of a node that nobody can get whole, from its Gres and its GresUsed.

    Those are the GPUs of jobs, and those of which a shard or an MPS share is in use. Slurm 24.11
    prints how much of each GPU is lent (`shard:a100:3(3/4,0/4)`), 22.05 on which GPUs something is
    (`shard:a100:1(IDX:0)`). Without either, each share in use may be on a GPU of its own; without a
    type, on a GPU of any type.

    Raises:
        ParseError: one of the texts can't be read.

    Source: slurm src/interfaces/gres.c, _node_gres_used.
    """
    all_gpus, taken = count_gpus(parse_gres(has)), count_gpus(parse_gres(used))
    total, types = taken.total, dict(taken.types)
    for item in _LENT.finditer(used):
        lent = _lent_gpus(parse_count(item["count"]), item["where"] or "")
        total += lent
        named = (item["type"] or "").lower()
        for gpu_type in [named] if named in all_gpus.types else all_gpus.types:
            types[gpu_type] = types.get(gpu_type, 0) + lent
    there = {gpu_type: min(n, all_gpus.types.get(gpu_type, n)) for gpu_type, n in types.items()}
    return GpuCount(min(total, all_gpus.total), there)


def shards_in_use(has: str, used: str) -> GpuCount:
    """Return the shards of a node that nobody can get, from its Gres and its GresUsed.

    Those are the shards of jobs, and all shards of the GPUs that jobs have whole: a GPU has its part
    of the shards of its type. What 24.11 and later print of each GPU isn't used, since for one that
    is in use whole it is `-/4` (26.05) or `0/4` (24.11). 22.05 prints on how many GPUs shards are in
    use, not how many shards: then all of those GPUs' are.

    Raises:
        ParseError: one of the texts can't be read.
    """
    there, taken = count_gres(parse_gres(has)), count_gpus(parse_gres(used))
    shards, gpus = lower_types(there.shard), lower_types(there.gpu)
    held = {name: _share(count, gpus, taken, name) for name, count in _by_type(shards).items()}
    for item in _LENT.finditer(used):
        named = (item["type"] or "").lower()
        name = named if named in held else next(iter(held), "")
        if item["name"] == "shard" and name in held:
            held[name] += _lent_shards(item, _by_type(shards)[name], gpus, name)
    held = {name: min(count, _by_type(shards)[name]) for name, count in held.items()}
    return GpuCount(sum(held.values()), {name: count for name, count in held.items() if name})


def _by_type(count: GpuCount) -> Mapping[str, int]:
    """Return the count by type, all of it as type "" where it has none."""
    return count.types or ({"": count.total} if count.total else {})


def _share(shards: int, gpus: GpuCount, of: GpuCount, gpu_type: str) -> int:
    """Return how many of the shards stand on some of the GPUs; where they don't divide evenly, the more."""
    all_gpus, some = (c.types.get(gpu_type, 0) if gpu_type else c.total for c in (gpus, of))
    return -(-shards * min(some, all_gpus) // all_gpus) if all_gpus else 0


def _lent_shards(item: re.Match[str], shards: int, gpus: GpuCount, gpu_type: str) -> int:
    count, where = parse_count(item["count"]), item["where"] or ""
    if not where.startswith("IDX:"):
        return count
    lent = _lent_gpus(count, where)
    return _share(shards, gpus, GpuCount(lent, {gpu_type: lent}), gpu_type)


def _lent_gpus(shares: int, where: str) -> int:
    """Return on how many GPUs shares are in use, by what Slurm prints in parentheses behind them."""
    if where.startswith("IDX:"):  # IDX:N/A for none
        return sum(int(last or first) - int(first) + 1 for first, last in _SPAN.findall(where))
    if "/" in where:
        return sum(part.partition("/")[0] not in {"0", "-"} for part in where.split(","))
    return shares
