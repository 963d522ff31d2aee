"""What `slurm-score policy show` prints, as text."""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_score.report.table import format_table
from slurm_score.units import format_duration

RULE = """\
The least that is named for a job's QOS and its partitions counts; several partitions count with the
greatest of theirs, and only if all are named. A job that could start and has waited that long stands
above every score, in the order in which jobs reached their guard. From the wait under CLOSED on, no
other job is put before it any more, save a requeued one that keeps its wait: it is first in its
partition as soon as the jobs that stand before it then have started."""


def format_policy(told: Mapping[str, Any]) -> str:
    """Return as text what `policy show` tells, without a line feed at its end."""
    return "\n".join(_lines(told))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{told['file']}: mode {told['mode']}, hash {told['hash']}"
    yield from _profile_lines(told)
    yield ""
    yield _weights_table(told)
    yield from _idle_lines(told)
    guards = [
        [g["for"], format_duration(g["after_s"]), format_duration(g["closed_s"])] for g in told["guards"]
    ]
    yield format_table(["NAME", "GUARD", "CLOSED"], guards)
    yield RULE
    yield ""
    yield from _range_lines(told["site_factor"])
    yield from (f"Note: {remark}" for remark in told["remarks"])


def _profile_lines(told: Mapping[str, Any]) -> Iterator[str]:
    mix = ", ".join(f"{share:.0%} {name}" for name, share in told["shares"].items())
    handed = f", handed over so far: {mix}" if len(told["shares"]) > 1 else ""
    yield f"{told['at']}: profile {told['profile']}{handed}; hash of what is in force {told['in_force_hash']}"
    change = told["next_change"]
    yield "Next change by the clock: " + (
        f"{change['at']} to {change['profile']}" if change else "none within a week"
    )
    if told["load"] is not None:
        yield "Load: " + ", ".join(f"{name} {value}" for name, value in told["load"].items())


def _weights_table(told: Mapping[str, Any]) -> str:
    moves = {one["name"]: f"{one['share']:.0%}" for one in told["influence"]}
    headers = ["NAME", "IN FORCE", *(["MOVES"] if moves else []), *told["profiles"]]
    rows = [
        [
            name,
            weight,
            *([moves[name]] if moves else []),
            *(weights[name] for weights in told["profiles"].values()),
        ]
        for name, weight in told["weights"].items()
    ]
    return format_table(headers, rows)


def _idle_lines(told: Mapping[str, Any]) -> Iterator[str]:
    idle = [f"{one['name']} ({one['weight']})" for one in told["influence"] if one["idle"]]
    if idle:
        yield f"Weights that move nothing in today's queue, as all jobs are alike in it: {', '.join(idle)}."
        yield ""


def _range_lines(ranges: Mapping[str, Any]) -> Iterator[str]:
    if ranges["slurm_range"] is None:
        yield "What Slurm's own factors can add is not known: it comes on top of the guard tier's begin, and"
        yield "CLOSED is a minute later for each point of it."
    else:
        yield f"Slurm's own factors can add {ranges['slurm_range']}: CLOSED is that many minutes later, + 1."
    yield f"SiteFactor: scores 0 to {ranges['scores_to']}, and up to {ranges['offset_to']} that all share;"
    yield (
        f"the guard tier from {ranges['guard_from']} to the cap {ranges['cap']}, "
        f"in order for {format_duration(ranges['order_kept_s'])} past the guard at least"
    )
