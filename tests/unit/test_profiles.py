"""slurm_score/profiles.py: which weights are in force when, and how they pass from one to the next."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from slurm_score.conditions import Load
from slurm_score.model import Queue
from slurm_score.policy import Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.profiles import ProfileState, effective, load_of, next_change, profile_at, shares
from slurm_score.units import DAY_S, HOUR_S, MINUTE_S
from slurm_score.zone import zone_of
from tests.unit.builders import NOW, drained, make_cluster, make_gpu_job, make_job, make_queue

MONDAY = 1_796_000_400 - 1_796_000_400 % DAY_S  # 2026-11-30 00:00 UTC
UNKNOWN = ProfileState()

POLICY = parse_policy("""
handover: 30m
profiles:
  night: {when: {hours: 20:00-06:00, days: mon-fri}, weights: {remaining: 300, size: 500}}
  busy: {when: {pending_per_free_gpu: ">2"}, weights: {qos: 800}}
""")


def utc(_: float) -> float:
    """Return no distance from UTC."""
    return 0.0


def load(per_free_gpu: float) -> Load:
    """Return a load with so many GPUs asked for over the free ones."""
    return Load(pending_jobs=10, pending_per_free_gpu=per_free_gpu)


def at(day: int, hour: float) -> float:
    """Return a time so many days after the Monday, UTC."""
    return MONDAY + day * DAY_S + hour * HOUR_S


def weights_at(at_s: float, policy: Policy = POLICY) -> dict[str, int]:
    """Return the weights in force at a time, the load unknown."""
    return effective(policy, at_s, None, UNKNOWN, utc)[0].weights


@pytest.mark.parametrize(
    ("day", "hour", "name"),
    [
        (0, 19.99, "base"),
        (0, 20, "night"),
        (1, 5.99, "night"),
        (1, 6, "base"),
        (5, 21, "base"),
        (6, 3, "base"),
    ],
)
def test_profile_applies_in_its_hours(day: int, hour: float, name: str) -> None:
    """20:00-06:00, Monday to Friday."""
    assert profile_at(POLICY, at(day, hour), UNKNOWN, utc) == name


def test_first_profile_that_applies_wins() -> None:
    """By night it is night, however busy; by day the load counts."""
    busy = ProfileState(((0.0, ("busy",)),))
    assert [profile_at(POLICY, at(0, hour), busy, utc) for hour in (12, 21)] == ["busy", "night"]


@pytest.mark.parametrize(
    ("minutes", "remaining", "size"),
    [
        (-1, 450, 200),
        (0, 450, 200),
        (3, 435, 230),
        (15, 375, 350),
        (27, 315, 470),
        (30, 300, 500),
        (90, 300, 500),
    ],
)
def test_weights_move_linearly_to_the_next_profile(minutes: int, remaining: int, size: int) -> None:
    """From 20:00 on, for half an hour; the time alone tells, so a restart changes nothing."""
    weights = weights_at(at(0, 20) + minutes * MINUTE_S)
    assert (weights["remaining"], weights["size"]) == (remaining, size)
    assert (weights["wait"], weights["qos"], weights["gres_fit"]) == (350, 500, 100)


def test_profile_shorter_than_the_hand_over_never_comes_into_full_force() -> None:
    """Ten minutes of it: a third of the way there, and back."""
    policy = parse_policy("profiles: {peak: {when: {hours: 12:00-12:10}, weights: {qos: 800}}}")
    minutes = (0, 5, 10, 20, 30, 35, 40)
    qos = [weights_at(at(2, 12) + minute * MINUTE_S, policy)["qos"] for minute in minutes]
    assert qos == [500, 550, 600, 600, 600, 550, 500]


def test_shares_of_the_last_hand_over_add_up() -> None:
    """Ten minutes into the night, at a second that is no full minute."""
    found = shares(POLICY, at(0, 20) + 600.5, UNKNOWN, utc)
    assert found == pytest.approx({"base": 1199.5 / 1800, "night": 600.5 / 1800})


def test_policy_without_profiles_is_itself() -> None:
    """And nothing is to be remembered."""
    state = ProfileState(((5.0, ("busy",)),))
    policy, after = effective(Policy(), NOW, load(9), state, utc)
    assert (policy, after) == (Policy(), UNKNOWN)


@pytest.mark.parametrize(
    ("day_s", "hours"),
    [
        pytest.param(1_774_656_000, 9, id="2026-03-28: summer time begins"),
        pytest.param(1_781_913_600, 10, id="2026-06-20"),
        pytest.param(1_792_800_000, 11, id="2026-10-24: summer time ends"),
    ],
)
def test_hours_are_those_of_the_sites_clock(day_s: int, hours: int) -> None:
    """In Zurich a night from 20:00 to 06:00 is an hour shorter or longer when the clocks change."""
    policy = parse_policy("profiles: {night: {when: {hours: 20:00-06:00}, weights: {qos: 1}}}")
    minutes = [day_s + 12 * HOUR_S + minute * MINUTE_S for minute in range(24 * 60)]
    zone = zone_of("Europe/Zurich")
    night = [at_s for at_s in minutes if profile_at(policy, at_s, UNKNOWN, zone) == "night"]
    assert len(night) == hours * 60
    assert night[-1] - night[0] == hours * HOUR_S - MINUTE_S


# load


def test_load_holds_until_it_is_past_the_second_limit() -> None:
    """Entered above 2, left below 1.5; the state says since when."""
    state, held = UNKNOWN, []
    for minute, per_free in enumerate((1.0, 2.5, 1.8, 1.6, 1.4, 1.8)):
        _, state = effective(POLICY, at(0, 12) + minute * MINUTE_S, load(per_free), state, utc)
        held.append(state.changes[-1][1])
    assert held == [(), ("busy",), ("busy",), ("busy",), (), ()]
    assert [(since_s - at(0, 12)) / MINUTE_S for since_s, _ in state.changes] == [0, 1, 4]


def test_weights_move_linearly_when_the_load_changes() -> None:
    """From 500 to 800 in half an hour; back from where they are when it ends in the middle."""
    state, qos = UNKNOWN, []
    for minute in range(0, 70, 5):
        per_free = 3.0 if 10 <= minute < 30 else 0.0
        policy, state = effective(POLICY, at(0, 12) + minute * MINUTE_S, load(per_free), state, utc)
        qos.append(policy.weights["qos"])
    assert qos == [500, 500, 500, 550, 600, 650, 700, 700, 700, 650, 600, 550, 500, 500]


def test_without_a_state_the_load_of_now_has_held_for_long() -> None:
    """After a restart without a snapshot the weights are those that the others would come to."""
    policy, state = effective(POLICY, at(0, 12), load(3), UNKNOWN, utc)
    assert policy.weights["qos"] == 800
    assert state == ProfileState(((at(0, 12), ("busy",)),))


def test_with_its_state_a_restart_changes_nothing() -> None:
    """The state survives JSON, as the snapshot writes it."""
    _, state = effective(POLICY, at(0, 12), load(1), UNKNOWN, utc)
    _, state = effective(POLICY, at(0, 12.1), load(3), state, utc)
    adapter = TypeAdapter(ProfileState)
    back = adapter.validate_python(json.loads(adapter.dump_json(state)))
    assert back == state
    assert effective(POLICY, at(0, 12.3), load(3), back, utc) == effective(
        POLICY, at(0, 12.3), load(3), state, utc
    )


def test_state_remembers_no_more_than_a_hand_over() -> None:
    """A load that comes and goes for a day leaves a few changes, not hundreds."""
    state = UNKNOWN
    for minute in range(0, 24 * 60, 5):
        _, state = effective(POLICY, at(0, 0) + minute * MINUTE_S, load(minute % 2 * 3), state, utc)
    assert len(state.changes) == 7


def test_clock_that_is_set_back_leaves_nothing_behind() -> None:
    """What was seen later than now is forgotten, but not what held."""
    state = ProfileState(((at(0, 12), ()), (at(0, 13), ("busy",))))
    _, state = effective(POLICY, at(0, 11), load(1.8), state, utc)
    assert state == ProfileState(((at(0, 11), ("busy",)),))


def test_profile_that_the_policy_no_longer_has_is_forgotten() -> None:
    """A state of another policy does no harm."""
    _, state = effective(POLICY, at(0, 12), load(1), ProfileState(((0.0, ("gone",)),)), utc)
    assert state.changes[-1][1] == ()


def test_load_counts_tasks_and_gpus_of_jobs_that_could_start() -> None:
    """4 + 5 x 1 GPUs asked, 8 free; the held job and the one that waits for another count for nothing."""
    queue = make_queue(
        make_job(1),
        make_gpu_job(2, "gpu:a100:4"),
        make_gpu_job(3, "gpu:1", tasks="0-4"),
        make_gpu_job(4, "gpu:8", priority=0),
        make_gpu_job(5, "gpu:8", eligible_s=None),
    )
    assert load_of(queue) == Load(pending_jobs=7, pending_per_free_gpu=9 / 8)


def test_load_is_infinite_where_no_gpu_is_free() -> None:
    """And 0 where nobody asks for one."""
    cluster = drained(make_cluster(), "g1", "g2", "g3")
    queues: list[Queue] = [make_queue(*jobs, cluster=cluster) for jobs in ((), (make_gpu_job(1, "gpu:1"),))]
    assert [load_of(queue).pending_per_free_gpu for queue in queues] == [0.0, float("inf")]


# next change


@pytest.mark.parametrize(
    ("day", "hour", "change"),
    [
        pytest.param(0, 12, (0, 20, "night"), id="this evening"),
        pytest.param(0, 20, (1, 6, "base"), id="tomorrow morning"),
        pytest.param(5, 7, (7, 20, "night"), id="after the weekend"),
    ],
)
def test_next_change_is_told(day: int, hour: float, change: tuple[int, float, str]) -> None:
    """When the profile begins, which is when the hand-over to it begins."""
    assert next_change(POLICY, at(day, hour), UNKNOWN, utc) == (at(*change[:2]), change[2])


def test_next_change_takes_the_load_to_go_on() -> None:
    """From night back to busy."""
    busy = ProfileState(((0.0, ("busy",)),))
    assert next_change(POLICY, at(0, 22), busy, utc) == (at(1, 6), "busy")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "profiles: {busy: {when: {pending_jobs: '>5'}, weights: {qos: 1}}}",
        "profiles: {always: {when: {days: mon-sun}, weights: {qos: 1}}}",
    ],
)
def test_there_may_be_no_next_change(text: str) -> None:
    """Without profiles, by load alone, or where one always applies."""
    assert next_change(parse_policy(text), NOW, UNKNOWN, utc) is None


# a law


@given(
    minute=st.integers(0, 7 * 24 * 60),
    step_s=st.integers(1, 600),
    loads=st.lists(st.sampled_from((0.0, 1.8, 3.0)), min_size=2, max_size=8),
)
def test_no_weight_ever_jumps(minute: int, step_s: int, loads: list[float]) -> None:
    """In a time s a weight moves by its whole range times s / handover at most, and 1 for rounding."""
    state, before = UNKNOWN, None
    for i, per_free in enumerate(loads):
        now_s = MONDAY + minute * MINUTE_S + i * step_s
        policy, state = effective(POLICY, now_s, load(per_free), state, utc)
        for name, weight in policy.weights.items():
            sets = [weights[name] for weights in POLICY.weight_sets.values()]
            assert min(sets) <= weight <= max(sets)
            most = (max(sets) - min(sets)) * step_s / POLICY.handover + 1
            assert before is None or abs(weight - before[name]) <= most
        before = policy.weights
