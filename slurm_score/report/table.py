"""Tables for a terminal, with sprio's look: no lines, numbers to the right. Pure.

Everything is worked out a column at a time, and text in plain ASCII, which is nearly all of it, isn't
measured letter by letter: rich lays out 20,000 rows in half a minute.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

MARK = "+"
"""Stands where a text was cut, as in Slurm's own tables."""

GAP = 2
LEFT = frozenset(
    {
        "JOBID",
        "PARTITION",
        "USER",
        "NAME",
        "CHANGE",
        "ORDER",
        "WHY",
        "TROUBLE",
        "MODE",
        "TYPE",
        "LETTER",
        "TELLS",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: printable texts under a header.

    It may become as narrow as `least` cells, or not at all if that is 0. Where even that doesn't make
    the table narrow enough, columns with a `spare` above 0 are left out, the greatest first, of equal
    ones the last.
    """

    header: str
    cells: Sequence[str]
    right: bool = False
    least: int = 0
    spare: int = 0


def format_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as text, as wide as it needs to be; nothing in it is cut or interpreted."""
    values = list(zip(*rows, strict=True)) or [()] * len(headers)
    columns = [
        Column(header=header, cells=printable_all(map(str, cells)), right=header not in LEFT)
        for header, cells in zip(headers, values, strict=True)
    ]
    return "".join(f"{line}\n" for line in lines_of(columns))


def lines_of(columns: Sequence[Column], *, header: bool = True, gap: int = GAP) -> Iterator[str]:
    """Yield the lines of a table, the header first, with `gap` cells between the columns."""
    texts = [[column.header, *column.cells] if header else list(column.cells) for column in columns]
    padded = [
        aligned(cells, max(map(cells_of, cells), default=0), right=column.right)
        for cells, column in zip(texts, columns, strict=True)
    ]
    return ((" " * gap).join(row).rstrip() for row in zip(*padded, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A table's columns as they fit, the cells between them, and the columns that had no room."""

    columns: Sequence[Column]
    gap: int = GAP
    left_out: Sequence[Column] = ()


def fitted(columns: Sequence[Column], width: int) -> Fitted:
    """Return the columns as they fit into a width in cells: cut, then closer together, then fewer."""
    kept, left_out = list(columns), []
    while _least_width(kept, 1) > width and (spare := [column for column in kept if column.spare]):
        last = max(reversed(spare), key=lambda column: column.spare)
        kept.remove(last)
        left_out.append(last)
    gap = GAP if _least_width(kept, GAP) <= width else 1
    return Fitted(columns=_narrowed(kept, width, gap), gap=gap, left_out=left_out[::-1])


def _narrowed(columns: Sequence[Column], width: int, gap: int) -> list[Column]:
    """Take away from the widest column that can be cut until all fit, or none can be cut any more."""
    widths, least = list(map(_width, columns)), list(map(_least, columns))
    over = sum(widths) + gap * (len(columns) - 1) - width
    while over > 0 and widths != least:
        widest = max(range(len(columns)), key=lambda i: widths[i] if widths[i] > least[i] else -1)
        widths[widest] -= 1
        over -= 1
    return [
        replace(column, cells=[cut(text, wide) for text in column.cells]) if column.least else column
        for column, wide in zip(columns, widths, strict=True)
    ]


def _least_width(columns: Sequence[Column], gap: int) -> int:
    return sum(map(_least, columns)) + gap * (len(columns) - 1)


def _least(column: Column) -> int:
    wide = _width(column)
    return min(wide, max(column.least, len(column.header))) if column.least else wide


def _width(column: Column) -> int:
    return max((cells_of(text) for text in (column.header, *column.cells)), default=0)


def aligned(texts: Sequence[str], width: int, *, right: bool) -> list[str]:
    """Return texts filled up to a width in cells, on the left or on the right; longer ones stay."""
    if "".join(texts).isascii():
        return [text.rjust(width) for text in texts] if right else [text.ljust(width) for text in texts]
    gaps = [" " * (width - cells_of(text)) for text in texts]
    return [gap + text if right else text + gap for text, gap in zip(texts, gaps, strict=True)]


def cut(text: str, width: int) -> str:
    """Return a text that takes at most so many cells, with a mark at its end where something is missing."""
    if cells_of(text) <= width:
        return text
    kept = ""
    used = 0
    for character in text:
        used += cells_of(character)
        if used > width - len(MARK):
            break
        kept += character
    return kept + MARK if width else ""


def cells_of(text: str) -> int:
    """Return how many cells of a terminal a text takes: two for each CJK character."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # not needed where nobody has such a name

    return cell_len(text)


def printable(value: object) -> str:
    """Return a value as text without control characters: names and reasons come from outside."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def printable_all(texts: Iterable[str]) -> list[str]:
    """Return texts without control characters."""
    found = list(texts)
    return found if "".join(found).isprintable() else list(map(printable, found))
