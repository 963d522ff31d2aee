"""slurm_score/reprioritizer.py, reset: the way back, on the fake Slurm."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_score.brakes import Brakes
from slurm_score.errors import ParseError, WriteRefusedError
from slurm_score.model import Partition, SlurmConfig
from slurm_score.reprioritizer import plan_of_reset, reset
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate
from tests.unit.reprioritizer_support import NODES, ConfiguredSlurm, busy_slurm, reprioritizer_of, sites_of


def test_reset_puts_every_site_factor_back_to_zero(tmp_path: Path) -> None:
    """The way back works without a policy, and may write nothing but zeros."""
    slurm = busy_slurm()
    jobs = [slurm.submit(Submission(time_limit_s=600)) for _ in range(3)]
    slurm.schedule()
    reprioritizer_of(slurm, tmp_path).cycle()
    brakes = Brakes()
    plan = plan_of_reset(slurm, brakes)
    burst = reset(slurm, plan, brakes)
    assert ([update.value for update in burst.sent], burst.failures) == ([0, 0, 0], [])
    assert sites_of(slurm) == dict.fromkeys(jobs, 0)
    assert slurm.guard.access is Access.RESET
    with pytest.raises(WriteRefusedError):
        slurm.write_site_factors([SiteFactorUpdate(jobs[0], str(jobs[0]), 1)])


def test_reset_of_a_partition_leaves_the_others_alone(tmp_path: Path) -> None:
    """A partition that isn't there is named, with those that are."""
    partitions = [Partition(name="main", default=True), Partition(name="side")]
    slurm = FakeSlurm([replace(NODES[0], partitions=("main", "side"))], partitions, {"normal": 0})
    busy_slurm(slurm)
    main, side = (slurm.submit(Submission(time_limit_s=600, partition=name)) for name in ("main", "side"))
    slurm.schedule()
    reprioritizer_of(slurm, tmp_path).cycle()
    reset(slurm, plan_of_reset(slurm, Brakes(), ["side"]), Brakes())
    assert (slurm.site_factor_of(main) > 0, slurm.site_factor_of(side)) == (True, 0)
    with pytest.raises(ParseError, match="no such partition, got 'sid'; there are main, side"):
        plan_of_reset(slurm, Brakes(), ["sid"])


def test_reset_by_an_operator_whose_rate_is_limited_goes_in_small_chunks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Trap 18: 250 updates at two a second would take longer than scontrol is given for them."""
    main = Partition(name="main", default=True)
    slurm = ConfiguredSlurm(NODES, [main], {"normal": 0}, user="op", admin_levels={"op": "Operator"})
    slurm.config = SlurmConfig(slurm_user="slurm", slurmctld_parameters=("rl_enable",))
    brakes = Brakes(deadline_s=math.inf)
    plan_of_reset(slurm, brakes)
    assert brakes.chunk == 10
    assert [record.getMessage() for record in caplog.records] == [
        "slurmctld limits user op to 2 requests a second"
    ]
