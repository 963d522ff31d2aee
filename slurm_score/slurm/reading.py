"""Reads texts of records, and the words in them that mean "nothing". Pure.

Every reader keeps what it can read: a record that it can't comes back as a sentence in `problems`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from slurm_score.errors import shown
from slurm_score.units import parse_count

T = TypeVar("T")

NOT_SET = frozenset({"", "N/A", "(null)", "NONE", "None"})
_ONE_LINE_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z_:/]*)=")


@dataclass(slots=True)
class Reading(Generic[T]):
    """What could be read, and a sentence for each record that couldn't."""

    items: list[T] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read_each(self, records: Iterator[str], read: Callable[[str], T]) -> "Reading[T]":
        """Read the records one by one, and return self."""
        for record in records:
            try:
                self.items.append(read(record))
            except (ValueError, KeyError) as error:
                self.problems.append(f"{error} in {shown(record, 200)}")
        return self


def one_line(line: str) -> Mapping[str, str]:
    """Return the first value of each key in a `Key=value Key=value` line; values may hold spaces."""
    words = _ONE_LINE_KEY.split(line)
    pairs = zip(words[1::2], words[2::2], strict=True)
    values: dict[str, str] = {}
    for key, value in pairs:
        values.setdefault(key, value.strip())
    return values


def lines(text: str) -> Iterator[str]:
    """Yield the lines that hold something; only a newline ends a line here."""
    return (line.strip() for line in text.split("\n") if line.strip())


def whole(text: str, otherwise: int) -> int:
    """Return a whole number, `1K` for 1,024 too; `otherwise` where it isn't set."""
    return otherwise if text in NOT_SET else int(text) if text.isdigit() else parse_count(text)


def text_of(text: str) -> str:
    """Return a text, empty where it isn't set."""
    return "" if text in NOT_SET or text.lower() == "none" else text


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas, none where it isn't set."""
    return () if text in NOT_SET else tuple(text.split(","))
