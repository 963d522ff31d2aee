"""The cycle on the fake Slurm when it is ended, held up or misled: what was sent is sound, the rest comes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_score.brakes import CHUNK, Brakes
from slurm_score.errors import ControllerDownError
from slurm_score.model import Cluster, Partition, SlurmConfig
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate, UpdateFailure
from slurm_score.snapshot import read_snapshot
from tests.unit.reprioritizer_support import (
    ENFORCE,
    NODES,
    ConfiguredSlurm,
    busy_slurm,
    reprioritizer_of,
    settled,
    sites_of,
    waiting,
)


@pytest.mark.parametrize("carried_out", range(7))
def test_slurmctld_that_dies_in_mid_burst_is_put_right_in_one_cycle(tmp_path: Path, carried_out: int) -> None:
    """Trap 26: however many updates were carried out, the next cycle brings the queue to the same order."""
    calm, slurm = busy_slurm(), busy_slurm()
    assert waiting(calm, 6) == waiting(slurm, 6)
    slurm.dies_after = carried_out
    if carried_out < 6:
        with pytest.raises(ControllerDownError):
            reprioritizer_of(slurm, tmp_path).cycle()
    assert slurm.update_count == (carried_out if carried_out < 6 else 0)
    slurm.dies_after = None
    wanted, found = settled(calm, tmp_path), settled(slurm, tmp_path)
    assert sorted(found, key=lambda i: -(found[i] or 0)) == sorted(wanted, key=lambda i: -(wanted[i] or 0))


class _Killed(BaseException):
    """The end of our own process: nothing of ours catches it."""


class _KilledOnTheWay(FakeSlurm):
    """A Slurm whose client is killed after some updates."""

    left = 0

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Carry out as many as are left, and kill who sends them."""
        super().write_site_factors(updates[: self.left])
        raise _Killed


@pytest.mark.parametrize("carried_out", range(7))
def test_a_process_killed_in_mid_burst_is_taken_up_in_one_cycle(tmp_path: Path, carried_out: int) -> None:
    """What Slurm holds is the truth: a restart needs nothing of the process before."""
    slurm = _KilledOnTheWay(NODES, [Partition(name="main", default=True, cpus=8)], {"normal": 0})
    busy_slurm(slurm)
    jobs = waiting(slurm, 6)
    slurm.left = carried_out
    with pytest.raises(_Killed):
        reprioritizer_of(slurm, tmp_path).cycle()
    (tmp_path / "snapshot.jsonl").unlink()  # kill -9 leaves us no time to write one
    restarted = FakeSlurm.write_site_factors
    slurm.__class__ = type("Restarted", (FakeSlurm,), {"write_site_factors": restarted})
    sites = settled(slurm, tmp_path)
    assert sorted(sites, key=lambda i: -(sites[i] or 0)) == jobs


def test_a_stop_ends_the_burst_between_two_chunks(tmp_path: Path) -> None:
    """SIGTERM: what was sent is known and in the snapshot, the rest waits for the next start."""
    slurm, brakes = busy_slurm(), Brakes()
    waiting(slurm, CHUNK + 5)
    brakes = Brakes(alive=lambda: brakes.stop.set() if slurm.update_count else None)
    report = reprioritizer_of(slurm, tmp_path, ENFORCE, brakes).cycle()
    assert (report.sent, report.left_over, report.halted) == (CHUNK, 5, "stopped")
    assert "5 more wait for the next cycle; stopped; policy" in str(report)
    held = {job.job_id: job.site_factor for job in read_snapshot(tmp_path / "snapshot.jsonl").jobs}
    assert {i: site for i, site in sites_of(slurm).items() if held[i] != site} == {}
    assert settled(slurm, tmp_path) != {}


def test_what_the_deadline_cuts_off_comes_in_the_next_cycle(tmp_path: Path) -> None:
    """A cycle has its interval, at least 30 s; here the clock runs 20 s for each look at it."""
    times = iter(range(0, 10**6, 20))
    slurm, brakes = busy_slurm(), Brakes(200.0, clock=lambda: float(next(times)))
    waiting(slurm, 4 * CHUNK)
    report = reprioritizer_of(slurm, tmp_path, ENFORCE, brakes).cycle()
    assert (0 < report.sent < 4 * CHUNK, report.halted) == (True, "deadline")
    assert report.sent + report.left_over == 4 * CHUNK


