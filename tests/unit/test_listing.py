"""slurm_score/service/listing.py: which pending jobs are told of, to whom, and what of them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from slurm_score.contention import gpu_pressure
from slurm_score.errors import ParseError
from slurm_score.model import Predicted
from slurm_score.service.handlers import Scored, explain, score_snapshot
from slurm_score.service.listing import Selection, dump, find_job, list_columns, list_jobs
from slurm_score.snapshot import Snapshot
from tests.unit.builders import NOW, make_cluster, make_gpu_job, make_job, make_policy

ENFORCE = make_policy(mode="enforce")
WEIGHTS = {"age": 1000, "qos": 0}
OWN = (250, 0, 0, 0, 0, 0, 5, 0)
"""Slurm's own parts of a priority: age 250, and nice 5."""

JOBS = (
    make_job(9, label="9_[3-9%3]", update_id="9_[3-9]", tasks="3-9"),
    make_job(10, priority=0, reason="JobHeldUser", user="bob"),
    make_job(11, wait_s=46 * 3600, user="bob", account="chem", slurm_parts=OWN, site_factor=5, priority=250),
    make_gpu_job(12, "gpu:a100:4", site_factor=None, name="train"),
    make_job(13, state="RUNNING"),
    make_job(14, label="9_2", update_id="9_2", user="bob"),
    make_job(20, label="20+0", update_id="20", het_job_id=20, qos="low", user="carol"),
    make_gpu_job(21, "gpu:v100:1", label="20+1", update_id="20", het_job_id=20, qos="low", user="carol"),
)


def scored() -> Scored:
    """Return a scored snapshot: an array, a held job, a guarded one, a GPU job, a running one, a het job."""
    cluster = make_cluster()
    config = replace(cluster.config, priority_weights=WEIGHTS)
    return score_snapshot(
        Snapshot(
            policy=ENFORCE,
            cluster=replace(cluster, config=config),
            pressure=gpu_pressure(JOBS, cluster),
            jobs=JOBS,
            predicted={11: Predicted(1200.0, "3 runs of run.sh by bob")},
        )
    )


def ids(**wanted: Any) -> list[str]:
    """Return the ids of the jobs that a selection leaves, best first."""
    told: list[str] = list_columns(scored(), ["job"], Selection(**wanted))["columns"]["job"]
    return told


# which jobs


def test_list_holds_pending_jobs_best_first() -> None:
    """Running jobs are left out; held ones are listed with what blocks them; a het job is one row."""
    answer = list_jobs(scored())
    assert [row["job"] for row in answer["jobs"]] == ["11", "12", "20+[0-1]", "9_[3-9%3]", "10", "9_2"]
    assert (answer["time_s"], answer["mode"], answer["policy"]) == (NOW, "enforce", ENFORCE.hash)
    assert answer["weights"] == {"wait": 350, "remaining": 450, "size": 200, "qos": 500, "gres_fit": 100}
    assert list(answer["headers"].values()) == ["WAIT", "REMAIN", "SIZE", "QOS", "GRESFIT"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"users": ("bob",)}, ["11", "10", "9_2"]),
        ({"users": ("carol", "nobody")}, ["20+[0-1]"]),
        ({"partitions": ("gpu",)}, ["12"]),
        ({"accounts": ("chem",)}, ["11"]),
        ({"qos": ("low",)}, ["20+[0-1]"]),
        ({"users": ("bob",), "accounts": ("physics",)}, ["10", "9_2"]),
        ({"eligible": True}, ["11", "12", "20+[0-1]", "9_[3-9%3]", "9_2"]),
        ({"limit": 2}, ["11", "12"]),
        ({"limit": 0}, []),
        ({"jobs": ("9",)}, ["9_[3-9%3]", "9_2"]),
        ({"jobs": ("9_4", "11")}, ["11", "9_[3-9%3]"]),
        ({"jobs": ("9_[3-9]",)}, ["9_[3-9%3]"]),
        ({"jobs": ("20",)}, ["20+[0-1]"]),
        ({"jobs": ("20+1",)}, ["20+[0-1]"]),
        ({"jobs": ("21",)}, ["20+[0-1]"]),
        ({"jobs": ("20+[0-1]",)}, ["20+[0-1]"]),
        ({"jobs": ("13", "99", "9_1")}, []),
        ({"viewer": "bob"}, ["11", "10", "9_2"]),
        ({"viewer": ""}, []),
        ({"viewer": "bob", "users": ("carol",)}, []),
    ],
)
def test_selection_leaves_the_jobs_that_are_wanted(wanted: dict[str, Any], expected: list[str]) -> None:
    """Every kind of filter, several at once, and ids in every form that Slurm prints."""
    assert ids(**wanted) == expected


