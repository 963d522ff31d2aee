"""Two jobs that wait together, the one that stands first named first: see fit_cases.py."""

from tests.unit.fit_cases import Pair, busy, drain

SCARCITY = {"scarcity": 1.0}
READY = {"ready": 1.0}

PAIRS = (
    Pair(
        why="scarcity: v100 has 2/6, a100 2/10",
        weights=SCARCITY,
        first={"per_job": "gpu:v100:2"},
        second={"per_job": "gpu:a100:2"},
    ),
    Pair(
        why="scarcity: who needs a100 (10/10 + 2/16) before who takes any type (v100: 2/16)",
        weights=SCARCITY,
        first={"per_job": "gpu:a100:10"},
        second={"per_job": "gpu:2"},
    ),
    Pair(
        why="scarcity: eight tasks make a100 (8/10) scarcer than v100 (3/6)",
        weights=SCARCITY,
        first={"per_job": "gpu:a100:1", "tasks": "1-8"},
        second={"per_job": "gpu:v100:3"},
    ),
    Pair(
        why="scarcity: others count, 12/10 + 1/10 for a100, 6/6 for v100",
        weights=SCARCITY,
        first={"per_job": "gpu:a100:1"},
        second={"per_job": "gpu:v100:6"},
        others=({"per_job": "gpu:a100:6"}, {"per_job": "gpu:a100:6"}),
    ),
    Pair(
        why="scarcity: a constraint to a1 and a2 (2/8 + 2/16) before any node (v100: 2/16)",
        weights=SCARCITY,
        first={"per_job": "gpu:2", "features": "a100"},
        second={"per_job": "gpu:2"},
    ),
    Pair(
        why="scarcity: v100 alone (1/6 + 2/12) before a constraint that a100 meets too (a100: 2/12)",
        weights=SCARCITY,
        first={"per_job": "gpu:v100:1"},
        second={"per_job": "gpu:2", "features": "a100|v100"},
    ),
    Pair(
        why="scarcity: one partition (gpu: 2/16 + 2/18) before two (t4: 2/18)",
        weights=SCARCITY,
        first={"per_job": "gpu:2"},
        second={"per_job": "gpu:2", "partitions": ("gpu", "debug")},
    ),
    Pair(
        why="scarcity: a type that is drained (1) before the most asked for (10/10: 1/2)",
        weights=SCARCITY,
        first={"per_job": "gpu:v100:1"},
        second={"per_job": "gpu:a100:10"},
        cluster=drain("v1", "x1"),
    ),
    Pair(
        why="scarcity: who asks for one a100 before who asks for more than exist",
        weights=SCARCITY,
        first={"per_job": "gpu:a100:1"},
        second={"per_job": "gpu:a100:20"},
    ),
    Pair(
        why="scarcity: who needs a GPU before who needs none",
        weights=SCARCITY,
        first={"per_job": "gpu:1"},
        second={"cpus": 8},
    ),
    Pair(
        why="ready: v100 is free, a100 only on x1, two of four",
        weights=READY,
        first={"per_job": "gpu:v100:4"},
        second={"per_job": "gpu:a100:4"},
        cluster=busy("a1", "a2"),
    ),
    Pair(
        why="ready: GPUs wherever they are (3 + 1) before four on one node",
        weights=READY,
        first={"per_job": "gpu:v100:4"},
        second={"per_node": "gpu:v100:4"},
        cluster={"v1": {"gpus_used": {"v100": 1}, "cpus_used": 1}},
    ),
    Pair(
        why="ready: one of three groups is worse than one of two",
        weights=READY,
        first={"per_node": "gpu:a100:3", "nodes": 1},
        second={"per_node": "gpu:a100:3", "nodes": 2},
        cluster=drain("a2"),
    ),
    Pair(
        why="match: on v100 (16 of 16 GiB) before on a100, of which 40 of 80 are needed",
        weights={"match": 1.0},
        first={"per_job": "gpu:2"},
        second={"per_job": "gpu:2", "hint": "vram=40"},
    ),
    Pair(
        why="match: the first of the user's order is free, for the other the second",
        weights={"match": 1.0},
        first={"per_job": "gpu:2", "hint": "gpu=a100|v100"},
        second={"per_job": "gpu:2", "hint": "gpu=v100|a100"},
        cluster=busy("v1", "x1"),
    ),
    Pair(
        why="packing: two a100 fill x1, one leaves one behind",
        weights={"packing": 1.0},
        first={"per_job": "gpu:a100:2"},
        second={"per_job": "gpu:a100:1"},
    ),
    Pair(
        why="spread: two nodes are under s1, three are not",
        weights={"spread": 1.0},
        first={"per_node": "gpu:a100:2", "nodes": 2},
        second={"per_node": "gpu:a100:2", "nodes": 3},
    ),
    Pair(
        why="scarcity and ready alike: a100 (1/11 + 1) before v100, of which a third is usable (3/4 + 1/3)",
        weights={"scarcity": 1.0, "ready": 1.0},
        first={"per_job": "gpu:a100:1"},
        second={"per_job": "gpu:v100:6"},
        cluster=drain("v1"),
    ),
    Pair(
        why="scarcity three times ready: v100 (3 x 3/4 + 1/3) before a100 (3 x 1/11 + 1)",
        weights={"scarcity": 3.0, "ready": 1.0},
        first={"per_job": "gpu:v100:6"},
        second={"per_job": "gpu:a100:1"},
        cluster=drain("v1"),
    ),
)
