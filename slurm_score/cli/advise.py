"""slurm-score advise: node weights and scheduler settings, from what was measured here."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from slurm_score.audit import read_contention
from slurm_score.cli import audit_option
from slurm_score.errors import AuditError
from slurm_score.model import Queue
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.gateway import Gateway
from slurm_score.tuning import WEEK_H, History, extent_of
from slurm_score.tuning_scheduler import ALL_GAIN, SchedulerAdvice, advise_scheduler
from slurm_score.tuning_weights import GAIN, KEPT, WeightChange, advise_weights

EXAMPLE = """\b
Example:
  $ slurm-score advise
  # node weights, from 168 of the last 168 hours:
  # v100: 0.2 GPUs asked for per usable one over the last week, …; Weight is 1 now
  scontrol update NodeName=g[5-8] Weight=10
  # h100: 2.4 GPUs asked for per usable one over the last week, …; Weight is 1 now
  scontrol update NodeName=g[1-4] Weight=20
  …
  SchedulerParameters=bf_continue,bf_window=10080,bf_job_part_count_reserve=1
"""


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is to advise; `shortage` says why there are no weights, or from how little they are."""

    hours: int
    shortage: str
    weighed: bool
    weights: tuple[WeightChange, ...]
    scheduler: SchedulerAdvice


@click.command("advise", epilog=EXAMPLE)
@audit_option
@click.option(
    "--short-history", is_flag=True, help="Advise node weights also from less than a day of history."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(audit: Path, short_history: bool, as_json: bool) -> None:
    """Say which node Weights and SchedulerParameters would serve this cluster better, and why.

    Node weights follow from how contended each GPU type was over the last day and week, which the
    reprioritizer writes down; the scheduler's settings from the longest queue and time limit. It
    changes nothing: the lines are ready to paste, all others are comments.
    """
    advice = advise(CommandGateway(), audit, short_history=short_history)
    if as_json:
        click.echo(json.dumps(as_dict(advice), indent=2))
    else:
        click.echo("\n".join(lines(advice)))


def advise(gateway: Gateway, audit: Path, *, short_history: bool = False) -> Advice:
    """Return what to advise for the cluster behind a gateway.

    Raises:
        SlurmError: Slurm can't be read.
    """
    cluster = gateway.read_cluster()
    now = extent_of(Queue(jobs=gateway.read_jobs(), cluster=cluster, now_s=cluster.time_s))
    try:
        history, missing = History(read_contention(audit), cluster.time_s), ""
    except AuditError as error:  # the scheduler's settings can be told from the present queue
        history, missing = History((), cluster.time_s), str(error)
    recorded = len(history.last(WEEK_H))
    weighed = not history.shortage or (short_history and recorded > 0)
    return Advice(
        hours=recorded,
        shortage=missing or history.shortage,
        weighed=weighed,
        weights=advise_weights(cluster, history.contention()) if weighed else (),
        scheduler=advise_scheduler(cluster.config, cluster.partitions.values(), history.extent | now),
    )


def as_dict(advice: Advice) -> dict[str, Any]:
    """Return the advice as JSON holds it."""
    changes = [asdict(change) | {"command": change.command} for change in advice.weights]
    return {
        "history": {"hours": advice.hours, "of": WEEK_H, "shortage": advice.shortage},
        "weights": {"weighed": advice.weighed, "changes": changes, "kept": KEPT, "gain": GAIN},
        "scheduler": asdict(advice.scheduler) | {"gain": ALL_GAIN},
    }


def lines(advice: Advice) -> Iterator[str]:
    """Yield the advice line by line; what is not to be pasted is a comment."""
    yield from _weight_lines(advice)
    yield ""
    yield from _scheduler_lines(advice.scheduler)


def _weight_lines(advice: Advice) -> Iterator[str]:
    if not advice.weighed:
        yield f"# node weights: no advice: {advice.shortage}"
        return
    if advice.shortage:
        yield f"# node weights: take them with care: {advice.shortage}"
    source = f"from {advice.hours} of the last {WEEK_H} hours"
    if not advice.weights:
        yield f"# node weights: nothing to change, {source}"
        return
    yield f"# node weights, {source}:"
    for change in advice.weights:
        yield f"# {change.why}; Weight is {', '.join(map(str, change.now))} now"
        yield change.command
    yield f"# {KEPT}"
    yield f"# {GAIN}"


def _scheduler_lines(advice: SchedulerAdvice) -> Iterator[str]:
    if advice.changes:
        yield "# scheduler, in slurm.conf instead of the present line, then scontrol reconfigure:"
        for change in advice.changes:
            yield f"# {change.name}: {change.now} -> {change.then}: {change.why}; {change.gain}"
        yield advice.line
        yield f"# {ALL_GAIN}"
    else:
        yield "# scheduler: nothing to change"
    for note in advice.notes:
        yield f"# {note}"
