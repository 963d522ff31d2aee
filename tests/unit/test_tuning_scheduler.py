"""slurm_score/tuning_scheduler.py: SchedulerParameters against what the site's queue needs."""

import math

import pytest

from slurm_score.model import Partition, SlurmConfig
from slurm_score.tuning import Extent
from slurm_score.tuning_scheduler import (
    SchedulerAdvice,
    SettingChange,
    advise_scheduler,
    new_line,
    rounded_up,
    value_of,
)

from .builders import DAY, HOUR

NOWHERE = Extent()
GOOD = ("bf_continue", "bf_job_part_count_reserve=1")


def advice(*parameters: str, reached: Extent = NOWHERE, **max_time_s: float | None) -> SchedulerAdvice:
    """Return the advice for parameters, for partitions by name with their MaxTime, and for a queue."""
    config = SlurmConfig(scheduler_parameters=parameters)
    partitions = [Partition(name=name, max_time_s=limit) for name, limit in max_time_s.items()]
    return advise_scheduler(config, partitions, reached)


def changes(found: SchedulerAdvice) -> dict[str, tuple[str, str]]:
    """Return now and then of each change."""
    return {change.name: (change.now, change.then) for change in found.changes}


def test_everything_is_advised_from_slurms_defaults() -> None:
    """A site that set nothing, with limits of a week and 1,830 entries in its longest queue."""
    found = advice(reached=Extent(1830), main=7.0 * DAY, debug=float(HOUR))
    assert changes(found) == {
        "bf_job_part_count_reserve": ("0", "1"),
        "bf_window": ("1440", "10080"),
        "bf_max_job_test": ("500", "2000"),
        "default_queue_depth": ("100", "2000"),
        "bf_continue": ("not set", "set"),
    }
    assert found.line == (
        "SchedulerParameters=bf_job_part_count_reserve=1,bf_window=10080,bf_max_job_test=2000,"
        "default_queue_depth=2000,bf_continue"
    )
    why = {change.name: change.why for change in found.changes}
    assert why["bf_window"] == "minutes; the longest limit is 7-00:00:00, MaxTime of partition main"
    assert why["bf_max_job_test"] == "the longest queue had 1830 entries, one for each partition of a job"


def test_nothing_is_advised_where_all_is_well() -> None:
    """No change, no line."""
    found = advice(*GOOD, "bf_window=10080", reached=Extent(90), main=7.0 * DAY)
    assert found == SchedulerAdvice((), "", ())


@pytest.mark.parametrize(
    ("now", "limits", "limit_s", "change"),
    [
        ("", {"main": 1.0 * DAY}, 0.0, None),
        ("", {"main": DAY + 1.0}, 0.0, ("1440", "1441")),
        ("", {"main": 3.0 * DAY, "long": 30.0 * DAY}, 0.0, ("1440", "43200")),
        ("", {"main": 60.0 * DAY}, 0.0, ("1440", "43200")),
        ("", {"main": math.inf}, 0.0, None),
        ("", {"main": math.inf}, 2.0 * DAY, ("1440", "2880")),
        ("", {"main": math.inf, "long": 4.0 * DAY}, 2.0 * DAY, ("1440", "5760")),
        ("", {"main": None}, 2.0 * DAY, ("1440", "2880")),
        ("", {"main": 1.0 * DAY}, 2.0 * DAY, ("1440", "2880")),
        ("", {}, 0.0, None),
        ("bf_window=20000", {"main": 7.0 * DAY}, 0.0, None),
        ("bf_window=2880", {"main": 7.0 * DAY}, 0.0, ("2880", "10080")),
        ("BF_Window=2880", {"main": 7.0 * DAY}, 0.0, ("2880", "10080")),
        ("bf_window=99999", {"main": 7.0 * DAY}, 0.0, ("1440", "10080")),
        ("bf_window=", {"main": 7.0 * DAY}, 0.0, ("1440", "10080")),
        ("bf_window", {"main": 7.0 * DAY}, 0.0, ("1440", "10080")),
    ],
)
def test_the_window_reaches_the_end_of_the_longest_limit(
    now: str, limits: dict[str, float | None], limit_s: float, change: tuple[str, str] | None
) -> None:
    """In minutes, 30 days at most; of partitions without MaxTime by the limits of jobs that waited."""
    found = advice(*GOOD, *filter(None, [now]), reached=Extent(limit_s=limit_s), **limits)
    assert changes(found).get("bf_window") == change
    assert len(found.changes) == (change is not None)


