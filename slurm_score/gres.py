"""GRES and TRES texts: what jobs ask for and what nodes have. Pure.

One grammar for every spelling from 20.11 to 26.05: `gpu`, `gpu:2`, `gpu:a100:2`, `gres:gpu:a100:2`
(up to 23.02), `gres/gpu:a100:2` (from 23.11), `gres/gpu:a100=2` (TRES), with `(S:0-1)` or
`(IDX:0,2-3)` behind a node's items.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurm_score.errors import ParseError, shown
from slurm_score.units import parse_count

_NOTHING = frozenset({"", "(null)", "n/a", "none"})
_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(r"\d+[KMGTP]?", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[^\s:=,()]+")
_FLAGS = frozenset({"no_consume"})


@dataclass(frozen=True, slots=True)
class Gres:
    """One item: `name` (gpu, shard, …), `type` as written or None, `count` >= 0."""

    name: str
    type: str | None
    count: int


@dataclass(frozen=True, slots=True)
class GpuCount:
    """Whole GPUs: their total, and how many of them by type (lower case; untyped ones left out)."""

    total: int = 0
    types: Mapping[str, int] = field(default_factory=dict)

    def __mul__(self, times: int) -> "GpuCount":
        """Return the count `times` over."""
        return GpuCount(self.total * times, {t: n * times for t, n in self.types.items()})


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs that one job (one task of an array) asks for.

    `types` holds (type, count) in order of name and is empty where any type will do; `per_node` is
    how many must stand on one node together, 0 where the job left that to Slurm.
    """

    total: int = 0
    types: tuple[tuple[str, int], ...] = ()
    per_node: int = 0


NO_GPUS = GpuRequest()


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
    bare = _PARENTHESES.sub("", text)
    if "(" in bare or ")" in bare:
        raise ParseError("unbalanced parentheses in a GRES text", text)
    items = (_parse_item(item.strip(), text) for item in bare.split(",") if item.strip())
    return tuple(item for item in items if item is not None)


def count_gpus(items: Iterable[Gres]) -> GpuCount:
    """Return the whole GPUs among the items.

    Where a text names a total and the types it is made of, as a TRES string does, each GPU is
    counted once: the total is the larger of the untyped count and the sum of the types.
    """
    untyped, types = 0, dict[str, int]()
    for item in items:
        if item.name != "gpu":
            continue
        if item.type is None:
            untyped += item.count
        else:
            types[item.type.lower()] = types.get(item.type.lower(), 0) + item.count
    return GpuCount(max(untyped, sum(types.values())), types)


def gpu_request(
    *,
    per_job: str = "",
    per_node: str = "",
    per_socket: str = "",
    per_task: str = "",
    total: str = "",
    nodes: int = 1,
    tasks: int = 1,
) -> GpuRequest:
    """Return the GPUs that a job asks for, from its tres_per_* strings and its size.

    `total` is the whole request as Slurm added it up (squeue's tres-alloc of a pending job) and
    wins over our own sum: only Slurm knows how many sockets or tasks there will be. Types come
    from the request, since Slurm adds them up only where AccountingStorageTRES lists them.

    Raises:
        ParseError: one of the texts can't be read.
    """
    node = count_gpus(parse_gres(per_node))
    parts = [
        count_gpus(parse_gres(per_job)),
        node * nodes,
        count_gpus(parse_gres(per_socket)) * nodes,
        count_gpus(parse_gres(per_task)) * tasks,
    ]
    asked = max(part.total for part in parts)
    typed = max(parts, key=lambda part: sum(part.types.values())).types
    added_up = count_gpus(parse_gres(total))
    gpus = added_up.total or asked
    types = typed or added_up.types
    if len(types) == 1:
        types = dict.fromkeys(types, gpus)
    return GpuRequest(gpus, tuple(sorted(types.items())), node.total)


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
