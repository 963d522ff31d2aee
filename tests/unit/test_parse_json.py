"""slurm_score/slurm/parse_json.py: jobs and nodes from what --json prints, whatever the release."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm_score.errors import ParseError
from slurm_score.model import Job
from slurm_score.slurm.parse import parse_nodes, parse_squeue
from slurm_score.slurm.parse_json import parse_jobs_json, parse_nodes_json
from tests.unit.json_texts import JSON_NODE, PLAIN, answer, complexes, objects, plain
from tests.unit.slurm_texts import END, NODE, SEP, squeue_line

Shape = Callable[[Mapping[str, Any]], dict[str, Any]]
RECORDED = sorted((Path(__file__).parents[1] / "data" / "slurm").glob("*/json"))
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
    assert read(job_resources=resources, nodes=resources, features=resources) == read()


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


def test_node_that_is_not_readable_is_left_out_and_named() -> None:
    """The other nodes are kept."""
    broken = [JSON_NODE | {"name": ""}, JSON_NODE | {"gres": "gpu:a100:4(S:0"}]
    reading = parse_nodes_json(answer(JSON_NODE, *broken, key="nodes"))
    assert [node.name for node in reading.items] == ["g1"]
    assert reading.problems == [
        "no name, got '' in 'name '",
        "unbalanced parentheses in a GRES text, got 'gpu:a100:4(S:0' in 'name g1'",
    ]


# answers of real Slurm


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.parent.name)
def test_recorded_json_tells_the_jobs_of_the_recorded_text(case: Path) -> None:
    """The same jobs, asked one after the other: the scheduler may give a reason in between.

    Where scontrol has no --json there are no nodes.
    """
    commands = yaml.safe_load((case / "case.yaml").read_text())["commands"]
    answers = {
        " ".join(c["argv"]): (case / c["stdout"]).read_bytes().decode() for c in commands if "stdout" in c
    }
    asked = next(argv for argv in answers if argv.startswith("squeue -h"))
    from_text = parse_squeue(answers[asked], SEP, asked.rpartition("Comment:")[2])
    from_json = parse_jobs_json(
        next(text for argv, text in answers.items() if argv.startswith("squeue --json"))
    )
    by_json, by_text = (
        {job.job_id: replace(job, reason="") for job in reading.items} for reading in (from_json, from_text)
    )
    assert by_json == by_text
    assert (from_json.problems, len(from_json.items) > 0) == ([], True)
    if nodes := answers.get("scontrol show node --json"):
        reading = parse_nodes_json(nodes)
        known = {node.name: node.gpus.types for node in reading.items}
        assert (reading.problems, known["g1"], known["g3"]) == ([], {"a100": 4}, {"v100": 4})
