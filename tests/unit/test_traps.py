"""The traps that Slurm sets for whoever reads and sets SiteFactor, each tried on the fake Slurm.

The numbers are those of the list in slurm-facts, section 8. Traps of the hook (5 to 8) are in
test_hook*.py, those of the readers' texts (3, 12, 23) in test_parse*.py, those of the loop and of the
configuration (11, 15 to 18, 26 to 29) in test_reprioritizer.py, test_loop.py and test_suitability.py.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition, PastRun, SlurmConfig
from slurm_score.policy import MAX_SITE_FACTOR, Mode, Policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.score import neutral_site, score_queue
from slurm_score.slurm.commands import Answer, CommandGateway
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate, WriteGuard
from slurm_score.slurm.parse import parse_squeue
from slurm_score.slurm.parse_accounting import parse_past_runs
from slurm_score.units import DAY_S, HOUR_S
from tests.unit.builders import NOW, make_cluster, make_job, make_policy, make_queue
from tests.unit.slurm_texts import END, squeue_line

ENFORCE = Policy(mode=Mode.ENFORCE)


@pytest.fixture
def slurm() -> FakeSlurm:
    """A cluster whose only node is taken for an hour."""
    node = Node(name="g1", cpus=8, gpus=GpuCount(4, {"a100": 4}), partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True)], {"normal": 0, "high": 100})
    slurm.submit(Submission(gres="gpu:4", cpus_per_task=8, time_limit_s=3600, run_time_s=3600))
    slurm.schedule()
    return slurm


def _cycle(slurm: FakeSlurm, folder: Path) -> int:
    """Run an enforce cycle, and return how many updates it sent."""
    return Reprioritizer(slurm, lambda: ENFORCE, folder / "snapshot.jsonl").cycle().sent


def test_trap_1_a_pin_is_an_admin_s_and_stays(slurm: FakeSlurm, tmp_path: Path) -> None:
    """A pinned job shows no parts in sprio: it is recognised, left alone, and never released."""
    job_id = slurm.submit(Submission(time_limit_s=600))
    slurm.schedule()
    slurm.update_priority(job_id, 5000)
    assert _cycle(slurm, tmp_path) == 0
    job = next(job for job in slurm.read_jobs() if job.job_id == job_id)
    assert (job.pinned, job.priority) == (True, 5000)


def test_trap_2_a_job_with_bad_constraints_is_not_let_go(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Any update would release it, and the scheduler would hold it again: endless churn."""
    job_id = slurm.submit(Submission(time_limit_s=600))
    slurm.break_constraints(job_id)
    slurm.schedule()
    assert _cycle(slurm, tmp_path) == 0
    job = next(job for job in slurm.read_jobs() if job.job_id == job_id)
    assert (job.priority, job.reason) == (0, "BadConstraints")


def test_trap_4_what_slurm_holds_is_the_truth(slurm: FakeSlurm, tmp_path: Path) -> None:
    """A value that somebody else has set is seen in the next cycle and put right."""
    job_id = slurm.submit(Submission(time_limit_s=600))
    slurm.schedule()
    reprioritizer = Reprioritizer(slurm, lambda: ENFORCE, tmp_path / "snapshot.jsonl")
    reprioritizer.cycle()
    ours = slurm.site_factor_of(job_id)
    slurm.guard.access = Access.ENFORCE  # an admin's scontrol
    slurm.write_site_factors([SiteFactorUpdate(job_id, str(job_id), 7)])
    assert reprioritizer.cycle().sent == 1
    assert slurm.site_factor_of(job_id) == ours > 7


@pytest.mark.parametrize("wait_s", [0, 45 * HOUR_S, 10_000 * DAY_S])
@pytest.mark.parametrize("range_", [0, 2_000_000_000])
def test_traps_9_and_10_no_value_is_negative_or_above_the_cap(wait_s: float, range_: int) -> None:
    """-2 means "not set", negative ones flatten the order, and scontrol ignores what is too large."""
    config = SlurmConfig(priority_weights={"fairshare": range_})
    cluster = make_cluster(config=config)
    job = make_job(wait_s=min(wait_s, NOW - 1))
    for policy in (make_policy(), make_policy(cap=MAX_SITE_FACTOR)):
        site = int(score_queue(make_queue(job, cluster=cluster), policy).site[0])
        assert 0 <= site <= policy.cap <= MAX_SITE_FACTOR
        assert 0 <= neutral_site(policy) <= policy.cap


def test_trap_19_a_user_s_nice_stays(slurm: FakeSlurm, tmp_path: Path) -> None:
    """SiteFactor is added beside it: the priority is our value less the nice."""
    job_id = slurm.submit(Submission(time_limit_s=600, nice=50))
    slurm.schedule()
    _cycle(slurm, tmp_path)
    job = next(job for job in slurm.read_jobs() if job.job_id == job_id)
    assert job.priority == slurm.site_factor_of(job_id) - 50


def test_trap_20_what_has_not_changed_is_not_sent(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Each update is an RPC, a log line and a state save: the second cycle sends none."""
    for minutes in range(1, 21):
        slurm.submit(Submission(time_limit_s=60 * minutes))
    slurm.schedule()
    assert [_cycle(slurm, tmp_path) for _ in range(3)] == [20, 0, 0]


def test_trap_21_nothing_but_site_factor_is_written() -> None:
    """Priority and Nice would write to slurmdbd each time, and one of them pins."""
    sent: list[str] = []

    def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        assert (tuple(argv), timeout_s > 0) == (("scontrol",), True)
        sent.append(stdin)
        return Answer(0, "", "")

    gateway = CommandGateway(WriteGuard(Access.ENFORCE), run)
    gateway.write_site_factors([SiteFactorUpdate(9, "9_[0-9]", 800), SiteFactorUpdate(12, "12", 0)])
    assert sent == ["update JobId=9_[0-9] SiteFactor=800\nupdate JobId=12 SiteFactor=0\n"]


def test_trap_24_a_hint_cannot_beat_the_time_limit(slurm: FakeSlurm, tmp_path: Path) -> None:
    """A longer estimate counts as the limit, so that it gives the same value as none."""
    plain = slurm.submit(Submission(time_limit_s=600))
    longer = slurm.submit(Submission(time_limit_s=600, comment="score: est=9h"))
    slurm.schedule()
    _cycle(slurm, tmp_path)
    assert slurm.site_factor_of(plain) == slurm.site_factor_of(longer)


def test_trap_25_a_comment_edited_later_is_read_like_any_other() -> None:
    """Hints come anew from squeue's text in every cycle, and what can't be read there is ignored."""
    end = "\x1fEND"
    text = squeue_line(Comment="score: est=-1 urgency=max est=20m").replace(END, end)
    hints = parse_squeue(text, "\x1f", end).items[0].hints
    assert (hints.est_s, hints.urgency, len(hints.problems)) == (1200.0, None, 2)


def test_a_run_that_goes_on_is_no_past_run() -> None:
    """sacct -D lists it as well; only a run that ended can have earned a wait."""
    text = "7|NODE_FAIL|1000|1000|1060\n7|RUNNING|2000|2000|2030\n"
    assert parse_past_runs(text) == {7: (PastRun("NODE_FAIL", 60.0),)}
