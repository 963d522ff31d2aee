"""What the demo plays: clusters and the jobs that arrive at them. Times are seconds from the start."""

from dataclasses import dataclass

from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition
from slurm_score.slurm.fake import Submission
from slurm_score.units import DAY_S, HOUR_S, MINUTE_S


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job and when it is submitted."""

    at_s: int
    submission: Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A cluster whose partition opens at `opens_s`, the jobs that come, and the time between cycles.

    At `look_s`, not before the opening, the queue is shown and the job named `explained` is explained.
    Every time is a multiple of `every_s`.
    """

    title: str
    nodes: tuple[Node, ...]
    partition: Partition
    qos: dict[str, int]
    arrivals: tuple[Arrival, ...]
    opens_s: int
    look_s: int
    every_s: int
    explained: str


def _node(name: str, gpu_type: str, gpus: int) -> Node:
    return Node(
        name=name, cpus=16, mem_mib=256_000, gpus=GpuCount(gpus, {gpu_type: gpus}), partitions=("main",)
    )


def _job(at_s: int, name: str, user: str, qos: str, gres: str, run_s: int, limit_s: int) -> Arrival:
    submission = Submission(
        name=name,
        user=user,
        qos=qos,
        partition="main",
        gres=gres,
        run_time_s=run_s,
        time_limit_s=limit_s,
        comment=f"score: est={run_s}s",
    )
    return Arrival(at_s, submission)


FOUR_JOBS = Scenario(
    title="Four jobs, two A100 and two V100",
    nodes=(_node("a", "a100-40gb", 2), _node("v", "v100-16gb", 2)),
    partition=Partition(name="main", default=True, cpus=32, max_time_s=7.0 * DAY_S),
    qos={"low": 0, "medium": 100, "high": 200, "critical": 400},
    arrivals=(
        _job(0, "JOB-001", "ann", "high", "gpu:a100-40gb:1", 15, MINUTE_S),
        _job(10, "JOB-002", "ben", "low", "gpu:a100-40gb:2", 60, MINUTE_S),
        _job(20, "JOB-003", "cho", "medium", "gpu:v100-16gb:1", 30, MINUTE_S),
        _job(30, "JOB-004", "dee", "critical", "gpu:a100-40gb:1", 10, MINUTE_S),
    ),
    opens_s=30,
    look_s=30,
    every_s=5,
    explained="JOB-004",
)

_STREAM = tuple(
    _job(
        int((i + 1) * 2.5 * HOUR_S),
        f"short-{i + 1:02}",
        ("ann", "ben", "cho")[i % 3],
        "high",
        "gpu:a100:2",
        5 * HOUR_S,
        8 * HOUR_S,
    )
    for i in range(39)
)

STARVATION = Scenario(
    title="A wide job of low QOS under a stream of 39 shorter ones",
    nodes=(_node("a", "a100", 4),),
    partition=Partition(name="main", default=True, cpus=16, max_time_s=7.0 * DAY_S),
    qos={"low": 0, "high": 1000},
    arrivals=(
        _job(0, "first", "ann", "high", "gpu:a100:2", 5 * HOUR_S, 8 * HOUR_S),
        _job(HOUR_S, "WIDE", "eve", "low", "gpu:a100:4", 12 * HOUR_S, 24 * HOUR_S),
        *_STREAM,
    ),
    opens_s=0,
    look_s=47 * HOUR_S + 30 * MINUTE_S,
    every_s=5 * MINUTE_S,
    explained="WIDE",
)
