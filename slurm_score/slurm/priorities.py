"""What sprio prints, read, and what it tells of the jobs that squeue showed. Pure."""

import re
from dataclasses import dataclass, replace

from slurm_score.model import Job
from slurm_score.slurm.reading import Reading, lines

SPRIO_FORMAT = "%i|%Y|%S|%A|%B|%F|%J|%P|%Q|%N|%T"

_HELD = re.compile(r"held|BadConstraints", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PriorityRow:
    """What sprio knows of a job: the SiteFactor that Slurm holds, and whether an admin pinned it.

    `parts` are in the order of SLURM_PARTS, empty where sprio printed no numbers that can be.
    """

    job_id: int
    site_factor: int
    pinned: bool
    parts: tuple[int, ...] = ()


def parse_sprio(text: str) -> Reading[PriorityRow]:
    """Return the rows of `sprio -h -o SPRIO_FORMAT`; a job in several partitions has several rows.

    Slurm blanks every factor of a job whose priority was set by hand: a priority without any part
    (more than rounding can hide) is a pin. So is a part that no addition gives, which releases up
    to 22.05 print for pinned jobs in several partitions.

    Source: slurm src/plugins/priority/multifactor, _get_priority_internal: direct_set_prio.
    """
    return Reading[PriorityRow]().read_each(lines(text), _priority_row)


def _priority_row(line: str) -> PriorityRow:
    *numbers, tres = line.split("|")
    job_id, priority, site, *parts = (int(value) for value in numbers)
    of_tres = [int(float(value)) for value in re.findall(r"=(\d+(?:\.\d+)?)", tres)]
    every = [*parts, *of_tres]
    lost = min(site, *every) < -(2**31) + 3
    pinned = lost or (priority > len(every) and site == 0 and not any(every))
    return PriorityRow(job_id, 0 if lost else site, pinned, () if lost else (*parts, sum(of_tres)))


def join_priorities(jobs: list[Job], rows: list[PriorityRow]) -> tuple[Job, ...]:
    """Return the jobs with the SiteFactor and the pin of their sprio row, where they have one.

    Of a job that is COMPLETING squeue doesn't tell whether it has ended, or waits for its nodes to be
    put back into the queue. sprio lists it in the second case only; in the first it is left out.

    squeue puts all pending tasks of an array on one line, those too that became records of their own
    and were held or pinned. The reasons of the line tell of a held one. Of a pinned one only a row
    of sprio tells, whose id squeue doesn't show: then any array may be the one that hides it.
    """
    known = {row.job_id: row for row in reversed(rows)}
    shown_ids = {job.job_id for job in jobs}
    hidden_pin = any(row.pinned and row.job_id not in shown_ids for row in rows)
    there = (job for job in jobs if job.state != "COMPLETING" or job.job_id in known)
    return tuple(_joined(job, known.get(job.job_id), hidden_pin) for job in there)


def _joined(job: Job, row: PriorityRow | None, hidden_pin: bool) -> Job:
    hides = job.pending and bool(job.tasks) and (hidden_pin or _HELD.search(job.reason) is not None)
    if row is None:
        return replace(job, hides_tasks=True) if hides else job
    return replace(
        job, site_factor=row.site_factor, slurm_parts=row.parts, pinned=row.pinned, hides_tasks=hides
    )
