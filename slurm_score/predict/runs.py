"""The last runs of a user, or of the site, in columns, and how much each of them counts. Pure."""

import math
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np

from slurm_score.model import Asked, Floats

KERNELS = ((0.95, 0.75), (0.99, 0.95))
"""Two memories, a short and a long one: each newer run of the user leaves an older one so much of its
weight, and each newer run like it (equal in all of KEY) so much again."""

ELAPSED, END, LIMIT, SIZE, NAME, PARTITION, GPUS, TYPES = range(8)
COLUMNS = 8
KEY = slice(LIMIT, COLUMNS)
"""What makes a run the repeat of another: limit, size, name, partition, GPUs and their types."""

LONGEST_S = 10.0 * 365 * 86_400
"""What counts as the limit of a job without limit."""

COSTS = {LIMIT: (1.6, 3.0), SIZE: (1.2, 1.0)}
"""A run that differs counts exp(-cost) of one that doesn't: for differing at all, and for each doubling."""

CODE_COSTS = {NAME: 1.2, PARTITION: 0.5, GPUS: 1.0, TYPES: 0.5}
"""The same for what is alike or not; nothing where one of the two isn't known."""


def row_of(asked: Asked) -> tuple[float, ...]:
    """Return what is asked in the order of the columns from LIMIT to TYPES: logarithms and codes."""
    return (
        math.log2(min(max(asked.limit_s, 1.0), LONGEST_S)),
        math.log2(max(1, asked.cpus)),
        code(asked.name),
        code(asked.partition),
        float(asked.gpus),
        code(asked.gpu_types),
    )


@lru_cache(maxsize=10_000)
def code(text: str) -> float:
    """Return a number for a text, the same in every process; 0 for none."""
    return float(crc32(text.encode("utf-8", "replace"))) if text else 0.0


class Runs:
    """The last runs, newest last: `columns` float64[8, n] and the weights `base` float64[kernels, n]."""

    def __init__(self, kept: int) -> None:
        self._kept, self._from, self._to = kept, 0, 0
        self._columns = np.zeros((COLUMNS, 2 * kept))
        self._base = np.zeros((len(KERNELS), 2 * kept))
        self._decay = np.array([user for user, _ in KERNELS])[:, None]
        self._repeat = np.array([key for _, key in KERNELS])[:, None]

    def __len__(self) -> int:
        """Return how many runs are kept."""
        return self._to - self._from

    @property
    def columns(self) -> Floats:
        """The runs that are kept."""
        return self._columns[:, self._from : self._to]

    @property
    def base(self) -> Floats:
        """What each counts for, its age among the others taken into account."""
        return self._base[:, self._from : self._to]

    def add(self, elapsed_s: float, end_s: float, row: tuple[float, ...]) -> None:
        """Add the newest run; the oldest goes where there are too many."""
        if self._to == 2 * self._kept:
            self._make_room()
        if len(self):
            base, columns = self.base, self.columns
            base *= self._decay
            asked = np.array(row)[:, None]
            base[:, (columns[KEY] == asked).all(axis=0)] *= self._repeat
        self._columns[:, self._to] = (elapsed_s, end_s, *row)
        self._base[:, self._to] = 1.0
        self._to += 1
        self._from = max(self._from, self._to - self._kept)

    def _make_room(self) -> None:
        kept = slice(self._from, self._to)
        n = len(self)
        self._columns[:, :n], self._base[:, :n] = self._columns[:, kept].copy(), self._base[:, kept].copy()
        self._from, self._to = 0, n

    def stored(self) -> list[list[float]]:
        """Return what `restored` needs, as plain numbers."""
        rows: list[list[float]] = self.columns.T.tolist()
        return rows


def restored(rows: Sequence[Sequence[float]], kept: int) -> Runs:
    """Return runs as they were stored, the newest last."""
    runs, n = Runs(kept), len(rows)
    if not n:
        return runs
    later: dict[tuple[float, ...], int] = {}
    repeats = [0] * n
    for i in range(n - 1, -1, -1):
        key = tuple(rows[i][LIMIT:])
        repeats[i] = later[key] = later.get(key, -1) + 1
    runs._columns[:, :n] = np.array(rows).T
    runs._base[:, :n] = runs._decay ** np.arange(n - 1, -1, -1) * runs._repeat ** np.array(repeats)
    runs._to = n
    return runs
