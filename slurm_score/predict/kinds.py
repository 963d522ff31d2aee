"""Which ends of runs tell how long a job runs, and for what a name stands. Pure."""

import re

COUNTED = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "DEADLINE"})
"""Runs that ended by what the job or its user did: the nodes were busy for just so long.

A failure after a minute is likely to come again, and a run that met its limit is as long as any can be.
"""

CUT_SHORT = frozenset({"NODE_FAIL", "PREEMPTED", "REQUEUED", "BOOT_FAIL", "REVOKED"})
"""Runs that something else ended: how long the job would have run they don't tell (see README.md).
They do tell how long a job that goes on where it was has run already."""

STARTED = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY"})
"""Ends that only a job meets which was started, even if it took less than a second; the others come to
jobs that wait as well."""

NAME_WIDTH = 64

_NUMBERS = re.compile(r"\d+", re.ASCII)


def kind_of_name(name: str) -> str:
    """Return a job's name without its numbers, so that `train-17` and `train-18` are of one kind.

    Of a name with several lines the first counts: what sacct prints of it ends there. What no terminal
    should be sent becomes a question mark, since explain shows it.
    """
    kind = _NUMBERS.sub("#", name.partition("\n")[0])[:NAME_WIDTH]
    return kind if kind.isprintable() else "".join(c if c.isprintable() else "?" for c in kind)
