"""Jobs that say where they want to run, on how many nodes, and with how much memory."""

from __future__ import annotations

from dataclasses import replace

from tests.contract.situations_gpus import FILLER, asks
from tests.contract.situations_queue import HELD, PLAIN, WAITING, waits
from tests.contract.table import Reading, Situation, Where

TWO_NODES = Reading(nodes=2, cpus=2)


def placed(name: str, where: Where, *options: str, reading: Reading = PLAIN) -> Situation:
    """Return a situation of one pending job without GPUs."""
    return asks(name, replace(reading, where=where), *options)


PLACES = (
    replace(
        FILLER,
        reads={"": replace((FILLER.reads or {})[""], where=Where())},  # a running job has no limit of nodes
    ),
    placed("anywhere", Where()),
    placed("nodelist", Where(req_nodes="g1"), "--nodelist=g1"),
    placed(
        "nodelist-of-two",
        Where(max_nodes=2, req_nodes="g[1-2]"),
        "--nodelist=g1,g2",
        "-N2",
        reading=TWO_NODES,
    ),
    placed("nodelist-of-many", Where(req_nodes="g[1,3]"), "--nodelist=g[1,3]", reading=TWO_NODES),
    placed("exclude", Where(exc_nodes="c1,g[1-2]"), "--exclude=g[1-2],c1"),
    placed("exclude-one", Where(exc_nodes="g3"), "--exclude=g3"),
    placed("constraint", Where(features="nvlink"), "--constraint=nvlink"),
    placed(
        "constraint-and-prefer",
        Where(features="a100|v100", prefer="nvlink"),
        "--constraint=a100|v100",
        "--prefer=nvlink",
    ),
    placed("prefer-one-of", Where(prefer="nvlink|v100"), "--prefer=nvlink|v100"),
    waits(
        "reservation",
        replace(WAITING, where=Where(reservation="later")),
        "--reservation=later",
    ),
    placed("range", Where(max_nodes=3), "--nodes=1-3", reading=Reading(nodes=3, cpus=3)),
    placed("mem", Where(mem_mib=500), "--mem=500M"),
    placed("mem-in-gib", Where(mem_mib=3072), "--mem=3G"),
    placed("mem-in-kib", Where(mem_mib=2), "--mem=1500K"),
    placed("mem-on-two-nodes", Where(max_nodes=2, mem_mib=1000), "-N2", "--mem=500M", reading=TWO_NODES),
    placed(
        "mem-on-a-range-of-nodes",
        Where(max_nodes=3, mem_mib=1500),
        "-N2-3",
        "--mem=500M",
        reading=Reading(nodes=3, cpus=3),
    ),
    placed("mem-of-the-node", Where(), "--mem=0"),
    placed("mem-per-cpu", Where(mem_mib=400), "-c4", "--mem-per-cpu=100M", reading=Reading(cpus=4)),
    waits(
        "gpus-held",
        replace(HELD, gpus=2, where=Where(exc_nodes="g3")),  # from 24.11 on like --nodes=1, see README.md
        "--hold",
        "--gpus=2",
        "--exclude=g3",
    ),
    Situation(
        name="array-on-one-node",
        options=("--array=0-3", "--gpus=2", "--nodes=1"),
        reads={"_[0-3]": Reading(update="_[0-3]", tasks=4, gpus=2, where=Where(max_nodes=1))},
    ),
    asks("gpus-spread", Reading(gpus=2, where=Where(mem_mib=200)), "--gpus=2", "--mem=200M"),
)
