"""What nodes have, what is left on them and in which state they are: see fit_cases.py."""

from collections.abc import Mapping

from tests.unit.fit_cases import GIB, Case, Spec, busy, drain

A100_BUSY = busy("a1", "a2") | {"x1": {"gpus_used": {"a100": 2}, "cpus_used": 2}}
COURSE: Mapping[str, Spec] = {"v1": {"state": "IDLE+RESERVED"}, "course": {"nodes": ("v1",), "active": True}}

STATES = (
    Case(
        sbatch="--gpus=a100:4 (a1, a2 drained)",
        why="x1's two are the supply, 4 of 2; they are half of what is asked",
        job={"per_job": "gpu:a100:4"},
        cluster=drain("a1", "a2"),
        terms=(2 / 3, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:1 (all a100 drained)",
        why="they come back, so not never; until then nothing is scarcer",
        job={"per_job": "gpu:a100:1"},
        cluster=drain("a1", "a2", "x1"),
        terms=(1, 0, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=4 (v1, x1 drained)",
        why="takes any type, and a100 alone is usable: 4 of 8; v100 doesn't count",
        job={"per_job": "gpu:4"},
        cluster=drain("v1", "x1"),
        terms=(1 / 3, 1, 16 / 80, 1, 1),
    ),
    Case(
        sbatch="--gpus=v100:4 (v1 down)",
        why="x1's two are left: 4 of 2",
        job={"per_job": "gpu:v100:4"},
        cluster={"v1": {"state": "DOWN"}},
        terms=(2 / 3, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=v100:4 (v1 not responding)",
        why="as if it were down",
        job={"per_job": "gpu:v100:4"},
        cluster={"v1": {"state": "IDLE+NOT_RESPONDING"}},
        terms=(2 / 3, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gres=gpu:v100:4 (v1 planned)",
        why="a planned node may still be used by backfill: 4 of 6",
        job={"per_node": "gpu:v100:4"},
        cluster={"v1": {"state": "IDLE+PLANNED"}},
        terms=(2 / 5, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gres=gpu:v100:4 (v1 powered down)",
        why="Slurm wakes it up",
        job={"per_node": "gpu:v100:4"},
        cluster={"v1": {"state": "IDLE+CLOUD+POWERED_DOWN"}},
        terms=(2 / 5, 1, 1, 1, 1),
    ),
    Case(
        sbatch="-p debug --gpus=2 (partition down)",
        why="nothing starts there now, so nothing of it is usable; it will come up again",
        job={"per_job": "gpu:2", "partitions": ("debug",)},
        cluster={"debug": {"up": False}},
        terms=(1, 0, 0, 0, 0),
    ),
)

USE = (
    Case(
        sbatch="--gpus=a100:4 (1 and 3 left on a1, a2; none on x1)",
        why="one and three make four, wherever they are; all of them are taken",
        job={"per_job": "gpu:a100:4"},
        cluster=A100_BUSY
        | {
            "a1": {"gpus_used": {"a100": 3}, "cpus_used": 3},
            "a2": {"gpus_used": {"a100": 1}, "cpus_used": 1},
        },
        terms=(2 / 7, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gpus-per-node=a100:2 -N 2 (1 and 3 left on a1, a2; none on x1)",
        why="only a2 holds a group of two: one of two groups",
        job={"per_node": "gpu:a100:2", "nodes": 2},
        cluster=A100_BUSY
        | {
            "a1": {"gpus_used": {"a100": 3}, "cpus_used": 3},
            "a2": {"gpus_used": {"a100": 1}, "cpus_used": 1},
        },
        terms=(2 / 7, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:4 (3 left on a2)",
        why="three of four",
        job={"per_job": "gpu:a100:4"},
        cluster=A100_BUSY | {"a2": {"gpus_used": {"a100": 1}, "cpus_used": 1}},
        terms=(2 / 7, 3 / 4, 0, 0, 0),
    ),
    Case(
        sbatch="--gres=gpu:a100:4 (3 left on a2)",
        why="four on one node, and none has four: nothing",
        job={"per_node": "gpu:a100:4"},
        cluster=A100_BUSY | {"a2": {"gpus_used": {"a100": 1}, "cpus_used": 1}},
        terms=(2 / 7, 0, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:4 -N 1-2 (1 left on a1, a2, x1)",
        why="two nodes at most, with one each: two of four",
        job={"per_job": "gpu:a100:4", "max_nodes": 2},
        cluster={
            "a1": {"gpus_used": {"a100": 3}},
            "a2": {"gpus_used": {"a100": 3}},
            "x1": {"gpus_used": {"a100": 1}},
        },
        terms=(2 / 7, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:1,v100:3 (v1 busy)",
        why="each type for itself: one a100 and the two v100 of x1, however many a100 are free; 4 of 16",
        job={"per_job": "gpu:a100:1,gpu:v100:3"},
        cluster=busy("v1"),
        terms=(1 / 5, 3 / 4, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:2 -N 2 (4 left on a1)",
        why="two nodes at least, and one has GPUs: half",
        job={"per_job": "gpu:a100:2", "nodes": 2},
        cluster=A100_BUSY | {"a1": {}},
        terms=(1 / 6, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:4 (no CPU left on a1, a2)",
        why="a GPU beside no free CPU is not free; it is usable all the same, 4 of 10",
        job={"per_job": "gpu:a100:4"},
        cluster={"a1": {"cpus_used": 32}, "a2": {"cpus_used": 32}},
        terms=(2 / 7, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:4 --cpus-per-gpu=8 (8 CPUs left on a1, 20 on a2)",
        why="one on a1, two on a2, two on x1 with its 16 CPUs: five; x1 is best for two, the rest on a2",
        job={"per_job": "gpu:a100:4", "cpus": 32},
        cluster={"a1": {"cpus_used": 24}, "a2": {"cpus_used": 12}},
        terms=(2 / 7, 1, 1, 4 / 6, 0),
    ),
    Case(
        sbatch="--gres=gpu:a100:2 -c 20 (12 CPUs left on a1, a2)",
        why="no node has 20 CPUs beside two free a100",
        job={"per_node": "gpu:a100:2", "cpus": 20},
        cluster={"a1": {"cpus_used": 20}, "a2": {"cpus_used": 20}},
        terms=(1 / 6, 0, 0, 0, 0),
    ),
    Case(
        sbatch="--gres=gpu:a100:2 --mem=64G (56 GiB left on a1, 64 on a2, 0 on x1)",
        why="a2 has just enough memory, and four a100",
        job={"per_node": "gpu:a100:2", "mem_mib": 64 * GIB},
        cluster={
            "a1": {"mem_used_mib": 200 * GIB},
            "a2": {"mem_used_mib": 192 * GIB},
            "x1": {"mem_used_mib": 128 * GIB},
        },
        terms=(1 / 6, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="--gpus=a100:4 --mem-per-gpu=50G (90 GiB left on a1, a2, 10 on x1)",
        why="one GPU's memory on a1, one's on a2: two of four",
        job={"per_job": "gpu:a100:4", "mem_mib": 200 * GIB},
        cluster={
            "a1": {"mem_used_mib": 166 * GIB},
            "a2": {"mem_used_mib": 166 * GIB},
            "x1": {"mem_used_mib": 118 * GIB},
        },
        terms=(2 / 7, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=a100:4 -n 70",
        why="spread over all three nodes its CPUs would do, so not never; by its share one on a1, one on a2",
        job={"per_job": "gpu:a100:4", "ntasks": 70},
        terms=(2 / 7, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="-w x1 --gpus=4",
        why="two types in one node: four free, all asked, and neither type has four",
        job={"per_job": "gpu:4", "req_nodes": "x1"},
        terms=(1 / 2, 1, 0, 1, 1),
    ),
    Case(
        sbatch="-w x1 --gres=gpu:v100:2 (its a100 in use)",
        why="the other type's use is not its own: 2 of 2",
        job={"per_node": "gpu:v100:2", "req_nodes": "x1"},
        cluster={"x1": {"gpus_used": {"a100": 2}, "cpus_used": 2}},
        terms=(1 / 2, 1, 1, 1, 1),
    ),
    Case(
        sbatch="-w x1 --gpus=v100:2 (one of x1's GPUs in use, Slurm names no type)",
        why="it may be a v100, so one is sure to be free",
        job={"per_job": "gpu:v100:2", "req_nodes": "x1"},
        cluster={"x1": {"gpus_used": 1, "cpus_used": 1}},
        terms=(1 / 2, 1 / 2, 0, 0, 0),
    ),
)

KINDS = (
    Case(
        sbatch="-p plain --gpus=2",
        why="GPUs without a type are a type: 2 of 4; of what memory nobody knows, so it matches",
        job={"per_job": "gpu:2", "partitions": ("plain",)},
        terms=(1 / 3, 1, 1, 2 / 4, 1),
    ),
    Case(
        sbatch="-p plain --gpus=2 (3 in use)",
        why="one of two",
        job={"per_job": "gpu:2", "partitions": ("plain",)},
        cluster={"u1": {"gpus_used": 3, "cpus_used": 3}},
        terms=(1 / 3, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="-p plain,gpu --gpus=2 (plain busy)",
        why="2 of 20; the untyped ones are taken, so v100 is what matches",
        job={"per_job": "gpu:2", "partitions": ("plain", "gpu")},
        cluster={"u1": {"gpus_used": 4, "cpus_used": 4}},
        terms=(1 / 11, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="-p mig --gres=gpu:1g.10gb:2",
        why="2 of 4 slices, with the memory in their name",
        job={"per_node": "gpu:1g.10gb:2", "partitions": ("mig",)},
        terms=(1 / 3, 1, 1, 2 / 4, 1),
    ),
    Case(
        sbatch="-p mig --gres=gpu:1g.10gb:2 (h100 busy, 3 slices in use)",
        why="whole GPUs in use are not slices in use; one slice is left where two are needed",
        job={"per_node": "gpu:1g.10gb:2", "partitions": ("mig",)},
        cluster={"m1": {"gpus_used": {"h100": 2}, "mig_used": {"1g.10gb": 3}, "cpus_used": 5}},
        terms=(1 / 3, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-p mig --gpus=1 (h100 busy)",
        why="free slices are not whole GPUs: 1 of 2, none free",
        job={"per_job": "gpu:1", "partitions": ("mig",)},
        cluster={"m1": {"gpus_used": {"h100": 2}, "cpus_used": 2}},
        terms=(1 / 3, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-p mig --gpus=1",
        why="1 of 2 h100, the slices left out",
        job={"per_job": "gpu:1", "partitions": ("mig",)},
        terms=(1 / 3, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="-p share --gres=shard:3",
        why="3 of 8 shards asked for; of the four of one GPU, and a job gets no others, 3 are taken",
        job={"per_node": "shard:3", "partitions": ("share",)},
        terms=(3 / 11, 1, 1, 3 / 4, 1),
    ),
    Case(
        sbatch="-p share --gres=shard:3 (6 lent)",
        why="two are left where three are needed on one node",
        job={"per_node": "shard:3", "partitions": ("share",)},
        cluster={"s1": {"shards_used": 6, "shards_free_of_gpu": 2, "gpus_used": {"a40": 2}, "cpus_used": 6}},
        terms=(3 / 11, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-p share --gres=shard:3 (2 lent of each GPU)",
        why="four are left, but no three of one GPU",
        job={"per_node": "shard:3", "partitions": ("share",)},
        cluster={"s1": {"shards_used": 4, "shards_free_of_gpu": 2, "gpus_used": {"a40": 2}, "cpus_used": 4}},
        terms=(3 / 11, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-p share --gres=shard:4 (a job holds one of two GPUs whole)",
        why="the four shards of the other GPU are left",
        job={"per_node": "shard:4", "partitions": ("share",)},
        cluster={"s1": {"gpus_used": {"a40": 1}, "shards_used": 4, "cpus_used": 1}},
        terms=(1 / 3, 1, 1, 1, 1),
    ),
    Case(
        sbatch="-p share --gres=shard:5",
        why="no GPU has five shards, and a job gets those of one GPU only",
        job={"per_node": "shard:5", "partitions": ("share",)},
        never="it asks for 5 shards on one node, a job gets those of one GPU only, at most 4",
    ),
    Case(
        sbatch="-p share --gpus=1 (all shards lent)",
        why="1 of 2 a40; a GPU that is lent in shares can't be had whole",
        job={"per_job": "gpu:1", "partitions": ("share",)},
        cluster={"s1": {"shards_used": 8, "gpus_used": {"a40": 2}, "cpus_used": 8}},
        terms=(1 / 3, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-p share --gres=shard:a40:2",
        why="typed shards: 2 of 8 of an a40, 2 of the four of one",
        job={"per_node": "shard:a40:2", "partitions": ("share",)},
        cluster={"s1": {"shards": {"a40": 8}}},
        terms=(1 / 5, 1, 1, 2 / 4, 1),
    ),
)
