"""The queue as sscore prints it: which columns, in what order, how they are written. Pure."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_score.report.fields import (
    FACTORS,
    NORM,
    PARTS,
    Field,
    Format,
    Kind,
    Shown,
    field_of,
)
from slurm_score.report.table import (
    Column,
    Fitted,
    aligned,
    cells_of,
    cut,
    fitted,
    lines_of,
    printable_all,
)
from slurm_score.units import format_duration

Answer = Mapping[str, Any]
SortKeys = Sequence[tuple[str, bool]]

OLD_POLICY, GUARDED = "*", "!"
LEGEND = {
    OLD_POLICY: "made by policy {policy}; the policy file is {policy_in_force} now, from the next cycle on",
    GUARDED: "waits for longer than its guard: above every score",
}
MARKED = frozenset({"score", "score_norm", "policy"})
"""Columns that the marks stand beside."""

_WRITE: dict[Kind, Callable[[Any], str]] = {
    Kind.TEXT: str,
    Kind.NUMBER: str,
    Kind.POINTS: "{:.0f}".format,
    Kind.SHARE: "{:.4f}".format,
    Kind.SPRIO_SHARE: "{:.7f}".format,
    Kind.PRIORITY_SHARE: "{:.14f}".format,
    Kind.TIME: format_duration,
}


def columns_needed(format_: Format, sort: SortKeys = ()) -> list[str]:
    """Return the names of the columns to ask the service for."""
    names = [*(one.name for one in format_.shown), *(name for name, _ in sort), "guarded"]
    return list(dict.fromkeys(names))


class Queue:
    """What the service answered, with the columns of `columns_needed`, in a format."""

    def __init__(self, answer: Answer, format_: Format, sort: SortKeys = ()) -> None:
        self._answer = answer
        self._literal, self._fits = format_.literal, format_.fits
        self.shown = tuple(_expanded(format_, answer))
        self.fields = tuple(field_of(one.name, answer["headers"]) for one in self.shown)
        self._order = _sorted(answer["columns"], sort)

    def table(self, width: int | None = None, *, header: bool = True) -> tuple[str, list[str]]:
        """Return the table, and a sentence about the columns that had no room, none if all had.

        `width` is that of the terminal, None for a pipe: there nothing is left out.
        """
        if self._literal:
            return _text(self._formatted(header=header)), []
        found = Fitted(columns=[self._column(*pair) for pair in self._pairs()])
        if width is not None and self._fits:
            found = fitted(found.columns, width)
        names = ", ".join(column.header for column in found.left_out)
        told = [f"no room at {width} columns for {names}; -O and a pipe show all"] if names else []
        return _text(lines_of(found.columns, header=header, gap=found.gap)), told

    def parsable(self, *, header: bool = True) -> str:
        """Return the rows with `|` between the fields, as sacct -P; one within a name becomes `?`."""
        columns = self._plain_columns()
        rows = ["|".join(column.header for column in columns)] if header else []
        cells = ([cell.replace("|", "?") for cell in column.cells] for column in columns)
        rows += map("|".join, zip(*cells, strict=True))
        return _text(rows)

    def csv(self, *, header: bool = True) -> str:
        """Return the rows as CSV (RFC 4180, but for the line ends)."""
        columns, out = self._plain_columns(), io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([[column.header for column in columns]] if header else [])
        writer.writerows(zip(*(column.cells for column in columns), strict=True))
        return out.getvalue()

    def legend(self) -> list[str]:
        """Return what the marks mean that stand beside a score."""
        there = {mark for marks in self._marks() for mark in marks}
        if self._literal or not there or not MARKED.intersection(one.name for one in self.shown):
            return []
        return [f"{mark} {LEGEND[mark].format(**self._answer)}" for mark in LEGEND if mark in there]

    def left_out(self) -> list[str]:
        """Return why jobs aren't shown that were asked for by their id."""
        return [f"job {job_id}: {why}" for job_id, why in self._answer["left_out"].items()]

    def summary(self) -> str:
        """Return how many jobs these are, and what scored them."""
        jobs = f"{len(self)} job{'' if len(self) == 1 else 's'}"
        return "{jobs}; cluster {cluster}, mode {mode}, policy {policy}".format(jobs=jobs, **self._answer)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._order)

    def _pairs(self) -> Iterator[tuple[Shown, Field]]:
        return zip(self.shown, self.fields, strict=True)

    def _plain_columns(self) -> list[Column]:
        """Return the columns for programs: nothing marked, cut or filled up."""
        return [Column(header=field.header, cells=self._cells(field)) for field in self.fields]

    def _column(self, one: Shown, field: Field) -> Column:
        return Column(
            header=field.header,
            cells=_piece(one, field, self._cells(field, marks=True)),
            right=field.right if one.right is None else one.right,
            least=field.least if one.width is None else 0,
            spare=field.spare,
        )

    def _cells(self, field: Field, *, marks: bool = False, unknown: str = "") -> list[str]:
        values = self._answer["columns"][field.name]
        # the row of the weights holds texts in every column
        write = str if isinstance(next(iter(values), None), str) else _WRITE[field.kind]
        texts = [unknown if values[i] is None else write(values[i]) for i in self._order]
        if field.kind is Kind.TEXT:
            texts = printable_all(texts)
        if not marks or field.name not in MARKED:
            return texts
        found = self._marks(guard=field.name != "policy")
        longest = max(map(len, found), default=0)
        return [text + found[i].ljust(longest) for i, text in zip(self._order, texts, strict=True)]

    def _marks(self, *, guard: bool = True) -> list[str]:
        old = OLD_POLICY if self._answer["policy"] != self._answer["policy_in_force"] else ""
        guards = self._answer["columns"]["guarded"]
        return [old + (GUARDED if guard and guarded else "") for guarded in guards]

    def _formatted(self, *, header: bool) -> Iterator[str]:
        """Yield lines as sprio's -o makes them; a number that is wider than its field widens it."""
        pieces: list[list[str]] = []
        for one, field in self._pairs():
            texts = [field.header] if header else []
            texts += self._cells(field, unknown="N/A")
            pieces += [[one.before] * len(texts), _piece(one, field, texts), [one.after] * len(texts)]
        return ("".join(row).rstrip() for row in zip(*pieces, strict=True))


