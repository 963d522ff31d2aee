"""Slurm through pyslurm 25.11, where it fits: jobs, nodes and partitions without starting a process.

Never the default. pyslurm must match Slurm's release exactly and holds Python's lock while it waits for
slurmctld: an answer that doesn't come stops every thread. Everything that it can't do is left to the
commands: SiteFactors (only sprio tells them), QOS priorities in slurmctld's memory, configuration,
accounting, identity. So are all updates: `Job.modify` takes a number, which names one record, where an
array and a het job need the text forms of an id, and a site_factor of 0 is never sent.

What pyslurm 25.11 doesn't tell, and what is made of it:
- GPU types of --gpus and --gpus-per-socket, and of GPUs in use: only what Slurm counts by type. Where
  AccountingStorageTRES doesn't list every type of the nodes, jobs and nodes come from the commands.
- An unlimited time limit is None; slurmctld sends no job without any limit, so None is unlimited.
- Task 0 of an array is None, and so is the offset 0 of a het leader.
- On which GPUs of a node shards and MPS shares are in use: such nodes come from the commands.
- --prefer, and the memory of --mem-per-gpu: as if there were none. Switches and reservations come from the
  commands.
- A dependency on `singleton` is left out, and so is the count of one that `--gres=gpu:a100` leaves unsaid.

An attribute that an installed pyslurm lacks sends the question to the commands.

Source: pyslurm 25.11.2, core/job/job.pyx, core/node.pyx, core/partition.pyx, db/tres.pyx, utils/uint.pyx,
utils/cstr.pyx, core/job/submission.pyx.
"""

import importlib
import logging
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from slurm_score.errors import ParseError
from slurm_score.gres import GresRequest, gres_request, least_cpus
from slurm_score.hints import parse_hints
from slurm_score.jobid import parse_job_id
from slurm_score.model import Cluster, EndedRun, Job, Node, Partition, PastRun, SlurmConfig
from slurm_score.node_gres import node_gres
from slurm_score.nodestate import parse_node_state
from slurm_score.slurm.answers import error_kind
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.gateway import (
    ControllerHost,
    Identity,
    Patience,
    SiteFactorUpdate,
    UpdateFailure,
    WriteGuard,
)
from slurm_score.slurm.parse import ACTIVE_STATES
from slurm_score.slurm.parse_nodes import with_switches
from slurm_score.slurm.priorities import join_priorities
from slurm_score.units import MINUTE_S, parse_time_limit

log = logging.getLogger(__name__)

RELEASE = "25.11"
"""The one release whose attributes this module knows."""

_UNREADABLE = (AttributeError, TypeError, ValueError)
"""What attributes of pyslurm raise, or our grammars, on a record that they don't understand."""
_NOT_TOLD = "not told"
"""Of who may use a partition."""


def available(release: str) -> str:
    """Return why pyslurm can't be used with a Slurm of this release, empty if it can.

    `release` is what slurmctld told through a command: then libslurm finds its configuration, which
    pyslurm needs as well. Without one, libslurm would end the interpreter.
    """
    if not _same_release(release):
        return f"pyslurm is used with Slurm {RELEASE} only, got {release or 'no release'}"
    try:
        version = _pyslurm().__version__
    except ModuleNotFoundError:
        return f"pyslurm is not installed; pip install 'slurm-score[pyslurm]' on a host with Slurm {RELEASE}"
    except ImportError as error:
        return f"pyslurm can't be loaded: {error}"
    return "" if _same_release(version) else f"pyslurm {version} doesn't match Slurm {release}"


