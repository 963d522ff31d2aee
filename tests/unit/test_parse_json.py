"""slurm_score/slurm/parse_json.py: jobs and nodes from what --json prints, whatever the release."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from slurm_score.errors import ParseError
from slurm_score.model import Job
from slurm_score.slurm.parse import parse_squeue
from slurm_score.slurm.parse_json import parse_jobs_json, parse_nodes_json
from slurm_score.slurm.parse_nodes import parse_nodes
from tests.unit.json_texts import JSON_NODE, PLAIN, answer, complexes, objects, plain
from tests.unit.slurm_texts import END, NODE, SEP, squeue_line

Shape = Callable[[Mapping[str, Any]], dict[str, Any]]
SHAPES = [pytest.param(shape, id=shape.__name__) for shape in (plain, objects, complexes)]


def read(**changes: object) -> Job:
    """Return the job that is read from one record."""
    reading = parse_jobs_json(answer(PLAIN | changes))
    assert reading.problems == []
    return reading.items[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param({}, {}, id="plain job"),
        pytest.param(
            {"State": "RUNNING", "Reason": "None", "StartTime": "1700000000"}
            | {"tres-per-node": "gres/gpu:a100:2", "tres-alloc": "cpu=1,node=1,gres/gpu=2,gres/gpu:a100=2"},
            {"job_state": "RUNNING", "state_reason": "None", "start_time": 1_700_000_000}
            | {"tres_per_node": "gres/gpu:a100:2", "tres_req_str": "cpu=1,mem=500M,node=1,gres/gpu=2"}
            | {"tres_alloc_str": "cpu=1,node=1,gres/gpu=2,gres/gpu:a100=2"},
            id="running on GPUs",
        ),
        pytest.param(
            {"tres-per-job": "gres:gpu:5", "tres-alloc": "cpu=1,node=1,gres/gpu=5", "NumNodes": "2"},
            {"tres_per_job": "gres:gpu:5", "tres_req_str": "cpu=1,node=1,gres/gpu=5", "node_count": 2},
            id="--gpus",
        ),
        pytest.param(
            {
                "tres-per-task": "gres/gpu=1",
                "NumTasks": "3",
                "NumCPUs": "3",
                "tres-alloc": "cpu=3,gres/gpu=3",
            },
            {"tres_per_task": "gres/gpu=1", "tasks": 3, "cpus": 3, "tres_req_str": "cpu=3,gres/gpu=3"},
            id="--gpus-per-task",
        ),
        pytest.param(
            {"tres-per-socket": "gres/gpu:1", "tres-alloc": "cpu=2,gres/gpu=2", "NumCPUs": "2"},
            {"tres_per_socket": "gres/gpu:1", "tres_req_str": "cpu=2,gres/gpu=2", "cpus": 2},
            id="--gpus-per-socket",
        ),
        pytest.param(
            {
                "JobID": "3",
                "JobArrayID": "3_[6-99:3%2]",
                "EligibleTime": "N/A",
                "Reason": "JobArrayTaskLimit",
            },
            {"job_id": 3, "array_job_id": 3, "array_task_string": "6-99:3%2", "array_max_tasks": 2}
            | {"eligible_time": 0, "state_reason": "JobArrayTaskLimit"},
            id="array",
        ),
        pytest.param(
            {"JobID": "5", "JobArrayID": "3_0"},
            {"job_id": 5, "array_job_id": 3, "array_task_id": 0},
            id="task 0",
        ),
        pytest.param(
            {"JobID": "31", "JobArrayID": "30+1", "HetJobID": "30"},
            {"job_id": 31, "het_job_id": 30, "het_job_offset": 1},
            id="case 26: het component",
        ),
        pytest.param({"TimeLimit": "UNLIMITED"}, {"time_limit": "Infinity"}, id="case 17"),
        pytest.param(
            {"tres-per-node": "gres:gpu:2", "NumNodes": "2", "cpus-per-tres": "gres:gpu:3"},
            {"tres_per_node": "gres:gpu:2", "node_count": 2, "cpus_per_tres": "gres:gpu:3"},
            id="--cpus-per-gpu",
        ),
        pytest.param({"Origin": "west"}, {"federation_origin": "west"}, id="trap 27: federation"),
        pytest.param(
            {"Feature": "a100&nvlink", "Prefer": "big", "Reservation": "course"},
            {"features": "a100&nvlink", "prefer": "big", "resv_name": "course"},
            id="--constraint, --prefer, --reservation",
        ),
        pytest.param(
            {"ReqNodes": "g[1-2]", "ExcNodes": "c1", "NumNodes": "2", "MaxNodes": "4"},
            {"required_nodes": "g[1-2]", "excluded_nodes": "c1", "node_count": 2, "max_nodes": 4},
            id="-w, -x, --nodes=2-4",
        ),
        pytest.param(
            {"PriorityLong": "0", "tres-per-job": "gres/gpu:2"},
            {"priority": 0, "tres_per_job": "gres/gpu:2", "max_nodes": 1},
            id="held: from 24.11 on max_nodes is node_count",
        ),
        pytest.param(
            {"EligibleTime": "N/A", "Dependency": "afterok:7"},
            {"eligible_time": 0, "dependency": "afterok:7", "max_nodes": 1},
            id="a dependency: the same",
        ),
        pytest.param(
            {"MinMemory": "500M", "tres-alloc": "cpu=2,mem=1000M,node=2", "NumNodes": "3"},
            {"memory_per_node": 500, "tres_req_str": "cpu=2,mem=1000M,node=2", "node_count": 3},
            id="--mem on a range of nodes",
        ),
        pytest.param(
            {"mem-per-tres": "gres/gpu:100", "MinMemory": "100M", "tres-alloc": "cpu=1,mem=200M,node=1"},
            {"memory_per_tres": "gres/gpu:100", "tres_req_str": "cpu=1,mem=200M,node=1"},
            id="--mem-per-gpu",
        ),
        pytest.param(
            {"tres-per-node": "gres/shard:3,gres/gpu:1g.10gb:1"},
            {"tres_per_node": "gres/shard:3,gres/gpu:1g.10gb:1"},
            id="shards and slices",
        ),
        pytest.param(
            {"State": "RUNNING", "NodeList": "g[1-2]"},
            {"job_state": "RUNNING", "nodes": "g[1-2]"},
            id="hosts of a running job",
        ),
        pytest.param({"Partition": "main,gpu"}, {"partition": "main,gpu"}, id="case 27: partitions"),
        pytest.param(
            {"PriorityLong": "0", "Reason": "JobHeldUser"},
            {"priority": 0, "state_reason": "JobHeldUser"},
            id="held",
        ),
        pytest.param(
            {"Reason": "Nodes required for job are DOWN, DRAINED or reserved"},
            {"state_description": "Nodes required for job are DOWN, DRAINED or reserved"},
            id="case 45: the longer reason",
        ),
        pytest.param(
            {"RestartCnt": "1", "Dependency": "afterok:17(unfulfilled)", "Comment": "two\nscore: est=20m"},
            {"restart_cnt": 1, "dependency": "afterok:17(unfulfilled)", "comment": "two\nscore: est=20m"},
            id="restart, dependency and comment",
        ),
    ],
)
def test_job_read_from_json_equals_the_job_read_from_text(
    shape: Shape, text: dict[str, str], fields: dict[str, Any]
) -> None:
    """slurm-facts 4.3: observed side by side on 22.05.8, 24.11.5 and 26.05.5."""
    from_text = parse_squeue(squeue_line(**text), SEP, END)
    from_json = parse_jobs_json(answer(shape(PLAIN | fields)))
    assert (from_json.items, from_json.problems) == (from_text.items, [])


@pytest.mark.parametrize(
    ("state", "states"),
    [
        ("PENDING", ["PENDING"]),
        (["PENDING"], ["PENDING"]),
        ("RUNNING", ["RUNNING"]),
        (["RUNNING"], ["RUNNING"]),
        (["RUNNING", "CONFIGURING", "POWER_UP_NODE"], ["CONFIGURING"]),
        (["RUNNING", "STOPPED"], ["STOPPED"]),
        (["SUSPENDED"], ["SUSPENDED"]),
        (["PENDING", "REQUEUE_HOLD"], ["REQUEUE_HOLD"]),
        (["PENDING", "SPECIAL_EXIT", "COMPLETING"], ["COMPLETING"]),
        ("COMPLETING", ["COMPLETING"]),
        (["PENDING", "REVOKED"], []),
        (["COMPLETED", "STAGE_OUT"], []),
        ("CANCELLED", []),
        (["COMPLETED"], []),
    ],
)
def test_jobs_that_wait_or_hold_something_are_kept(state: object, states: list[str]) -> None:
    """Case 42 and slurm-facts 4.2: one reader for all shapes, and -t is done again as squeue does it."""
    reading = parse_jobs_json(answer(PLAIN | {"job_state": state}))
    assert ([job.state for job in reading.items], reading.problems) == (states, [])


@pytest.mark.parametrize("resources", ["g1", {"nodes": "g1"}, {"nodes": {"list": "g1"}}, [], None])
def test_fields_that_nobody_asks_for_may_hold_anything(resources: object) -> None:
    """Case 43: 24.05 made an object of what was a text."""
    assert read(job_resources=resources, licenses=resources, power=resources) == read()


@pytest.mark.parametrize(
    ("value", "limit_s"),
    [
        pytest.param(60, 3600.0, id="number"),
        pytest.param({"set": True, "infinite": False, "number": 60}, 3600.0, id="object"),
        pytest.param({"number": 60}, 3600.0, id="object that says no more"),
        pytest.param({"set": False, "infinite": True, "number": 0}, math.inf, id="infinite object"),
        pytest.param({"set": False, "infinite": False, "number": 0}, None, id="object not set"),
        pytest.param("Infinity", math.inf, id="word"),
        pytest.param("UNLIMITED", math.inf, id="another word"),
        pytest.param(math.inf, math.inf, id="no JSON but written all the same"),
        pytest.param(None, math.inf, id="null, 22.05's unlimited"),
    ],
)
def test_number_is_read_in_every_shape(value: object, limit_s: float | None) -> None:
    """slurm-facts 4.3: numbers with NO_VAL or INFINITE."""
    assert read(time_limit=value).time_limit_s == limit_s


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({"array_job_id": {"set": True, "infinite": False, "number": 0}, "array_task_id": 0}, "label", "812"),
        ({"comment": {"administrator": "", "job": "score: est=1h", "system": ""}}, "hints", 3600.0),
        ({"comment": {"job": None}}, "hints", None),
        ({"partition": ["main", "gpu"]}, "partitions", ("main", "gpu")),
        ({"priority": None, "hold": True}, "priority", 0),
        ({"priority": None, "hold": False}, "priority", 1),
        ({"user_name": ""}, "user", "1001"),
        ({"tres_per_job": None, "tres_req_str": None}, "gpus", read().gpus),
    ],
)
def test_field_has_one_meaning_in_all_its_shapes(
    changes: dict[str, Any], name: str, expected: object
) -> None:
    """slurm-facts 4.3: an array_job_id of 0 is no array; comments, lists and gaps of other releases."""
    value = getattr(read(**changes), name)
    assert (value.est_s if name == "hints" else value) == expected


def test_fields_that_are_missing_are_not_known() -> None:
    """A release that drops a field costs that field."""
    reading = parse_jobs_json(answer({"job_id": 7, "job_state": ["PENDING"], "user_name": "bob"}))
    assert reading.problems == []
    assert reading.items == [Job(job_id=7, label="7", update_id="7", user="bob")]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (PLAIN | {"time_limit": "soon"}, "time_limit is no number, got 'soon' in 'job_id 812'"),
        (PLAIN | {"priority": True}, "priority is no number, got 'True' in 'job_id 812'"),
        (PLAIN | {"qos": {"name": "x"}}, "qos is no text, got \"{'name': 'x'}\" in 'job_id 812'"),
        (PLAIN | {"job_id": None}, "no job_id, got 'None' in 'job_id None'"),
        (PLAIN | {"job_state": None}, "no job_state, got '' in 'job_id 812'"),
        (PLAIN | {"submit_time": math.nan}, "cannot convert float NaN to integer in 'job_id 812'"),
        ("812", "not an object, got '812' in 'jobs'"),
    ],
)
def test_unreadable_record_is_left_out_and_named(record: object, sentence: str) -> None:
    """The other jobs are kept; cases 25 and 32."""
    reading = parse_jobs_json(answer(PLAIN | {"job_id": 1}, record, PLAIN | {"job_id": 3}))
    assert ([job.job_id for job in reading.items], reading.problems) == ([1, 3], [sentence])


@pytest.mark.parametrize("text", ["", "squeue: error", "[]", '{"jobs": null}', '{"jobs": {}}', "[" * 100_000])
def test_answer_without_a_list_of_jobs_is_an_error(text: str) -> None:
    """An empty queue is an empty list, nothing else."""
    with pytest.raises(ParseError, match=r"not JSON|no list of jobs in the JSON"):
        parse_jobs_json(text)
    assert parse_jobs_json('{"jobs": []}').items == []


# nodes


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"state": "mixed", "state_flags": ["DRAIN"], "active_features": "nvlink", "effective_cpus": None},
        {"alloc_memory": {"set": True, "infinite": False, "number": 1000}, "partitions": "main,gpu"},
    ],
    ids=["24.11 and 26.05", "22.05", "objects"],
)
def test_node_read_from_json_equals_the_node_read_from_text(changes: dict[str, Any]) -> None:
    """slurm-facts 4.3: state, features and partitions are texts or lists."""
    reading = parse_nodes_json(answer(JSON_NODE | changes, key="nodes"))
    assert (reading.items, reading.problems) == (parse_nodes(NODE).items, [])


def test_slices_shards_and_weight_of_a_node_are_read_from_json() -> None:
    """The same texts as scontrol's, and the weight as a number."""
    text = (
        NODE.replace("Gres=gpu:a100:4", "Gres=gpu:a100:2,gpu:1g.10gb:2,shard:a100:8")
        .replace(
            "GresUsed=gpu:a100:4(IDX:0-3)",
            "GresUsed=gpu:a100:1(IDX:0),gpu:1g.10gb:1(IDX:2),shard:a100:1(-/4,1/4)",
        )
        .replace("Weight=1", "Weight=7")
    )
    changes = {
        "gres": "gpu:a100:2,gpu:1g.10gb:2,shard:a100:8",
        "gres_used": "gpu:a100:1(IDX:0),gpu:1g.10gb:1(IDX:2),shard:a100:1(-/4,1/4)",
        "weight": 7,
    }
    reading = parse_nodes_json(answer(JSON_NODE | changes, key="nodes"))
    assert (reading.items, reading.problems) == (parse_nodes(text).items, [])
    (node,) = reading.items
    assert (node.weight, node.mig.total, node.shards_used.total) == (7, 2, 5)


def test_node_that_is_not_readable_is_left_out_and_named() -> None:
    """The other nodes are kept."""
    broken = [JSON_NODE | {"name": ""}, JSON_NODE | {"gres": "gpu:a100:4(S:0"}]
    reading = parse_nodes_json(answer(JSON_NODE, *broken, key="nodes"))
    assert [node.name for node in reading.items] == ["g1"]
    assert reading.problems == [
        "no name, got '' in 'name '",
        "unbalanced parentheses in a GRES text, got 'gpu:a100:4(S:0' in 'name g1'",
    ]
