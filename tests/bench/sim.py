"""python -m tests.bench.sim: how fast the simulator is on four logs, and how much memory it takes.

Jobs a second from the columns of a log to its schedule, the best of three runs after a first one that
compiles; without numba one run. `linear` is the time for a job on the largest log over that on the smallest.
`rss_mib` is the peak of this process, the logs included. Prints one JSON object as the last line.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from statistics import median

from slurm_score.policy import Policy
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.policies import Pool, QueuePolicy, named
from tests.bench.verify_sim import LOGS, workload

KINDS = {
    "fcfs_easy": (named("fcfs"), Options(), 3),
    "wfp3_easy": (named("wfp3"), Options(), 3),
    "policy_easy": (QueuePolicy("default", Policy(), "recent"), Options(), 3),
    "fcfs_easy_pure_python": (named("fcfs"), Options(numba=False), 1),
}


def jobs_per_s(log: str, kind: str) -> float:
    """Return how many jobs of a log are simulated in a second."""
    policy, options, times = KINDS[kind]
    work = workload(log)
    return len(work) / min(_seconds(log, policy, options) for _ in range(times))


def _seconds(log: str, policy: QueuePolicy, options: Options) -> float:
    work = workload(log)
    began = time.perf_counter()
    simulate(work, Pool(procs=work.procs_total), policy, options)
    return time.perf_counter() - began


def main() -> None:
    """Print the figures, the last line as JSON."""
    for policy, options, _ in KINDS.values():
        if options.numba is None:
            _seconds(LOGS[0], policy, options)
    speeds = {log: {kind: round(jobs_per_s(log, kind)) for kind in KINDS} for log in LOGS}
    for log, kinds in speeds.items():
        sys.stdout.write(f"{log}: " + ", ".join(f"{kind} {speed}" for kind, speed in kinds.items()) + "\n")
    answer = {
        "jobs_per_s": speeds,
        "median": {kind: median(kinds[kind] for kinds in speeds.values()) for kind in KINDS},
        "linear": round(speeds[LOGS[0]]["fcfs_easy"] / speeds[LOGS[-1]]["fcfs_easy"], 2),
        "ubhpc_week_s": None,
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
