"""make bench-fit: how long it takes to index a cluster's nodes and to work out how well every job fits.

The nodes are those of Alibaba's cluster-trace-gpu-v2023 (1,523, of which 1,213 have GPUs), in one partition,
each with its GPU model as type and as feature, ten shards a GPU. Pods of the trace, drawn with a seed, are
placed until half of the GPUs are in use, on any node where they fit, so that many are used in part. 5,000
others wait: a pod that takes less than a GPU asks for shards, a tenth of a GPU each; a pod with one model
for a typed GRES (or, with shards, for a feature), one with several for `--constraint=v100m16|v100m32`.

`index_s` is the time to put the nodes into columns. `score_s` is the time to read the jobs' requests and to
work out the factor with all five sub-terms weighed, on a cluster of which only those columns are known: the
worst case; `scarcity_s` is that with scarcity alone, as by default. The pressure comes with the snapshot;
`pressure_s` is what the reprioritizer pays for it. Each is the best of five. The rows before the last line
show how they grow with the jobs and with the nodes.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from slurm_score.contention import gpu_pressure
from slurm_score.factors.gres_fit import GresFitParams, compute
from slurm_score.gres import GpuCount, gpu_request, gpu_shards
from slurm_score.inventory import inventory_of
from slurm_score.model import Cluster, Job, Node, Partition, Queue

DATA = Path(__file__).parents[3] / "shared/data/gpu"
NOW, JOBS, SHARDS_EACH, PARTITION = 1_700_000_000, 5_000, 10, "gpu"
SHARES = (0.25, 0.5, 1.0)
SCARCITY = GresFitParams()
ALL_TERMS = GresFitParams(scarcity=1, ready=1, match=1, packing=1, spread=1)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the trace: whole GPUs or tenths of one, the models that it takes, CPUs and memory."""

    gpus: int
    shards: int
    models: tuple[str, ...]
    cpus: int
    mem_mib: int


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of one file of the trace."""
    with gzip.open(DATA / name, "rt", encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def read_pods() -> list[Pod]:
    """Return the pods of the trace that ask for GPUs."""
    pods: list[Pod] = []
    for row in read("openb_pod_list_gpuspec33.csv.gz"):
        whole, tenths = int(row["num_gpu"]), math.ceil(int(row["gpu_milli"]) * SHARDS_EACH / 1000)
        if not whole:
            continue
        part = tenths < SHARDS_EACH
        models = tuple(sorted(set(row["gpu_spec"].lower().split("|")) - {""}))
        cpus = math.ceil(int(row["cpu_milli"]) / 1000)
        pods.append(Pod(0 if part else whole, tenths if part else 0, models, cpus, int(row["memory_mib"])))
    return pods


def read_nodes() -> list[Node]:
    """Return the nodes of the trace, idle."""
    nodes: list[Node] = []
    for row in read("openb_node_list_all_node.csv.gz"):
        count, model = int(row["gpu"]), row["model"].lower()
        nodes.append(
            Node(
                name=row["sn"],
                cpus=int(row["cpu_milli"]) // 1000,
                mem_mib=int(row["memory_mib"]),
                gpus=GpuCount(count, {model: count} if count else {}),
                shards=GpuCount(count * SHARDS_EACH),
                features=(model,) if model else (),
                partitions=(PARTITION,),
            )
        )
    return nodes


def filled(nodes: Sequence[Node], pods: Sequence[Pod], chance: random.Random) -> tuple[Node, ...]:
    """Return the nodes with pods on them, half of the GPUs in use."""
    there = [node for node in nodes if node.gpus.total]
    left = sum(node.gpus.total for node in there) / 2
    held = {node.name: node for node in nodes}
    while left > 0:
        pod, name = chance.choice(pods), chance.choice(there).name
        after = _with_pod(held[name], pod)
        if after is not None:
            held[name] = after
            left -= pod.gpus + pod.shards / SHARDS_EACH
    return tuple(held.values())


def _with_pod(node: Node, pod: Pod) -> Node | None:
    """Return a node that runs one more pod, None where it has no room."""
    model = next(iter(node.gpus.types))
    whole = node.gpus_used.total + pod.gpus
    shards = node.shards_used.total + pod.shards
    rooms = (
        not pod.models or model in pod.models,
        whole + math.ceil(shards / SHARDS_EACH) <= node.gpus.total,
        node.cpus_used + pod.cpus <= node.cpus,
        node.mem_used_mib + pod.mem_mib <= node.mem_mib,
    )
    if not all(rooms):
        return None
    return replace(
        node,
        cpus_used=node.cpus_used + pod.cpus,
        mem_used_mib=node.mem_used_mib + pod.mem_mib,
        gpus_used=GpuCount(whole, {model: whole}),
        shards_used=GpuCount(shards),
    )


def told(node: Node) -> Node:
    """Return a node as Slurm tells of it: what is lent can't be had whole, what is held can't be lent."""
    held = node.gpus_used.total
    whole = held + math.ceil(node.shards_used.total / SHARDS_EACH)
    return replace(
        node,
        gpus_used=GpuCount(whole, dict.fromkeys(node.gpus.types, whole)),
        shards_used=GpuCount(node.shards_used.total + held * SHARDS_EACH),
    )


def job_of(job_id: int, pod: Pod) -> Job:
    """Return a pending job that asks for what a pod asks for, read as from squeue."""
    typed = pod.gpus > 0 and len(pod.models) == 1
    gpus = ":".join(("gpu", *pod.models[: int(typed)], str(pod.gpus))) if pod.gpus else ""
    asked = gpus or f"gres/shard:{pod.shards}"
    return Job(
        job_id=job_id,
        partitions=(PARTITION,),
        eligible_s=NOW,
        cpus=pod.cpus,
        mem_mib=pod.mem_mib,
        gpus=gpu_request(per_job=asked),
        shards=gpu_shards(per_job=asked),
        features="" if typed else "|".join(pod.models),
    )


def best(run: Callable[[], object]) -> float:
    """Return the shortest of five times, in s."""
    times: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def measure(nodes: tuple[Node, ...], jobs: tuple[Job, ...]) -> dict[str, float]:
    """Return the times for a cluster and a queue, in s, and how many they are."""
    pressure = gpu_pressure(jobs, _cluster(nodes))

    def score(queues: list[Queue], params: GresFitParams) -> None:
        compute(queues.pop(), params)

    def fresh() -> list[Queue]:
        return [_queue(jobs, nodes, pressure) for _ in range(5)]

    return {
        "nodes": len(nodes),
        "jobs": len(jobs),
        "index_s": round(best(lambda: inventory_of(_cluster(nodes))), 4),
        "score_s": round(best(partial(score, fresh(), ALL_TERMS)), 4),
        "scarcity_s": round(best(partial(score, fresh(), SCARCITY)), 4),
        "pressure_s": round(best(lambda: gpu_pressure(jobs, _cluster(nodes))), 4),
    }


def _cluster(nodes: tuple[Node, ...]) -> Cluster:
    return Cluster(time_s=NOW, nodes=nodes, partitions={PARTITION: Partition(name=PARTITION)})


def _queue(jobs: tuple[Job, ...], nodes: tuple[Node, ...], pressure: dict[str, float]) -> Queue:
    cluster = _cluster(nodes)
    inventory_of(cluster)
    return Queue(jobs=jobs, cluster=cluster, now_s=NOW, pressure=pressure)


def main() -> None:
    """Print how the times grow, the last line as JSON."""
    if not DATA.is_dir():
        sys.exit("make bench-fit: the trace is absent; it is read from ../shared/data/gpu")
    chance, pods = random.Random(1), read_pods()
    nodes = tuple(told(node) for node in filled(read_nodes(), pods, chance))
    jobs = tuple(job_of(i + 1, pod) for i, pod in enumerate(chance.sample(pods, JOBS)))
    few_nodes = chance.sample(nodes, len(nodes))
    for share in SHARES[:-1]:
        sys.stdout.write(f"{json.dumps(measure(nodes, jobs[: round(share * JOBS)]))}\n")
    for share in SHARES[:-1]:
        some = tuple(few_nodes[: round(share * len(nodes))])
        sys.stdout.write(f"{json.dumps(measure(some, jobs))}\n")
    sys.stdout.write(f"{json.dumps(measure(nodes, jobs))}\n")


if __name__ == "__main__":
    main()
