"""The fake Slurm's controller: what it holds, and what happens by its clock. For fake.py alone.

Nothing here is asked or told by anybody outside: jobs become eligible, start, end and are requeued.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_score.errors import CommandFailedError
from slurm_score.gres import GpuCount
from slurm_score.model import Job, Node, Partition, PastRun
from slurm_score.slurm.fake_jobs import JobList, Record
from slurm_score.slurm.fake_scheduler import (
    Multifactor,
    Placed,
    SchedulerPass,
    Unit,
    occupied,
    scheduling_order,
)

FACTORS = ("age", "assoc", "fairshare", "job_size", "partition", "qos", "tres")


class Controller:
    """Jobs, nodes, partitions, priorities and the clock `now_s`."""

    def __init__(
        self,
        nodes: Iterable[Node],
        partitions: Iterable[Partition],
        qos: Mapping[str, int],
        *,
        start_s: int,
        priority_weights: Mapping[str, int],
        max_age_s: float,
        backfill: bool,
    ) -> None:
        self.now_s, self._backfill = start_s, backfill
        self.jobs = JobList()
        self.nodes = {node.name: _emptied(node) for node in nodes}
        self.partitions = {p.name: self._sized(p) for p in partitions}
        self.priority = Multifactor(
            weights=dict.fromkeys(FACTORS, 0) | dict(priority_weights),
            max_age_s=max_age_s,
            qos=dict(qos),
            nodes=len(self.nodes),
            cpus=sum(node.cpus for node in self.nodes.values()),
        )

    # What it shows

    def shown_jobs(self) -> tuple[Job, ...]:
        """Return the pending and running job records by job id, with their priorities as of now."""
        self._recompute_priorities()
        return tuple(
            record.job(self.now_s, self._limit_of(record), self._dependency_text(record))
            for record in self.jobs.active()
        )

    def shown_nodes(self) -> tuple[Node, ...]:
        """Return the nodes with what is in use."""
        taken = (share for record in self.jobs.active() for share in record.shares)
        return tuple(_with_states(node) for node in occupied(self.nodes.values(), taken))

    # The clock

    def schedule(self) -> tuple[int, ...]:
        """Run the scheduler once; return the job ids of what it started, in that order."""
        for record in self.jobs.active():
            self.note_eligibility(record)
            if record.pending and record.constraints_fail and not record.held:
                hold(record, "BadConstraints")
        self._recompute_priorities()
        running = [record for record in self.jobs.active() if record.running]
        before = len(running)
        SchedulerPass(
            now_s=self.now_s,
            nodes=tuple(self.nodes.values()),
            partitions=self.partitions,
            running=running,
            start=self._start,
            backfill=self._backfill,
        ).run(self._units())
        return tuple(record.job_id for record in running[before:])

    def next_event_s(self) -> int | None:
        """Return when the next job ends or a begin time comes, None for never."""
        active = self.jobs.active()
        begins = [r.submission.begin_s for r in active if r.pending and r.submission.begin_s is not None]
        ends = [record.ends_s for record in active if record.running]
        next_s = min([*(begin_s for begin_s in begins if begin_s > self.now_s), *ends], default=math.inf)
        return None if math.isinf(next_s) else math.ceil(next_s)

    def run_until(self, last_s: int) -> None:
        """Run the scheduler, then let everything happen until a time; the clock stops at the last event."""
        self.schedule()
        while (event_s := self.next_event_s()) is not None and event_s <= last_s:
            self._step(event_s)

    # Records

    def note_eligibility(self, record: Record) -> None:
        """Note since when a pending record may start, or why it may not yet."""
        if not record.pending or record.held:
            return
        state = self._dependency_state(record)
        if state:
            record.reason = "Dependency" if state == "unfulfilled" else "DependencyNeverSatisfied"
            return
        if record.eligible_s is None:
            record.eligible_s = max(self.now_s, record.submission.begin_s or 0)
            record.accrue_s = record.accrue_s or record.eligible_s
        if record.eligible_s > self.now_s:
            record.reason = "BeginTime"
        elif record.reason in {"Dependency", "BeginTime"}:
            record.reason = "None"

    def end(self, ended: Record, state: str) -> None:
        """End a record, and with it the het job that it belongs to."""
        for record in self.jobs.whole(ended):
            record.state, record.reason, record.end_s, record.shares = state, "None", self.now_s, ()
            self.jobs.retire(record)

    def requeue(self, record: Record, state: str) -> None:
        """Put a running record back into the queue; `state` is accounting's word for the run's end."""
        waited_since_s = max(record.eligible_s or record.submit_s, record.submit_s)
        wait_s = (record.start_s or self.now_s) - waited_since_s
        record.past_runs = (*record.past_runs, PastRun(state, wait_s))
        record.state, record.reason, record.submit_s = "PENDING", "None", self.now_s
        record.eligible_s = record.accrue_s = record.start_s = None
        record.partition, record.shares, record.limit_s = "", (), math.inf
        self.note_eligibility(record)

    # Nodes

    def set_node(self, name: str, usable: bool, state: str) -> None:
        """Set a node's state.

        Raises:
            CommandFailedError: there is no such node.
        """
        if name not in self.nodes:
            raise failed("scontrol", "Invalid node name specified")
        self.nodes[name] = replace(self.nodes[name], usable=usable, states=(state,))

    def _sized(self, partition: Partition) -> Partition:
        cpus = sum(node.cpus for node in self.nodes.values() if partition.name in node.partitions)
        return replace(partition, cpus=partition.cpus or cpus)

    # What happens by itself

    def _recompute_priorities(self) -> None:
        for record in self.jobs.active():
            if record.pending and not record.held and not record.pinned:
                record.priority = self.priority.priority(record, self.now_s)

    def _dependency_state(self, record: Record) -> str:
        if record.submission.dependency is None:
            return ""
        others = self.jobs.all_of(record.submission.dependency)
        if not all(other.finished for other in others):
            return "unfulfilled"
        return "" if all(other.state == "COMPLETED" for other in others) else "failed"

    def _dependency_text(self, record: Record) -> str:
        state, job_id = self._dependency_state(record), record.submission.dependency
        if not state or job_id is None or not record.pending:
            return ""
        leader = self.jobs.get(job_id)
        is_array = leader is not None and leader.array_job_id == job_id
        return f"afterok:{job_id}{'_*' if is_array else ''}({state})"

    def _limit_of(self, record: Record) -> float:
        return record.limit_s if record.running else record.limit_in(self.partitions[record.partitions[0]])

    def _units(self) -> list[Unit]:
        ready = sorted((r for r in self.jobs.active() if r.eligible(self.now_s)), key=scheduling_order)
        heads = [r for r in ready if r.het_job_id in {None, r.job_id}]
        units = [self.jobs.whole(record) for record in heads]
        return [unit for unit in units if all(record.eligible(self.now_s) for record in unit)]

    def _start(self, placed: Placed) -> Record:
        record = placed.record
        if record.tasks:
            record = self.jobs.split(record, record.tasks[0])
        record.state, record.reason, record.start_s = "RUNNING", "None", self.now_s
        record.partition, record.shares = placed.partition.name, placed.shares
        record.limit_s = record.limit_in(placed.partition)
        return record

    def _step(self, event_s: int) -> None:
        self.now_s = event_s
        for record in self.jobs.active():
            if record.running and record.ends_s <= self.now_s:
                self.end(record, "COMPLETED" if record.done_s <= record.latest_end_s else "TIMEOUT")
        self.schedule()


def hold(record: Record, reason: str) -> None:
    """Put a record at priority 0."""
    record.priority, record.pinned, record.reason, record.accrue_s = 0, False, reason, None


def failed(command: str, sentence: str) -> CommandFailedError:
    """Return the error of a command that ended with Slurm's sentence."""
    return CommandFailedError(sentence, argv=(command,), returncode=1, stderr=sentence)


def _emptied(node: Node) -> Node:
    state = "IDLE" if node.usable else "DOWN" if "DOWN" in node.states else "DRAIN"
    return replace(node, states=(state,), cpus_used=0, mem_used_mib=0, gpus_used=GpuCount())


def _with_states(node: Node) -> Node:
    if "DOWN" in node.states:
        return node
    in_use = "IDLE" if not node.cpus_used else "MIXED" if node.cpus_used < node.cpus else "ALLOCATED"
    return replace(node, states=(in_use,) if node.usable else (in_use, "DRAIN"))
