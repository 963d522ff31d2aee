"""The jobs of CONTRACT as pyslurm's objects, and a stub that does to them what slurmctld does at an update.

Attributes and quirks are those of pyslurm 25.11.2, core/job/job.pyx: 0 is None where 0 means that
nothing is set, a task list comes without its throttle, a GRES count is an object by `gpu` or
`gpu:<type>`, and `gres_per_node` keeps `gres/` in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from slurm_score.slurm.commands import Answer, Runner
from tests.unit.pyslurm_stub import JOB, NODE_RECORD, PARTITION_RECORD, Stub

PIN = 5000


class BehavingStub(Stub):
    """A pyslurm whose slurmctld has the jobs of CONTRACT under their recorded ids.

    `run` stands for Slurm's commands: what they were asked is answered as recorded, and an update that
    they send changes what pyslurm shows next.
    """

    def __init__(self, ids: Mapping[str, int], now_s: int, answers: Runner) -> None:
        """Hold the jobs, submitted a minute before `now_s`, on five nodes that are all in use."""
        self._ids, self._answers = ids, answers
        super().__init__(
            jobs=list(_jobs(ids, now_s - 60)),
            nodes=[_node(f"g{number}") for number in range(1, 6)],
            partitions=[PARTITION_RECORD | {"total_cpus": 40}],
            tres=["cpu", "gres/gpu", "gres/gpu:a100"],
        )

    def run(self, argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        """Return the recorded answer, after carrying out the updates."""
        for line in stdin.splitlines():
            words = dict(word.split("=") for word in line.split(" ")[1:])
            for job_id in words["JobId"].partition("_")[0].split(","):
                self._update(int(job_id), int(words["SiteFactor"]))
        return self._answers(argv, stdin, timeout_s)

    def _update(self, job_id: int, value: int) -> None:
        """Recompute the priority of the job, or of every component; every weight is 0 in the recording."""
        self.jobs = [
            {**job, "priority": max(1, value)}
            if job_id in {job["id"], job["heterogeneous_id"]} and job["priority"] not in {0, PIN}
            else job
            for job in self.jobs
        ]


def _jobs(ids: Mapping[str, int], submit_s: int) -> tuple[dict[str, Any], ...]:
    plain: dict[str, Any] = JOB | {
        "user_name": "alice",
        "priority": 1,
        "submit_time": submit_s,
        "eligible_time": submit_s,
    }
    het = ids["het"]
    return (
        plain | {"id": ids["finished"], "state": "COMPLETED", "start_time": submit_s},
        plain
        | {"id": ids["running"], "state": "RUNNING", "state_reason": None, "start_time": submit_s}
        | {"num_nodes": 5, "cpus": 40, "ntasks": 5, "gres": _gres(20, "a100")},
        plain | {"id": ids["plain"], "gres": _gres(1, "a100"), "gres_per_node": {"gres/gpu:a100": 1}},
        plain | {"id": ids["held"], "priority": 0, "state_reason": "JobHeldUser", "eligible_time": None},
        plain
        | {"id": ids["array"], "array_id": ids["array"], "array_tasks_waiting": "0-5"}
        | {"array_tasks_parallel": 2, "gres": {"gpu": SimpleNamespace(count=1)}},
        plain | {"id": het, "heterogeneous_id": het},
        plain
        | {"id": het + 1, "heterogeneous_id": het, "heterogeneous_offset": 1}
        | {"cpus": 2, "ntasks": 2},
        plain | {"id": ids["pinned"], "priority": PIN},
        plain | {"id": ids["of-bob"], "user_name": "bob"},
    )


def _gres(count: int, gpu_type: str) -> dict[str, SimpleNamespace]:
    return {name: SimpleNamespace(count=count) for name in ("gpu", f"gpu:{gpu_type}")}


def _node(name: str) -> dict[str, Any]:
    return NODE_RECORD | {"name": name, "state": "ALLOCATED", "partitions": ["main"]}
