"""Reads workloads in the Standard Workload Format, plain or gzipped.

Source: Feitelson, The Standard Workload Format, parallel workloads archive, version 2.2.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import numpy as np

from slurm_score.errors import Problem, SwfError, shown
from slurm_score.sim.workload import Workload

FIELDS = (
    "job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time",
    "used memory", "requested processors", "requested time", "requested memory", "status", "user id",
    "group id", "executable", "queue", "partition", "preceding job", "think time",
)  # fmt: skip
JOB, SUBMIT, RUN, ALLOCATED, REQUESTED, TIME, USER = 0, 1, 3, 4, 7, 8, 11

MOST_PROBLEMS = 20
LIMIT = 1 << 53
"""Numbers from here on are refused: sums of times must stay exact."""


def read_swf(path: Path, procs: int | None = None) -> Workload:
    """Return the workload of a file; `procs` is the machine's size where the header's doesn't count.

    A job that never ran, has no processors or asks for more than there are is left out, and a
    remark counts them. The request is the time limit, the run time where there is none or a lower one.

    Raises:
        SwfError: the file can't be read, or lines of it; with file, line, field and what is expected.
    """
    try:
        with opened(path) as lines:
            return parse_swf(lines, str(path), _name(path), procs)
    except (OSError, EOFError, zlib.error) as error:
        raise SwfError([Problem(str(path), f"can't be read: {error}")]) from None


def parse_swf(lines: Iterable[str], where: str, name: str, procs: int | None = None) -> Workload:
    """Return the workload of lines of text; as `read_swf`."""
    header: dict[str, str] = {}
    rows: list[list[int]] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(";"):
            key, _, value = line[1:].partition(":")
            header.setdefault(key.strip(), value.strip())
        elif line.strip():
            row = _row(line, f"{where}:{number}", problems)
            rows += [row] if row else []
            if len(problems) >= MOST_PROBLEMS:
                problems.append(Problem(where, f"{MOST_PROBLEMS} problems so far; the rest is not read"))
                break
    total = _procs_total(header, where, problems) if procs is None else procs
    if problems:
        raise SwfError(problems)
    return _workload(rows, name, where, total)


def _row(line: str, where: str, problems: list[Problem]) -> list[int] | None:
    """The numbers of a line; what is wrong with it is added to the problems."""
    texts = line.split()
    if len(texts) != len(FIELDS):
        problems.append(Problem(where, "not a job", f"{len(texts)} fields", f"{len(FIELDS)} are expected"))
        return None
    try:
        row = [int(text) for text in texts]
    except ValueError:
        row = [
            _number(text, f"{where}: field {i + 1} ({FIELDS[i]})", problems) for i, text in enumerate(texts)
        ]
    for field in (SUBMIT, RUN, ALLOCATED, REQUESTED, TIME):
        if not -1 <= row[field] < LIMIT:
            place = f"{where}: field {field + 1} ({FIELDS[field]})"
            problems.append(Problem(place, "out of range", str(row[field]), "from 0, or -1 for unknown"))
    if row[SUBMIT] == -1:
        place = f"{where}: field {SUBMIT + 1} ({FIELDS[SUBMIT]})"
        problems.append(Problem(place, "unknown", "-1", "every job needs one"))
    return row


def _number(text: str, place: str, problems: list[Problem]) -> int:
    """A whole number; fractions of a second, which some logs have, are cut off."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        problems.append(Problem(place, "not a number", shown(text), "a whole number, -1 for unknown"))
        return 0


def _procs_total(header: dict[str, str], where: str, problems: list[Problem]) -> int:
    for key in ("MaxProcs", "MaxNodes"):
        text = header.get(key, "")
        first = text.split()[0] if text.split() else ""
        if first and first != "-1":
            if first.isdecimal() and 0 < int(first) < LIMIT:
                return int(first)
            problems.append(Problem(f"{where}: header {key}", "not a size", shown(text), "a number above 0"))
    return 0


def _workload(rows: list[list[int]], name: str, where: str, total: int) -> Workload:
    table = np.array(rows, np.int64).reshape(-1, len(FIELDS))
    asked = np.where(table[:, REQUESTED] > 0, table[:, REQUESTED], table[:, ALLOCATED])
    left_out = {
        "never ran": table[:, RUN] <= 0,
        "have no processors": asked <= 0,
        f"ask for more than {total} processors": (asked > total) & (total > 0),
    }
    kept = ~np.any(list(left_out.values()), axis=0)
    run, request = table[kept, RUN], table[kept, TIME]
    users, user = np.unique(table[kept, USER], return_inverse=True)
    return Workload(
        name=name,
        job_id=table[kept, JOB],
        submit_s=table[kept, SUBMIT],
        run_s=run,
        procs=asked[kept],
        request_s=np.maximum(run, request),
        user=user.astype(np.int64),
        users=tuple(map(str, users.tolist())),
        procs_total=total,
        remarks=tuple(_remarks(left_out, (request > 0) & (request < run), where)),
    )


def _remarks(left_out: dict[str, np.ndarray], raised: np.ndarray, where: str) -> Iterator[str]:
    for what, mask in left_out.items():
        if mask.any():
            yield f"{where}: {int(mask.sum())} jobs {what} and are left out"
    if raised.any():
        yield f"{where}: {int(raised.sum())} jobs ran longer than their request, which is raised to that"


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Yield the text of a file, gzipped or not by its first two bytes."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        with gzip.open(file) if zipped else file as raw, TextIOWrapper(raw, "utf-8", "replace") as text:
            yield text


def _name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".swf")
