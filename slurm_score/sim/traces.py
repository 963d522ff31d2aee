"""Reads workloads from tables: of Slurm sites, of sacct -P, and of two published GPU clusters.

Which one a table is, its columns tell. Sources: sacct(1); Jeon et al., Analysis of large-scale multi-tenant
GPU clusters for DNN training workloads, ATC'19 (Philly); Weng et al., Beware of fragmentation: scheduling
GPU-sharing workloads with fragmentation gradient descent, ATC'23 (openb).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from slurm_score.errors import Problem, WorkloadError
from slurm_score.sim.cluster import Site, SitePartition
from slurm_score.sim.records import Record, workload_of
from slurm_score.sim.table import Line, read_lines
from slurm_score.sim.workload import Workload
from slurm_score.units import MINUTE_S

GPUS_PER_NODE = 8
"""How many GPUs a node of Philly has at most; its table doesn't tell how a job was spread."""


def read_table(path: Path) -> Workload:
    """Return the workload of a table. Jobs that never ran are left out; limits below runs are raised.

    Raises:
        WorkloadError: the file or lines of it can't be read; with file, line, field and what is expected.
    """
    problems: list[Problem] = []
    names, lines = read_lines(path, problems)
    form = _form(names, path)
    records = [form.read(line) for line in lines]
    if problems:
        raise WorkloadError(problems)
    return workload_of(records, str(path), form.remark)


def read_openb_nodes(path: Path) -> Site:
    """Return the cluster of openb's list of nodes.

    Raises:
        WorkloadError: the file or lines of it can't be read.
    """
    problems: list[Problem] = []
    names, lines = read_lines(path, problems)
    if not set(names) >= {"sn", "cpu_milli", "memory_mib", "gpu", "model"}:
        raise WorkloadError([Problem(str(path), "not a list of nodes", ", ".join(names), "as openb's")])
    rows = [
        (line.text("sn"), line.count("cpu_milli", 1000) // 1000, line.count("memory_mib", 1),
         line.count("gpu", empty=0), line.text("model").lower())
        for line in lines
    ]  # fmt: skip
    if problems:
        raise WorkloadError(problems)
    sn, cores, mem_mib, gpus, models = zip(*rows, strict=True)
    types = tuple(sorted({model for model, count in zip(models, gpus, strict=True) if count}))
    return Site(
        name=path.name,
        node_names=sn,
        cores=np.array(cores, np.int64),
        mem_mib=np.array(mem_mib, np.int64),
        weight=np.array([1 + (count > 0) for count in gpus], np.int64),
        gpus=np.array([[n * (m == t) for t in types] for n, m in zip(gpus, models, strict=True)], np.int64),
        gpu_types=types,
        features=(frozenset(),) * len(sn),
        partitions=(SitePartition(name="all", nodes=tuple(range(len(sn))), default=True),),
    )


