"""A site's cluster as an admin writes it down, in frozen columns. Pure.

The file says what slurm.conf says of nodes, partitions, QOS, the multifactor priority and the scheduler.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml
from pydantic import Field

from slurm_score.columns import Ints
from slurm_score.errors import ParseError, Problem, SimulationError, shown
from slurm_score.gres import count_gpus, parse_gres
from slurm_score.hosts import parse_hosts
from slurm_score.settings import Lines, Path, Section, meant, problem_at, validated
from slurm_score.sim.multifactor import Multifactor, parse_multifactor_settings
from slurm_score.sim.scheduler import Scheduler, parse_scheduler
from slurm_score.units import parse_time_limit

UNTYPED = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePartition:
    """One partition; `nodes` are places in the site's columns. `mem_per_core_mib` of 0: a node's share."""

    name: str
    nodes: tuple[int, ...]
    default: bool = False
    max_time_s: float = math.inf
    default_time_s: float = math.inf
    mem_per_core_mib: int = 0
    priority_job_factor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster: nodes in columns int64[n_nodes], `gpus` int64[n_nodes, n_types].

    `preempts` tells by QOS whose jobs its jobs may preempt; `weight` is Slurm's node Weight, lower is
    used first.
    """

    name: str
    node_names: tuple[str, ...]
    cores: Ints
    mem_mib: Ints
    weight: Ints
    gpus: Ints
    gpu_types: tuple[str, ...] = ()
    features: tuple[frozenset[str], ...] = ()
    partitions: tuple[SitePartition, ...] = ()
    qos: Mapping[str, int] = field(default_factory=dict)
    preempts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    multifactor: Multifactor = field(default_factory=Multifactor)
    scheduler: Scheduler = field(default_factory=Scheduler)

    @property
    def procs(self) -> int:
        """The cores of all nodes."""
        return int(self.cores.sum())

    @property
    def default_partition(self) -> str:
        """The name of the default partition: the one that says so, else the first."""
        return next((p.name for p in self.partitions if p.default), self.partitions[0].name)


def pool_site(procs: int, name: str = "pool") -> Site:
    """Return a pool of equal processors as a cluster: nodes of one core in one partition."""
    ones = np.ones(procs, np.int64)
    return Site(
        name=name,
        node_names=tuple(f"n{i}" for i in range(procs)),
        cores=ones,
        mem_mib=ones * 1024,
        weight=ones,
        gpus=np.zeros((procs, 0), np.int64),
        features=(frozenset(),) * procs,
        partitions=(SitePartition(name="all", nodes=tuple(range(procs)), default=True),),
    )


class _Nodes(Section):
    names: str
    cores: int = Field(ge=1, le=100_000, strict=True)
    mem_mb: int = Field(ge=1, le=1 << 40, strict=True)
    gres: str = ""
    features: tuple[str, ...] = ()
    weight: int = Field(default=1, ge=0, le=1 << 31, strict=True)


class _Partition(Section):
    nodes: str
    default: bool = False
    max_time: str = "UNLIMITED"
    default_time: str = ""
    def_mem_per_cpu_mb: int = Field(default=0, ge=0, strict=True)
    priority_job_factor: int = Field(default=1, ge=0, le=65533, strict=True)


class _File(Section):
    nodes: list[_Nodes] = Field(min_length=1)
    partitions: dict[str, _Partition] = Field(min_length=1)
    qos: dict[str, int] = Field(default_factory=dict)
    preempts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    multifactor: dict[str, Any] = Field(default_factory=dict)
    backfill: dict[str, Any] = Field(default_factory=dict)


