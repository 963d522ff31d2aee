"""slurm-score predict: how long a job will run and why, or how good the predictors are on a log."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from slurm_score.cli import snapshot_option
from slurm_score.cli.history_import import read_runs, unread
from slurm_score.errors import HistoryError, SnapshotError
from slurm_score.factors.remaining import alike
from slurm_score.model import Job, Predicted
from slurm_score.predict.baselines import MedianOfFive, Tsafrir, UserRequest
from slurm_score.predict.replay import Accuracy, replay
from slurm_score.predict.similar import QUANTILE, SimilarRuns
from slurm_score.predict.sources import Reading
from slurm_score.report.table import format_table
from slurm_score.snapshot import read_snapshot
from slurm_score.units import format_duration


@click.command("predict")
@click.argument("job_id", required=False)
@snapshot_option
@click.option(
    "--replay", "log", type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A log (.swf, .swf.gz or a file of sacct -P): how good are the predictors on it?",
)  # fmt: skip
@click.option(
    "--quantile", type=click.FloatRange(0.5, 0.9), default=QUANTILE, show_default=True,
    help="With --replay: the share of runs that is to take no longer than predicted.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(job_id: str | None, snapshot: Path, log: Path | None, quantile: float, as_json: bool) -> None:
    """Show how long job JOB_ID of the queue will run, and where that comes from.

    With --replay: at each submission in a log the predictors know what had ended before it.

    \b
    Examples:
      slurm-score predict 812
      slurm-score predict --replay sacct.txt
    """
    if (job_id is None) == (log is None):
        raise click.UsageError("name a job or a log to replay, one of them")
    if log is not None:
        found = replay_log(log, quantile)
        click.echo(
            json.dumps([asdict(a) for a in found], indent=2) if as_json else format_accuracy(found),
            nl=as_json,
        )
        return
    job, predicted = _find(snapshot, str(job_id))
    if as_json:
        click.echo(json.dumps({"job": job.label, "predicted": asdict(predicted) if predicted else None}))
    elif predicted is None:
        click.echo(f"job {job.label}: no run is known yet; its time limit counts")
    else:
        told_s, scored_s = predicted.seconds, predicted.scored_s
        scored = "" if alike(told_s, scored_s) else f"; scored as {format_duration(scored_s)}"
        click.echo(f"job {job.label}: {format_duration(told_s)}: {predicted.source}{scored}")


def _find(path: Path, job_id: str) -> tuple[Job, Predicted | None]:
    snapshot = read_snapshot(path)
    for job in snapshot.jobs:
        if job_id in {job.label, job.update_id, str(job.job_id)}:
            return job, snapshot.predicted.get(job.job_id)
    raise SnapshotError(f"job {job_id}: not in the queue as of the last cycle")


def replay_log(log: Path, quantile: float = QUANTILE) -> list[Accuracy]:
    """Return how good each predictor is on a log.

    Raises:
        HistoryError: it holds no run.
    """
    reading = Reading()
    runs = list(read_runs(log, reading))
    if not runs:
        raise HistoryError(f"{log}: no run in it{unread(reading)}")
    if reading.unreadable:
        click.echo(f"{log}{unread(reading)}", err=True)
    return replay(runs, [UserRequest(), Tsafrir(), MedianOfFive(), SimilarRuns(quantile)])


def format_accuracy(found: list[Accuracy]) -> str:
    """Return accuracies as a table."""
    headers = ["NAME", "JOBS", "MAE_S", "MEDIAN_S", "MIN/MAX", "TOO_SHORT"]
    rows = (
        [a.predictor, a.jobs, f"{a.mae_s:.0f}", f"{a.median_s:.0f}", f"{a.min_max:.3f}", f"{a.too_short:.3f}"]
        for a in found
    )
    return format_table(headers, rows)
