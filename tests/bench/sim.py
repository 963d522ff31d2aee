"""python -m tests.bench.sim: how fast the simulator is on four logs, and how much memory it takes.

Jobs a second from the columns of a log to its schedule, the best of three runs after a first one that
compiles; without numba one run. `linear` is the time for a job on the largest log over that on the smallest.
`ubhpc_week_s` is a real week of a heterogeneous cluster under Slurm's two loops and its own priorities, after
a first run that took `ubhpc_first_s`, as it compiles or loads what was compiled. `rss_mib` is the peak of
this process, the logs included. Prints one JSON object as the last line.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from statistics import median

from slurm_score.policy import Policy
from slurm_score.sim.cluster import parse_site
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.hetero import simulate_cluster
from slurm_score.sim.policies import Pool, QueuePolicy, named
from slurm_score.sim.traces import read_table
from tests.bench.verify_sim import DATA, LOGS, workload

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


def ubhpc_week_s() -> dict[str, float]:
    """Return how long the UB-HPC week takes, and how long it takes the first time."""
    folder = DATA / "slurm-sites"
    work = read_table(folder / "ubhpc-week.csv.gz")
    site = parse_site((folder / "ubhpc-site.yaml").read_text(encoding="utf-8"), "ubhpc")
    policy = QueuePolicy("multifactor", site.multifactor)
    options = Options(backfill="slurm", scheduler=site.scheduler)
    took = []
    for _ in range(2):
        began = time.perf_counter()
        simulate_cluster(work, site, policy, options)
        took.append(round(time.perf_counter() - began, 1))
    return {"ubhpc_week_s": took[1], "ubhpc_first_s": took[0]}


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
        **ubhpc_week_s(),
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