@pytest.mark.parametrize(
    ("now", "entries", "test", "quick"),
    [
        ((), 100, None, None),
        ((), 101, None, ("100", "150")),
        ((), 500, None, ("100", "500")),
        ((), 501, ("500", "550"), ("100", "550")),
        (("bf_max_job_test=5000", "default_queue_depth=1000"), 1830, None, ("1000", "2000")),
        (("bf_max_job_test=1900", "default_queue_depth=1830"), 1830, None, None),
        (("bf_max_job_test=50",), 60, ("50", "100"), None),
        (("bf_max_job_test=0",), 501, ("500", "550"), ("100", "550")),
        (("default_queue_depth=-1",), 101, None, ("100", "150")),
        (("default_queue_depth=0",), 10, None, ("0", "50")),
        ((), 2_000_000, ("500", "1000000"), ("100", "2000000")),
        (("bf_max_job_test=1000000", "default_queue_depth=2000000"), 1_999_999, None, None),
    ],
)
def test_the_depths_reach_the_end_of_the_longest_queue(
    now: tuple[str, ...], entries: int, test: tuple[str, str] | None, quick: tuple[str, str] | None
) -> None:
    """Rounded up; never lowered, and never above what Slurm takes."""
    found = changes(advice(*GOOD, *now, reached=Extent(entries), main=float(HOUR)))
    assert (found.get("bf_max_job_test"), found.get("default_queue_depth")) == (test, quick)


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ((), ("0", "1")),
        (("bf_job_part_count_reserve=1",), None),
        (("bf_job_part_count_reserve=0",), ("0", "1")),
        (("bf_job_part_count_reserve=25",), ("25", "1")),
        (("bf_job_part_count_reserve=-3",), ("0", "1")),
        (("bf_job_part_count_reserve=1", "bf_job_part_count_reserve=9"), None),
    ],
)
def test_backfill_is_to_reserve_for_one_job_of_a_partition(
    now: tuple[str, ...], change: tuple[str, str] | None
) -> None:
    """0 is Slurm's default and reserves for all; of two settings Slurm takes the first."""
    found = changes(advice("bf_continue", *now, main=float(HOUR)))
    assert found == ({"bf_job_part_count_reserve": change} if change else {})


@pytest.mark.parametrize("set_as", ["bf_continue", "BF_CONTINUE", " bf_continue ", "bf_continue=1"])
def test_bf_continue_counts_however_it_is_written(set_as: str) -> None:
    """Slurm looks for the word alone."""
    assert changes(advice("bf_job_part_count_reserve=1", set_as, main=float(HOUR))) == {}


@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        ((), 1440),
        (("bf_window=2880",), 2880),
        (("bf_window= 2880",), 2880),
        (("bf_window =2880",), 1440),
        ((" bf_window=2880",), 2880),
        (("bf_window=2880m",), 2880),
        (("bf_window=two",), 1440),
        (("bf_window=0",), 1440),
        (("bf_window=43200",), 43200),
        (("bf_window=43201",), 1440),
        (("bf_window_linear=60",), 1440),
        (("bf_window=100", "bf_window=200"), 100),
    ],
)
def test_a_number_is_read_as_slurm_reads_it(parameters: tuple[str, ...], value: int) -> None:
    """Digits as far as they go, the default where it is out of range; `name=` without a space."""
    assert value_of(parameters, "bf_window") == value


WINDOW = SettingChange("bf_window", "1440", "10080", "", "")
SET = SettingChange("bf_continue", "not set", "set", "", "")


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ((), "bf_window=10080,bf_continue"),
        (("defer", "bf_interval=60"), "defer,bf_interval=60,bf_window=10080,bf_continue"),
        (("bf_window=1440", "defer"), "bf_window=10080,defer,bf_continue"),
        (("BF_WINDOW=1440", "defer"), "bf_window=10080,defer,bf_continue"),
        (("defer", "bf_window=5", "bf_window=6", "nohold_on_prolog_fail"),
         "defer,bf_window=10080,nohold_on_prolog_fail,bf_continue"),
        ((" defer", " bf_window = 5 ", ""), "defer,bf_window=10080,bf_continue"),
        (("bf_window_linear=60",), "bf_window_linear=60,bf_window=10080,bf_continue"),
        (("defer", "defer"), "defer,defer,bf_window=10080,bf_continue"),
        (("salloc_wait_nodes", "max_rpc_cnt = 9"),
         '"salloc_wait_nodes,max_rpc_cnt = 9,bf_window=10080,bf_continue"'),
    ],
)  # fmt: skip
def test_the_line_keeps_what_the_site_has_set(now: tuple[str, ...], line: str) -> None:
    """In its order and its words, with and without values; a value changes where it stands."""
    assert new_line(now, [WINDOW, SET]) == f"SchedulerParameters={line}"


@pytest.mark.parametrize(
    ("count", "rounded"),
    [(1, 50), (9, 50), (50, 50), (51, 100), (101, 150), (999, 1000), (1000, 1000), (1001, 1500), (1830, 2000),
     (9501, 10000), (11000, 15000), (123456, 150000)],
)  # fmt: skip
def test_counts_are_rounded_up_to_what_an_admin_would_write(count: int, rounded: int) -> None:
    """Two digits, the second 0 or 5."""
    assert rounded_up(count) == rounded


def test_a_limit_beyond_what_slurm_can_look_ahead_is_told() -> None:
    """60 days, where the window ends at 30."""
    found = advice(*GOOD, "bf_window=43200", main=60.0 * DAY)
    assert found.notes == ("bf_window: Slurm takes 43200 minutes at most, less than the longest limit",)


def test_partitions_without_a_limit_are_told() -> None:
    """And that jobs without an end were there, if they were."""
    found = advice(*GOOD, "bf_window=43200", main=math.inf, gpu=math.inf, debug=60.0)
    assert found.notes == (
        "bf_window: no MaxTime in gpu, main, so there the limits of jobs that waited count",
    )
    found = advice(*GOOD, "bf_window=43200", reached=Extent(unlimited=True), main=math.inf)
    assert found.notes == (
        "bf_window: no MaxTime in main, so there the limits of jobs that waited count; "
        "some had none, and no window reaches their end",
    )


def test_what_a_longer_window_and_a_deeper_queue_cost_is_told() -> None:
    """Only where they are advised."""
    found = advice(*GOOD, reached=Extent(101), main=7.0 * DAY)
    assert [note.partition(":")[0] for note in found.notes] == ["bf_window", "depth"]
    assert "bf_resolution" in found.notes[0]
    assert "bf_max_time" in found.notes[1]
