"""Every way in which a job asks for GPUs, and what the ones that run take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.contract.table import Reading, Records, Situation, Where


def asks(name: str, reading: Reading, *options: str, on: Mapping[str, Records] | None = None) -> Situation:
    """Return a situation of one pending job record."""
    return Situation(name=name, options=options, reads={"": reading}, on=on or {})


FILLER = Situation(
    name="filler",
    options=("--nodes=5", "--exclusive"),
    starts=True,
    reads={
        "": Reading(
            state="RUNNING",
            nodes=5,
            cpus=40,
            gpus=16,
            types={"a100": 10, "v100": 6},
            eligible=False,
            site=None,
        )
    },
)
"""A job that holds every node: --exclusive takes the GPUs as well, asked for or not."""

GPUS_BY_PLACEMENT = (
    asks(
        "gres-node-range",
        Reading(nodes=3, cpus=3, gpus=6, types={"a100": 6}, per_node=2),
        "--nodes=2-3",
        "--gres=gpu:a100:2",
    ),
    asks("gpus-node-range", Reading(nodes=2, cpus=2, gpus=4), "--nodes=2-3", "--gpus=4"),
    asks(
        "gpus-per-node-many-tasks",
        Reading(nodes=2, cpus=12, gpus=4, per_node=2),
        "--ntasks=12",
        "--gpus-per-node=2",
    ),
    asks("gres-many-tasks", Reading(nodes=3, cpus=20, gpus=3, per_node=1), "--ntasks=20", "--gres=gpu:1"),
    asks(
        "gpus-per-node-few-tasks",
        Reading(nodes=4, cpus=4, gpus=4, per_node=1),
        "--ntasks=4",
        "--ntasks-per-node=1",
        "--gpus-per-node=1",
    ),
    asks("gpus-on-one-node", Reading(gpus=2, where=Where(max_nodes=1)), "--nodes=1", "--gpus=2"),
    asks(
        "gpus-on-one-or-two-nodes",
        Reading(gpus=2, where=Where(max_nodes=2)),
        "--nodes=1-2",
        "--gpus=2",
    ),
    asks("gpus-with-cpus", Reading(cpus=6, gpus=2), "--gpus=2", "--cpus-per-gpu=3"),
    asks(
        "gres-with-cpus",
        Reading(nodes=2, cpus=12, gpus=4, per_node=2),
        "--nodes=2",
        "--gres=gpu:2",
        "--cpus-per-gpu=3",
    ),
)
"""Forms of which Slurm works out nodes, CPUs or GPUs only when it looks for a place; these are its sizes."""

GPU_FORMS = (
    asks("gres", Reading(gpus=1, per_node=1), "--gres=gpu"),
    asks("gres-count", Reading(gpus=2, per_node=2), "--gres=gpu:2"),
    asks("gres-type", Reading(gpus=1, types={"a100": 1}, per_node=1), "--gres=gpu:a100"),
    asks("gres-type-count", Reading(gpus=2, types={"a100": 2}, per_node=2), "--gres=gpu:a100:2"),
    asks(
        "gres-two-types",
        Reading(gpus=3, types={"a100": 1, "v100": 2}, per_node=3),
        "--gres=gpu:a100:1,gpu:v100:2",
    ),
    asks("gres-two-nodes", Reading(nodes=2, cpus=2, gpus=4, per_node=2), "--nodes=2", "--gres=gpu:2"),
    asks("gres-none", Reading(), "--gres=none"),
    asks("gres-zero", Reading(), "--gres=gpu:0"),
    asks("gpus-count", Reading(gpus=2, where=Where()), "--gpus=2"),
    asks("gpus-type", Reading(gpus=1, types={"a100": 1}), "--gpus=a100"),
    asks("gpus-type-count", Reading(gpus=2, types={"a100": 2}), "--gpus=a100:2"),
    asks("gpus-two-types", Reading(gpus=3, types={"a100": 1, "v100": 2}), "--gpus=a100:1,v100:2"),
    asks("gpus-over-nodes", Reading(nodes=2, cpus=2, gpus=8), "--gpus=8"),
    asks("gpus-per-node", Reading(gpus=2, per_node=2), "--gpus-per-node=2"),
    asks(
        "gpus-per-node-type",
        Reading(nodes=2, cpus=2, gpus=4, types={"a100": 4}, per_node=2),
        "--nodes=2",
        "--gpus-per-node=a100:2",
    ),
    asks("gpus-per-task", Reading(cpus=3, gpus=3), "--ntasks=3", "--gpus-per-task=1"),
    asks("gpus-per-task-type", Reading(cpus=3, gpus=3, types={"a100": 3}), "-n3", "--gpus-per-task=a100:1"),
    asks(
        "gpus-per-task-over-nodes",
        Reading(nodes=2, cpus=4, gpus=4, types={"v100": 4}),
        "--ntasks=4",
        "--ntasks-per-node=2",
        "--gpus-per-task=v100:1",
    ),
    asks("gpus-per-socket", Reading(gpus=2), "--sockets-per-node=2", "--gpus-per-socket=1"),
    asks(
        "gpus-per-socket-type",
        Reading(nodes=2, cpus=4, gpus=4, types={"a100": 4}),
        "--nodes=2",
        "--sockets-per-node=2",
        "--gpus-per-socket=a100:1",
    ),
    asks("gpus-with-memory", Reading(gpus=2, where=Where(mem_mib=200)), "--gpus=2", "--mem-per-gpu=100M"),
    asks("gpus-with-tasks", Reading(cpus=4, gpus=2), "--gpus=2", "--ntasks-per-gpu=2"),
    asks("gpus-and-per-task", Reading(cpus=2, gpus=4), "--gpus=4", "--gpus-per-task=2"),
    asks("gpus-and-per-node", Reading(nodes=2, cpus=2, gpus=4, per_node=2), "--gpus=4", "--gpus-per-node=2"),
    asks("gpus-and-gres", Reading(nodes=2, cpus=2, gpus=4, per_node=2), "-N2", "--gpus=4", "--gres=gpu:2"),
    Situation(
        name="tres-per-task",
        options=("--ntasks=2", "--tres-per-task=gres/gpu:a100:1,cpu:2"),
        reads={"": Reading(cpus=4, gpus=2, types={"a100": 2})},
        refused={"22.05": "sbatch has no --tres-per-task"},
    ),
    asks("exclusive-gres", Reading(gpus=1, per_node=1), "--exclusive", "--gres=gpu:1"),
    Situation(
        name="array-gres",
        options=("--array=0-3", "--gres=gpu:2"),
        reads={"_[0-3]": Reading(update="_[0-3]", tasks=4, gpus=2, per_node=2)},
    ),
    Situation(
        name="array-per-task",
        options=("--array=0-3%2", "--ntasks=2", "--gpus-per-task=1"),
        reads={"_[0-3%2]": Reading(update="_[0-3]", tasks=4, cpus=2, gpus=2)},
    ),
    asks(
        "constraint-or",
        Reading(gpus=1, per_node=1, where=Where(features="a100|v100")),
        "--constraint=a100|v100",
        "--gres=gpu:1",
    ),
    asks(
        "constraint-and",
        Reading(gpus=2, per_node=2, where=Where(features="a100&nvlink")),
        "--constraint=a100&nvlink",
        "--gres=gpu:2",
    ),
    asks(
        "constraint-counts",
        Reading(nodes=3, cpus=3, gpus=3, per_node=1, where=Where(max_nodes=3, features="[a100*2&v100*1]")),
        "--nodes=3",
        "--constraint=[a100*2&v100*1]",
        "--gres=gpu:1",
    ),
    asks(
        "constraint-one-of",
        Reading(nodes=2, cpus=2, gpus=2, per_node=1, where=Where(max_nodes=2, features="[a100|v100]")),
        "--nodes=2",
        "--constraint=[a100|v100]",
        "--gres=gpu:1",
    ),
    asks(
        "constraint-count",
        Reading(nodes=2, cpus=2, gpus=4, per_node=2, where=Where(max_nodes=2, features="a100*2")),
        "--nodes=2",
        "--constraint=a100*2",
        "--gres=gpu:2",
    ),
    asks(
        "prefer",
        Reading(gpus=1, per_node=1, where=Where(prefer="nvlink")),
        "--prefer=nvlink",
        "--gres=gpu:1",
    ),
    *GPUS_BY_PLACEMENT,
)


def runs(name: str, reading: Reading, *options: str) -> Situation:
    """Return a situation of one running job."""
    return Situation(name=name, options=options, reads={"": reading})


def taken(
    gpus: int, types: Mapping[str, int], *, nodes: int = 1, cpus: int = 1, per_node: int = 0
) -> Reading:
    """Return what must be read of a running job."""
    return Reading(
        state="RUNNING",
        gpus=gpus,
        types=types,
        nodes=nodes,
        cpus=cpus,
        per_node=per_node,
        eligible=False,
        site=None,
    )


GPU_RUNS = (
    runs(
        "runs-gres",
        taken(2, {"a100": 2}, nodes=2, cpus=2, per_node=1),
        "--nodelist=g1,g2",
        "--nodes=2",
        "--gres=gpu:a100:1",
    ),
    runs("runs-gpus", taken(2, {"v100": 2}), "--nodelist=g3", "--gpus=2"),
    runs(
        "runs-per-task",
        taken(2, {"a100": 2}, cpus=2),
        "--nodelist=g2",
        "--ntasks=2",
        "--gpus-per-task=a100:1",
    ),
    runs(
        "runs-two-types",
        taken(3, {"a100": 1, "v100": 2}, per_node=3),
        "--nodelist=g4",
        "--gres=gpu:a100:1,gpu:v100:2",
    ),
    runs(
        "runs-per-socket",
        taken(2, {"a100": 2}, cpus=2),
        "--nodelist=g1",
        "--sockets-per-node=2",
        "--gpus-per-socket=1",
    ),
    Situation(
        name="runs-array",
        options=("--nodelist=g3", "--array=0-1", "--gpus=v100:1"),
        reads={
            "_0": replace(taken(1, {"v100": 1}), update="_0"),
            "_1": replace(taken(1, {"v100": 1}), update="_1"),
        },
    ),
    runs("runs-without", taken(0, {}), "--nodelist=c1"),
)
"""Jobs that run side by side: 7 of 10 a100 and 6 of 6 v100 in use."""