def test_the_kill_switch_lets_nothing_through(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The cycle goes on as in observe, says so, and needs no right to write; without the file it acts."""
    slurm, switch = busy_slurm(), tmp_path / "STOP"
    waiting(slurm, 3)
    reprioritizer = reprioritizer_of(slurm, tmp_path, ENFORCE, Brakes(kill_switch=switch))
    switch.touch()
    reports = [reprioritizer.cycle() for _ in range(2)]
    assert [(report.planned, report.sent) for report in reports] == [(3, 0), (3, 0)]
    assert (slurm.update_count, slurm.guard.access) == (0, Access.READ_ONLY)
    assert f"kill switch {switch}" in str(reports[0])
    switch.unlink()
    assert reprioritizer.cycle().sent == 3
    assert [record.getMessage() for record in caplog.records if "kill switch" in record.getMessage()] == [
        f"kill switch {switch} exists: nothing is written to Slurm",
        f"kill switch {switch} is gone: SiteFactors are written again",
    ]


def test_a_kill_switch_in_mid_burst_ends_it(tmp_path: Path) -> None:
    """It is looked at before each chunk."""
    slurm, switch = busy_slurm(), tmp_path / "STOP"
    waiting(slurm, CHUNK + 5)
    brakes = Brakes(kill_switch=switch, alive=lambda: switch.touch() if slurm.update_count else None)
    report = reprioritizer_of(slurm, tmp_path, ENFORCE, brakes).cycle()
    assert (report.sent, report.left_over, report.halted) == (CHUNK, 5, f"kill switch {switch}")


def test_a_rate_limit_caps_the_burst_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Trap 18: an operator gets two requests a second; in 30 s that is 60, and our reads cost 13."""
    slurm = ConfiguredSlurm(
        NODES,
        [Partition(name="main", default=True)],
        {"normal": 0},
        user="op",
        admin_levels={"op": "Operator"},
    )
    slurm.config = SlurmConfig(
        cluster="fake",
        slurm_user="slurm",
        release="24.11.5",
        priority_type="priority/multifactor",
        slurmctld_parameters=("rl_enable",),
    )
    busy_slurm(slurm)
    waiting(slurm, 100)
    brakes = Brakes(0.0, clock=lambda: 0.0)
    reprioritizer = reprioritizer_of(slurm, tmp_path, ENFORCE, brakes)
    assert [reprioritizer.cycle().sent for _ in range(4)] == [47, 47, 6, 0]
    said = "slurmctld limits user op to 2 requests a second: at most 47 updates a cycle"
    assert caplog.text.count(said) == 1


def test_trap_28_a_scrontab_job_is_asked_once(tmp_path: Path) -> None:
    """Slurm lets nobody update it; as long as we live it isn't tried again."""
    slurm = busy_slurm()
    cron = slurm.submit(Submission(time_limit_s=600, scrontab=True))
    slurm.schedule()
    reprioritizer = reprioritizer_of(slurm, tmp_path)
    first, second = reprioritizer.cycle(), reprioritizer.cycle()
    assert [failure.update.job_id for failure in first.failures] == [cron]
    assert (second.planned, second.skipped) == (0, {"scrontab job": 1})


def test_trap_27_a_job_of_another_cluster_is_left_alone(tmp_path: Path) -> None:
    """In a federation the cluster that a job comes from updates it; ours by name is ours."""
    slurm = busy_slurm()
    for origin in ("", "fake", "other"):
        slurm.submit(Submission(time_limit_s=600, origin=origin))
    slurm.schedule()
    report = reprioritizer_of(slurm, tmp_path).cycle()
    assert (report.sent, report.skipped) == (2, {"belongs to another cluster": 1})


class _Jumping(FakeSlurm):
    """A Slurm whose host's clock is wrong by some time, as the snapshot's `now` tells it."""

    off_s = 0

    def read_cluster(self) -> Cluster:
        """Return the cluster by the wrong clock."""
        cluster = super().read_cluster()
        return replace(cluster, time_s=cluster.time_s + self.off_s)


@pytest.mark.parametrize("off_s", [-400 * 86_400, -3600, 3600, 400 * 86_400])
def test_a_clock_that_jumps_does_no_lasting_harm(tmp_path: Path, off_s: int) -> None:
    """Back or ahead, by an hour or a year: a cycle is done, and the next by the right clock is as before."""
    slurm = _Jumping(NODES, [Partition(name="main", default=True, cpus=8)], {"normal": 0})
    busy_slurm(slurm)
    jobs = waiting(slurm, 6)
    reprioritizer = reprioritizer_of(slurm, tmp_path)
    reprioritizer.cycle()
    slurm.off_s = off_s
    assert reprioritizer.cycle().failures == ()
    slurm.off_s = 0
    reprioritizer.cycle()
    assert reprioritizer.cycle().planned == 0
    sites = sites_of(slurm)
    assert sorted(sites, key=lambda i: -(sites[i] or 0)) == jobs
