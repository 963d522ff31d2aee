"""GPUs by type and partition as text: what is there, in what blocks it is free, who wants it."""

from collections.abc import Mapping
from typing import Any

from slurm_score.report.table import format_table

COUNTS = ("total", "used", "free", "broken", "largest")
HEADERS = (
    "PARTITION",
    "TYPE",
    *("TOTAL", "USED", "FREE", "BROKEN", "NODE_MAX"),
    *("BLOCK", "ASKED", "FLEXIBLE", "CONTENTION"),
)


def format_supply(answer: Mapping[str, Any]) -> str:
    """Return the table; `answer` is what the service says at /v1/gpus.

    NODE_MAX is the most that one node has free, BLOCK the largest in equal parts as nodes x GPUs, ASKED
    what pending jobs ask for that accept this type only, FLEXIBLE what those ask for that accept others.
    """
    rows = (
        [
            row["partition"],
            row["gpu_type"],
            *(row[name] for name in COUNTS),
            "{}x{}".format(*row["block"]),
            row["asked"],
            row["flexible"],
            "none usable" if row["contention"] is None else f"{row['contention']:.2f}",
        ]
        for row in answer["gpus"]
    )
    return format_table(HEADERS, rows)
