"""slurm_score/whatif.py and its report: the queue under another policy, worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from slurm_score.gres import gpu_request
from slurm_score.hints import Hints
from slurm_score.model import Queue
from slurm_score.policy import Policy, load_policy
from slurm_score.report.whatif import format_comparison, told_of
from slurm_score.score import score_queue
from slurm_score.whatif import Comparison, Group, Influence, compare, influences
from tests.unit.builders import DAY, HOUR, make_gpu_job, make_job, make_queue

JOBS = (
    make_job(1, site_factor=158),  #                                     150 + 8.3         = 158.3
    make_job(2, user="bob", qos="high", time_limit_s=1.0 * DAY, site_factor=518),  # 9.2 + 8.3 + 500 = 517.5
    make_job(3, qos="low", time_limit_s=1800.0, site_factor=358),  #     225 + 8.3 + 125   = 358.3
    make_job(4, user="carol", qos="high", priority=0),
)


def without_qos(**changes: Any) -> Policy:
    """Return the default policy with a QOS weight of 0: 158.3, 17.5 and 233.3 are left."""
    stored = Policy().stored()
    stored["factors"]["qos"]["weight"] = 0
    return load_policy(stored | changes)


def compared(queue: Queue | None = None, policy: Policy | None = None) -> Comparison:
    """Return what another policy does to a queue under the default one."""
    return compare(queue or make_queue(*JOBS), Policy(), policy or without_qos())


def test_places_before_and_after_are_those_of_both_scores() -> None:
    """2, 3, 1 becomes 3, 1, 2; the farthest is told first, and the held job has no place."""
    told = compared()
    assert told.eligible == 3
    assert [(m.job, m.before, m.after, m.of, m.gained) for m in told.moves] == [
        ("2", 1, 3, 3, -2),
        ("3", 2, 1, 3, 1),
        ("1", 3, 2, 3, 1),
    ]
    bob = told.moves[0]
    assert (bob.user, bob.qos, bob.partition) == ("bob", "high", "main")
    assert (round(bob.score_before, 3), round(bob.score_after, 3)) == (517.517, 17.517)


def test_groups_tell_who_gains_and_who_loses() -> None:
    """alice's two go one place forward each, bob's one goes two back."""
    groups = compared().groups
    assert groups["user"] == (
        Group(name="alice", jobs=2, forward=2, back=0, mean_gain=1.0),
        Group(name="bob", jobs=1, forward=0, back=1, mean_gain=-2.0),
    )
    assert [(group.name, group.mean_gain) for group in groups["QOS"]] == [
        ("low", 1.0),
        ("normal", 1.0),
        ("high", -2.0),
    ]
    assert [(group.name, group.jobs, group.mean_gain) for group in groups["GPU type"]] == [("(none)", 3, 0.0)]
    assert [(group.name, group.jobs) for group in groups["size"]] == [("no GPU", 3)]


@pytest.mark.parametrize(
    ("gpus", "name"),
    [
        (1, "1 GPU"),
        (2, "2-4 GPUs"),
        (4, "2-4 GPUs"),
        (5, "5-8 GPUs"),
        (9, "9-64 GPUs"),
        (65, "above 64 GPUs"),
    ],
)
def test_sizes_are_told_apart_by_gpus(gpus: int, name: str) -> None:
    """One of each class, at its bounds."""
    job = make_job(gpus=gpu_request(per_job=f"gpu:{gpus}"))
    assert [group.name for group in compared(make_queue(job)).groups["size"]] == [name]


def test_types_are_those_that_a_job_accepts() -> None:
    """A job that takes any stands in a group of its own."""
    queue = make_queue(make_gpu_job(1, "gpu:a100:1"), make_gpu_job(2, "gpu:1"))
    assert {group.name for group in compared(queue).groups["GPU type"]} == {"a100", "a100|v100"}


def test_updates_are_those_of_the_plan_in_as_many_cycles_as_it_takes() -> None:
    """Slurm holds what the old policy wants; two updates a cycle make two cycles of three."""
    told = compared(policy=without_qos(updates={"per_cycle": 2}))
    assert (told.now_updates, told.updates, told.cycles) == (0, 3, 2)
    assert told.skipped == {"held": 1}


def test_the_same_policy_moves_nothing_and_costs_nothing() -> None:
    """Not an update, not a place."""
    told = compared(policy=Policy())
    assert (told.moved, told.updates, told.cycles) == ((), 0, 0)


def test_jobs_past_their_guard_are_counted_before_and_after() -> None:
    """46 h are past 45 h, and not past 50 h."""
    queue = make_queue(make_job(1, wait_s=46 * HOUR), make_job(2))
    assert compared(queue, without_qos(guard={"after": 50.0 * HOUR})).guarded == (1, 0)


def test_facts_about_gpus_are_those_of_the_other_policy() -> None:
    """150 + 25, and 100 x 40 GiB needed over what it says that an a100 has, its inner weight on the match."""
    job = make_gpu_job(1, "gpu:a100:1", hints=Hints(vram_gib=40.0))
    stored = Policy().stored()
    stored["factors"]["gres_fit"] |= {"scarcity": 0.0, "match": 1.0}
    for vram_gib, score in ((40.0, 275.0), (80.0, 225.0)):
        (told,) = compared(make_queue(job), load_policy(stored | gpu_types(vram_gib))).moves
        assert told.score_after == pytest.approx(score)


def gpu_types(vram_gib: float) -> dict[str, Any]:
    """Return a policy's table of one type."""
    return {"gpu_types": {"a100": {"vram_gib": vram_gib}}}


# what each factor moves


