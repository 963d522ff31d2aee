"""What sacct prints of runs that ended, read. Pure."""

import re
from collections.abc import Sequence, Set

from slurm_score.errors import ParseError
from slurm_score.model import EndedRun, PastRun
from slurm_score.predict.sources import LATE_SACCT_FIELDS, Reading, sacct_run
from slurm_score.predict.sources import SACCT_FIELDS as RUN_FIELDS
from slurm_score.slurm.reading import lines
from slurm_score.units import parse_timestamp

SACCT_FIELDS = ("JobIDRaw", "State", "Submit", "Eligible", "Start")
_NOT_ENDED = ("PENDING", "RUNNING", "SUSPENDED")
_REJECTED = re.compile(r'Invalid field requested: "(\w+)"')


def rejected_fields(stderr: str) -> Set[str]:
    """Return which of LATE_SACCT_FIELDS sacct said it doesn't know; it names the first one only."""
    return LATE_SACCT_FIELDS.intersection(_REJECTED.findall(stderr))


def parse_past_runs(text: str) -> dict[int, tuple[PastRun, ...]]:
    """Return the runs that ended in a requeue, oldest first, by job id, from `sacct -D -X -n -P`."""
    runs: dict[int, list[tuple[int, PastRun]]] = {}
    for line in lines(text):
        job_id, state, *times = line.split("|")
        submit, eligible, start = (parse_timestamp(value) for value in times)
        if start is None or submit is None or state.startswith(_NOT_ENDED):
            continue
        wait = max(0, start - max(submit, eligible or submit))
        runs.setdefault(int(job_id), []).append((submit, PastRun(state.split(" ")[0], float(wait))))
    return {
        job_id: tuple(run for _, run in sorted(found, key=lambda pair: pair[0]))
        for job_id, found in runs.items()
    }


def parse_ended_runs(
    text: str, separator: str, since_s: int, until_s: int, fields: Sequence[str] = RUN_FIELDS
) -> tuple[EndedRun, ...]:
    """Return the runs of sacct's fields (predict/sources.py) that ended in (since_s, until_s].

    sacct's own window has both its ends in it: the next question would count a run again. The separator
    must be unguessable: then no name and no comment, whatever line it holds, can forge a run.

    Raises:
        ParseError: there are lines, and none of them is a record.
    """
    reading = Reading()
    records = [line for line in text.split("\n") if separator in line]
    runs = list(reading.each(records, lambda line: sacct_run(line, separator, tuple(fields))))
    if text.strip() and (not records or reading.unreadable == len(records)):
        raise ParseError("no record of sacct", reading.first or text)
    return tuple(run for run in runs if since_s < run.end_s <= until_s)
