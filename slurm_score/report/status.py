"""The status as text and as plain values."""

from dataclasses import asdict
from typing import Any

from slurm_score.report.table import format_table
from slurm_score.status import EXIT_CODES, Status, TypeQueue
from slurm_score.units import format_duration

HEADERS = (
    *("TYPE", "JOBS", "ASKED", "FLEXIBLE", "LONGEST"),
    *("PARTITION", "TOTAL", "USED", "FREE", "BROKEN"),
)


def told_of(status: Status) -> dict[str, Any]:
    """Return a status as plain values for JSON."""
    return {
        "level": str(status.level),
        "exit_code": EXIT_CODES[status.level],
        "checks": [asdict(check) for check in status.checks],
        "queue": [asdict(row) for row in status.queue],
    }


def format_status(status: Status) -> str:
    """Return a status as text: a line for each matter, then the queue by GPU type."""
    lines = "".join(f"{check}\n" for check in status.checks)
    return f"{lines}\n{format_table(HEADERS, map(_row, status.queue))}" if status.queue else lines


def _row(row: TypeQueue) -> list[object]:
    demand = [row.gpu_type, row.jobs, row.asked, row.flexible, format_duration(row.longest_wait_s)]
    return [*demand, row.partition, row.total, row.used, row.free, row.broken]
