"""What sacct prints of runs that ended, read. Pure."""

from slurm_score.model import EndedRun, PastRun
from slurm_score.slurm.reading import lines
from slurm_score.units import parse_timestamp

SACCT_FIELDS = ("JobIDRaw", "State", "Submit", "Eligible", "Start")
ENDED_FIELDS = ("User", "End", "ElapsedRaw")
_NOT_ENDED = ("PENDING", "RUNNING", "SUSPENDED")


def parse_past_runs(text: str) -> dict[int, tuple[PastRun, ...]]:
    """Return the runs that ended in a requeue, oldest first, by job id, from `sacct -D -X -n -P`."""
    runs: dict[int, list[tuple[int, PastRun]]] = {}
    for line in lines(text):
        job_id, state, *times = line.split("|")
        submit, eligible, start = (parse_timestamp(value) for value in times)
        if start is None or submit is None or state.startswith(_NOT_ENDED):
            continue
        wait = max(0, start - max(submit, eligible or submit))
        runs.setdefault(int(job_id), []).append((submit, PastRun(state.split(" ")[0], float(wait))))
    return {
        job_id: tuple(run for _, run in sorted(found, key=lambda pair: pair[0]))
        for job_id, found in runs.items()
    }


def parse_ended_runs(text: str, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
    """Return the runs of sacct's ENDED_FIELDS that ended in (since_s, until_s].

    sacct's own window has both its ends in it: the next question would count a run again.
    """
    found: list[EndedRun] = []
    for line in lines(text):
        user, end, elapsed = line.split("|")
        end_s = parse_timestamp(end)
        if end_s is not None and since_s < end_s <= until_s:
            found.append(EndedRun(user, end_s, float(elapsed)))
    return tuple(found)
