"""Reservations, several partitions, what waits beside a job, and what can never be: see fit_cases.py."""

from tests.unit.fit_cases import GIB, Case, busy
from tests.unit.fit_cases_nodes import COURSE

RESERVATIONS = (
    Case(
        sbatch="--reservation=course --gpus=2",
        why="active on v1: 2 of its 4",
        job={"per_job": "gpu:2", "reservation": "course"},
        cluster=COURSE,
        terms=(1 / 3, 1, 1, 2 / 4, 1),
    ),
    Case(
        sbatch="--reservation=course --gpus=2 (not active yet)",
        why="nothing of it is usable before it begins",
        job={"per_job": "gpu:2", "reservation": "course"},
        cluster={"course": {"nodes": ("v1",)}},
        terms=(1, 0, 0, 0, 0),
    ),
    Case(
        sbatch="--reservation=course --gpus=2 (v1 drained)",
        why="a reservation doesn't mend a node",
        job={"per_job": "gpu:2", "reservation": "course"},
        cluster={**COURSE, "v1": {"state": "IDLE+DRAIN+RESERVED"}},
        terms=(1, 0, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=v100:4 (v1 reserved)",
        why="without the reservation only x1's two are usable: 4 of 2, half of it free",
        job={"per_job": "gpu:v100:4"},
        cluster=COURSE,
        terms=(2 / 3, 1 / 2, 0, 0, 0),
    ),
    Case(
        sbatch="--reservation=other --gpus=v100:2 (v1 reserved for course)",
        why="its own reservation is on x1 alone",
        job={"per_job": "gpu:v100:2", "reservation": "other"},
        cluster={**COURSE, "other": {"nodes": ("x1",), "active": True}},
        terms=(1 / 2, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--reservation=gone --gpus=2",
        why="a reservation that Slurm doesn't name isn't active",
        job={"per_job": "gpu:2", "reservation": "gone"},
        terms=(1, 0, 0, 0, 0),
    ),
)

BESIDE = (
    Case(
        sbatch="-p gpu,debug --gpus=2",
        why="2 of 18; t4 is less capable than v100; t1 has just two",
        job={"per_job": "gpu:2", "partitions": ("gpu", "debug")},
        terms=(1 / 10, 1, 1, 1, 1),
    ),
    Case(
        sbatch="-p gpu,debug --gpus=4 (3 left in gpu)",
        why="partitions don't add up: three of four in gpu, two of four in debug",
        job={"per_job": "gpu:4", "partitions": ("gpu", "debug")},
        cluster=busy("a1", "a2", "x1") | {"v1": {"gpus_used": {"v100": 1}, "cpus_used": 1}},
        terms=(2 / 11, 3 / 4, 0, 0, 0),
    ),
    Case(
        sbatch="--gpus=4 (v100:6 waits)",
        why="a100: 4/16; v100: 6/6 + 4/16; the lesser counts",
        job={"per_job": "gpu:4"},
        others=({"per_job": "gpu:v100:6"},),
        terms=(1 / 5, 1, 1, 1, 1),
    ),
    Case(
        sbatch="--gpus=v100:3 (another takes any 4)",
        why="v100: 3/6 + 4/16 = 3/4",
        job={"per_job": "gpu:v100:3"},
        others=({"per_job": "gpu:4"},),
        terms=(3 / 7, 1, 1, 3 / 4, 1),
    ),
    Case(
        sbatch="--gpus=a100:1 (a100:20 waits)",
        why="who asks for more than exists never starts, and so adds nothing: 1 of 10",
        job={"per_job": "gpu:a100:1"},
        others=({"per_job": "gpu:a100:20"},),
        terms=(1 / 11, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="--gpus=a100:1 (held, dependent and running jobs beside it)",
        why="none of them competes now: 1 of 10",
        job={"per_job": "gpu:a100:1"},
        others=(
            {"per_job": "gpu:a100:5", "priority": 0},
            {"per_job": "gpu:a100:5", "eligible_s": None},
            {"per_job": "gpu:a100:5", "state": "RUNNING"},
        ),
        terms=(1 / 11, 1, 1, 1 / 2, 1),
    ),
    Case(
        sbatch="--gpus=v100:1 (a job of a reservation to come waits for v100:2)",
        why="that job can use none of the usable ones, so it competes for none: 1 of 6",
        job={"per_job": "gpu:v100:1"},
        others=({"per_job": "gpu:v100:2", "reservation": "course"},),
        cluster={"course": {"nodes": ("v1",)}},
        terms=(1 / 7, 1, 1, 1 / 2, 1),
    ),
)

NEVER = (
    Case(
        sbatch="--gpus=a100:11",
        why="one more than all",
        job={"per_job": "gpu:a100:11"},
        never="it asks for 11 a100, there are 10",
    ),
    Case(
        sbatch="--gpus=17",
        why="no type, and one more than all",
        job={"per_job": "gpu:17"},
        never="it asks for 17 GPUs, there are 16",
    ),
    Case(
        sbatch="-p gpu,debug --gpus=17",
        why="18 in both partitions, but a job runs in one",
        job={"per_job": "gpu:17", "partitions": ("gpu", "debug")},
        never="it asks for 17 GPUs, there are 16",
    ),
    Case(
        sbatch="--gpus=h200:1",
        why="a type that nobody has",
        job={"per_job": "gpu:h200:1"},
        never="it asks for 1 h200, there are 0",
    ),
    Case(
        sbatch="-p debug --gpus=a100:1",
        why="a type that another partition has",
        job={"per_job": "gpu:a100:1", "partitions": ("debug",)},
        never="it asks for 1 a100, there are 0",
    ),
    Case(
        sbatch="-p plain --gpus=a100:1",
        why="GPUs without a type are no a100",
        job={"per_job": "gpu:a100:1", "partitions": ("plain",)},
        never="it asks for 1 a100, there are 0",
    ),
    Case(
        sbatch="--gres=gpu:a100:1,gpu:h200:1",
        why="one of two types is missing",
        job={"per_node": "gpu:a100:1,gpu:h200:1"},
        never="it asks for 1 h200, there are 0",
    ),
    Case(
        sbatch="--gres=gpu:a100:5",
        why="ten there are, but four on a node",
        job={"per_node": "gpu:a100:5"},
        never="it asks for 5 a100 on one node, the largest has 4",
    ),
    Case(
        sbatch="--gpus=5 -N 1",
        why="one node, and none has five",
        job={"per_job": "gpu:5", "max_nodes": 1},
        never="it asks for 5 GPUs on one node, the largest has 4",
    ),
    Case(
        sbatch="--gpus=a100:10 -N 1-2",
        why="two nodes at most hold eight",
        job={"per_job": "gpu:a100:10", "max_nodes": 2},
        never="it asks for 10 a100, the 2 largest with its GPUs have 8",
    ),
    Case(
        sbatch="--gres=gpu:a100:2 -c 33",
        why="c1 has the CPUs, but no GPU",
        job={"per_node": "gpu:a100:2", "cpus": 33},
        never="it asks for 33 CPUs on one node, the largest with its GPUs has 32",
    ),
    Case(
        sbatch="--gpus=1 -n 64",
        why="a job for one GPU has one node",
        job={"per_job": "gpu:1", "ntasks": 64},
        never="it asks for 64 CPUs, the largest node with its GPUs has 32",
    ),
    Case(
        sbatch="--gres=gpu:a100:1 --mem=300G",
        why="c1 has the memory, but no GPU",
        job={"per_node": "gpu:a100:1", "mem_mib": 300 * GIB},
        never="it asks for 307200 MiB of memory on one node, the largest with its GPUs has 262144",
    ),
    Case(
        sbatch="--gpus=a100:4 -n 81",
        why="the nodes with a100 have 32 + 32 + 16 CPUs",
        job={"per_job": "gpu:a100:4", "ntasks": 81},
        never="it asks for 81 CPUs, the 3 largest with its GPUs have 80",
    ),
    Case(
        sbatch="--gres=gpu:a100:1 -N 4",
        why="three nodes have an a100",
        job={"per_node": "gpu:a100:1", "nodes": 4},
        never="it asks for 4 nodes with 1 a100 each, there are 3",
    ),
    Case(
        sbatch="--gpus=a100:4 -N 4",
        why="three nodes have an a100",
        job={"per_job": "gpu:a100:4", "nodes": 4},
        never="it asks for 4 nodes, 3 have its GPUs",
    ),
    Case(
        sbatch="-C h200 --gpus=1",
        why="no node has the feature",
        job={"per_job": "gpu:1", "features": "h200"},
        never="no node of gpu meets its constraint, node list and reservation",
    ),
    Case(
        sbatch="-C [rack1|rack2] --gpus=a100:9",
        why="ten in both racks, but a job has one: eight in rack1",
        job={"per_job": "gpu:a100:9", "features": "[rack1|rack2]"},
        never="it asks for 9 a100, there are 8",
    ),
    Case(
        sbatch="-C rack1*3 --gres=gpu:1 -N 3",
        why="rack1 has two nodes",
        job={"per_node": "gpu:1", "nodes": 3, "features": "rack1*3"},
        never="it asks for 3 nodes that its constraint or node list names, 2 can serve it",
    ),
    Case(
        sbatch="-w a1,zz --gpus=a100:3 -N 3",
        why="zz is not there",
        job={"per_job": "gpu:a100:3", "nodes": 3, "req_nodes": "a1,zz"},
        never="it asks for 2 nodes that its constraint or node list names, 1 can serve it",
    ),
    Case(
        sbatch="-w c1 --gres=gpu:1",
        why="c1 has no GPU",
        job={"per_node": "gpu:1", "req_nodes": "c1"},
        never="it asks for 1 GPUs, there are 0",
    ),
    Case(
        sbatch="-x a1,a2 --gpus=a100:3",
        why="x1 is left, with two",
        job={"per_job": "gpu:a100:3", "exc_nodes": "a1,a2"},
        never="it asks for 3 a100, there are 2",
    ),
    Case(
        sbatch="-p mig --gpus=3",
        why="two whole GPUs; slices are none",
        job={"per_job": "gpu:3", "partitions": ("mig",)},
        never="it asks for 3 GPUs, there are 2",
    ),
    Case(
        sbatch="-p mig --gres=gpu:2g.20gb:1",
        why="a profile that no GPU is cut into",
        job={"per_node": "gpu:2g.20gb:1", "partitions": ("mig",)},
        never="it asks for 1 2g.20gb, there are 0",
    ),
    Case(
        sbatch="-p share --gres=shard:9",
        why="one more than all",
        job={"per_node": "shard:9", "partitions": ("share",)},
        never="it asks for 9 shards on one node, a job gets those of one GPU only, at most 4",
    ),
    Case(
        sbatch="-p share --gpus=3",
        why="shards are no whole GPUs",
        job={"per_job": "gpu:3", "partitions": ("share",)},
        never="it asks for 3 GPUs, there are 2",
    ),
)
