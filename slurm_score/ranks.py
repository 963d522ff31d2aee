"""Where every job of a queue stands, in its partitions and for its GPU types. Pure.

The same places as standing.py tells of one job, worked out once for all that share partitions and types.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slurm_score.columns import Ints, columns_of
from slurm_score.contention import accepted_types
from slurm_score.model import Queue
from slurm_score.score import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """The places of a queue's jobs, row i being `queue.jobs[i]`; all int64[n_jobs].

    `order` holds the rows, first to start first. `rank` is the place, from 1, among the `of` eligible
    jobs that share a partition, itself always counted; `type_rank` among the `type_of` of those that
    accept one of its GPU types, 0 where it asks for none or could never start. `types` holds the
    accepted types of each job.
    """

    order: Ints
    rank: Ints
    of: Ints
    type_rank: Ints
    type_of: Ints
    types: tuple[tuple[str, ...], ...]


def rank_queue(queue: Queue, scores: Scores) -> Ranks:
    """Return where every job of a queue stands."""
    columns = columns_of(queue)
    order = np.lexsort((columns.job_id, columns.submit_s, -scores.site))
    partitions = _Groups(columns.partitions.codes, columns.partitions.values)
    types = _Groups(
        *_recoded(columns.asks.codes, [accepted_types(ask, queue.cluster) for ask in columns.asks.values])
    )
    rank, of = _places(order, columns.eligible, [partitions])
    type_rank, type_of = _places(order, columns.eligible, [partitions, types])
    named = np.array([bool(value) for value in types.values], np.bool_)[types.codes]
    return Ranks(
        order=order,
        rank=rank,
        of=of,
        type_rank=np.where(named, type_rank, 0),
        type_of=np.where(named, type_of, 0),
        types=tuple(types.values[code] for code in types.codes.tolist()),
    )


class _Groups:
    """A column of sets of names, and which of its different sets share a name."""

    def __init__(self, codes: Ints, values: Sequence[tuple[str, ...]]) -> None:
        self.codes = codes
        self.values = values
        sets = [frozenset(value) for value in values]
        self.shared = np.array([[not a.isdisjoint(b) for b in sets] for a in sets], np.bool_)


def _recoded(codes: Ints, values: Sequence[tuple[str, ...]]) -> tuple[Ints, tuple[tuple[str, ...], ...]]:
    """Return a coded column whose values may repeat with each value once."""
    table: dict[tuple[str, ...], int] = {}
    merged = np.array([table.setdefault(value, len(table)) for value in values], np.int64)
    return merged[codes], tuple(table)


def _places(order: Ints, eligible: Any, groups: Sequence[_Groups]) -> tuple[Ints, Ints]:
    """Return each row's place among the eligible ones that share a name in every column, and how many."""
    rank, of = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    if not len(order):
        return rank, of
    ordered = [group.codes[order] for group in groups]
    counts, kinds = eligible[order], np.stack(ordered, axis=1)
    different, which = np.unique(kinds, axis=0, return_inverse=True)
    for kind, values in enumerate(different.tolist()):
        rivals = counts.copy()
        for group, codes, value in zip(groups, ordered, values, strict=True):
            rivals &= group.shared[value][codes]
        before = np.cumsum(rivals) - rivals
        mine = np.flatnonzero(which.ravel() == kind)
        rank[order[mine]] = before[mine] + 1
        of[order[mine]] = rivals.sum() + ~rivals[mine]
    return rank, of
