"""slurm_score/pace.py and brakes.py: less and longer while slurmctld is in trouble."""

import logging
import math

import pytest

from slurm_score.brakes import CHUNK, Brakes
from slurm_score.model import SlurmConfig
from slurm_score.pace import Latency, Pace, updates_per_s
from slurm_score.slurm.gateway import Identity, Patience


def test_each_step_halves_the_updates_and_doubles_the_pause() -> None:
    """Up to ten minutes and a sixteenth; one update always goes."""
    pace = Pace(60.0)
    seen = []
    for _ in range(6):
        seen.append((pace.most(100), pace.pause_s))
        pace.slow_down("slow")
    assert seen == [(100, 60.0), (50, 120.0), (25, 240.0), (12, 480.0), (6, 600.0), (6, 600.0)]
    assert [pace.most(1), pace.most(0)] == [1, 0]


def test_a_short_interval_has_more_steps_to_ten_minutes() -> None:
    """A second, two, four, …"""
    pace = Pace(1.0)
    for _ in range(30):
        pace.slow_down("slow")
    assert (pace.pause_s, pace.most(2000)) == (600.0, 1)


def test_an_interval_above_ten_minutes_is_never_shortened() -> None:
    """The pause is never below what the admin asked for."""
    pace = Pace(3600.0)
    pace.slow_down("slow")
    assert (pace.pause_s, pace.most(10)) == (3600.0, 5)


def test_normal_pace_comes_back_step_by_step_and_each_change_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At the last step nothing changes any more, and nothing is logged."""
    pace = Pace(60.0)
    with caplog.at_level(logging.INFO):
        for _ in range(30):
            pace.slow_down("slow")
        for _ in range(30):
            pace.speed_up()
    assert (len(caplog.records), pace.pause_s, pace.most(8)) == (8, 60.0, 8)
    assert caplog.records[0].getMessage() == "slow: 1/2 of the updates, the next cycle in 120 s"
    assert caplog.records[-1].getMessage() == "Slurm answers well: the normal pace, a cycle every 60 s"


@pytest.mark.parametrize(
    ("times", "slow"),
    [
        ([9.0], [False]),
        ([1.0, 3.9, 4.1], [False, False, True]),
        ([0.1, 1.9], [False, False]),
        ([0.1, 2.1], [False, True]),
        ([10.0, 39.0, 1.0, 5.0], [False, False, False, True]),
    ],
)
def test_slow_is_four_times_the_best_and_above_the_floor(times: list[float], slow: list[bool]) -> None:
    """The first time is nothing to compare with."""
    latency = Latency(2.0)
    assert [latency.is_slow(took_s) for took_s in times] == slow


def test_old_times_are_forgotten() -> None:
    """A queue that has grown is no trouble: after a hundred readings its time is the normal one."""
    latency = Latency(2.0)
    latency.is_slow(1.0)
    assert latency.is_slow(10.0)
    for _ in range(100):
        latency.is_slow(10.0)
    assert not latency.is_slow(10.0)


def test_a_slow_chunk_is_the_last_of_its_cycle(caplog: pytest.LogCaptureFixture) -> None:
    """What is left waits; the next cycle sends half."""
    brakes = Brakes(clock=lambda: 0.0)
    brakes.begin()
    brakes.note_chunk(200, 0.2)
    assert brakes.halt() == ""
    brakes.note_chunk(200, 5.0)
    assert brakes.halt() == "slurmctld took 5.0 s for 200 updates"
    brakes.end()
    brakes.begin()
    assert (brakes.halt(), brakes.most(2000)) == ("", 1000)
    brakes.end()
    assert brakes.most(2000) == 2000


def test_slow_reads_halve_what_is_sent() -> None:
    """slurmctld's answers to our own reads tell how it does."""
    brakes = Brakes(clock=lambda: 0.0)
    for took_s in (0.5, 2.5):
        brakes.begin()
        brakes.note_reads(took_s)
    assert (brakes.halt(), brakes.most(2000)) == ("", 1000)


@pytest.mark.parametrize(
    ("parameters", "user", "rate"),
    [
        ((), "op", math.inf),
        (("rl_enable",), "root", math.inf),
        (("rl_enable",), "slurm", math.inf),
        (("rl_enable",), "op", 2.0),
        (("rl_enable", "rl_refill_rate=10"), "op", 10.0),
        (("rl_enable", "rl_refill_rate=10", "rl_refill_period=4"), "op", 2.5),
        (("rl_enable", "rl_refill_period=0"), "op", 2.0),
        (("rl_enable", "rl_refill_rate=20", "rl_bucket_size=5"), "op", 5.0),
        (("rl_enable", "rl_refill_rate=10", "rl_refill_period=4", "rl_bucket_size=5"), "op", 1.25),
        (("rl_enable", "rl_refill_rate=40"), "op", 30.0),
    ],
)
def test_rate_limit_is_read_from_slurmctld_parameters(
    parameters: tuple[str, ...], user: str, rate: float
) -> None:
    """slurm.conf(5): root and SlurmUser are exempt."""
    config = SlurmConfig(slurm_user="slurm", slurmctld_parameters=parameters)
    assert updates_per_s(config, Identity(user, "Operator")) == rate


def test_a_limited_rate_makes_small_chunks_that_are_never_slow() -> None:
    """So that a stop or the deadline is seen within seconds."""
    brakes = Brakes(clock=lambda: 0.0)
    assert brakes.chunk == CHUNK
    config = SlurmConfig(slurm_user="slurm", slurmctld_parameters=("rl_enable",))
    brakes.note_rate(config, Identity("op", "Operator"))
    brakes.begin()
    brakes.note_chunk(10, 0.1)
    brakes.note_chunk(10, 8.0)
    assert (brakes.chunk, brakes.halt()) == (10, "")


@pytest.mark.parametrize(("left_s", "timeout_s"), [(math.inf, 60.0), (40.0, 40.0), (3.0, 3.0), (-5.0, -5.0)])
def test_a_command_gets_what_the_cycle_has_left(left_s: float, timeout_s: float) -> None:
    """As long as usual at most, and never past the deadline."""
    assert Patience(lambda: left_s).timeout_s(60.0) == timeout_s


def test_a_chunk_that_would_outlast_the_deadline_is_not_begun() -> None:
    """It would be killed in its middle; one that is the first of its cycle is tried all the same."""
    now_s = 0.0
    brakes = Brakes(deadline_s=10.0, clock=lambda: now_s)
    brakes.begin()
    brakes.note_chunk(CHUNK, 4.0)
    now_s = 5.9
    assert brakes.halt() == ""
    now_s = 6.1
    assert brakes.halt() == "deadline"
    brakes.begin()
    now_s += 9.9
    assert brakes.halt() == ""


def test_reads_that_wait_for_a_rate_limit_are_no_trouble() -> None:
    """slurmctld is well; who is told to back off sleeps for seconds."""
    brakes = Brakes(clock=lambda: 0.0)
    config = SlurmConfig(slurm_user="slurm", slurmctld_parameters=("rl_enable",))
    brakes.note_rate(config, Identity("op", "Operator"))
    for took_s in (0.5, 9.0):
        brakes.note_reads(took_s)
    assert brakes.pace.pause_s == 60.0
