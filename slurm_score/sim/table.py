"""Reads tables of jobs: text with a header, plain or gzipped, every problem with file, line and field."""

import csv
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from slurm_score.errors import ParseError, Problem, WorkloadError, shown
from slurm_score.gres import GpuCount, count_gpus, parse_gres
from slurm_score.sim.swf import LIMIT, MOST_PROBLEMS, opened
from slurm_score.units import parse_count, parse_time_limit

_MEMORY = re.compile(r"(\d{1,12})(?:\.\d+)?([KMGT]?)(?:B?)([cn]?)", re.ASCII | re.IGNORECASE)
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}", re.ASCII)


class Line(NamedTuple):
    """One line of a table: where it stands, its fields by name, and the list for what is wrong with it."""

    where: str
    fields: dict[str, str]
    problems: list[Problem]

    def text(self, name: str) -> str:
        """Return a field as it is, without the blanks around it."""
        return self.fields[name].strip()

    def number(self, name: str, least: float = 0, empty: float | None = None) -> float:
        """Return a number that isn't below `least`; `empty` stands for an empty field."""
        text = self.text(name)
        if not text and empty is not None:
            return empty
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value < LIMIT:
            return self.wrong(name, "not a number", text, f"a number from {least:g} on")
        return value

    def count(self, name: str, least: int = 0, empty: int | None = None) -> int:
        """Return a whole number; fractions are cut off."""
        return int(self.number(name, least, empty))

    def time_s(self, name: str) -> int:
        """Return a time in s: a number, or a date and a time of day, taken as UTC."""
        text = self.text(name)
        if not _STAMP.fullmatch(text):
            return self.count(name)
        try:
            return int(np.datetime64(text.replace(" ", "T"), "s").astype(np.int64))
        except ValueError:
            return int(self.wrong(name, "not a date", text, "as in 2026-01-31 23:59:59"))

    def duration_s(self, name: str, empty: float = 0) -> float:
        """Return a duration in s as Slurm writes it; `empty` stands for what isn't known."""
        try:
            seconds = parse_time_limit(self.text(name))
        except ParseError as error:
            return self.wrong(name, error.problem.what, self.text(name), error.problem.allowed)
        return empty if seconds is None else seconds

    def memory_mib(self, name: str, cores: int) -> int:
        """Return a node's memory in MiB from 187000M, 62G, 4Gc (for a core) or 16Gn; 0 where none is given.

        A bare number is MiB.
        """
        text = self.text(name)
        match = _MEMORY.fullmatch(text)
        if not match:
            return 0 if not text else int(self.wrong(name, "not a memory", text, "such as 187000M or 62G"))
        mib = -(-parse_count(f"{match[1]}{match[2] or 'M'}") // 2**20)
        return mib * cores if match[3].lower() == "c" else mib

    def gpus(self, name: str) -> GpuCount:
        """Return the GPUs of a GRES or TRES text."""
        try:
            return count_gpus(parse_gres(self.text(name)))
        except ParseError as error:
            self.wrong(name, error.problem.what, self.text(name), error.problem.allowed)
            return GpuCount()

    def wrong(self, name: str, what: str, got: str, allowed: str) -> float:
        """Note that a field is wrong; return what may stand in its place."""
        self.problems.append(Problem(f"{self.where}: field {name}", what, shown(got), allowed))
        return 1


Row = Sequence[str]


def read_lines(path: Path, problems: list[Problem]) -> tuple[tuple[str, ...], Iterator[Line]]:
    """Return the names of a table's columns and its lines; `|` or `,` stands between the fields.

    Raises:
        WorkloadError: the file can't be read or has no header.
    """
    try:
        with opened(path) as file:
            first = file.readline()
            rows = list(csv.reader(file, delimiter="|" if "|" in first else ","))
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise WorkloadError([Problem(str(path), f"can't be read: {error}")]) from None
    header = next(csv.reader([first], delimiter="|" if "|" in first else ","), [])
    names = tuple(name.strip() for name in header)
    if not any(names):
        raise WorkloadError([Problem(str(path), "has no header", "", "the first line names the columns")])
    return names, _lines(rows, names, str(path), problems)


def _lines(rows: Sequence[Row], names: Row, where: str, problems: list[Problem]) -> Iterator[Line]:
    for number, row in enumerate(rows, 2):
        if not row or not any(row):
            continue
        if len(problems) >= MOST_PROBLEMS:
            problems.append(Problem(where, f"{MOST_PROBLEMS} problems so far; the rest is not read"))
            return
        if len(row) != len(names):
            problems.append(
                Problem(f"{where}:{number}", "not a job", f"{len(row)} fields", f"{len(names)} are expected")
            )
            continue
        yield Line(f"{where}:{number}", dict(zip(names, row, strict=True)), problems)
