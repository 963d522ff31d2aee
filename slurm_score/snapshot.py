"""The file through which the reprioritizer tells the service what the cluster looks like.

Line 1 holds the policy, the cluster and what was worked out of the queue; then comes one line a node, one
a user whose run times are known, which is all that scoring a new job needs, and one line a job. Short
lines keep the service able to answer while it reads. The file is replaced as a whole: a reader sees the
old one or the new one.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from slurm_score.errors import PolicyError, SnapshotError
from slurm_score.figures import NO_FIGURES, Figures
from slurm_score.model import (
    NO_OFFSETS,
    Cluster,
    Demand,
    Job,
    Node,
    Offsets,
    Predicted,
    Queue,
    Release,
    Releases,
    RunTimes,
)
from slurm_score.policy import Policy, load_policy
from slurm_score.predict.estimator import Estimator, restore_estimator
from slurm_score.profiles import NO_PROFILES, ProfileState
from slurm_score.supply import TypeSupply
from slurm_score.units import MINUTE_S

FORMAT = 5
FILE_MODE = 0o640
MOST_USERS = 1000
"""Whose run times the service is told of: those who ran something last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What one cycle saw and by which policy.

    `pressure` is contention.gpu_pressure of its jobs, `demand` advice.demand_by_type of its scores,
    `supply` and `releases` are what there is of each GPU type and when more comes free (supply.py),
    `run_times` tells by user how long jobs run, `estimator` predicts new ones, `offsets` are those of
    its plan, `profiles` what is remembered of the load, `predicted` tells by job id how long its pending
    jobs will run, `figures` are for those who watch. The policy has the weights that were in force.
    """

    policy: Policy
    cluster: Cluster
    pressure: Mapping[str, float] = field(default_factory=dict)
    demand: Mapping[str, Demand] = field(default_factory=dict)
    supply: tuple[TypeSupply, ...] = ()
    releases: Releases = field(default_factory=dict)
    run_times: Mapping[str, RunTimes] = field(default_factory=dict)
    estimator: Estimator = field(default_factory=Estimator)
    offsets: Offsets = NO_OFFSETS
    profiles: ProfileState = NO_PROFILES
    jobs: tuple[Job, ...] = ()
    predicted: Mapping[int, Predicted] = field(default_factory=dict)
    figures: Figures = NO_FIGURES

    def queue(
        self,
        jobs: tuple[Job, ...] | None = None,
        now_s: float | None = None,
        predicted: Mapping[int, Predicted] | None = None,
    ) -> Queue:
        """Return a queue to score on this cluster: its own pending jobs, or those given with predictions.

        A later time has smaller offsets: the jobs that wait have gained meanwhile, and a new one
        must not stand above them for that.
        """
        mine = tuple(job for job in self.jobs if job.pending)
        now = self.cluster.time_s if now_s is None else now_s
        return Queue(
            jobs=mine if jobs is None else jobs,
            cluster=self.cluster,
            now_s=now,
            pressure=self.pressure,
            releases=self.releases,
            gpu_types=self.policy.gpu_table,
            offsets=self.offsets_at(now),
            predicted=self.predicted if predicted is None else predicted,
        )

    def predict(self, jobs: Sequence[Job]) -> Mapping[int, Predicted]:
        """Return by job id how long jobs will run that weren't there in its cycle."""
        if not self.policy.factors["remaining"].predict:
            return {}
        return self.estimator.predict_jobs(jobs, self.cluster, {})

    def offsets_at(self, now_s: float) -> Offsets:
        """Return the offsets of a later time."""
        gained = max(0.0, now_s - self.cluster.time_s)
        return Offsets(
            max(0.0, self.offsets.score - self.policy.drift_per_s * gained),
            max(0.0, self.offsets.guard - gained / MINUTE_S),
        )


@dataclass(frozen=True, slots=True)
class _Header:
    format: int
    policy: dict[str, Any]
    cluster: Cluster
    nodes: int
    learned: int
    pressure: dict[str, float]
    demand: dict[str, Demand]
    supply: tuple[TypeSupply, ...]
    releases: dict[str, tuple[Release, ...]]
    run_times: dict[str, RunTimes]
    offsets: Offsets
    profiles: ProfileState
    figures: Figures = NO_FIGURES


_CONFIG = ConfigDict(ser_json_inf_nan="constants")
_HEADER = TypeAdapter(tuple[_Header], config=_CONFIG)
_NODE = TypeAdapter(tuple[Node], config=_CONFIG)
_JOB = TypeAdapter(tuple[Job, Predicted | None], config=_CONFIG)


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Replace the snapshot file at once: no reader ever sees half of one.

    Raises:
        SnapshotError: the file can't be written; the old one is still there.
    """
    nodes = snapshot.cluster.nodes
    learned = snapshot.estimator.stored()[: MOST_USERS + 1]
    header = _Header(
        FORMAT,
        snapshot.policy.stored(),
        replace(snapshot.cluster, nodes=()),
        len(nodes),
        len(learned),
        dict(snapshot.pressure),
        dict(snapshot.demand),
        snapshot.supply,
        dict(snapshot.releases),
        dict(snapshot.run_times),
        snapshot.offsets,
        snapshot.profiles,
        snapshot.figures,
    )
    lines = [
        _HEADER.dump_json((header,)),
        *(_NODE.dump_json((node,)) for node in nodes),
        *(json.dumps(user).encode() for user in learned),
        *(_JOB.dump_json((job, snapshot.predicted.get(job.job_id))) for job in snapshot.jobs),
    ]
    temporary = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            file.write(b"\n".join([*lines, b""]))
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise SnapshotError(f"{path}: can't write the snapshot: {error.strerror}") from error


def read_snapshot(path: Path, *, with_jobs: bool = True) -> Snapshot:
    """Return the snapshot of a file; without its jobs it costs the same for any length of queue.

    Raises:
        SnapshotError: it is missing, can't be read, or was written by another release.
    """
    try:
        with path.open("rb") as file:
            header = _HEADER.validate_json(file.readline())[0]
            nodes = tuple(_NODE.validate_json(file.readline())[0] for _ in range(header.nodes))
            learned = [json.loads(file.readline()) for _ in range(header.learned)]
            told = [_JOB.validate_json(line) for line in file] if with_jobs else []
    except FileNotFoundError:
        raise SnapshotError(f"{path}: no snapshot yet; is the reprioritizer running?") from None
    except OSError as error:
        raise SnapshotError(f"{path}: can't read the snapshot: {error.strerror}") from error
    except ValidationError as error:
        raise SnapshotError(
            f"{path}: not a snapshot of this release: {error.error_count()} faults"
        ) from error
    if header.format != FORMAT:
        raise SnapshotError(
            f"{path}: a snapshot of format {header.format}, got by a reader of format {FORMAT}"
        )
    try:
        policy = load_policy(header.policy)
    except PolicyError as error:
        raise SnapshotError(f"{path}: {error}") from error
    return Snapshot(
        policy=policy,
        cluster=replace(header.cluster, nodes=nodes),
        pressure=header.pressure,
        demand=header.demand,
        supply=header.supply,
        releases=header.releases,
        run_times=header.run_times,
        estimator=restore_estimator(learned),
        offsets=header.offsets,
        profiles=header.profiles,
        figures=header.figures,
        jobs=tuple(job for job, _ in told),
        predicted={job.job_id: one for job, one in told if one is not None},
    )