def _site_csv(line: Line) -> Record:
    nodes, tasks = line.count("nodes", 1), line.count("ntasks", 1)
    gpus = line.gpus("gres")
    cores = -(-tasks // nodes)
    return Record(
        name=line.text("name"),
        submit_s=line.count("submit"),
        run_s=line.count("walltime"),
        request_s=line.count("timelimit_s"),
        user=line.text("user"),
        qos=line.text("qos"),
        partition=line.text("partition"),
        nodes=nodes,
        cores=cores,
        mem_mib=line.memory_mib("mem", cores),
        gpus=gpus.total,
        gpu_types=tuple(gpus.types),
        features=line.text("constraint"),
        exclusive=line.text("exclusive") not in ("", "0"),
    )


def _eagle_csv(line: Line) -> Record:
    nodes, procs = line.count("nodes_req", 1), line.count("processors_req", 1)
    return Record(
        name=line.text("job_id"),
        submit_s=line.time_s("submit_time"),
        run_s=line.count("run_time"),
        request_s=line.count("wallclock_req"),
        user=line.text("user"),
        qos=line.text("qos"),
        partition=line.text("partition"),
        nodes=nodes,
        cores=-(-procs // nodes),
        mem_mib=line.count("mem_req", empty=0) // nodes,
        gpus=-(-line.count("gpus_req", empty=0) // nodes),
    )


def _sacct(line: Line) -> Record:
    nodes = line.count(_first(line, "NNodes", "AllocNodes", "ReqNodes"), 1)
    procs = line.count(_first(line, "ReqCPUS", "AllocCPUS", "NCPUS"), 1)
    tres = _first(line, "ReqTRES", "AllocTRES")
    gpus = line.gpus(tres) if tres else None
    run_s = line.count("ElapsedRaw") if "ElapsedRaw" in line.fields else int(line.duration_s("Elapsed"))
    return Record(
        name=line.text("JobID"),
        submit_s=line.time_s("Submit"),
        run_s=run_s,
        request_s=_sacct_limit(line, run_s),
        user=line.fields.get("User", ""),
        qos=line.fields.get("QOS", ""),
        partition=line.fields.get("Partition", "").partition(",")[0],
        nodes=nodes,
        cores=-(-procs // nodes),
        mem_mib=line.memory_mib("ReqMem", -(-procs // nodes)) if "ReqMem" in line.fields else 0,
        gpus=-(-gpus.total // nodes) if gpus else 0,
        gpu_types=tuple(gpus.types) if gpus else (),
        features=line.fields.get("Constraints", ""),
    )


def _sacct_limit(line: Line, run_s: int) -> int:
    """The limit; where there is none the run time."""
    if "TimelimitRaw" in line.fields:
        return (
            MINUTE_S * line.count("TimelimitRaw", empty=0) if line.text("TimelimitRaw").isdecimal() else run_s
        )
    limit = line.duration_s("Timelimit", run_s)
    return run_s if math.isinf(limit) else int(limit)


def _openb_csv(line: Line) -> Record:
    created, deleted = line.time_s("creation_time"), line.time_s("deletion_time")
    began = line.time_s("scheduled_time") if line.text("scheduled_time") else deleted
    return Record(
        name=line.text("name"),
        submit_s=created,
        run_s=max(0, deleted - began),
        request_s=max(0, deleted - began),
        qos=line.text("qos"),
        cores=max(1, -(-line.count("cpu_milli") // 1000)),
        mem_mib=line.count("memory_mib"),
        gpus=line.count("num_gpu"),
        gpu_types=tuple(filter(None, line.text("gpu_spec").lower().split("|"))),
    )


def _philly_csv(line: Line) -> Record:
    gpus, run_s = line.count("num_gpus"), line.count("duration")
    nodes = max(1, -(-gpus // GPUS_PER_NODE))
    each = -(-gpus // nodes)
    return Record(
        name="",
        submit_s=line.time_s("timestamp"),
        run_s=run_s,
        request_s=run_s,
        user=line.text("cluster"),
        nodes=nodes,
        cores=max(1, each),
        gpus=each,
    )


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of table: the columns that it must have, its reader, and what has to be said of it."""

    name: str
    columns: tuple[str, ...]
    read: Callable[[Line], Record]
    remark: str = ""


FORMS = (
    Form(
        "site csv",
        ("name", "submit", "user", "qos", "partition", "nodes", "ntasks", "mem", "constraint", "gres",
         "exclusive", "timelimit_s", "walltime"),
        _site_csv,
    ),
    Form(
        "eagle csv",
        ("job_id", "user", "partition", "qos", "wallclock_req", "nodes_req", "processors_req", "gpus_req",
         "mem_req", "submit_time", "run_time"),
        _eagle_csv,
    ),
    Form(
        "openb csv",
        ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_spec", "qos", "creation_time", "deletion_time",
         "scheduled_time"),
        _openb_csv,
        "it has no limits: each job's run time stands for its own; a part of a GPU counts as a whole one",
    ),
    Form(
        "philly csv",
        ("timestamp", "duration", "num_gpus", "cluster"),
        _philly_csv,
        f"it has no limits: each job's run time stands for its own; {GPUS_PER_NODE} GPUs count as one node",
    ),
    Form("sacct -P", ("JobID", "Submit"), _sacct),
)  # fmt: skip

EITHER = (
    ("ElapsedRaw", "Elapsed"),
    ("TimelimitRaw", "Timelimit"),
    ("NNodes", "AllocNodes", "ReqNodes"),
    ("ReqCPUS", "AllocCPUS", "NCPUS"),
)
"""Columns of sacct of which one must be there. Source: sacct(1), --format."""


def _first(line: Line, *names: str) -> str:
    return next((name for name in names if name in line.fields), "")


def _form(names: Sequence[str], path: Path) -> Form:
    """The form that the columns are of; if none, what is missing to the nearest."""
    known = set(names)
    best = min(FORMS, key=lambda form: len(set(form.columns) - known) / len(form.columns))
    missing = [name for name in best.columns if name not in known]
    if not missing and best.name == "sacct -P":
        missing = [" or ".join(either) for either in EITHER if not known.intersection(either)]
    if missing:
        what = f"nearest to {best.name}, but lacks columns"
        raise WorkloadError(
            [Problem(f"{path}:1", what, ", ".join(missing), f"known: {', '.join(f.name for f in FORMS)}")]
        )
    return best
