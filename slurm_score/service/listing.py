"""Which pending jobs are told of, to whom, and what of them. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from slurm_score.counterfactual import demand_of
from slurm_score.explain import blocker
from slurm_score.factors import registry
from slurm_score.jobid import has_task
from slurm_score.model import SLURM_PARTS, Job
from slurm_score.service.columns import NORM, SLURM, View, columns_of_view
from slurm_score.service.handlers import Scored

MAX_DIGITS = 10
OF_A_ROW = (
    *("job", "job_id", "name", "user", "account", "partition", "cluster", "submit_s"),
    *("score", "guarded", "rank", "of", "gpu_type", "type_rank", "type_of"),
    *("site", "site_held", "priority", "predicted_s", "predicted_from", "policy"),
    *("eligible", "untouched", "blocker"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which jobs are wanted; an empty tuple stands for all.

    `jobs` are ids in any form, `eligible` leaves out those that can't start yet, `limit` is the most
    that are told of. `viewer` is the user whose jobs alone may be told of, None where all may; places
    count everybody's.
    """

    jobs: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    eligible: bool = False
    limit: int | None = None
    viewer: str | None = None


ALL = Selection()

NOT_PENDING = "not pending in the last snapshot"
OTHERWISE = "not of the users, partitions, accounts and QOS that were asked for"


def list_jobs(scored: Scored, wanted: Selection = ALL) -> dict[str, Any]:
    """Return the policy's weights and a row for each pending job that is wanted, best first."""
    view = _view(scored)
    rows = view.shown[_kept(view, wanted)]
    of_row = columns_of_view(view, OF_A_ROW, rows)
    names = view.scores.names
    grouped = {
        "qos": columns_of_view(view, ["qos_name"], rows)["qos_name"],
        "parts": _grouped(view, rows, names, str),
        "factors": _grouped(view, rows, names, lambda name: name + NORM),
        "slurm_parts": _grouped(view, rows, SLURM_PARTS, lambda name: SLURM + name),
    }
    columns = of_row | grouped
    jobs = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _head(scored) | {"left_out": _left_out(view, wanted, rows), "jobs": jobs}


def list_columns(scored: Scored, names: Iterable[str], wanted: Selection = ALL) -> dict[str, Any]:
    """Return the policy's weights and the named columns of the jobs that are wanted, best first.

    Raises:
        ParseError: there is no such column.
    """
    view = _view(scored)
    rows = view.shown[_kept(view, wanted)]
    columns = columns_of_view(view, tuple(names), rows)
    return _head(scored) | {"left_out": _left_out(view, wanted, rows), "columns": columns}


def find_job(scored: Scored, job_id: str, viewer: str | None = None) -> int | None:
    """Return the index of a pending job by the id that squeue prints, or by its plain number.

    The number of a het job is its leader's, whatever else is updated by it.
    """
    view, jobs = _view(scored), scored.queue.jobs
    allowed = [i for i in _named(view, job_id) if _may_see(jobs[i], viewer)]
    return min(allowed, key=lambda i: job_id not in (str(jobs[i].job_id), jobs[i].label), default=None)


def prepare(scored: Scored) -> None:
    """Work out what every list and explanation needs, so that the next one is quick."""
    view = _view(scored)
    _ = view.shown, _index(view), demand_of(scored.queue)


def dump(told: Mapping[str, Any]) -> bytes:
    """Return an answer as JSON."""
    return json.dumps(told, allow_nan=False, separators=(",", ":")).encode()


def _head(scored: Scored) -> dict[str, Any]:
    policy, config = scored.snapshot.policy, scored.queue.cluster.config
    return {
        "time_s": scored.queue.now_s,
        "cluster": config.cluster,
        "mode": str(policy.mode),
        "policy": policy.hash,
        "headers": {name: registry()[name].header for name in scored.scores.names},
        "weights": dict(zip(scored.scores.names, scored.scores.weights, strict=True)),
        "slurm_weights": dict(config.priority_weights),
    }


def _view(scored: Scored) -> View:
    found: View | None = scored.queue.memo.get("view")
    if found is None:
        found = scored.queue.memo["view"] = View(scored.queue, scored.scores, scored.snapshot.policy)
    return found


