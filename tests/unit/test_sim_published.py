"""The published schedules of one log, job by job; `make verify-sim` checks all of them."""

import pytest

from tests.bench import verify_sim
from tests.unit.sim_support import needs_data


@needs_data
@pytest.mark.parametrize("file", list(verify_sim.SCHEDULES))
def test_every_wait_of_kth_sp2_is_the_published_one(file: str) -> None:
    """Source: schedules of Gaussier et al., SC'15; waits in batch order recomputed by others."""
    assert verify_sim.differing("KTH-SP2", file) == (0, 28_481)


@needs_data
@pytest.mark.parametrize("file", ["easy.swf.gz", "easypp-tsafrir.swf.gz"])
def test_every_wait_is_the_published_one_without_numba(file: str) -> None:
    """Plain Python runs the same source."""
    assert verify_sim.differing("KTH-SP2", file, numba=False) == (0, 28_481)


@needs_data
@pytest.mark.parametrize(("name", "backfill"), list(verify_sim.TABLE_V))
def test_rlscheduler_table_v_comes_out_to_the_printed_digits(name: str, backfill: str) -> None:
    """Source: RLScheduler, SC'20, Table V; WFP3 and UNICEP recomputed with a wait that counts."""
    assert [str(c) for c in verify_sim.table_v(name, backfill) if not c.holds] == []


@needs_data
@pytest.mark.parametrize("log", ["KTH-SP2"])
def test_reference_grid_and_default_policy_hold(log: str) -> None:
    """Six policies to the printed digits; the default policy within its bounds."""
    checks = [*verify_sim.grid(log), *verify_sim.default_policy(log)]
    assert len(checks) == 26
    assert [str(c) for c in checks if not c.holds] == []


@pytest.mark.parametrize(
    ("expected", "got", "holds"),
    [
        ("92.7", 92.6877, True),
        ("92.7", 92.64, False),
        ("6835", 6834.59, True),
        ("262k", 261_700.0, True),
        ("262k", 262_600.0, False),
        ("4.5M", 4_549_000.0, True),
        ("44M", 44_600_000.0, False),
    ],
)
def test_a_check_by_printed_digits_can_fail(expected: str, got: float, holds: bool) -> None:
    """A figure counts as reproduced if it prints the same."""
    assert verify_sim.printed("x", expected, got).holds is holds