def test_a_het_job_whose_leader_is_gone_is_shown_by_what_is_left() -> None:
    """Slurm starts all components at once, but a leader may be cancelled alone."""
    seen = scored().snapshot
    left = replace(seen, jobs=tuple(job for job in JOBS if job.job_id != 20))
    told = list_columns(score_snapshot(left), ["job"], Selection(users=("carol",)))
    assert told["columns"] == {"job": ["20+1"]}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"jobs": ("11",)}, {}),
        ({"jobs": ("99", "11")}, {"99": "not pending in the last snapshot"}),
        ({"jobs": ("10",), "eligible": True}, {"10": "its user holds it: JobHeldUser"}),
        ({"jobs": ("10",)}, {}),
        (
            {"jobs": ("11",), "users": ("alice",)},
            {"11": "not of the users, partitions, accounts and QOS that were asked for"},
        ),
        ({"jobs": ("12",), "viewer": "bob"}, {"12": "not pending in the last snapshot"}),
    ],
)
def test_why_a_job_is_left_out_is_told_by_its_id(wanted: dict[str, Any], expected: dict[str, str]) -> None:
    """Who asks for a job by its id wants to know; of a job that isn't to be seen nothing is told."""
    assert list_columns(scored(), ["job"], Selection(**wanted))["left_out"] == expected


@pytest.mark.parametrize(
    ("job_id", "label"),
    [
        ("11", "11"),
        ("9_[3-9%3]", "9_[3-9%3]"),
        ("9_[3-9]", "9_[3-9%3]"),
        ("9", "9_[3-9%3]"),
        ("9_5", "9_[3-9%3]"),
        ("9_2", "9_2"),
        ("14", "9_2"),
        ("20+1", "20+1"),
        ("20", "20+0"),
    ],
)
def test_job_is_found_by_each_of_its_ids(job_id: str, label: str) -> None:
    """As squeue prints it, as scontrol takes it, by the array's number, or by the record's own."""
    found = find_job(answer := scored(), job_id)
    assert found is not None
    assert answer.queue.jobs[found].label == label


@pytest.mark.parametrize("job_id", ["", "13", "99", "1", "9_", "9_1", "9_99999999999", "x", "11 "])
def test_job_that_is_not_pending_is_not_found(job_id: str) -> None:
    """Running, gone, or no id at all."""
    assert find_job(scored(), job_id) is None


@pytest.mark.parametrize(("viewer", "found"), [(None, True), ("bob", True), ("alice", False), ("", False)])
def test_job_is_found_by_those_who_may_see_it(viewer: str | None, found: bool) -> None:
    """Another's job is one that isn't there."""
    assert (find_job(scored(), "11", viewer) is not None) is found


# what of them


