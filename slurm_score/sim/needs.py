"""What jobs ask of a site, in numbers; jobs that it could never run are left out. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slurm_score.columns import Bools, Ints
from slurm_score.errors import Problem, SimulationError, shown
from slurm_score.settings import meant
from slurm_score.sim.cluster import Site
from slurm_score.sim.workload import Asked, Workload, rows_of

_FEATURES = re.compile(r"[\w.+-]+(?:[&|,][\w.+-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A workload of jobs that the site can run, and what each needs, int64[n_jobs].

    `place` is a row of `allowed` bool[n_places, n_nodes] and `gpu_set` one of `accepted`
    bool[n_sets, n_types]; `partition` is a place in the site's partitions.
    """

    workload: Workload
    asked: Asked
    partition: Ints
    mem_mib: Ints
    place: Ints
    allowed: Bools
    accepted: Bools


def fit(workload: Workload, site: Site) -> Fitted:
    """Return a workload as a site sees it; a remark counts the jobs that no nodes of it could run.

    A job that says nothing of its memory gets the partition's share for each core.

    Raises:
        SimulationError: partitions or features that the site doesn't have, with all of them.
    """
    asked = workload.asked or _spread(workload, site)
    partition = _partitions(asked, site, workload.name)
    pairs, place = np.unique(np.stack([partition, asked.feature]), axis=1, return_inverse=True)
    wanted = [_having(text, site, workload.name) for text in asked.features]
    member = members(site)
    allowed = np.array([member[p] & wanted[f] for p, f in pairs.T.tolist()], np.bool_)
    share = np.array([p.mem_per_core_mib for p in site.partitions], np.int64)[partition]
    mem_mib = np.where(asked.mem_mib > 0, asked.mem_mib, share * asked.cores)
    accepted = np.array([[not s or t in s for t in site.gpu_types] for s in asked.gpu_sets], np.bool_)
    accepted = accepted.reshape(len(asked.gpu_sets), len(site.gpu_types))
    fitted = Fitted(workload, asked, partition, mem_mib, place.reshape(-1), allowed, accepted)
    return _runnable(fitted, site)


def members(site: Site) -> Bools:
    """Return which nodes belong to which partition, bool[n_partitions, n_nodes]."""
    member = np.zeros((len(site.partitions), len(site.node_names)), np.bool_)
    for i, partition in enumerate(site.partitions):
        member[i, list(partition.nodes)] = True
    return member


def _spread(workload: Workload, site: Site) -> Asked:
    """What jobs ask for that only know processors and GPUs: equal parts of as few nodes as can be."""
    zeros = np.zeros(len(workload), np.int64)
    gpus = zeros if workload.gpus is None else workload.gpus
    gpu_type = zeros - 1 if workload.gpu_type is None else workload.gpu_type
    widest = max(1, int(site.gpus.max(initial=0)))
    nodes = np.maximum(-(-workload.procs // int(site.cores.max())), -(-gpus // widest))
    return Asked(
        nodes=nodes,
        cores=-(-workload.procs // nodes),
        mem_mib=zeros,
        gpus=-(-gpus // nodes),
        exclusive=zeros > 0,
        partition=zeros,
        gpu_set=gpu_type + 1,
        feature=zeros,
        gpu_sets=((), *((name,) for name in workload.gpu_types)),
    )


def _partitions(asked: Asked, site: Site, where: str) -> Ints:
    names = [p.name for p in site.partitions]
    wanted = [name or site.default_partition for name in asked.partitions]
    missing = [name for i, name in enumerate(wanted) if name not in names and (asked.partition == i).any()]
    if missing:
        raise SimulationError(
            [
                Problem(where, f"{site.name} has no such partition{meant(name, names)}", shown(name),
                        f"(known: {', '.join(names)})")
                for name in missing
            ]
        )  # fmt: skip
    codes = np.array([names.index(name) if name in names else -1 for name in wanted], np.int64)
    return codes[asked.partition]


def _having(text: str, site: Site, where: str) -> Bools:
    """Which nodes have the features of a constraint: `&` and `,` bind weaker than `|`."""
    have = np.ones(len(site.node_names), np.bool_)
    if not text:
        return have
    if not _FEATURES.fullmatch(text):
        raise SimulationError(
            [Problem(where, "constraint can't be simulated", shown(text), "names with & or | between them")]
        )
    for part in re.split("[&,]", text):
        names = set(part.split("|"))
        have &= np.array([bool(names & features) for features in site.features], np.bool_)
    return have


def _runnable(fitted: Fitted, site: Site) -> Fitted:
    """The jobs for which there are nodes enough in the empty cluster."""
    asked = fitted.asked
    columns = np.stack([fitted.place, asked.cores, fitted.mem_mib, asked.gpus, asked.gpu_set], axis=0)
    kinds, kind = np.unique(columns, axis=1, return_inverse=True)
    there = np.array([_capable(fitted, site, *values) for values in kinds.T.tolist()], np.int64)
    runs = asked.nodes <= there[kind.reshape(-1)]
    if runs.all():
        return fitted
    workload = rows_of(fitted.workload, runs)
    left_out = (
        f"{workload.name}: {int((~runs).sum())} jobs ask for more than {site.name} has and are left out"
    )
    return replace(
        fitted,
        workload=replace(workload, remarks=(*workload.remarks, left_out)),
        asked=rows_of(asked, runs),
        partition=fitted.partition[runs],
        mem_mib=fitted.mem_mib[runs],
        place=fitted.place[runs],
    )


def _capable(fitted: Fitted, site: Site, place: int, cores: int, mem: int, gpus: int, gpu_set: int) -> int:
    """How many nodes could take such a part of a job."""
    fits = fitted.allowed[place] & (site.cores >= cores) & (site.mem_mib >= mem)
    if gpus:
        fits = fits & ((site.gpus >= gpus) & fitted.accepted[gpu_set]).any(axis=1)
    return int(fits.sum())


def classes(columns: Sequence[Ints], where: Bools) -> tuple[Ints, Any]:
    """Return to which class of equal values each row belongs, -1 outside `where`, and the classes' values."""
    code = np.full(len(where), -1, np.int64)
    values, found = np.unique(np.stack([c[where] for c in columns]), axis=1, return_inverse=True)
    code[where] = found.reshape(-1)
    return code, values
