"""slurm-score parse: how a text of Slurm's or a user's is read."""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import click

from slurm_score.errors import ParseError
from slurm_score.gres import count_gres, parse_gres
from slurm_score.hints import parse_hints
from slurm_score.hosts import parse_hosts
from slurm_score.jobid import parse_job_id
from slurm_score.nodestate import parse_node_state
from slurm_score.units import parse_duration, parse_time_limit


def read_gres(text: str) -> dict[str, Any]:
    """Return what a GRES or TRES text holds, by unit; types as written."""
    return dataclasses.asdict(count_gres(parse_gres(text)))


def read_time(text: str) -> dict[str, Any]:
    """Return the seconds of a time limit or a duration; a bare number is minutes."""
    try:
        seconds = parse_time_limit(text)
    except ParseError:
        seconds = parse_duration(text)
    finite = None if seconds is None or math.isinf(seconds) else seconds
    return {
        "seconds": int(finite) if finite is not None and finite == int(finite) else finite,
        "infinite": seconds is not None and math.isinf(seconds),
        "unknown": seconds is None,
    }


def read_job_id(text: str) -> dict[str, Any]:
    """Return the parts of a job id; `tasks` is how many array tasks it names, null for none."""
    job_id = parse_job_id(text)
    return {
        "job_id": job_id.job_id,
        "kind": job_id.kind,
        "task": job_id.task,
        "tasks": job_id.task_count if job_id.kind in {"array", "task"} else None,
        "task_list": job_id.tasks or None,
        "throttle": job_id.throttle,
        "het_offset": job_id.het_offset,
        "step": job_id.step or None,
        "truncated": job_id.truncated,
        "update_id": job_id.update_id,
    }


def read_node_state(text: str) -> dict[str, Any]:
    """Return base state, flags, and whether a job could start there, null where that can't be told."""
    return dataclasses.asdict(parse_node_state(text))


def read_hints(text: str) -> dict[str, Any]:
    """Return the hints of a comment and a sentence for each that was ignored."""
    return dataclasses.asdict(parse_hints(text))


def read_hosts(text: str) -> dict[str, Any]:
    """Return the hosts of a list."""
    return {"hosts": parse_hosts(text)}


READERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "gres": read_gres,
    "time": read_time,
    "jobid": read_job_id,
    "nodestate": read_node_state,
    "hints": read_hints,
    "hosts": read_hosts,
}


@click.command("parse", context_settings={"ignore_unknown_options": True})
@click.argument("kind", type=click.Choice(list(READERS)))
@click.argument("text", type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, kind: str, text: str) -> None:
    """Print as JSON how TEXT is read; exit 2 with the reason where it can't be.

    \b
    Examples:
      slurm-score parse gres gpu:a100:2
      slurm-score parse time 1-12:00:00
    """
    try:
        click.echo(json.dumps(READERS[kind](text)))
    except ParseError as error:
        click.echo(f"slurm-score: {error}", err=True)
        ctx.exit(2)
