"""Ended runs out of what sacct prints and out of SWF logs, line by line. Pure.

A line that can't be read is counted and left out: a year of accounting is not given up for one record.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from slurm_score.errors import HistoryError, shown
from slurm_score.factors.remaining import claimed_s
from slurm_score.hints import parse_hints
from slurm_score.model import EndedRun
from slurm_score.predict.kinds import COUNTED, CUT_SHORT, STARTED, kind_of_name
from slurm_score.units import MINUTE_S, parse_timestamp

SACCT_FIELDS = (
    "JobIDRaw", "User", "Account", "Partition", "QOS", "ReqTRES", "TimelimitRaw", "Submit", "End",
    "ElapsedRaw", "State", "Restarts", "Comment", "JobName",
)  # fmt: skip
"""What of sacct tells of a run; users' own words stand last, where a separator in them harms nothing."""

LATE_SACCT_FIELDS = frozenset({"Restarts"})
"""Fields that old releases don't know, and then print nothing at all: 22.05 (observed)."""

SACCT_STATES = "BF,CA,CD,DL,F,NF,OOM,PR,RQ,RV,TO"
"""The states of COUNTED and CUT_SHORT in sacct's short words."""

NEEDED = ("JobIDRaw", "User", "Submit", "End", "ElapsedRaw", "State")
"""Without these a file of `sacct -P` is of no use; what else it lacks isn't known then."""

SWF_COLUMNS = 18
_SWF_STATES = {0: "FAILED", 5: "CANCELLED"}
_GPU = re.compile(r"gres/gpu(?::([^=,]+))?=(\d+)", re.ASCII)
_CPU = re.compile(r"(?:^|,)cpu=(\d+)", re.ASCII)


@dataclass(slots=True)
class Reading:
    """Counts what was left out on the way: lines that can't be read, with the first of them."""

    unreadable: int = 0
    first: str = ""

    def each(self, lines: Iterable[str], read: Callable[[str], EndedRun | None]) -> Iterator[EndedRun]:
        """Yield the runs of the lines that hold one."""
        for line in lines:
            try:
                run = read(line)
            except (ValueError, KeyError, IndexError):
                self.unreadable += 1
                self.first = self.first or shown(line, 120)
                continue
            if run is not None:
                yield run


def read_sacct(lines: Iterable[str], reading: Reading, where: str) -> Iterator[EndedRun]:
    """Yield the runs of a file that `sacct -P -o …` wrote; its first line names the fields.

    Raises:
        HistoryError: a field that is needed is missing.
    """
    rest = iter(lines)
    names = tuple(next(rest, "").rstrip("\n").split("|"))
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise HistoryError(
            f"{where}: no field {', '.join(missing)} in its first line, got {shown('|'.join(names))}; "
            f"write it with: sacct -a -X -D -P -o {','.join(SACCT_FIELDS)}"
        )
    yield from reading.each((line.rstrip("\n") for line in rest), lambda line: sacct_run(line, "|", names))


def sacct_run(line: str, separator: str, names: tuple[str, ...] = SACCT_FIELDS) -> EndedRun | None:
    """Return the run of a line of sacct, None where it didn't run, runs still or didn't end.

    Raises:
        ValueError: the line can't be read.
    """
    if not line.strip():
        return None
    get = dict(zip(names, line.split(separator, len(names) - 1), strict=True))
    state = get["State"].partition(" ")[0]
    end_s, submit_s = parse_timestamp(get["End"]), parse_timestamp(get["Submit"])
    elapsed_s = float(get["ElapsedRaw"] or 0)
    if state not in COUNTED | CUT_SHORT or end_s is None or not (elapsed_s or state in STARTED):
        return None
    limit_s, tres = _limit_s(get.get("TimelimitRaw", "")), get.get("ReqTRES", "")
    gpus, gpu_types = _gpus(tres)
    cpus = _CPU.search(tres)
    return EndedRun(
        user=get["User"],
        limit_s=limit_s,
        cpus=int(cpus[1]) if cpus else 1,
        gpus=gpus,
        gpu_types=gpu_types,
        account=get.get("Account", ""),
        name=kind_of_name(get.get("JobName", "")),
        partition=get.get("Partition", ""),
        qos=get.get("QOS", ""),
        claim_s=_claim_s(get, limit_s),
        submit_s=submit_s or 0,
        end_s=end_s,
        elapsed_s=elapsed_s,
        job_id=int(get["JobIDRaw"]),
        state=state,
        restarts=int(get.get("Restarts") or 0),
    )


def read_swf(lines: Iterable[str], reading: Reading) -> Iterator[EndedRun]:
    """Yield the runs of a log in the Standard Workload Format; jobs that never ran are left out."""
    yield from reading.each((line for line in lines if not line.startswith(";")), _swf_run)


def _swf_run(line: str) -> EndedRun | None:
    if not line.strip():
        return None
    fields = [float(text) for text in line.split()]
    if len(fields) != SWF_COLUMNS:
        raise ValueError("not a job")
    job_id, submit_s, wait_s, run_s, used, asked, limit_s = (int(fields[i]) for i in (0, 1, 2, 3, 4, 7, 8))
    if run_s < 0 or wait_s < 0:
        return None
    # Slurm's partition is the queue; in the field of that name simulators note what they did with a job
    executable, queue = int(fields[13]), int(fields[14])
    return EndedRun(
        user=str(int(fields[11])),
        limit_s=float(limit_s) if limit_s > 0 else math.inf,
        cpus=max(1, asked, used if asked < 1 else 1),
        name=f"executable {executable}" if executable > 0 else "",
        partition=f"queue {queue}" if queue > 0 else "",
        submit_s=submit_s,
        end_s=submit_s + wait_s + run_s,
        elapsed_s=float(run_s),
        job_id=job_id,
        state=_SWF_STATES.get(int(fields[10]), "COMPLETED"),
    )


def _limit_s(minutes: str) -> float:
    return float(minutes) * MINUTE_S if minutes.isdigit() else math.inf


def _gpus(tres: str) -> tuple[int, str]:
    """How many GPUs and of which types: the total stands beside the types, or only they do."""
    found = _GPU.findall(tres)
    typed = {name: int(n) for name, n in found if name}
    total = max((int(n) for name, n in found if not name), default=sum(typed.values()))
    return total, ",".join(sorted(typed))


def _claim_s(get: Mapping[str, str], limit_s: float) -> float | None:
    claim_s, _ = claimed_s(parse_hints(get.get("Comment", "")), limit_s)
    return None if math.isnan(claim_s) else claim_s
