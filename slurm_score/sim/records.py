"""Jobs of a table one by one, and the workload that they make. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_score.columns import Ints
from slurm_score.sim.workload import Asked, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One job of a table; times in s, cores, memory and GPUs of one node."""

    name: str
    submit_s: int
    run_s: int
    request_s: int
    user: str = ""
    qos: str = ""
    partition: str = ""
    nodes: int = 1
    cores: int = 1
    mem_mib: int = 0
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    features: str = ""
    exclusive: bool = False


def workload_of(records: Sequence[Record], where: str, remark: str = "") -> Workload:
    """Return records as a workload, in their order; `where` is the file that they come from."""
    ran = [r for r in records if r.run_s > 0]
    users, user = _coded([r.user for r in ran])
    qos_names, qos = _coded([r.qos for r in ran])
    gpus = _column([r.gpus * r.nodes for r in ran])
    run_s, request_s = _column([r.run_s for r in ran]), _column([r.request_s for r in ran])
    return Workload(
        name=where.rpartition("/")[2].removesuffix(".gz").removesuffix(".csv"),
        job_id=_ids(records)[[r.run_s > 0 for r in records]],
        submit_s=_column([r.submit_s for r in ran]),
        run_s=run_s,
        procs=_column([r.nodes * r.cores for r in ran]),
        request_s=np.maximum(run_s, request_s),
        user=user,
        users=users,
        gpus=gpus,
        qos=qos if any(qos_names) else None,
        qos_names=qos_names if any(qos_names) else (),
        asked=_asked(ran),
        remarks=tuple(_remarks(records, ran, where, remark)),
    )


def _asked(ran: Sequence[Record]) -> Asked:
    partitions, partition = _coded([r.partition for r in ran])
    sets = sorted({r.gpu_types for r in ran})
    features, feature = _coded([r.features for r in ran])
    return Asked(
        nodes=_column([r.nodes for r in ran]),
        cores=_column([r.cores for r in ran]),
        mem_mib=_column([r.mem_mib for r in ran]),
        gpus=_column([r.gpus for r in ran]),
        exclusive=np.array([r.exclusive for r in ran], np.bool_),
        partition=partition,
        gpu_set=_column([sets.index(r.gpu_types) for r in ran]),
        feature=feature,
        partitions=partitions,
        gpu_sets=tuple(sets),
        features=features,
    )


def _remarks(records: Sequence[Record], ran: Sequence[Record], where: str, remark: str) -> Iterator[str]:
    if len(ran) < len(records):
        yield f"{where}: {len(records) - len(ran)} jobs never ran and are left out"
    raised = sum(r.request_s < r.run_s for r in ran)
    if raised:
        yield f"{where}: {raised} jobs ran longer than their request, which is raised to that"
    if remark:
        yield f"{where}: {remark}"


def _ids(records: Sequence[Record]) -> Ints:
    """The numbers that end the jobs' names, if they tell them apart; else jobs are counted from 1."""
    found = [re.fullmatch(r"[A-Za-z_-]*(\d{1,15})", r.name) for r in records]
    ids = [int(match[1]) for match in found if match]
    if len(set(ids)) == len(records):
        return _column(ids)
    return np.arange(1, len(records) + 1)


def _column(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _coded(values: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    table: dict[str, int] = {}
    codes = [table.setdefault(value, len(table)) for value in values]
    return tuple(table), _column(codes)
