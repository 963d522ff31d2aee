"""Every form in which sbatch asks for GPUs, on idle nodes: see fit_cases.py."""

from tests.unit.fit_cases import GIB, Case, busy

COUNTS = (
    Case(
        sbatch="--gpus=2",
        why="2 of 16; v100 is the least capable; any node has four free, half of which it takes",
        job={"per_job": "gpu:2"},
        terms=(1 / 9, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="--gpus=a100:2",
        why="2 of 10; x1 has just two a100 free",
        job={"per_job": "gpu:a100:2"},
        terms=(1 / 6, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gpus=a100",
        why="no count is one: 1 of 10, on x1 with two free",
        job={"per_job": "gpu:a100"},
        terms=(1 / 11, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="--gpus=16",
        why="all there are: no type has 16, so no one type matches; s1 and s2 have eight each",
        job={"per_job": "gpu:16"},
        terms=(1 / 2, 1, 0, 1, 0),
    ),
    Case(
        sbatch="--gpus-per-node=a100:2 -N 3",
        why="6 of 10; a1, a2 and x1 hold two each and have ten free; x1 is under the other switch",
        job={"per_node": "gpu:a100:2", "nodes": 3},
        terms=(3 / 8, 1, 1, 6 / 10, 0),
    ),
    Case(
        sbatch="--gpus-per-node=a100:2 -N 2",
        why="4 of 10; best on x1 (two free) and one of four; a1 and a2 would be under one switch",
        job={"per_node": "gpu:a100:2", "nodes": 2},
        terms=(2 / 7, 1, 1, 4 / 6, 1),
    ),
    Case(
        sbatch="--gpus-per-task=1 -n 4 -c 4",
        why="4 of 16 with 16 CPUs, which v1 has for its four",
        job={"per_task": "gpu:1", "ntasks": 4, "cpus": 16},
        terms=(1 / 5, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gpus-per-socket=a100:1 --sockets-per-node=2",
        why="Slurm adds it up to two, which x1 has",
        job={"per_socket": "gpu:a100:1", "total": "cpu=2,node=1,gres/gpu=2"},
        terms=(1 / 6, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gres=gpu:3",
        why="three on one node: 3 of 16; v1 has four v100",
        job={"per_node": "gpu:3"},
        terms=(3 / 19, 1, 1, 3 / 4, 1),
    ),
    Case(
        sbatch="--gres=gpu",
        why="one GPU: 1 of 16",
        job={"per_node": "gpu"},
        terms=(1 / 17, 1, 1, 1 / 4, 1),
    ),
    Case(
        sbatch="--gres=gpu:a100:4 -N 2 --cpus-per-gpu=4",
        why="8 of 10 with 16 CPUs a node: a1 and a2, all of them",
        job={"per_node": "gpu:a100:4", "nodes": 2, "cpus": 32},
        terms=(4 / 9, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gres=gpu:a100:1,gpu:v100:1",
        why="both on one node: x1, where four could serve; 2 of 16 in both types",
        job={"per_node": "gpu:a100:1,gpu:v100:1"},
        terms=(1 / 9, 1, 1, 2 / 4, 1),
    ),
    Case(
        sbatch="--gpus=a100:1,v100:5",
        why="each type for itself: 6 of 16; five v100 stand on v1 and x1, which has the a100 as well",
        job={"per_job": "gpu:a100:1,gpu:v100:5"},
        terms=(3 / 11, 1, 1, 6 / 8, 1),
    ),
    Case(
        sbatch="--gpus=4 -N 2",
        why="two nodes at least, each with four free: 4 of 8; v1 and x1 have six v100",
        job={"per_job": "gpu:4", "nodes": 2},
        terms=(1 / 5, 1, 1, 4 / 8, 1),
    ),
    Case(
        sbatch="--gpus=4 -n 40",
        why="10 CPUs a GPU: three each on a1 and a2, one each on v1 and x1; v100 could give two only",
        job={"per_job": "gpu:4", "ntasks": 40},
        terms=(1 / 5, 1, 16 / 80, 4 / 8, 1),
    ),
    Case(
        sbatch="--gres=gpu:a100:1 --mem=200G",
        why="only a1 and a2 have 256 GiB",
        job={"per_node": "gpu:a100:1", "mem_mib": 200 * GIB},
        terms=(1 / 11, 1, 1, 1 / 4, 1),
    ),
    Case(
        sbatch="--gpus=8 --mem-per-gpu=60G",
        why="60 GiB each: four on a1 and a2, two on v1 and x1, so eight v100 can't be; best a1 and a2",
        job={"per_job": "gpu:8", "mem_mib": 480 * GIB},
        terms=(1 / 3, 1, 16 / 80, 1, 1),
    ),
    Case(
        sbatch="--gpus=a100:6 -N 1-2",
        why="on two nodes at most: a1 and x1 have just six; a1 and a2 would be under one switch",
        job={"per_job": "gpu:a100:6", "max_nodes": 2},
        terms=(3 / 8, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gpus=a100:3 -N 1",
        why="one node is one group: x1 has two, a1 four",
        job={"per_job": "gpu:a100:3", "max_nodes": 1},
        terms=(3 / 13, 1, 1, 3 / 4, 1),
    ),
    Case(
        sbatch="--array=0-4 --gpus=a100:2",
        why="every task counts for scarcity, 10 of 10; one task for the rest",
        job={"per_job": "gpu:a100:2", "tasks": "0-4"},
        terms=(1 / 2, 1, 1, 1, 1),
    ),
    Case(
        sbatch="-c 4",
        why="no GPU asked, so nothing of a GPU's fit",
        job={"cpus": 4},
    ),
    Case(
        sbatch="--gpus=0",
        why="asks for none, and says so",
        job={"per_job": "gpu:0"},
    ),
    Case(
        sbatch="--gres=tmp:100G",
        why="a GRES that is no GPU",
        job={"per_node": "tmp:100G"},
    ),
)

CONSTRAINTS = (
    Case(
        sbatch="-C a100 --gpus=4",
        why="only the eight on a1 and a2: 4 of 8",
        job={"per_job": "gpu:4", "features": "a100"},
        terms=(1 / 3, 1, 1, 1, 1),
    ),
    Case(
        sbatch="-C a100|v100 --gpus=8",
        why="twelve on a1, a2 and v1; only four of them are v100",
        job={"per_job": "gpu:8", "features": "a100|v100"},
        terms=(2 / 5, 1, 16 / 80, 1, 1),
    ),
    Case(
        sbatch="-C rack2&mixed --gpus=1",
        why="x1 alone: 1 of 4, v100 first",
        job={"per_job": "gpu:1", "features": "rack2&mixed"},
        terms=(1 / 5, 1, 1, 1 / 4, 1),
    ),
    Case(
        sbatch="-C [rack1|rack2] --gres=gpu:4 -N 2",
        why="all nodes in one rack; four v100 on both nodes of rack2 can't be",
        job={"per_node": "gpu:4", "nodes": 2, "features": "[rack1|rack2]"},
        terms=(1 / 3, 1, 16 / 80, 1, 1),
    ),
    Case(
        sbatch="-C [rack1*1&rack2*1] --gres=gpu:2 -N 2",
        why="a node of each rack, so two switches; v100 stands in rack2 only, a100 in both",
        job={"per_node": "gpu:2", "nodes": 2, "features": "[rack1*1&rack2*1]"},
        terms=(1 / 5, 1, 16 / 80, 4 / 8, 0),
    ),
    Case(
        sbatch="-C [rack1*1&rack2*1] --gres=gpu:2 -N 2 (rack1 busy)",
        why="two nodes are free, but none of rack1 among them",
        job={"per_node": "gpu:2", "nodes": 2, "features": "[rack1*1&rack2*1]"},
        cluster=busy("a1", "a2"),
        terms=(1 / 5, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-C ((( --gpus=2",
        why="what can't be read is no constraint: Slurm decides",
        job={"per_job": "gpu:2", "features": "((("},
        terms=(1 / 9, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="-w a1 --gpus=a100:2",
        why="2 of a1's four",
        job={"per_job": "gpu:a100:2", "req_nodes": "a1"},
        terms=(1 / 3, 1, 1, 2 / 4, 1),
    ),
    Case(
        sbatch="-w a1 -N 2 --gres=gpu:a100:2",
        why="a1 and another, best x1: 4 of 6 free; a2 would be under a1's switch",
        job={"per_node": "gpu:a100:2", "nodes": 2, "req_nodes": "a1"},
        terms=(2 / 7, 1, 1, 4 / 6, 1),
    ),
    Case(
        sbatch="-w a1 -N 2 --gres=gpu:a100:2 (a1 busy)",
        why="a2 and x1 would do, but not without a1",
        job={"per_node": "gpu:a100:2", "nodes": 2, "req_nodes": "a1"},
        cluster=busy("a1"),
        terms=(2 / 7, 0, 0, 0, 0),
    ),
    Case(
        sbatch="-w a1 --gpus=6",
        why="a1 has four, so Slurm adds a node; a1 has no v100; a1 and another have eight free",
        job={"per_job": "gpu:6", "req_nodes": "a1"},
        terms=(3 / 11, 1, 16 / 80, 6 / 8, 1),
    ),
    Case(
        sbatch="-w a1,x1 -N 2 --gres=gpu:a100:1",
        why="both named: 2 of their six; under two switches",
        job={"per_node": "gpu:a100:1", "nodes": 2, "req_nodes": "a1,x1"},
        terms=(1 / 4, 1, 1, 2 / 6, 0),
    ),
    Case(
        sbatch="-x x1 --gpus=a100:2",
        why="2 of the eight on a1 and a2",
        job={"per_job": "gpu:a100:2", "exc_nodes": "x1"},
        terms=(1 / 5, 1, 1, 2 / 4, 1),
    ),
    Case(
        sbatch="-x a[1-2] --gpus=2",
        why="v1 and x1 are left: 2 of 8",
        job={"per_job": "gpu:2", "exc_nodes": "a[1-2]"},
        terms=(1 / 5, 1, 1, 2 / 4, 1),
    ),
)

WISHES = (
    Case(
        sbatch="--prefer=a100 --gpus=2",
        why="a wish: scarcity as without; a100 is liked and free, with five times the memory needed",
        job={"per_job": "gpu:2", "prefer": "a100"},
        terms=(1 / 9, 1, 16 / 80, 1 / 2, 1),
    ),
    Case(
        sbatch="--prefer=a100 --gpus=2 (a100 busy)",
        why="the second of two groups: half; v1 has four free",
        job={"per_job": "gpu:2", "prefer": "a100"},
        cluster=busy("a1", "a2") | {"x1": {"gpus_used": {"a100": 2}, "cpus_used": 2}},
        terms=(1 / 9, 1, 1 / 2, 1, 1),
    ),
    Case(
        sbatch="score: gpu=v100|a100 --gpus=2",
        why="the first of the order is free; scarcity as without",
        job={"per_job": "gpu:2", "hint": "gpu=v100|a100"},
        terms=(1 / 9, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="score: gpu=v100|a100 --gpus=2 (v100 busy)",
        why="the second of two: half; x1 has two a100 left",
        job={"per_job": "gpu:2", "hint": "gpu=v100|a100"},
        cluster=busy("v1") | {"x1": {"gpus_used": {"v100": 2}, "cpus_used": 2}},
        terms=(1 / 9, 1, 1 / 2, 1, 1),
    ),
    Case(
        sbatch="score: gpu=h100 --gpus=2",
        why="the hint names nothing that the job accepts, so it counts for nothing",
        job={"per_job": "gpu:2", "hint": "gpu=h100"},
        terms=(1 / 9, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="score: vram=40 --gpus=2",
        why="v100 has too little; 40 of an a100's 80; scarcity as without",
        job={"per_job": "gpu:2", "hint": "vram=40"},
        terms=(1 / 9, 1, 40 / 80, 1 / 2, 1),
    ),
    Case(
        sbatch="score: vram=40 --gpus=2 (a100 busy)",
        why="Slurm would start it on v100, where it doesn't fit: it is ready and matches nothing",
        job={"per_job": "gpu:2", "hint": "vram=40"},
        cluster=busy("a1", "a2") | {"x1": {"gpus_used": {"a100": 2}, "cpus_used": 2}},
        terms=(1 / 9, 1, 0, 1, 1),
    ),
    Case(
        sbatch="score: vram=100 --gpus=2",
        why="no type has that much",
        job={"per_job": "gpu:2", "hint": "vram=100"},
        terms=(1 / 9, 1, 0, 1 / 2, 1),
    ),
    Case(
        sbatch="score: gpu=v100|a100 vram=16 --gpus=2 (v100 busy)",
        why="the second of two, with five times the memory asked: 1/2 x 16/80",
        job={"per_job": "gpu:2", "hint": "gpu=v100|a100 vram=16"},
        cluster=busy("v1") | {"x1": {"gpus_used": {"v100": 2}, "cpus_used": 2}},
        terms=(1 / 9, 1, 1 / 10, 1, 1),
    ),
)
