"""Slurm's look ahead, by hand: ends in groups, reservations in between, passes from a log."""

import numpy as np
import pytest

from slurm_score.errors import SimulationError
from slurm_score.sim.engine import Options
from slurm_score.sim.hetero import simulate_cluster
from slurm_score.sim.passes import Passes
from slurm_score.sim.policies import named
from slurm_score.sim.state import NEVER
from tests.unit.busy_nodes import BusyNodes
from tests.unit.site_support import EVERY_EVENT, Job, jobs, site

ONE_NODE = site('nodes: [{names: "n1", cores: 1, mem_mb: 1}]\npartitions: {p: {nodes: n1}}')


@pytest.mark.parametrize(
    ("ends", "count", "linear", "expected", "earliest"),
    [
        # from the first end, 40, to the next half minute and one half minute more: to 90
        ([40, 50, 95], 1, 0, 50, 40),
        ([40, 90, 95], 1, 0, 90, 40),
        ([40, 95, 99], 1, 0, 40, 40),
        # one is too few; the next window, of a minute, reaches to 120
        ([40, 95, 99, 400], 2, 0, 99, 95),
        ([40, 95, 99, 400], 2, 1, 95, 95),  # the next reaches just to the next end
        ([40, 95, 99, 400], 4, 0, 400, 400),
        ([40, 40, 95], 1, 0, 40, 40),
        ([60, 121], 1, 0, 60, 60),  # at a whole half minute the window begins with the next
    ],
)
def test_running_jobs_end_in_groups(
    ends: list[int], count: int, linear: int, expected: int, earliest: int
) -> None:
    """Source: job_test.c, _future_run_test."""
    nodes = BusyNodes(ends, [[] for _ in ends])
    assert nodes.foreseen(count, 10, linear) == expected
    assert nodes.earliest(count, 10) == earliest


def test_a_job_elsewhere_hides_the_end_of_the_window() -> None:
    """The second node is reserved, so its job's end at 50 is passed over, and the one at 95 comes along."""
    assert BusyNodes([40, 50, 95], [[], [(5, 100)], []]).foreseen(1, 10) == 95
    assert BusyNodes([40, 96, 95], [[], [(5, 100)], []]).foreseen(1, 10) == 40


def test_the_search_is_repeated_when_reserved_nodes_come_free() -> None:
    """At 60 the second node is free of its reservation, before the third job's end at 95."""
    assert BusyNodes([40, 50, 95], [[], [(5, 60)], []]).foreseen(1, 10) == 60


def test_a_start_that_overlaps_a_reservation_is_given_up() -> None:
    """50 would do but for the reservation of the first node; with it the next chance is its end."""
    assert BusyNodes([40, 50, 95], [[], [], []]).foreseen(2, 5) == 50
    assert BusyNodes([40, 50, 95], [[(52, 60)], [], []]).foreseen(2, 5) == 60


def test_nothing_is_foreseen_beyond_the_window_of_backfill() -> None:
    """Or for more nodes than there are."""
    assert BusyNodes([40, 501], [[], []]).foreseen(2, 10) == NEVER
    assert BusyNodes([40, 50], [[], []]).foreseen(3, 10) == NEVER


def passes(main_s: list[int], backfill_s: list[int]) -> Passes:
    """Return passes of both loops."""
    return Passes(main_s=np.array(main_s, np.int64), backfill_s=np.array(backfill_s, np.int64))


def test_loops_run_when_they_are_told_to() -> None:
    """The first job waits for the main loop, the second, which comes behind a wide one, for backfill."""
    rows = [Job(0, 10, nodes=4, cores=4), Job(1, 10, nodes=5), Job(1, 3)]
    told = simulate_cluster(jobs(rows), site(), named("fcfs"), EVERY_EVENT, passes=passes([2, 30], [4]))
    assert told.start_s.tolist() == [2, 30, 4]


def test_passes_that_end_too_soon_are_an_error() -> None:
    """Two jobs, and no pass after the end of the first."""
    with pytest.raises(SimulationError) as caught:
        simulate_cluster(jobs([Job(0, 9)] * 2), ONE_NODE, named("fcfs"), passes=passes([0], []))
    assert "small: 1 jobs have not ended after the last of the given passes" in str(caught.value)


def test_passes_are_not_compiled() -> None:
    """Whoever asks for numba is told."""
    with pytest.raises(SimulationError) as caught:
        simulate_cluster(jobs([Job(0, 9)]), ONE_NODE, named("fcfs"), Options(backfill="slurm", numba=True),
                         passes=passes([0], []))  # fmt: skip
    assert "given passes can't be compiled" in str(caught.value)
