"""Tables for a terminal, with sprio's look: no lines, numbers to the right."""

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDEST = 10_000
LEFT = frozenset({"JOBID", "PARTITION", "USER", "NAME", "CHANGE", "ORDER", "WHY", "TROUBLE", "MODE", "TYPE"})


def format_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as text, as wide as it needs to be; nothing in it is cut or interpreted."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, justify="left" if header in LEFT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(value)) for value in row))
    out = StringIO()
    Console(file=out, width=WIDEST, force_terminal=False, no_color=True, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def format_queue(answer: Mapping[str, Any], *, by_priority: bool = False) -> str:
    """Return the queue as sscore prints it: jobs that could start, best first, parts as points.

    `answer` is what the service says at /v1/jobs; `by_priority` takes the order that Slurm held when
    the snapshot was read.
    """
    headers = ["JOBID", "PARTITION", "USER", "SCORE", *answer["headers"].values()]
    jobs = [job for job in answer["jobs"] if job["eligible"]]
    if by_priority:
        jobs.sort(key=lambda job: (-job["priority"], job["submit_s"]))
    rows = (
        [job["job"], job["partition"], job["user"], job["site"], *(round(p) for p in job["parts"].values())]
        for job in jobs
    )
    return format_table(headers, rows)


def format_weights(answer: Mapping[str, Any]) -> str:
    """Return the weights as `sprio -w` prints them; the score column holds their sum."""
    weights = list(answer["weights"].values())
    headers = ["JOBID", "PARTITION", "USER", "SCORE", *answer["headers"].values()]
    return format_table(headers, [["Weights", "", "", sum(weights), *weights]])


def printable(value: object) -> str:
    """Return a value as text without control characters: names and reasons come from outside."""
    return "".join(c if c.isprintable() else "?" for c in str(value))
