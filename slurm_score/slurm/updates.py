"""SiteFactor updates as the lines that scontrol reads from its standard input. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from slurm_score.plan import SiteFactorUpdate

MAX_LINE = 3_900
"""Characters of a line: an scontrol that was built without readline reads 4,095 at once."""

MAX_IDS = 300
"""Ids in a line."""


def update_lines(updates: Sequence[SiteFactorUpdate]) -> Iterator[str]:
    """Yield one line for neighbours that share a value, in the order of the updates.

    scontrol sends one RPC for each id of a list, and reports failures by id as it does without one. An
    array's list of tasks stands alone. The value stands last: a line that is cut short, since we were
    killed while writing it, names whole ids or sets nothing.

    Source: slurm src/scontrol/update_job.c, scontrol_update_job; scontrol.c, _getline.
    """
    for value, group in groupby(updates, lambda update: update.value):
        for ids in _lists([update.update_id for update in group]):
            yield f"update JobId={','.join(ids)} SiteFactor={value}\n"


def _lists(ids: Sequence[str]) -> Iterator[list[str]]:
    """Cut ids into runs of plain ones that fit into a line, and others alone."""
    run: list[str] = []
    length = 0
    for job_id in ids:
        plain = job_id.isdecimal()
        if run and (not plain or len(run) == MAX_IDS or length + len(job_id) >= MAX_LINE - 40):
            yield run
            run, length = [], 0
        if plain:
            run.append(job_id)
            length += len(job_id) + 1
        else:
            yield [job_id]
    if run:
        yield run
