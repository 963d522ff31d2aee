"""SiteFactor updates: as lines for scontrol's standard input, and which of them failed by what it says."""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from slurm_score.errors import ControllerDownError, shown
from slurm_score.plan import SiteFactorUpdate
from slurm_score.slurm.answers import DOWN, Answer, failed
from slurm_score.slurm.gateway import UpdateFailure
from slurm_score.slurm.parse import parse_update_failures

log = logging.getLogger(__name__)

MAX_LINE = 3_900
"""Characters of a line: an scontrol that was built without readline reads 4,095 at once."""

MAX_IDS = 300
"""Ids in a line."""

_IGNORED = "Value ignored"
"""scontrol's words for a SiteFactor out of range; it doesn't say of which job."""
_BRACKETS = re.compile(r"[\[\]]")


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


def failed_updates(updates: Sequence[SiteFactorUpdate], answer: Answer) -> tuple[UpdateFailure, ...]:
    """Return the updates that scontrol reported as failed; other complaints of it go into the log.

    Raises:
        ControllerDownError: slurmctld went down on the way.
        SlurmError: scontrol failed without saying which update did.
    """
    by_id = {_BRACKETS.sub("", update.update_id): update for update in updates}
    failures: dict[str, UpdateFailure] = {}
    told = list(parse_update_failures(answer.stderr))
    for job, sentence in told:
        update = by_id.get(_BRACKETS.sub("", job))
        if DOWN.search(sentence):
            raise ControllerDownError(f"scontrol update: {sentence}", stderr=answer.stderr)
        if update is not None:
            failures.setdefault(update.update_id, UpdateFailure(update, sentence))
        else:
            log.warning("scontrol update: %s", shown(f"{sentence} {job}".strip(), 200))
    unsaid = not any(job for job, _ in told) or any(_IGNORED in sentence for _, sentence in told)
    if answer.returncode and unsaid:
        raise failed(("scontrol", "update"), answer)
    return tuple(failures.values())