class PyslurmGateway:
    """Slurm through pyslurm where pyslurm is exact, through the commands for the rest."""

    def __init__(self, commands: CommandGateway) -> None:
        """Prepare libslurm; the caller has seen that pyslurm is `available`."""
        self._commands = commands
        self._told: set[str] = set()
        self._pyslurm = _pyslurm()
        os.environ["SLURM_BITSTR_LEN"] = "0"  # else libslurm cuts the task lists of arrays
        self._pyslurm.slurm_init()
        log.info(
            "pyslurm %s reads jobs, nodes and partitions; SiteFactors, QOS, configuration and accounting are "
            "read, and updates sent, through Slurm's commands",
            self._pyslurm.__version__,
        )

    @property
    def guard(self) -> WriteGuard:
        """The guard of the commands: there is only one."""
        return self._commands.guard

    @guard.setter
    def guard(self, guard: WriteGuard) -> None:
        self._commands.guard = guard

    @property
    def patience(self) -> Patience:
        """That of the commands; what pyslurm asks can't be given up."""
        return self._commands.patience

    @patience.setter
    def patience(self, patience: Patience) -> None:
        self._commands.patience = patience

    def read_controllers(self) -> tuple[ControllerHost, ...]:
        """Return the hosts of the controllers, the primary first; the first that is up acts."""
        return self._commands.read_controllers()

    def read_config(self) -> SlurmConfig:
        """Return slurmctld's configuration."""
        return self._commands.read_config()

    def read_cluster(self) -> Cluster:
        """Return what stands beside the jobs; `time_s` is now, by slurmctld's clock."""
        try:
            nodes = tuple(map(_node, _without_shares(self._load_nodes())))
            partitions = list(map(_partition, self._load("Partitions").values()))
        except _UNREADABLE as error:
            self._tell_once("nodes and partitions", error)
            return self._commands.read_cluster()
        config, time_s = self._commands.read_config_and_time()
        return Cluster(
            time_s=time_s,
            config=config,
            partitions={partition.name: partition for partition in partitions},
            nodes=with_switches(nodes, self._commands.read_switches()),
            qos=self._commands.read_qos(),
            reservations=self._commands.read_reservations(),
        )

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that wait, run or will run again, joined with what sprio shows."""
        try:
            self._load_nodes()
            jobs = [_job(record) for record in self._load("Jobs").values() if record.state in ACTIVE_STATES]
        except _UNREADABLE as error:
            self._tell_once("jobs", error)
            return self._commands.read_jobs()
        return join_priorities(jobs, self._commands.read_priorities())

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the earlier runs of requeued jobs, oldest first, from slurmdbd."""
        return self._commands.read_past_runs(job_ids)

    def read_ended_runs(self, since_s: int, until_s: int) -> tuple[EndedRun, ...]:
        """Return the jobs that completed in this time, from slurmdbd."""
        return self._commands.read_ended_runs(since_s, until_s)

    def read_identity(self) -> Identity:
        """Return who we are to slurmctld."""
        return self._commands.read_identity()

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Set SiteFactors through scontrol; return those that failed.

        Raises:
            WriteRefusedError: the guard doesn't permit it; nothing was sent.
            SlurmError: nothing could be sent, or it can't be told what was.
        """
        return self._commands.write_site_factors(updates)

    def _load(self, name: str) -> Any:
        """Return what the class of that name loads from slurmctld.

        Raises:
            SlurmError: slurmctld didn't answer, or refused.
        """
        try:
            return attrgetter(name)(self._pyslurm).load()
        except self._pyslurm.PyslurmError as error:
            raise error_kind(str(error))(f"pyslurm.{name}.load: {error}") from error

    def _load_nodes(self) -> list[Any]:
        """Return the node records.

        Raises:
            ParseError: a GPU type of theirs isn't counted, so pyslurm can't tell who has or wants it.
        """
        nodes = list(self._load("Nodes").values())
        names = {f"gres/{name}".lower() for node in nodes for name in node.configured_gres}
        gpus = {name for name in names if re.split("[/:]", name)[1] == "gpu"}
        wanted = gpus | {"gres/gpu"} if gpus else set()
        counted = {name.lower() for name in self._load("slurmctld.Config").accounting_storage_tres}
        if wanted - counted:
            raise ParseError("AccountingStorageTRES lacks a GPU type", ", ".join(sorted(wanted - counted)))
        return nodes

    def _tell_once(self, what: str, error: Exception) -> None:
        if what not in self._told:
            self._told.add(what)
            log.warning("pyslurm: %s; %s are read through Slurm's commands instead", error, what)


def _pyslurm() -> Any:
    """Return the module; importing it neither looks for slurm.conf nor changes how we load libraries."""
    os.environ["PYSLURM_DISABLE_AUTO_INIT"] = "1"
    flags = sys.getdlopenflags()
    try:
        return importlib.import_module("pyslurm")
    finally:
        sys.setdlopenflags(flags)


def _same_release(version: str) -> bool:
    return version.split(".")[:2] == RELEASE.split(".")


def _without_shares(nodes: list[Any]) -> list[Any]:
    """Return the nodes.

    Raises:
        ParseError: one has shards or MPS shares, of which pyslurm doesn't tell on which GPUs they are in use.
    """
    names = {name.removeprefix("gres/").partition(":")[0] for node in nodes for name in node.configured_gres}
    if shares := names & {"shard", "mps"}:
        raise ParseError("pyslurm doesn't tell which GPUs are shared", ", ".join(sorted(shares)))
    return nodes


def _job(job: Any) -> Job:
    label = parse_job_id(_label(job))
    nodes, asked, max_nodes = job.num_nodes or 1, _gres(job), job.max_nodes or 0
    if (job.priority == 0 or job.eligible_time is None) and max_nodes == nodes:  # see job_details.py
        max_nodes = 0
    return Job(
        job_id=job.id,
        label=str(label),
        update_id=label.update_id,
        tasks=label.tasks,
        het_job_id=job.heterogeneous_id,
        user=job.user_name or "",
        account=job.account or "",
        qos=job.qos or "",
        partitions=tuple((job.partition or "").split(",")),
        state=job.state,
        reason=job.state_reason or "None",
        priority=1 if job.priority is None else job.priority,
        submit_s=job.submit_time or 0,
        eligible_s=job.eligible_time,
        start_s=job.start_time,
        time_limit_s=math.inf if job.time_limit is None else job.time_limit * MINUTE_S,
        nodes=nodes,
        max_nodes=max_nodes,
        cpus=least_cpus(job.cpus, nodes, asked.gpus, ""),
        mem_mib=job.memory or 0,
        gpus=asked.gpus,
        slices=asked.slices,
        shards=asked.shards,
        features=",".join(job.constraints),
        req_nodes=job.required_nodes or "",
        exc_nodes=job.excluded_nodes or "",
        reservation=job.reservation or "",
        node_list=job.allocated_nodes or "",
        restarts=job.requeue_count,
        dependency=_dependency(job.dependencies or {}),
        hints=parse_hints(job.comment or ""),
        origin=job.federation_origin or "",
        name=job.name or "",
    )


def _label(job: Any) -> str:
    """Return the id as squeue's JobArrayID prints it."""
    if job.array_id and job.array_tasks_waiting:
        limit = f"%{job.array_tasks_parallel}" if job.array_tasks_parallel else ""
        return f"{job.array_id}_[{job.array_tasks_waiting}{limit}]"
    if job.array_id:
        return f"{job.array_id}_{job.array_task_id or 0}"
    het = job.heterogeneous_id
    return f"{het}+{job.heterogeneous_offset or 0}" if het else str(job.id)


