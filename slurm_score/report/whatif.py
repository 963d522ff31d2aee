"""What another policy would do to the queue, as text and as plain values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from slurm_score.report.table import format_table
from slurm_score.whatif import Comparison, Group, Move

SHOWN = 10
"""Jobs and groups shown of each kind; JSON has them all."""


def told_of(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values for JSON."""
    told = asdict(comparison)
    for move, row in zip(comparison.moves, told["moves"], strict=True):
        row["gained"] = move.gained
    return told | {"moved": len(comparison.moved)}


def format_comparison(comparison: Comparison, files: Mapping[str, str], notes: Sequence[str]) -> str:
    """Return a comparison as text; `files` names both policies with their hash, `notes` come last."""
    return "\n".join(_lines(comparison, files, notes)) + "\n"


def _lines(comparison: Comparison, files: Mapping[str, str], notes: Sequence[str]) -> Iterator[str]:
    for name, said in files.items():
        yield f"{name}: {said}"
    moved = comparison.moved
    yield f"{len(moved)} of {comparison.eligible} jobs that could start change their place."
    before, after = comparison.guarded
    if before or after:
        yield f"Past their guard: {before} jobs now, {after} then."
    yield (
        f"It costs {comparison.updates} updates in {comparison.cycles} "
        f"{'cycle' if comparison.cycles == 1 else 'cycles'}; "
        f"the policy in force would send {comparison.now_updates} anyway. Nothing is written."
    )
    yield ""
    if moved:
        yield _moves_table(moved)
        for kind, groups in comparison.groups.items():
            yield _groups_table(kind, groups)
    yield from (f"Note: {note}" for note in notes)


def _moves_table(moved: Sequence[Move]) -> str:
    rows = [
        [
            move.job,
            move.partition,
            move.user,
            move.before,
            move.after,
            f"{move.gained:+d}",
            f"{move.score_before:.1f}",
            f"{move.score_after:.1f}",
        ]
        for move in moved[:SHOWN]
    ]
    headers = ["JOBID", "PARTITION", "USER", "RANK", "THEN", "GAIN", "SCORE", "THEN"]
    return format_table(headers, rows) + _more(len(moved), "jobs")


def _groups_table(kind: str, groups: Sequence[Group]) -> str:
    """The groups that gain most and those that lose most; those between only where they are few."""
    shown = groups if len(groups) <= SHOWN else (*groups[: SHOWN // 2], *groups[-SHOWN // 2 :])
    rows = [[group.name, group.jobs, group.forward, group.back, f"{group.mean_gain:+.1f}"] for group in shown]
    table = format_table(["NAME", "JOBS", "FORWARD", "BACK", "MEAN_GAIN"], rows)
    return f"By {kind}:\n{table}" + _more(len(groups), "groups")


def _more(count: int, what: str) -> str:
    return f"… and {count - SHOWN} {what} more, see --json\n" if count > SHOWN else ""
