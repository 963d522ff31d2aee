"""slurm-score reset: what it prints, and when it is not done."""

import threading

import pytest

from slurm_score.brakes import CHUNK
from slurm_score.cli.reset import put_back
from slurm_score.errors import ControllerDownError, ParseError, SlurmError
from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate


def slurm_with(jobs: int) -> FakeSlurm:
    """Return a full cluster with so many waiting jobs whose SiteFactor is 7."""
    node = Node(name="g1", cpus=1, gpus=GpuCount(), partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True)], {"normal": 0})
    slurm.submit(Submission(time_limit_s=3600))
    slurm.schedule()
    ids = [slurm.submit(Submission(time_limit_s=3600)) for _ in range(jobs)]
    slurm.schedule()
    slurm.guard.access = Access.ENFORCE
    slurm.write_site_factors([SiteFactorUpdate(i, str(i), 7) for i in ids])
    slurm.guard.access = Access.READ_ONLY
    slurm.update_count = 0
    return slurm


def test_what_was_set_to_0_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and no bar where the output is no terminal; a second run has nothing to do."""
    slurm = slurm_with(3)
    put_back(slurm, (), threading.Event())
    put_back(slurm, (), threading.Event())
    out, err = capsys.readouterr()
    assert out == "3 jobs set to 0; skipped: none\n0 jobs set to 0; skipped: 3 unchanged\n"
    assert err == ""


def test_a_reset_that_is_stopped_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C: nothing more is sent, and the next run does the rest."""
    slurm, stop = slurm_with(2), threading.Event()
    stop.set()
    with pytest.raises(SlurmError, match="stopped: 2 updates were not sent; run it again for the rest"):
        put_back(slurm, (), stop)
    assert (capsys.readouterr().out, slurm.update_count) == ("0 jobs set to 0; skipped: none\n", 0)
    put_back(slurm, (), threading.Event())
    assert slurm.update_count == 2


def test_a_reset_goes_on_where_slurmctld_went_down() -> None:
    """In the second chunk; the second run sends only what is left."""
    slurm = slurm_with(CHUNK + 10)
    slurm.dies_after = CHUNK + 4
    with pytest.raises(ControllerDownError):
        put_back(slurm, (), threading.Event())
    slurm.dies_after, slurm.update_count = None, 0
    put_back(slurm, (), threading.Event())
    assert slurm.update_count == 6


def test_a_failed_update_is_an_error_after_the_rest_was_done() -> None:
    """The command then exits with 1; Slurm's sentence is kept."""
    slurm = slurm_with(2)
    cron = slurm.submit(Submission(time_limit_s=600, scrontab=True, begin_s=slurm.now_s + 60))
    with pytest.raises(SlurmError, match="1 updates failed, the first: Cannot modify scrontab jobs"):
        put_back(slurm, (), threading.Event())
    assert (slurm.update_count, slurm.site_factor_of(cron)) == (2, 0)


def test_an_unknown_partition_is_named() -> None:
    """With those that there are; nothing is sent."""
    slurm = slurm_with(1)
    with pytest.raises(ParseError, match="--partition: no such partition, got 'gpu'; there are main"):
        put_back(slurm, ("gpu",), threading.Event())
    assert slurm.update_count == 0
