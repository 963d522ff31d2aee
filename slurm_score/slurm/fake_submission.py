"""What is submitted to the fake Slurm: a job as for sbatch, what it needs, and lists of array tasks. Pure."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from slurm_score.gres import GpuCount, GpuRequest, count_gpus, gpu_request, parse_gres
from slurm_score.jobid import count_tasks, parse_job_id
from slurm_score.units import MINUTE_S

# What the job_submit hook sends of a job_desc and no Submission sets.
_UNSET_FIELDS = (
    "default_account",
    "default_qos",
    "reservation",
    "features",
    "time_min_min",
    "ntasks_per_node",
    "tres_per_socket",
    "tres_per_task",
    "cpus_per_tres",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One job as for sbatch: `partition` is a comma list, `gres` for each node, `gpus` for the whole job.

    `time_limit_s` counts in whole minutes, rounded up; None leaves it to the partition. `run_time_s`
    is how long the job runs if it may, None until its time limit; nothing that Slurm tells shows it.
    `dependency` is the job id of `afterok:`, `origin` the cluster of a federation that a job comes from;
    a job of scrontab's takes no updates.
    """

    user: str = "user"
    account: str = ""
    qos: str = ""
    partition: str = ""
    name: str = "job"
    gres: str = ""
    gpus: str = ""
    nodes: int | None = None
    tasks: int | None = None
    cpus_per_task: int = 1
    time_limit_s: float | None = None
    run_time_s: int | None = None
    comment: str = ""
    nice: int = 0
    begin_s: int | None = None
    dependency: int | None = None
    array: str = ""
    hold: bool = False
    origin: str = ""
    scrontab: bool = False

    @property
    def min_nodes(self) -> int:
        """The fewest nodes that it runs on."""
        return self.nodes or 1

    @property
    def cpus(self) -> int:
        """The CPUs on all nodes together, at least one on each."""
        return max((self.tasks or self.min_nodes) * self.cpus_per_task, self.min_nodes)

    @property
    def tres_per_node(self) -> str:
        """The GRES of each node as slurmctld spells them from 23.11 on: `gres/gpu:a100:1`."""
        return ",".join(f"gres/{item}" for item in self.gres.split(",") if item)

    @property
    def tres_per_job(self) -> str:
        """The GPUs of the whole job as slurmctld spells them: `gres/gpu:a100:1`."""
        return ",".join(f"gres/gpu:{item.removeprefix('gpu:')}" for item in self.gpus.split(",") if item)

    @property
    def gpu_request(self) -> GpuRequest:
        """The GPUs of the job, of one task where it is an array."""
        return gpu_request(per_job=self.tres_per_job, per_node=self.tres_per_node, nodes=self.min_nodes)

    @property
    def limit_s(self) -> float | None:
        """The time limit in s as slurmctld keeps it, in whole minutes; None where it is unset.

        0 asks for no limit.

        Source: sbatch(1), --time; slurm src/common/parse_time.c, time_str2mins.
        """
        if self.time_limit_s is None:
            return None
        if self.time_limit_s == 0 or math.isinf(self.time_limit_s):
            return math.inf
        return math.ceil(self.time_limit_s / MINUTE_S) * MINUTE_S

    def job_desc(self, uid: int, het_offset: int | None = None) -> dict[str, object]:
        """Return the fields that the job_submit hook sends, with None for what is not set.

        Source: job_submit/slurm_score_request.lua.
        """
        return dict.fromkeys(_UNSET_FIELDS) | {
            "uid": uid,
            "user": self.user,
            "account": self.account or None,
            "qos": self.qos or None,
            "partition": self.partition or None,
            "name": self.name,
            "comment": self.comment or None,
            "array": self.array or None,
            "priority": 0 if self.hold else None,
            "time_limit_min": self._time_limit_min,
            "begin_time": self.begin_s,
            "min_nodes": self.min_nodes,
            "max_nodes": self.nodes,
            "min_cpus": self.cpus,
            "num_tasks": self.tasks,
            "cpus_per_task": self.cpus_per_task,
            "tres_per_job": self.tres_per_job or None,
            "tres_per_node": self.tres_per_node or None,
            "het_job_offset": het_offset,
        }

    @property
    def _time_limit_min(self) -> int | str | None:
        if self.limit_s is None:
            return None
        return "UNLIMITED" if math.isinf(self.limit_s) else int(self.limit_s) // MINUTE_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Need:
    """What a job must be given at once: `cpus` and `gpus` in all, `gpus_per_node` on each node.

    Submissions that ask for the same share one Need, so that it can be told by identity.
    """

    min_nodes: int
    max_nodes: int
    cpus: int
    gpus: GpuCount
    gpus_per_node: GpuCount


def work_out_need(submission: Submission) -> Need:
    """Return what a job must be given at once.

    A job that names neither its nodes nor its GRES for each node may spread over as many as it takes.

    Raises:
        ParseError: the GRES can't be read.
    """
    return _need(submission.tres_per_node, submission.tres_per_job, submission.nodes, submission.cpus)


@lru_cache(maxsize=4096)
def _need(tres_per_node: str, tres_per_job: str, nodes: int | None, cpus: int) -> Need:
    per_node = count_gpus(parse_gres(tres_per_node))
    is_open = nodes is None and not per_node.total
    return Need(
        min_nodes=nodes or 1,
        max_nodes=2**31 if is_open else nodes or 1,
        cpus=cpus,
        gpus=count_gpus(parse_gres(tres_per_job)),
        gpus_per_node=per_node,
    )


def expand_array(array: str) -> tuple[tuple[int, ...], int | None]:
    """Return the task ids that `--array` names, in order, and how many may run at once, None for all.

    Raises:
        ParseError: not such a text.

    Source: sbatch(1), --array: `0-15:4`, `1,3,5-7`, `0-9%3`.
    """
    job_id = parse_job_id(f"1_[{array}]")
    count_tasks(job_id.tasks)
    tasks: set[int] = set()
    for part in job_id.tasks.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        tasks.update(range(int(first), int(last or first) + 1, max(1, int(step or 1))))
    return tuple(sorted(tasks)), job_id.throttle


def format_tasks(tasks: tuple[int, ...]) -> str:
    """Return task ids in ascending order as squeue prints them: `0-3,7`; empty for none."""
    spans = []
    for _, pairs in groupby(enumerate(tasks), lambda pair: pair[1] - pair[0]):
        span = [task for _, task in pairs]
        spans.append(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}")
    return ",".join(spans)