def weights_row(answer: Answer, format_: Format) -> Queue:
    """Return the one row that sprio -w prints: the weight of each factor, their sum under SCORE."""
    weights: Mapping[str, int] = answer["weights"]
    known = {"job": "Weights", "score": sum(weights.values()), "site_held": 1, **weights}
    known |= {f"slurm_{part}": weight for part, weight in answer["slurm_weights"].items()}
    names = [one.name for one in _expanded(format_, answer)]
    texts = {name: [str(known.get(name.removesuffix(NORM), ""))] for name in names}
    plain = {"policy_in_force": answer["policy"], "columns": texts | {"guarded": [False]}}
    return Queue({**answer, **plain}, format_)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _expanded(format_: Format, answer: Answer) -> Iterator[Shown]:
    for one in format_.shown:
        if one.name not in (PARTS, FACTORS):
            yield one
            continue
        ending = NORM if one.name == FACTORS else ""
        for name, weight in answer["weights"].items():
            if weight or format_.every:
                yield replace(one, name=name + ending)


def _sorted(columns: Mapping[str, Sequence[Any]], keys: SortKeys) -> list[int]:
    """Return the rows in their order; rows without a value come last, equal ones stay best first."""
    order = list(range(len(columns["guarded"])))
    for name, down in reversed(keys):
        values = columns[name]
        known = [i for i in order if values[i] is not None]
        known.sort(key=values.__getitem__, reverse=down)
        order = known + [i for i in order if values[i] is None]
    return order


def _piece(one: Shown, field: Field, texts: list[str]) -> list[str]:
    """Return texts in the width that a format gives their field; ids and numbers are never cut."""
    if not one.width:
        return texts
    width = one.width
    if field.whole or field.kind is not Kind.TEXT:
        width = max(width, max(map(cells_of, texts), default=0))
    return aligned([cut(text, width) for text in texts], width, right=bool(one.right))
