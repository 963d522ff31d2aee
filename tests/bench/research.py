"""python -m tests.bench.research [LOG…]: what Slurm's own backfill makes of five policies.

Average bounded slowdown as a ratio to FCFS + EASY on the same log, and their geometric mean over the
logs; behind the slash the longest wait in the same way. Slurm's backfill runs at every event and at full
resolution, and as Slurm has it by default: every 30 s with slots of 60 s. The data is not part of the
project. Takes some minutes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import geometric_mean

from slurm_score.policy import Policy
from slurm_score.sim.engine import Options
from slurm_score.sim.policies import QueuePolicy, named
from slurm_score.sim.scheduler import Scheduler
from slurm_score.units import HOUR_S
from tests.bench.verify_sim import LOGS, run, slowdown


def preset(max_wait_h: int, guard_h: int) -> Policy:
    """Return the default policy on another time scale."""
    policy = Policy()
    wait = policy.factors["wait"].model_copy(update={"max_wait": float(max_wait_h * HOUR_S)})
    guard = policy.guard.model_copy(update={"after": float(guard_h * HOUR_S)})
    return policy.model_copy(update={"factors": {**policy.factors, "wait": wait}, "guard": guard})


POLICIES = (
    named("fcfs"),
    named("wfp3"),
    named("unicep"),
    QueuePolicy("strict", Policy(), "recent"),
    QueuePolicy("throughput", preset(144, 120), "recent"),
)
EVERY_EVENT = Scheduler(batch_sched_delay_s=0, bf_interval_s=0, bf_resolution_s=1)
WAYS = {
    "EASY": Options(),
    "depth 500": Options(backfill="slurm", scheduler=EVERY_EVENT),
    "depth 100": Options(backfill="slurm", scheduler=replace(EVERY_EVENT, bf_max_job_test=100)),
    "500, reserve 1": Options(backfill="slurm", scheduler=replace(EVERY_EVENT, bf_job_part_count_reserve=1)),
    "500 each 30 s": Options(backfill="slurm", scheduler=Scheduler()),
    "500, reserve 1, each 30 s": Options(backfill="slurm", scheduler=Scheduler(bf_job_part_count_reserve=1)),
}


def main() -> None:
    """Print a line for each policy and way."""
    logs = tuple(sys.argv[1:]) or LOGS
    base = {log: run(log, named("fcfs"), Options()) for log in logs}
    for way, options in WAYS.items():
        for policy in POLICIES:
            ran = {log: run(log, policy, options) for log in logs}
            ratios = {log: slowdown(ran[log]) / slowdown(base[log]) for log in logs}
            longest = {log: ran[log].wait_s.max() / base[log].wait_s.max() for log in logs}
            each = "  ".join(f"{log} {ratios[log]:.2f}/{longest[log]:.2f}" for log in logs)
            mean = geometric_mean(ratios.values())
            sys.stdout.write(f"{way:26} {policy.name:11} {mean:.2f}   {each}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
