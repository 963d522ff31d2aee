"""The cycle on the fake Slurm: what it writes, what it never touches, what it makes of a wrong setup."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from slurm_score.audit import AuditTrail, read_cycles
from slurm_score.errors import (
    CommandFailedError,
    NotPermittedError,
    PolicyError,
    SnapshotError,
    UnsuitableSlurmError,
)
from slurm_score.factors.wait import WaitParams, waits_s
from slurm_score.model import Job, Partition, PastRun, SlurmConfig
from slurm_score.policy import Mode, Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import SiteFactorUpdate, UpdateFailure
from slurm_score.snapshot import read_snapshot
from tests.unit.reprioritizer_support import (
    ENFORCE,
    NODES,
    ConfiguredSlurm,
    busy_slurm,
    reprioritizer_of,
    sites_of,
    waiting,
)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_outside_enforce_nothing_is_written(tmp_path: Path, mode: Mode) -> None:
    """Safe by default: the plan is made and logged, and no update reaches Slurm."""
    slurm = busy_slurm()
    job_id = slurm.submit(Submission(gres="gpu:1"))
    slurm.schedule()
    report = reprioritizer_of(slurm, tmp_path, Policy(mode=mode)).cycle()
    assert (report.planned, report.sent) == (1, 0)
    assert (slurm.update_count, sites_of(slurm)) == (0, {job_id: 0})


def test_observe_logs_what_it_would_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The dry run names the update that enforce would send: size 50, scarcity 20, and the offset."""
    slurm = busy_slurm()
    job_id = slurm.submit(Submission(gres="gpu:1"))
    slurm.schedule()
    with caplog.at_level(logging.INFO):
        reprioritizer_of(slurm, tmp_path, Policy()).cycle()
    assert f"would set JobId={job_id} SiteFactor={70 + 1089}" in caplog.text


def test_enforce_sets_what_changed_and_the_second_cycle_sets_nothing(tmp_path: Path) -> None:
    """With nothing changed in the cluster the second plan is empty."""
    slurm = busy_slurm()
    short = slurm.submit(Submission(gres="gpu:1", time_limit_s=600))
    long = slurm.submit(Submission(gres="gpu:1", time_limit_s=86400))
    slurm.schedule()
    reprioritizer = reprioritizer_of(slurm, tmp_path)
    assert reprioritizer.cycle().sent == 2
    sites = sites_of(slurm)
    assert (sites[short] or 0) > (sites[long] or 0) > 0
    assert reprioritizer.cycle().sent == 0


def test_snapshot_holds_the_priorities_that_the_updates_make(tmp_path: Path) -> None:
    """Readers add SiteFactor and Slurm's own parts up to the priority that squeue shows."""
    slurm = busy_slurm()
    waiting(slurm, 3)
    reprioritizer_of(slurm, tmp_path).cycle()
    seen = {
        job.job_id: (job.site_factor, job.priority) for job in read_snapshot(tmp_path / "snapshot.jsonl").jobs
    }
    there = {job.job_id: (job.site_factor, job.priority) for job in slurm.read_jobs() if job.pending}
    assert {job_id: seen[job_id] for job_id in there} == there
    assert min(site for site, _ in there.values() if site is not None) > 0


def test_held_and_pinned_jobs_are_never_updated(tmp_path: Path) -> None:
    """Cases 34 and 36: a held job stays held, a pinned one keeps its priority; both are counted."""
    slurm = busy_slurm()
    held = slurm.submit(Submission(hold=True, time_limit_s=600))
    pinned = slurm.submit(Submission(time_limit_s=600))
    slurm.schedule()
    slurm.update_priority(pinned, 5000)
    report = reprioritizer_of(slurm, tmp_path).cycle()
    assert report.skipped == {"held": 1, "pinned": 1}
    assert {job.job_id: job.priority for job in slurm.read_jobs() if job.pending} == {held: 0, pinned: 5000}
    assert (slurm.site_factor_of(held), slurm.site_factor_of(pinned)) == (0, 0)


def test_an_array_stays_one_record(tmp_path: Path) -> None:
    """Trap 12: one value for the whole array, in the form that doesn't split it."""
    slurm = busy_slurm()
    array = slurm.submit(Submission(array="0-9", gres="gpu:1", time_limit_s=600))
    slurm.schedule()
    before = len(slurm.read_jobs())
    reprioritizer_of(slurm, tmp_path).cycle()
    assert len(slurm.read_jobs()) == before
    assert (sites_of(slurm)[array] or 0) > 0


def test_a_het_job_is_updated_through_its_leader(tmp_path: Path) -> None:
    """Trap 13, case 26: both components get the leader's value by one update."""
    slurm = busy_slurm()
    component = Submission(gres="gpu:1", time_limit_s=600)
    leader = slurm.submit_het([component, component])
    slurm.schedule()
    report = reprioritizer_of(slurm, tmp_path).cycle()
    assert (report.sent, report.skipped) == (1, {"follows its het leader": 1})
    assert slurm.site_factor_of(leader) == slurm.site_factor_of(leader + 1) > 0