def _gres(job: Any) -> GresRequest:
    per_task = job.tres_per_task
    return gres_request(
        per_node=",".join(f"{name}:{count}" for name, count in job.gres_per_node.items()),
        per_task=_counted(per_task.gres) if per_task else "",
        total=_counted(job.gres),
        nodes=job.num_nodes or 1,
        tasks=job.ntasks,
    )


def _counted(gres: Mapping[str, Any]) -> str:
    """Return counted GRES, `gpu` or `gpu:<type>` by name, as Slurm writes TRES."""
    return ",".join(f"gres/{name}={item.count}" for name, item in gres.items())


def _dependency(dependencies: Mapping[str, Any]) -> str:
    """Return what a job depends on as Slurm writes it, kind by kind."""
    joint = "?" if dependencies.get("satisfy") == "any" else ","
    lists = {kind: jobs for kind, jobs in dependencies.items() if isinstance(jobs, list)}
    return joint.join(f"{kind}:{job}" for kind, jobs in lists.items() for job in jobs)


def _node(node: Any) -> Node:
    state = parse_node_state(node.state)
    return Node(
        name=node.name,
        states=(state.base, *state.flags),
        usable=state.usable is True,
        cpus=node.effective_cpus or node.total_cpus,
        cpus_used=node.allocated_cpus,
        mem_mib=node.real_memory or 0,
        mem_used_mib=node.allocated_memory,
        **node_gres(
            ",".join(f"{name}:{n}" for name, n in node.configured_gres.items()),
            ",".join(f"gres/{name}={n}" for name, n in node.allocated_gres.items()),
        )._asdict(),
        partitions=tuple(node.partitions),
        features=tuple(node.active_features),
        weight=node.weight or 1,
    )


def _partition(partition: Any) -> Partition:
    return Partition(
        name=partition.name,
        default=partition.is_default,
        up=partition.state == "UP",
        default_time_s=_limit_s(partition.default_time),
        max_time_s=_limit_s(partition.max_time),
        cpus=partition.total_cpus,
        access=_NOT_TOLD,
    )


def _limit_s(minutes: int | str | None) -> float | None:
    if isinstance(minutes, str):
        return parse_time_limit(minutes)
    return None if minutes is None else minutes * MINUTE_S