def test_shares_of_the_spread_add_up_to_all_of_it() -> None:
    """500 points of QOS and 75 of the remaining time part the two: 500 / 575 and 75 / 575."""
    queue = make_queue(make_job(1, qos="high", time_limit_s=1800.0), make_job(2))
    told = influences(queue, score_queue(queue, Policy()))
    assert [(one.name, one.weight, round(one.share, 4), round(one.spread, 4)) for one in told] == [
        ("wait", 350, 0.0, 0.0),
        ("remaining", 450, 0.1304, 37.5),
        ("size", 200, 0.0, 0.0),
        ("qos", 500, 0.8696, 250.0),
        ("gres_fit", 100, 0.0, 0.0),
    ]
    assert [one.name for one in told if one.idle] == ["wait", "size", "gres_fit"]


def test_a_factor_that_works_against_the_others_has_a_share_below_0() -> None:
    """Who has waited is the one without QOS: 500 - 175 = 325, so -175 / 325."""
    queue = make_queue(make_job(1, qos="high"), make_job(2, wait_s=27 * HOUR))
    told = {one.name: one.share for one in influences(queue, score_queue(queue, Policy()))}
    assert told["wait"] == pytest.approx(-175 / 325)
    assert told["qos"] == pytest.approx(500 / 325)


def test_held_and_guarded_jobs_move_nothing() -> None:
    """They aren't ranked by their score; a weight of 0 isn't idle."""
    queue = make_queue(make_job(1), make_job(2, qos="high", priority=0), make_job(3, wait_s=46 * HOUR))
    told = influences(queue, score_queue(queue, without_qos()))
    assert {one.share for one in told} == {0.0}
    assert not next(one for one in told if one.name == "qos").idle


@pytest.mark.parametrize("jobs", [(), (make_job(1, priority=0),)])
def test_of_an_empty_queue_nothing_is_shared(jobs: tuple[Any, ...]) -> None:
    """No spread, no share, no fault."""
    queue = make_queue(*jobs)
    assert influences(queue, score_queue(queue, Policy()))[0] == Influence("wait", 350, 0.0, 0.0)


# as text and JSON


def test_text_shows_the_farthest_moves_and_the_groups() -> None:
    """Tables as sprio's, a note last."""
    text = format_comparison(compared(), {"in force": "hash 1", "new.yaml": "hash 2"}, ["mode advise"])
    assert text.splitlines() == [
        "in force: hash 1",
        "new.yaml: hash 2",
        "3 of 3 jobs that could start change their place.",
        "It costs 3 updates in 1 cycle; the policy in force would send 0 anyway. Nothing is written.",
        "",
        "JOBID  PARTITION  USER   RANK  THEN  GAIN  SCORE   THEN",
        "2      main       bob       1     3    -2  517.5   17.5",
        "3      main       alice     2     1    +1  358.3  233.3",
        "1      main       alice     3     2    +1  158.3  158.3",
        "",
        "By user:",
        "NAME   JOBS  FORWARD  BACK  MEAN_GAIN",
        "alice     2        2     0       +1.0",
        "bob       1        0     1       -2.0",
        "",
        "By QOS:",
        "NAME    JOBS  FORWARD  BACK  MEAN_GAIN",
        "low        1        1     0       +1.0",
        "normal     1        1     0       +1.0",
        "high       1        0     1       -2.0",
        "",
        "By GPU type:",
        "NAME    JOBS  FORWARD  BACK  MEAN_GAIN",
        "(none)     3        2     1       +0.0",
        "",
        "By size:",
        "NAME    JOBS  FORWARD  BACK  MEAN_GAIN",
        "no GPU     3        2     1       +0.0",
        "",
        "Note: mode advise",
    ]


def test_long_tables_are_cut_with_a_mark() -> None:
    """Ten jobs, and five groups from each end: the rest is in the JSON."""
    jobs = [
        make_job(i, user=f"user{i:02}", qos="high" if i % 2 else "normal", time_limit_s=60.0 * i)
        for i in range(1, 41)
    ]
    lines = format_comparison(compared(make_queue(*jobs)), {}, []).splitlines()
    moved = sum(bool(move.gained) for move in compared(make_queue(*jobs)).moves)
    assert f"… and {moved - 10} jobs more, see --json" in lines
    assert "… and 30 groups more, see --json" in lines
    begin = lines.index("By user:")
    assert len(lines[begin + 2 : lines.index("… and 30 groups more, see --json")]) == 10


def test_guards_are_told_where_there_are_any() -> None:
    """A new guard can put more above the scores than the weights move."""
    queue = make_queue(make_job(1, wait_s=46 * HOUR), make_job(2))
    told = compared(queue, without_qos(guard={"after": 50.0 * HOUR}))
    assert "Past their guard: 1 jobs now, 0 then." in format_comparison(told, {}, []).splitlines()


def test_nothing_moved_is_two_lines() -> None:
    """No empty tables."""
    assert format_comparison(compared(policy=Policy()), {}, []).splitlines() == [
        "0 of 3 jobs that could start change their place.",
        "It costs 0 updates in 0 cycles; the policy in force would send 0 anyway. Nothing is written.",
        "",
    ]


def test_json_holds_every_job() -> None:
    """Those that stay as well."""
    told = told_of(compared(replace(make_queue(*JOBS, make_job(5, time_limit_s=1e9)))))
    assert [(move["job"], move["gained"]) for move in told["moves"]] == [
        ("2", -2),
        ("3", 1),
        ("1", 1),
        ("5", 0),
    ]
    assert (told["moved"], told["eligible"]) == (3, 4)