def columns(job: str, *names: str) -> list[Any]:
    """Return the named values of one job."""
    told = list_columns(scored(), names, Selection(jobs=(job,)))["columns"]
    return [told[name][0] for name in names]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("11", {"user": "bob", "account": "chem", "qos_name": "normal", "partition": "main", "name": ""}),
        ("12", {"name": "train", "cluster": "test", "gpu_type": "a100", "partition": "gpu"}),
        ("11", {"rank": 1, "of": 4, "gpu_type": "", "type_rank": None, "type_of": None}),
        ("12", {"rank": 2, "of": 2, "type_rank": 1, "type_of": 1}),
        ("11", {"predicted_s": 1200.0, "predicted_from": "3 runs of run.sh by bob"}),
        ("12", {"predicted_s": None, "predicted_from": None}),
        ("11", {"site_held": 5, "priority": 250, "guarded": True, "policy": ENFORCE.hash}),
        ("12", {"site_held": None, "site": 300, "score": 300.0, "score_norm": 0.1875}),
        ("12", {"remaining": 150.0, "remaining_norm": 0.333333, "gres_fit": 50.0, "gres_fit_norm": 0.5}),
        ("11", {"slurm_age": 250, "slurm_age_norm": 0.25, "slurm_nice": 5, "slurm_qos_norm": 0.0}),
        ("12", {"slurm_age": None, "slurm_age_norm": None, "slurm_nice": None}),
        ("11", {"priority_norm": 250 / 4294967295}),
        ("10", {"eligible": False, "untouched": "held", "blocker": "its user holds it: JobHeldUser"}),
        ("12", {"eligible": True, "untouched": "not ranked by Slurm yet", "blocker": ""}),
    ],
)
def test_columns_of_a_job(job: str, expected: dict[str, Any]) -> None:
    """Each kind of column, by hand: 12 asks for 4 of 8 GPUs for one hour, 1,600 is the sum of the weights."""
    assert columns(job, *expected) == list(expected.values())


def test_parts_and_factors_stand_for_a_column_of_each_factor() -> None:
    """The client doesn't know which factors there are."""
    told = list_columns(scored(), ["parts", "wait", "factors"], Selection(jobs=("12",)))["columns"]
    names = ["wait", "remaining", "size", "qos", "gres_fit"]
    assert list(told) == [*names, *(f"{name}_norm" for name in names)]
    assert [told[name] for name in names] == [[0.0], [150.0], [100.0], [0.0], [50.0]]


def test_a_column_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    """All wrong ones at once."""
    with pytest.raises(
        ParseError, match=r"no such field, got 'colour,size2'; there are parts, factors, job, "
    ):
        list_columns(scored(), ["job", "colour", "size2"])


def test_row_of_a_job_has_its_parts() -> None:
    """4 of the 8 GPUs, 2 h by default but 1 h asked: 150 + 100 + 100 x 1/2; what Slurm holds isn't known."""
    row = next(row for row in list_jobs(scored())["jobs"] if row["job"] == "12")
    assert row["parts"] == {"wait": 0.0, "remaining": 150.0, "size": 100.0, "qos": 0.0, "gres_fit": 50.0}
    assert (row["site"], row["site_held"], row["score"], row["guarded"]) == (300, None, 300.0, False)
    assert (row["eligible"], row["untouched"], row["blocker"]) == (True, "not ranked by Slurm yet", "")
    assert (row["qos"], row["slurm_parts"]["age"], row["factors"]["size"]) == ("normal", None, 0.5)


def test_answers_are_plain_json() -> None:
    """No infinity, no NaN: every JSON reader takes them."""
    answer = scored()
    told = {"jobs": [list_jobs(answer), *(explain(answer, i) for i in range(len(answer.queue)))]}
    assert json.loads(dump(told)) is not None
    assert sum(term["part"] for term in explain(answer, 3)["terms"]) == 300.0


def test_places_count_the_jobs_that_a_viewer_does_not_see() -> None:
    """PrivateData hides names, not the length of the queue."""
    told = list_columns(scored(), ["job", "rank", "of"], Selection(viewer="alice"))["columns"]
    assert told == {"job": ["12", "9_[3-9%3]"], "rank": [2, 3], "of": [2, 4]}
