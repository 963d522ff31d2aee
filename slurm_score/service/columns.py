"""What sscore can show of the pending jobs, one column a name. Pure.

A column is worked out for the rows that are asked for, and only if it is asked for: 20,000 jobs have half
a million values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from slurm_score.columns import Ints, columns_of
from slurm_score.errors import FactorError, ParseError
from slurm_score.explain import blocker
from slurm_score.factors import registry
from slurm_score.model import SLURM_PARTS, Floats, Job, Queue
from slurm_score.plan import skip_reason
from slurm_score.policy import Policy
from slurm_score.ranks import Ranks, rank_queue
from slurm_score.score import Scores

NORM = "_norm"
SLURM = "slurm_"
PRIORITY_RANGE = 2**32 - 1
"""What sprio's %y divides a priority by. Source: slurm src/sprio/print.c."""

Values = list[Any]


@dataclass(frozen=True)
class View:
    """A scored queue as the columns read it; row i is `queue.jobs[i]`."""

    queue: Queue
    scores: Scores
    policy: Policy

    @cached_property
    def ranks(self) -> Ranks:
        """The places of all jobs, whoever may see them."""
        return rank_queue(self.queue, self.scores)

    @cached_property
    def components(self) -> Mapping[int, int]:
        """How many pending components each het job has, by the id of its leader."""
        counts: dict[int, int] = {}
        for job in self.queue.jobs:
            if job.het_job_id is not None:
                counts[job.het_job_id] = counts.get(job.het_job_id, 0) + 1
        return counts

    @cached_property
    def shown(self) -> Ints:
        """The rows to show, best first: a het job is the row of its leader, where that is pending."""
        leaders = {job.job_id for job in self.queue.jobs if job.het_job_id == job.job_id}
        hidden = [job.follows_leader and job.het_job_id in leaders for job in self.queue.jobs]
        order = self.ranks.order
        return order[~np.array(hidden, np.bool_)[order]]

    def label(self, i: int) -> str:
        """Return a job's id as squeue prints it; that of a het job names all its components."""
        job = self.queue.jobs[i]
        more = self.components.get(job.job_id, 1) - 1
        return f"{job.job_id}+[0-{more}]" if more > 0 else job.label


Column = Callable[[View, Ints], Values]


def columns_of_view(view: View, names: Sequence[str], rows: Ints) -> dict[str, Values]:
    """Return these columns of these rows; `parts` and `factors` stand for a column of each factor.

    Raises:
        ParseError: there is no such column.
    """
    known = all_columns()
    groups = {"parts": list(registry()), "factors": [factor + NORM for factor in registry()]}
    unknown = [name for name in names if name not in known and name not in groups]
    if unknown:
        raise ParseError("no such field", ",".join(unknown), f"there are {', '.join((*groups, *known))}")
    each = (one for name in names for one in groups.get(name, [name]))
    return {name: known[name](view, rows) for name in dict.fromkeys(each)}


def all_columns() -> dict[str, Column]:
    """Return every column by its name: those of each job, of the score, of each factor, and Slurm's own.

    Raises:
        FactorError: a factor has the name of another column.
    """
    found = _OF_JOB | _OF_SCORE
    if taken := registry().keys() & (found.keys() | {"parts", "factors"}):
        raise FactorError(f"factor {min(taken)!r}: sscore has another field of this name; rename the factor")
    for place, factor in enumerate(registry()):
        found[factor] = _of_factor(place, lambda view: view.scores.parts)
        found[factor + NORM] = _of_factor(place, lambda view: view.scores.factors)
    for place, part in enumerate(SLURM_PARTS):
        found[SLURM + part] = _slurm_part(place)
        if part != "nice":
            found[SLURM + part + NORM] = _slurm_factor(place, part)
    return found


def _jobs(view: View, rows: Ints) -> Iterator[Job]:
    jobs = view.queue.jobs
    return (jobs[i] for i in rows.tolist())


def _attribute(name: str) -> Column:
    get = attrgetter(name)
    return lambda view, rows: list(map(get, _jobs(view, rows)))


def _each(value: Callable[[View, int], Any]) -> Column:
    return lambda view, rows: [value(view, i) for i in rows.tolist()]


def _array(values: Callable[[View], Any]) -> Column:
    return lambda view, rows: values(view)[rows].tolist()


def _rounded(values: Callable[[View], Floats]) -> Column:
    return lambda view, rows: np.round(values(view)[rows], 6).tolist()


def _same(value: Callable[[View], Any]) -> Column:
    return lambda view, rows: [value(view)] * len(rows)


def _of_factor(place: int, values: Callable[[View], Floats]) -> Column:
    return _rounded(lambda view: values(view)[:, place])


def _slurm_part(place: int) -> Column:
    return lambda view, rows: [
        job.slurm_parts[place] if job.slurm_parts else None for job in _jobs(view, rows)
    ]


def _slurm_factor(place: int, part: str) -> Column:
    """Slurm's own factor, as far as its part, a whole number, tells: part / weight."""

    def values(view: View, rows: Ints) -> Values:
        weight = view.queue.cluster.config.priority_weights.get(part, 0)
        parts = _slurm_part(place)(view, rows)
        return [None if value is None else value / weight if weight else 0.0 for value in parts]

    return values


def _predicted(name: str) -> Column:
    def values(view: View, rows: Ints) -> Values:
        told = view.queue.predicted
        found = (told.get(job.job_id) for job in _jobs(view, rows))
        return [None if one is None else getattr(one, name) for one in found]

    return values


def _places(values: Callable[[View], Ints]) -> Column:
    """Places for a GPU type, None for a job without one."""
    return lambda view, rows: [value or None for value in values(view)[rows].tolist()]


_OF_JOB: dict[str, Column] = {
    "job": _each(lambda view, i: view.label(i)),
    "job_id": _attribute("job_id"),
    "name": _attribute("name"),
    "user": _attribute("user"),
    "account": _attribute("account"),
    "qos_name": _attribute("qos"),
    "partition": lambda view, rows: [",".join(job.partitions) for job in _jobs(view, rows)],
    "cluster": _same(lambda view: view.queue.cluster.config.cluster),
    "submit_s": _attribute("submit_s"),
    "eligible": _array(lambda view: columns_of(view.queue).eligible),
    "blocker": lambda view, rows: list(map(blocker, _jobs(view, rows))),
    "untouched": _each(lambda view, i: skip_reason(view.queue, i)),
    "gpu_type": _each(lambda view, i: ",".join(view.ranks.types[i])),
    "predicted_s": _predicted("seconds"),
    "predicted_from": _predicted("source"),
    "priority": _attribute("priority"),
    "priority_norm": lambda view, rows: [job.priority / PRIORITY_RANGE for job in _jobs(view, rows)],
    "site_held": _attribute("site_factor"),
}

_OF_SCORE: dict[str, Column] = {
    "score": _rounded(lambda view: view.scores.score),
    "score_norm": _rounded(lambda view: view.scores.score / max(1, sum(view.scores.weights))),
    "guarded": _array(lambda view: view.scores.guarded),
    "site": _array(lambda view: view.scores.site),
    "rank": _array(lambda view: view.ranks.rank),
    "of": _array(lambda view: view.ranks.of),
    "type_rank": _places(lambda view: view.ranks.type_rank),
    "type_of": _places(lambda view: view.ranks.type_of),
    "policy": _same(lambda view: view.policy.hash),
}
