"""In what other ways a job could have been asked for: what its user can truthfully change. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_score.contention import accepted_types, of_type, usable_units
from slurm_score.factors.remaining import limits_s
from slurm_score.gres import GpuRequest
from slurm_score.inventory import UNTYPED
from slurm_score.model import Job, Partition, Queue, RunTimes
from slurm_score.never import could_fit
from slurm_score.policy import Policy
from slurm_score.request import ask_of
from slurm_score.units import MINUTE_S, format_duration

SAFE = 2.0
"""So many times the prediction, within which 6 of 10 such jobs end, can truthfully be a limit."""
LEAST_LIMIT_S = 10 * MINUTE_S


@dataclass(frozen=True, slots=True)
class Change:
    """The job as it would be, in words, and how to get there.

    `options` is sbatch's, in place of those that say the same; `update` is what `scontrol update JobId=…`
    takes, which the user may do to the waiting job, so that it keeps its wait. It is empty where Slurm
    makes something else of the job than of one that is submitted with the options: after TresPerJob= it
    keeps to one node, after NumNodes= its GPUs are those of before (22.05 to 26.05, observed).
    """

    kind: str
    words: str
    options: str
    update: tuple[str, ...]
    job: Job


def changes(
    queue: Queue, i: int, policy: Policy, run_times: Mapping[str, RunTimes], others: Sequence[Job]
) -> Iterator[Change]:
    """Yield what could be changed about job i of a queue; `others` are all jobs, those that run too."""
    job = queue.jobs[i]
    yield from _other_types(job, queue, policy)
    yield from _any_type(job, queue)
    yield from _fewer(job, queue)
    yield from _shorter(job, queue, run_times)
    yield from _other_partitions(job, queue)
    yield from _other_qos(job, queue, others)


def _other_types(job: Job, queue: Queue, policy: Policy) -> Iterator[Change]:
    """Yield the types in its partitions that could serve it and are up, with enough memory on each GPU."""
    ask = ask_of(job)
    if ask is None or not _one_type(job):
        return
    mine, count = job.gpus.types[0]
    free = replace(ask, gpus=replace(ask.gpus, types=()))
    for name in accepted_types(free, queue.cluster):
        vram = policy.gpu_table.facts(name).vram_gib
        too_small = ask.vram_gib is not None and (vram is None or vram < ask.vram_gib)
        unwanted = bool(ask.order) and name not in ask.order
        up = usable_units((name,), free, queue.cluster) and could_fit(of_type(free, name), queue.cluster)
        if name in (mine, UNTYPED) or too_small or unwanted or not up:
            continue
        yield _gpu_change("GPU type", f"{name} instead of {mine}", job, _typed(job.gpus, name, count))


def _one_type(job: Job) -> bool:
    """Whether all that it asks for of GPUs are whole ones of one type."""
    return len(job.gpus.types) == 1 and not job.slices.total and not job.shards.total


def _typed(request: GpuRequest, name: str, count: int) -> GpuRequest:
    return replace(request, types=((name, count),) if name else ())


def _any_type(job: Job, queue: Queue) -> Iterator[Change]:
    if not _one_type(job) or job.hints.vram_gib is not None or job.hints.gpu:
        return
    mine, count = job.gpus.types[0]
    changed = _gpu_change("GPU type", f"any type instead of {mine}", job, _typed(job.gpus, "", count))
    ask = ask_of(changed.job)
    names = accepted_types(ask, queue.cluster)
    if ask and any(name != mine and could_fit(of_type(ask, name), queue.cluster) for name in names):
        yield changed


def _fewer(job: Job, queue: Queue) -> Iterator[Change]:
    """Yield half of the nodes with all that stands on them, and one; or half of the GPUs, and one."""
    if not job.gpus.total or len(job.gpus.types) > 1 or job.slices.total or job.shards.total:
        return
    by_node = bool(job.gpus.per_node)
    count = job.nodes if by_node else job.gpus.total
    for fewer in sorted({count // 2, 1} - {0, count}, reverse=True):
        change = _on_nodes(job, fewer) if by_node else _with_gpus(job, fewer)
        if _served(change.job, queue):
            yield change


def _on_nodes(job: Job, nodes: int) -> Change:
    scaled = replace(
        job,
        nodes=nodes,
        max_nodes=min(job.max_nodes, nodes),
        cpus=max(1, job.cpus * nodes // job.nodes),
        mem_mib=job.mem_mib * nodes // job.nodes,
        gpus=_of(job.gpus, job.gpus.per_node * nodes),
    )
    words = (
        f"{nodes} {'node' if nodes == 1 else 'nodes'} instead of {job.nodes}, as many GPUs and tasks on each"
    )
    return Change("size", words, f"--nodes={nodes}", (), scaled)


def _with_gpus(job: Job, count: int) -> Change:
    words = f"{count} {'GPU' if count == 1 else 'GPUs'} instead of {job.gpus.total}"
    return _gpu_change("size", words, job, _of(job.gpus, count))


def _of(request: GpuRequest, count: int) -> GpuRequest:
    return replace(request, total=count, types=tuple((name, count) for name, _ in request.types))


def _gpu_change(kind: str, words: str, job: Job, gpus: GpuRequest) -> Change:
    named = f"{gpus.types[0][0]}:" if gpus.types else ""
    changed = replace(job, gpus=gpus)
    if not gpus.per_node:
        return Change(kind, words, f"--gpus={named}{gpus.total}", (), changed)
    form = f"gpu:{named}{gpus.per_node}"
    return Change(kind, words, f"--gres={form}", (f"Gres={form}",), changed)


def _shorter(job: Job, queue: Queue, run_times: Mapping[str, RunTimes]) -> Iterator[Change]:
    """Yield a limit well above what is predicted; without a prediction half the limit, if it will do."""
    limit_s = limits_s([job], queue.cluster)[0]
    predicted = queue.predicted.get(job.job_id)
    if math.isinf(limit_s):
        return
    if predicted is None:
        wanted_s, why = limit_s / 2, "if it surely ends by then"
    else:
        usual = run_times.get(job.user)
        wanted_s = max(SAFE * predicted.seconds, usual.usual_s if usual else 0.0)
        why = f"predicted: {format_duration(predicted.seconds)}, {predicted.source}"
    wanted_s = max(LEAST_LIMIT_S, math.ceil(wanted_s / MINUTE_S) * MINUTE_S)
    if wanted_s < limit_s:
        told, minutes = format_duration(wanted_s), int(wanted_s // MINUTE_S)
        words = f"limit {told} instead of {format_duration(limit_s)} ({why})"
        changed = replace(job, time_limit_s=float(wanted_s))
        yield Change("time limit", words, f"--time={told}", (f"TimeLimit={minutes}",), changed)


def _other_partitions(job: Job, queue: Queue) -> Iterator[Change]:
    """Yield the partitions that are open to the job's account and QOS, could serve it and are up."""
    for partition in queue.cluster.partitions.values():
        name = partition.name
        if name in job.partitions or job.reservation or not _is_open(partition, job):
            continue
        changed = replace(job, partitions=(name,))
        limit_s = limits_s([changed], queue.cluster)[0]
        too_long = partition.max_time_s is not None and limit_s > partition.max_time_s
        if _served(changed, queue) and _some_up(changed, queue) and not too_long:
            words = f"partition {name} instead of {','.join(job.partitions)}"
            yield Change("partition", words, f"--partition={name}", (f"Partition={name}",), changed)