def parse_site(text: str, where: str = "site") -> Site:
    """Return the cluster of a YAML text.

    Raises:
        SimulationError: with every problem, each with its line.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SimulationError([Problem(where, f"not YAML: {error}")]) from None
    lines = Lines(node, where)
    file, problems = validated(_File, data, lines, ())
    problems = [*lines.duplicates(), *problems]
    if file is None or problems:
        raise SimulationError(sorted(problems, key=lines.order))
    return _site(file, lines, where)


def _site(file: _File, lines: Lines, where: str) -> Site:
    problems: list[Problem] = []
    names, rows = _node_rows(file.nodes, lines, problems)
    gpus = [_gpus(group.gres, ("nodes", i, "gres"), lines, problems) for i, group in enumerate(file.nodes)]
    types = tuple(sorted({gpu_type for found in gpus for gpu_type in found}))
    partitions = [_partition(name, p, names, lines, problems) for name, p in file.partitions.items()]
    problems += _preempt_problems(file, lines)
    scheduler, multifactor = _settings(file, lines, problems)
    if problems:
        raise SimulationError(sorted(problems, key=lines.order))
    groups = [file.nodes[row] for row in rows]
    return Site(
        name=where,
        node_names=tuple(names),
        cores=np.array([g.cores for g in groups], np.int64),
        mem_mib=np.array([g.mem_mb for g in groups], np.int64),
        weight=np.array([g.weight for g in groups], np.int64),
        gpus=np.array([[gpus[row].get(t, 0) for t in types] for row in rows], np.int64),
        gpu_types=types,
        features=tuple(frozenset(g.features) for g in groups),
        partitions=tuple(partitions),
        qos=file.qos,
        preempts={qos: frozenset(below) for qos, below in file.preempts.items()},
        multifactor=multifactor,
        scheduler=scheduler,
    )


def _node_rows(
    groups: Iterable[_Nodes], lines: Lines, problems: list[Problem]
) -> tuple[dict[str, int], list[int]]:
    """The place of every node by name, and the row of the file that tells what each has."""
    names: dict[str, int] = {}
    rows: list[int] = []
    for i, group in enumerate(groups):
        for name in _hosts(group.names, ("nodes", i, "names"), lines, problems):
            if name in names:
                problems.append(problem_at(("nodes", i, "names"), f"{name} stands twice", "", "", lines))
            elif names.setdefault(name, len(rows)) == len(rows):
                rows.append(i)
    return names, rows


def _hosts(text: str, path: Path, lines: Lines, problems: list[Problem]) -> tuple[str, ...]:
    try:
        return parse_hosts(text)
    except ParseError as error:
        found = error.problem
        problems.append(problem_at(path, found.what, found.got, found.allowed, lines))
        return ()


def _gpus(text: str, path: Path, lines: Lines, problems: list[Problem]) -> dict[str, int]:
    try:
        found = count_gpus(parse_gres(text))
    except ParseError as error:
        problems.append(problem_at(path, error.problem.what, error.problem.got, error.problem.allowed, lines))
        return {}
    untyped = found.total - sum(found.types.values())
    return dict(found.types) | ({UNTYPED: untyped} if untyped else {})


def _partition(
    name: str, given: _Partition, names: Mapping[str, int], lines: Lines, problems: list[Problem]
) -> SitePartition:
    path: Path = ("partitions", name)
    hosts = _hosts(given.nodes, (*path, "nodes"), lines, problems)
    missing = [host for host in hosts if host not in names]
    if missing or not hosts:
        what = f"{missing[0]} is no node of this file" if missing else "has no nodes"
        problems.append(problem_at((*path, "nodes"), what, shown(given.nodes), "", lines))
    times = {}
    for key, text in (("max_time", given.max_time), ("default_time", given.default_time)):
        try:
            times[key] = parse_time_limit(text)
        except ParseError as error:
            found = error.problem
            problems.append(problem_at((*path, key), found.what, found.got, found.allowed, lines))
    return SitePartition(
        name=name,
        nodes=tuple(sorted({names[host] for host in hosts if host in names})),
        default=given.default,
        max_time_s=times.get("max_time") or math.inf,
        default_time_s=min(times.get("default_time") or math.inf, times.get("max_time") or math.inf),
        mem_per_core_mib=given.def_mem_per_cpu_mb,
        priority_job_factor=given.priority_job_factor,
    )


def _preempt_problems(file: _File, lines: Lines) -> Iterator[Problem]:
    for name, below in file.preempts.items():
        for qos in (name, *below):
            if qos not in file.qos:
                what = f"unknown QOS{meant(qos, file.qos)}"
                yield problem_at(
                    ("preempts", name), what, shown(qos), f"(known: {', '.join(file.qos)})", lines
                )


def _settings(file: _File, lines: Lines, problems: list[Problem]) -> tuple[Scheduler, Multifactor]:
    """Slurm's own settings, by Slurm's own names."""
    scheduler, multifactor = Scheduler(), Multifactor()
    try:
        scheduler = parse_scheduler(_parameters(file.backfill), lines.at(("backfill",)))
    except SimulationError as error:
        problems += error.problems
    try:
        multifactor = parse_multifactor_settings(file.multifactor, lines.at(("multifactor",)))
    except SimulationError as error:
        problems += error.problems
    return scheduler, multifactor


_UNITS = {"bf_window_min": "bf_window", "bf_interval_s": "bf_interval", "bf_resolution_s": "bf_resolution"}


def _parameters(backfill: Mapping[str, Any]) -> str:
    """The text that SchedulerParameters would have; the file's names may end in their unit."""
    named = Counter(_UNITS.get(key, key) for key in backfill)
    twice = [name for name, count in named.items() if count > 1]
    values = {_UNITS.get(key, key): value for key, value in backfill.items()}
    texts = [
        name if value is True else f"{name}={value}" for name, value in values.items() if value is not False
    ]
    return ",".join(texts + [f"{name} stands twice" for name in twice])