def _grouped(view: View, rows: Any, names: Iterable[str], column: Callable[[str], str]) -> list[Any]:
    """Return a mapping for each row, with a value for each name."""
    found = tuple(names)
    values = columns_of_view(view, list(map(column, found)), rows).values()
    return [dict(zip(found, row, strict=True)) for row in zip(*values, strict=True)]


def _kept(view: View, wanted: Selection) -> list[int]:
    """Return the places in `view.shown` of the jobs that are wanted."""
    jobs, now_s = view.queue.jobs, view.queue.now_s
    keeps: list[Callable[[int], bool]] = []
    if wanted.jobs:
        named = frozenset(_leader(view, i) for job_id in wanted.jobs for i in _named(view, job_id))
        keeps.append(named.__contains__)
    for names, get in (
        (wanted.users, lambda job: (job.user,)),
        (wanted.accounts, lambda job: (job.account,)),
        (wanted.qos, lambda job: (job.qos,)),
        (wanted.partitions, lambda job: job.partitions),
    ):
        if names:
            keeps.append(_one_of(jobs, frozenset(names), get))
    if wanted.eligible:
        keeps.append(lambda i: jobs[i].eligible(now_s))
    if wanted.viewer is not None:
        keeps.append(lambda i: _may_see(jobs[i], wanted.viewer))
    kept = (place for place, row in enumerate(view.shown.tolist()) if all(keep(row) for keep in keeps))
    return list(islice(kept, wanted.limit))


def _left_out(view: View, wanted: Selection, rows: Any) -> dict[str, str]:
    """Return why a job that was asked for by its id isn't told of, by that id."""
    told, found = set(rows.tolist()), {}
    for job_id in wanted.jobs:
        named = {
            _leader(view, i) for i in _named(view, job_id) if _may_see(view.queue.jobs[i], wanted.viewer)
        }
        if not named:
            found[job_id] = NOT_PENDING
        elif not named & told:
            job = view.queue.jobs[min(named)]
            starts = job.eligible(view.queue.now_s) or not wanted.eligible
            found[job_id] = OTHERWISE if starts else blocker(job)
    return found


def _one_of(
    jobs: tuple[Job, ...], names: frozenset[str], get: Callable[[Job], tuple[str, ...]]
) -> Callable[[int], bool]:
    return lambda i: not names.isdisjoint(get(jobs[i]))


def _may_see(job: Job, viewer: str | None) -> bool:
    return viewer is None or (viewer != "" and job.user == viewer)


def _leader(view: View, i: int) -> int:
    """Return the row that stands for a job: that of its het leader, where there is one."""
    job = view.queue.jobs[i]
    rows = _index(view).get(str(job.het_job_id), ()) if job.follows_leader else ()
    return next((row for row in rows if view.queue.jobs[row].job_id == job.het_job_id), i)


def _named(view: View, job_id: str) -> list[int]:
    """Return the rows of the jobs of an id: as squeue prints it, as scontrol takes it, or a plain number."""
    array, _, task = job_id.partition("_")
    found = list(_index(view).get(job_id, ()))
    if task.isascii() and task.isdigit() and len(task) <= MAX_DIGITS:
        arrays = (i for i in _index(view).get(array, ()) if view.queue.jobs[i].tasks)
        found += [i for i in arrays if i not in found and _holds_task(view.queue.jobs[i], array, int(task))]
    return found


def _holds_task(job: Job, array: str, task: int) -> bool:
    return array == job.label.partition("_")[0] and has_task(job.tasks, task)


def _index(view: View) -> Mapping[str, list[int]]:
    """Return the rows of each id, made once for each queue."""
    found: dict[str, list[int]] | None = view.queue.memo.get("ids")
    if found is None:
        found = view.queue.memo["ids"] = {}
        for i, job in enumerate(view.queue.jobs):
            array = job.label.partition("_")[0]
            for job_id in {job.label, job.update_id, str(job.job_id), array, view.label(i)}:
                found.setdefault(job_id, []).append(i)
    return found