def _served(job: Job, queue: Queue) -> bool:
    """Whether its partitions could ever serve a job, as far as GPUs go, and CPUs of one without."""
    ask, known = ask_of(job), queue.cluster.partitions
    if ask is not None:
        return could_fit(ask, queue.cluster)
    return any(name in known and job.cpus <= known[name].cpus for name in job.partitions)


def _some_up(job: Job, queue: Queue) -> bool:
    """Whether any node that could serve a job starts jobs now."""
    ask, cluster = ask_of(job), queue.cluster
    if ask is not None:
        return usable_units(accepted_types(ask, cluster), ask, cluster) > 0
    return any(node.usable and not set(node.partitions).isdisjoint(job.partitions) for node in cluster.nodes)


def _is_open(partition: Partition, job: Job) -> bool:
    """Whether a partition is up and Slurm's configuration lets this account and QOS use it."""
    account = not partition.accounts or job.account in partition.accounts
    qos = not partition.qos or job.qos in partition.qos
    return partition.up and account and qos and not partition.access


def _other_qos(job: Job, queue: Queue, others: Sequence[Job]) -> Iterator[Change]:
    """Yield the QOS of higher priority that other jobs of the user and account have: those he may use."""
    priorities, seen = queue.cluster.qos, dict[str, str]()
    for other in others:
        if (other.user, other.account) == (job.user, job.account):
            seen.setdefault(other.qos, other.label)
    mine = [queue.cluster.partitions[p] for p in job.partitions if p in queue.cluster.partitions]
    for name, label in seen.items():
        higher = priorities.get(name, 0) > priorities.get(job.qos, 0)
        if name in priorities and higher and all(_lets_in(partition, name) for partition in mine):
            words = f"QOS {name} instead of {job.qos or '(none)'}, as job {label} has it"
            yield Change("QOS", words, f"--qos={name}", (f"QOS={name}",), replace(job, qos=name))


def _lets_in(partition: Partition, qos: str) -> bool:
    """Whether a partition lets a QOS in; where it denies some, nobody is sent there by us."""
    return (not partition.qos or qos in partition.qos) and "DenyQos" not in partition.access