class _Failing(FakeSlurm):
    """A Slurm that fails where it is told to."""

    fails: Exception | None = None
    accounting_fails: Exception | None = None
    fail_updates: Sequence[int] = ()

    def read_jobs(self) -> tuple[Job, ...]:
        """Return the jobs, or fail."""
        if self.fails:
            raise self.fails
        return super().read_jobs()

    def read_past_runs(self, job_ids: Sequence[int]) -> Mapping[int, tuple[PastRun, ...]]:
        """Return the past runs, or fail as sacct does."""
        if self.accounting_fails:
            raise self.accounting_fails
        return super().read_past_runs(job_ids)

    def write_site_factors(self, updates: Sequence[SiteFactorUpdate]) -> tuple[UpdateFailure, ...]:
        """Carry out all updates but those of the jobs that are to fail."""
        failing = [u for u in updates if u.job_id in self.fail_updates]
        done = super().write_site_factors([u for u in updates if u not in failing])
        return (*done, *(UpdateFailure(u, "Job/step already completing or completed") for u in failing))


def _failing_slurm() -> _Failing:
    slurm = _Failing(NODES, [Partition(name="main", default=True, cpus=8)], {"normal": 0})
    busy_slurm(slurm)
    return slurm


def test_a_failed_update_does_not_stop_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Traps 16 and 17: jobs start and end between reading and writing; the rest goes on, the log says so."""
    slurm = _failing_slurm()
    jobs = [slurm.submit(Submission(time_limit_s=600)) for _ in range(3)]
    slurm.schedule()
    slurm.fail_updates = jobs[1:2]
    report = reprioritizer_of(slurm, tmp_path).cycle()
    assert [failure.update.job_id for failure in report.failures] == jobs[1:2]
    assert [(site or 0) > 0 for site in sites_of(slurm).values()] == [True, False, True]
    assert "1 updates failed" in caplog.text
    held = {job.job_id: job.site_factor for job in read_snapshot(tmp_path / "snapshot.jsonl").jobs}
    assert held[jobs[1]] == 0
    assert (held[jobs[0]] or 0) > 0


def test_a_user_without_the_right_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """One sentence with the remedy; Slurm and the snapshot are as before."""
    slurm = FakeSlurm(NODES, [Partition(name="main", default=True, cpus=8)], {"normal": 0}, user="alice")
    with pytest.raises(
        NotPermittedError, match=r"^user alice may not set SiteFactor \(AdminLevel=None\); run as"
    ):
        reprioritizer_of(slurm, tmp_path).cycle()
    assert (slurm.update_count, list(tmp_path.iterdir())) == (0, [])


def test_an_operator_may_run_it(tmp_path: Path) -> None:
    """Trap 18: AdminLevel=Operator is enough."""
    levels = {"op": "Operator"}
    main = Partition(name="main", default=True, cpus=8)
    slurm = busy_slurm(FakeSlurm(NODES, [main], {"normal": 0}, user="op", admin_levels=levels))
    slurm.submit(Submission(user="op", time_limit_s=600))
    slurm.schedule()
    assert reprioritizer_of(slurm, tmp_path).cycle().sent == 1


@pytest.mark.parametrize(
    ("config", "policy", "sentence"),
    [
        (
            SlurmConfig(priority_type="priority/basic"),
            Policy(),
            "priority/basic: SiteFactor has no effect; PriorityType=priority/multifactor is needed",
        ),
        (
            SlurmConfig(priority_type="priority/multifactor", site_factor_plugin="site_factor/x"),
            ENFORCE,
            "PrioritySiteFactorPlugin=site_factor/x would overwrite what we set; unset it",
        ),
        (
            SlurmConfig(priority_type="priority/multifactor", priority_weights={"age": 1000, "qos": 5}),
            Policy(mode=Mode.ENFORCE, slurm_factors="replace"),
            "the policy says slurm_factors: replace, but Slurm still has "
            "PriorityWeightAge=1000, PriorityWeightQOS=5; set them to 0 or say complement",
        ),
    ],
    ids=["basic", "plugin", "replace"],
)
def test_an_unsuitable_slurm_is_left_alone(
    tmp_path: Path, config: SlurmConfig, policy: Policy, sentence: str
) -> None:
    """Cases 35, traps 11 and 15: refuse to act, with the reason."""
    slurm = ConfiguredSlurm(NODES, [Partition(name="main", default=True)], {"normal": 0})
    slurm.config = config
    with pytest.raises(UnsuitableSlurmError) as caught:
        reprioritizer_of(slurm, tmp_path, policy).cycle()
    assert str(caught.value) == sentence


def test_what_counts_twice_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Trap 11: never double-count in silence; and not every minute."""
    main = Partition(name="main", default=True)
    slurm = FakeSlurm(NODES, [main], {"normal": 0}, priority_weights={"age": 1000})
    reprioritizer = reprioritizer_of(slurm, tmp_path)
    reprioritizer.cycle()
    reprioritizer.cycle()
    assert caplog.text.count("counted twice") == 1
    assert "PriorityWeightAge=1000" in caplog.text


