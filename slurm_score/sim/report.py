"""A page about simulated schedules that opens offline: figures, plots, who gained and who lost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slurm_score.errors import Problem, SimulationError
from slurm_score.sim.engine import Schedule
from slurm_score.sim.metrics import Metrics, Row, by_size, by_user

PEOPLE = 10
"""How many of those who gained most and lost most are named."""


def write_report(
    folder: Path, runs: Sequence[Sequence[Schedule]], measured: Sequence[Sequence[Metrics]]
) -> Path:
    """Write index.html and a PNG file for each plot; return the page.

    `runs` holds for each workload a schedule for each policy, the first of which the others are
    compared with.

    Raises:
        SimulationError: the libraries of the extra `sim` are missing, or the folder can't be written.
    """
    try:
        from jinja2 import Environment, PackageLoader

        from slurm_score.sim.plots import plots
    except ImportError as error:
        raise SimulationError([Problem("report", f"{error}; install slurm-score[sim]")]) from None
    page = Environment(loader=PackageLoader("slurm_score.sim", "."), autoescape=True).get_template(
        "report.html.j2"
    )
    sections = [
        {
            "schedule": schedules[0],
            "rows": list(zip(schedules, figures, strict=True)),
            "plots": plots(schedules),
            "changes": [changes(schedules[0], other) for other in schedules[1:]],
        }
        for schedules, figures in zip(runs, measured, strict=True)
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for section in sections:
            for plot in section["plots"]:  # type: ignore[attr-defined]
                (folder / plot.file).write_bytes(plot.png)
        index = folder / "index.html"
        index.write_text(page.render(sections=sections, options=runs[0][0].options), encoding="utf-8")
    except OSError as error:
        raise SimulationError([Problem(str(folder), f"can't be written: {error}")]) from None
    return index


def changes(before: Schedule, after: Schedule) -> dict[str, Any]:
    """Return who gained and who lost from one schedule to another, by user and by size."""
    users = sorted(pairs(by_user(before), by_user(after)), key=lambda pair: gained_s(*pair), reverse=True)
    return {
        "policy": after.policy.name,
        "gained": [pair for pair in users if gained_s(*pair) > 0][:PEOPLE],
        "lost": [pair for pair in reversed(users) if gained_s(*pair) < 0][:PEOPLE],
        "winners": sum(gained_s(*pair) > 0 for pair in users),
        "losers": sum(gained_s(*pair) < 0 for pair in users),
        "sizes": pairs(by_size(before), by_size(after)),
    }


def pairs(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the rows of one name together."""
    named = {row.name: row for row in after}
    return [(row, named[row.name]) for row in before]


def gained_s(before: Row, after: Row) -> float:
    """Return how much less the jobs of a row wait in all, in s."""
    return (before.mean_wait_s - after.mean_wait_s) * before.jobs
