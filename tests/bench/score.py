"""make bench-score: how long scoring and planning take, and how few updates a steady queue needs.

Time: queues of 10,000 and 100,000 jobs with all factors weighed, scored and planned; the best of five.

Steady state: 20,000 jobs in four partitions over 60 cycles a minute apart. In each cycle 2 % of the
queue leave (three quarters of them from the top, as jobs that start do, the rest anywhere) and as many
arrive at any second of the minute with the first score that the hook would give them. Only the planner's
updates change what Slurm holds. Beside it runs a naive planner, which sends every SiteFactor whose
rounded score changed.

The order that is kept is that of a queue sorted by SiteFactor, then submission, then job id. It is
compared with the order of the wanted SiteFactors, which are whole numbers: `top500_exact` says that the
first 500 of every partition are the same, one by one, after every cycle, `kendall_tau` is the least over
all cycles for the whole queue. How far whole numbers are from the unrounded scores is printed above.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import replace

import numpy as np

from slurm_score.columns import Ints, columns_of
from slurm_score.contention import gpu_pressure
from slurm_score.gres import GpuCount, gpu_request
from slurm_score.hints import NO_HINTS, parse_hints
from slurm_score.model import Cluster, Floats, Job, Node, Partition, Queue, SlurmConfig
from slurm_score.plan import plan_updates
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.score import Scores, score_queue
from slurm_score.snapshot import Snapshot

NOW = 1_700_000_000
MINUTE_S = 60
PARTITIONS = ("main", "long", "debug", "wide")
QOS = {"low": 0, "normal": 100, "high": 1000}
REQUESTS = ("gpu:a100:4", "gpu:2", "", "", "gpu:h100:8", "gpu:v100:1")
COMMENTS = ("",) * 5 + ("score: est=20m", "score: left=2h urgency=low")
JOBS, CYCLES, CHANGE, TOP = 20_000, 60, 0.02, 500
POLICY = parse_policy("mode: enforce\n")


def make_cluster() -> Cluster:
    """Return 400 nodes with three types of GPU in four partitions."""
    types = ("a100", "h100", "v100")
    nodes = tuple(
        Node(
            name=f"n{i:03}",
            cpus=64,
            gpus=GpuCount(8, {types[i % 3]: 8}),
            partitions=("main", PARTITIONS[1 + i % 3]),
        )
        for i in range(400)
    )
    return Cluster(
        time_s=float(NOW),
        config=SlurmConfig(release="24.11.5", priority_type="priority/multifactor"),
        partitions={
            name: Partition(name=name, default=name == "main", max_time_s=7 * 86400.0, cpus=25_600)
            for name in PARTITIONS
        },
        nodes=nodes,
        qos=QOS,
    )


def make_job(job_id: int, submit_s: int, chance: random.Random) -> Job:
    """Return a pending job of one of 300 users, submitted at a time."""
    return Job(
        job_id=job_id,
        label=str(job_id),
        update_id=str(job_id),
        user=f"u{chance.randrange(300)}",
        qos=chance.choices(tuple(QOS), (2, 7, 1))[0],
        partitions=(chance.choice(PARTITIONS),),
        submit_s=submit_s,
        eligible_s=submit_s,
        time_limit_s=60.0 * chance.randrange(5, 4000),
        cpus=chance.randrange(1, 65),
        gpus=gpu_request(per_node=chance.choice(REQUESTS), nodes=chance.randrange(1, 5)),
        hints=parse_hints(comment) if (comment := chance.choice(COMMENTS)) else NO_HINTS,
        site_factor=0,
    )


def make_queue(count: int, chance: random.Random) -> Queue:
    """Return a queue whose jobs came over the last 40 hours."""
    times = sorted(NOW - chance.randrange(40 * 3600) for _ in range(count))
    jobs = tuple(make_job(i + 1, submit_s, chance) for i, submit_s in enumerate(times))
    cluster = make_cluster()
    return Queue(jobs=jobs, cluster=cluster, now_s=float(NOW), pressure=gpu_pressure(jobs, cluster))


def seconds(count: int) -> tuple[float, float]:
    """Return the time in s to score and to plan a queue, the best of five."""
    queue = make_queue(count, random.Random(1))
    best = [float("inf"), float("inf")]
    for _ in range(5):
        fresh = replace(queue)  # nothing worked out yet
        began = time.perf_counter()
        scores = score_queue(fresh, POLICY)
        scored = time.perf_counter()
        plan_updates(fresh, scores, POLICY)
        best = [min(best[0], scored - began), min(best[1], time.perf_counter() - scored)]
    return best[0], best[1]


class Steady:
    """A queue over many cycles, kept by the planner, and beside it by a naive one."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self._policy = policy
        self._chance = random.Random(seed)
        self._queue = make_queue(JOBS, self._chance)
        self._next_id = JOBS + 1
        self._naive: dict[int, int] = {}
        self._snapshot = Snapshot(policy=policy, cluster=self._queue.cluster)
        while self._plan():
            pass  # the first order, as many cycles as the cap makes it
        self._naive_cycle(score_queue(self._queue, policy))
        self.updates: list[int] = []
        self.naive_updates: list[int] = []
        self.exact: list[bool] = []
        self.taus: list[float] = []
        self.smooth_taus: list[tuple[float, float]] = []

    def cycle(self) -> None:
        """Let a minute pass, then plan and apply, and compare the orders."""
        self._minute()
        self.updates.append(self._plan())
        scores = score_queue(self._queue, self._policy)
        self.naive_updates.append(self._naive_cycle(scores))
        self._compare(scores)

    def _plan(self) -> int:
        queue = self._queue
        plan = plan_updates(queue, score_queue(queue, self._policy), self._policy)
        held = {update.job_id: update.value for update in plan.updates}
        jobs = tuple(
            replace(job, site_factor=held[job.job_id]) if job.job_id in held else job for job in queue.jobs
        )
        self._queue = replace(queue, jobs=jobs, offsets=plan.offsets)
        self._snapshot = replace(
            self._snapshot, cluster=queue.cluster, pressure=queue.pressure, offsets=plan.offsets
        )
        return len(plan.updates)

    def _minute(self) -> None:
        now = self._queue.now_s + MINUTE_S
        jobs, leaving = list(self._queue.jobs), round(JOBS * CHANGE)
        order = ranked(self._queue, columns_of(self._queue).site)
        gone = set(order[: leaving * 3 // 4].tolist())
        while len(gone) < leaving:
            gone.add(self._chance.randrange(len(jobs)))
        jobs = [job for i, job in enumerate(jobs) if i not in gone]
        for submit_s in sorted(int(now) - self._chance.randrange(MINUTE_S) for _ in range(leaving)):
            jobs.append(self._first_score(make_job(self._next_id, submit_s, self._chance)))
            self._next_id += 1
        cluster = replace(self._queue.cluster, time_s=now)
        self._queue = Queue(
            jobs=tuple(jobs), cluster=cluster, now_s=now, pressure=gpu_pressure(jobs, cluster)
        )

    def _first_score(self, job: Job) -> Job:
        scores = score_queue(self._snapshot.queue((job,), float(job.submit_s)), self._policy)
        self._naive[job.job_id] = int(np.floor(scores.score[0] + 0.5))
        return replace(job, site_factor=int(scores.site[0]))

    def _naive_cycle(self, scores: Scores) -> int:
        wanted = np.floor(scores.points + 0.5).astype(np.int64) + scores.guarded * 10_000
        changed = 0
        for job, value in zip(self._queue.jobs, wanted.tolist(), strict=True):
            changed += self._naive.get(job.job_id) != value
            self._naive[job.job_id] = value
        return changed

    def _compare(self, scores: Scores) -> None:
        columns = columns_of(self._queue)
        kept, ideal = ranked(self._queue, columns.site), ranked(self._queue, scores.site)
        exact = True
        for name in PARTITIONS:
            inside = columns.partitions.mask((name,).__eq__)
            exact &= bool((kept[inside[kept]][:TOP] == ideal[inside[ideal]][:TOP]).all())
        self.exact.append(exact)
        smooth = ranked(self._queue, scores.points + np.where(scores.guarded, 1e6, 0.0))
        self.taus.append(kendall_tau(kept, ideal))
        self.smooth_taus.append((kendall_tau(kept, smooth), kendall_tau(ideal, smooth)))


def ranked(queue: Queue, values: Floats | Ints) -> Ints:
    """Return the rows of a queue, highest value first, ties by submission, then by id."""
    columns = columns_of(queue)
    return np.lexsort((columns.job_id, columns.submit_s, -values))


def kendall_tau(one: Ints, other: Ints) -> float:
    """Return Kendall's tau of two orders of the same rows: 1 - 4 x inversions / (n (n - 1))."""
    place = np.empty(len(one), np.int64)
    place[other] = np.arange(len(one))
    return 1.0 - 4.0 * inversions(place[one]) / (len(one) * (len(one) - 1.0))


def inversions(sequence: Ints) -> int:
    """Return how many pairs stand the wrong way round, by merging sorted halves."""
    if len(sequence) < 2:
        return 0
    half = len(sequence) // 2
    left, right = sequence[:half], sequence[half:]
    across = np.searchsorted(np.sort(right), left, side="left").sum()
    return inversions(left) + inversions(right) + int(across)


def main() -> None:
    """Print the figures, the last line as JSON."""
    score_10k, plan_10k = seconds(10_000)
    score_100k, plan_100k = seconds(100_000)
    steady = Steady(POLICY, seed=2)
    for _ in range(CYCLES):
        steady.cycle()
    updates, naive = steady.updates, steady.naive_updates
    kept, rounded = (min(column) for column in zip(*steady.smooth_taus, strict=True))
    lines = (
        f"updates a cycle: mean {np.mean(updates):.0f}, most {max(updates)}; naive {np.mean(naive):.0f}",
        f"arrivals {round(JOBS * CHANGE)} + 2 % of the queue {round(JOBS * 0.02)} a cycle",
        f"exact in {sum(steady.exact)} of {len(steady.exact)} cycles",
        f"tau against the unrounded scores: kept {kept:.5f}, wanted SiteFactors {rounded:.5f}",
    )
    figures = {
        "score_s_10k": round(score_10k, 4),
        "score_s_100k": round(score_100k, 4),
        "plan_s_10k": round(plan_10k, 4),
        "plan_s_100k": round(plan_100k, 4),
        "updates_per_cycle": round(float(np.mean(updates)), 1),
        "naive_updates_per_cycle": round(float(np.mean(naive)), 1),
        "top500_exact": all(steady.exact),
        "kendall_tau": round(min(steady.taus), 5),
    }
    sys.stdout.write("\n".join((*lines, json.dumps(figures), "")))


if __name__ == "__main__":
    main()