def test_a_preempted_job_keeps_its_wait_across_a_restart_of_ours(tmp_path: Path) -> None:
    """Case 44: the earned wait comes back from the snapshot, and accounting isn't asked again."""
    slurm = _failing_slurm()
    job_id = slurm.submit(Submission(gres="gpu:1", time_limit_s=7200, run_time_s=7200))
    slurm.run_until_idle(3600)
    slurm.requeue(job_id, "preempted")
    slurm.drain("g1")
    slurm.schedule()
    reprioritizer_of(slurm, tmp_path).cycle()
    slurm.accounting_fails = CommandFailedError("slurmdbd is down")
    reprioritizer_of(slurm, tmp_path).cycle()
    queue = read_snapshot(tmp_path / "snapshot.jsonl").queue(now_s=slurm.now_s)
    i = next(i for i, job in enumerate(queue.jobs) if job.job_id == job_id)
    assert queue.jobs[i].past_runs == (PastRun("PREEMPTED", 3600.0),)
    assert waits_s(queue, WaitParams())[i] == 3600.0


def test_without_accounting_a_requeued_job_waits_anew_and_it_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A site without slurmdbd loses the earned wait, not the cycle."""
    slurm = _failing_slurm()
    running = next(iter(slurm.started))
    slurm.requeue(running)
    slurm.drain("g1")
    slurm.schedule()
    slurm.accounting_fails = CommandFailedError("Slurm accounting storage is disabled")
    reprioritizer = reprioritizer_of(slurm, tmp_path)
    assert [reprioritizer.cycle().pending, reprioritizer.cycle().pending] == [1, 1]
    assert caplog.text.count("requeued jobs count their wait from the requeue") == 1


def test_a_snapshot_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The service must not go on from an old snapshot in silence."""
    with pytest.raises(SnapshotError, match="can't write the snapshot"):
        reprioritizer_of(busy_slurm(), tmp_path / "missing").cycle()


def test_a_policy_that_was_never_good_stops_the_cycle(tmp_path: Path) -> None:
    """There is no default to fall back to: the admin's file decides."""

    def broken() -> Policy:
        return parse_policy("mode: x\n")

    with pytest.raises(PolicyError):
        Reprioritizer(busy_slurm(), broken, tmp_path / "snapshot.jsonl").cycle()


# audit and profiles


def test_a_cycle_is_written_down_with_its_updates(tmp_path: Path) -> None:
    """Counts, RPCs and the job's own line; a cycle without a change adds no line of a job."""
    slurm, audit = busy_slurm(), tmp_path / "audit.sqlite"
    waiting(slurm, 3)
    reprioritizer = Reprioritizer(
        slurm, lambda: ENFORCE, tmp_path / "snapshot.jsonl", audit=AuditTrail(audit)
    )
    for _ in range(2):
        reprioritizer.cycle()
    first, second = read_cycles(audit, 10, 0.0)
    assert [(cycle.planned, cycle.sent, cycle.error) for cycle in (first, second)] == [(3, 3, ""), (0, 0, "")]
    assert first.rpcs - second.rpcs == 3
    assert first.policy == ENFORCE.hash


def test_a_cycle_that_was_given_up_is_written_down_with_its_reason(tmp_path: Path) -> None:
    """Here Slurm isn't suitable."""
    slurm, audit = ConfiguredSlurm(NODES, [Partition(name="main", cpus=8)], {}), tmp_path / "audit.sqlite"
    slurm.config = SlurmConfig(priority_type="priority/basic")
    reprioritizer = Reprioritizer(
        slurm, lambda: ENFORCE, tmp_path / "snapshot.jsonl", audit=AuditTrail(audit)
    )
    with pytest.raises(UnsuitableSlurmError):
        reprioritizer.cycle()
    (cycle,) = read_cycles(audit, 10, 0.0)
    assert "SiteFactor has no effect" in cycle.error


def test_profile_in_force_scores_the_queue_and_the_snapshot_says_so(tmp_path: Path) -> None:
    """A profile that always applies: the queue is scored by its weights, under the policy's own hash."""
    policy = parse_policy("mode: enforce\nprofiles: {all: {when: {days: mon-sun}, weights: {size: 900}}}\n")
    slurm = busy_slurm()
    waiting(slurm, 1)
    reprioritizer_of(slurm, tmp_path, policy).cycle()
    snapshot = read_snapshot(tmp_path / "snapshot.jsonl")
    assert (policy.weights["size"], snapshot.policy.weights["size"]) == (200, 900)
    assert snapshot.policy.hash == policy.hash
