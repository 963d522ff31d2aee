"""The cycle on the fake Slurm: what it writes, what it never touches, and what it does when things fail."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_score.audit import AuditTrail, read_cycles
from slurm_score.brakes import CHUNK, Brakes
from slurm_score.errors import (
    CommandFailedError,
    ControllerDownError,
    NotPermittedError,
    ParseError,
    PolicyError,
    SnapshotError,
    UnsuitableSlurmError,
    WriteRefusedError,
)
from slurm_score.factors.wait import WaitParams, waits_s
from slurm_score.gres import GpuCount
from slurm_score.model import Cluster, Job, Node, Partition, PastRun, SlurmConfig
from slurm_score.policy import Mode, Policy, parse_policy
from slurm_score.reprioritizer import Reprioritizer, plan_of_reset, reset
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, SiteFactorUpdate, UpdateFailure
from slurm_score.snapshot import read_snapshot

ENFORCE = Policy(mode=Mode.ENFORCE)
NODES = [Node(name="g1", cpus=8, gpus=GpuCount(4, {"a100": 4}), partitions=("main",))]


def _busy_slurm(slurm: FakeSlurm | None = None) -> FakeSlurm:
    """Return a cluster whose only node is taken for an hour, so that what comes next waits."""
    slurm = slurm or FakeSlurm(
        NODES, [Partition(name="main", default=True, cpus=8)], {"normal": 0, "high": 100}
    )
    slurm.submit(Submission(gres="gpu:4", cpus_per_task=8, time_limit_s=3600, run_time_s=3600))
    slurm.schedule()
    return slurm


def _reprioritizer(
    slurm: FakeSlurm, folder: Path, policy: Policy = ENFORCE, brakes: Brakes | None = None
) -> Reprioritizer:
    return Reprioritizer(slurm, lambda: policy, folder / "snapshot.jsonl", brakes)


def _sites(slurm: FakeSlurm) -> dict[int, int | None]:
    return {job.job_id: job.site_factor for job in slurm.read_jobs() if job.pending}


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_outside_enforce_nothing_is_written(tmp_path: Path, mode: Mode) -> None:
    """Safe by default: the plan is made and logged, and no update reaches Slurm."""
    slurm = _busy_slurm()
    job_id = slurm.submit(Submission(gres="gpu:1"))
    slurm.schedule()
    report = _reprioritizer(slurm, tmp_path, Policy(mode=mode)).cycle()
    assert (report.planned, report.sent) == (1, 0)
    assert (slurm.update_count, _sites(slurm)) == (0, {job_id: 0})


def test_observe_logs_what_it_would_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The dry run names the update that enforce would send: size 50, scarcity 20, and the offset."""
    slurm = _busy_slurm()
    job_id = slurm.submit(Submission(gres="gpu:1"))
    slurm.schedule()
    with caplog.at_level(logging.INFO):
        _reprioritizer(slurm, tmp_path, Policy()).cycle()
    assert f"would set JobId={job_id} SiteFactor={70 + 1089}" in caplog.text


def test_enforce_sets_what_changed_and_the_second_cycle_sets_nothing(tmp_path: Path) -> None:
    """With nothing changed in the cluster the second plan is empty."""
    slurm = _busy_slurm()
    short = slurm.submit(Submission(gres="gpu:1", time_limit_s=600))
    long = slurm.submit(Submission(gres="gpu:1", time_limit_s=86400))
    slurm.schedule()
    reprioritizer = _reprioritizer(slurm, tmp_path)
    assert reprioritizer.cycle().sent == 2
    sites = _sites(slurm)
    assert (sites[short] or 0) > (sites[long] or 0) > 0
    assert reprioritizer.cycle().sent == 0


def test_held_and_pinned_jobs_are_never_updated(tmp_path: Path) -> None:
    """Cases 34 and 36: a held job stays held, a pinned one keeps its priority; both are counted."""
    slurm = _busy_slurm()
    held = slurm.submit(Submission(hold=True, time_limit_s=600))
    pinned = slurm.submit(Submission(time_limit_s=600))
    slurm.schedule()
    slurm.update_priority(pinned, 5000)
    report = _reprioritizer(slurm, tmp_path).cycle()
    assert report.skipped == {"held": 1, "pinned": 1}
    assert {job.job_id: job.priority for job in slurm.read_jobs() if job.pending} == {held: 0, pinned: 5000}
    assert (slurm.site_factor_of(held), slurm.site_factor_of(pinned)) == (0, 0)


def test_an_array_stays_one_record(tmp_path: Path) -> None:
    """Trap 12: one value for the whole array, in the form that doesn't split it."""
    slurm = _busy_slurm()
    array = slurm.submit(Submission(array="0-9", gres="gpu:1", time_limit_s=600))
    slurm.schedule()
    before = len(slurm.read_jobs())
    _reprioritizer(slurm, tmp_path).cycle()
    assert len(slurm.read_jobs()) == before
    assert (_sites(slurm)[array] or 0) > 0


def test_a_het_job_is_updated_through_its_leader(tmp_path: Path) -> None:
    """Trap 13, case 26: both components get the leader's value by one update."""
    slurm = _busy_slurm()
    component = Submission(gres="gpu:1", time_limit_s=600)
    leader = slurm.submit_het([component, component])
    slurm.schedule()
    report = _reprioritizer(slurm, tmp_path).cycle()
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
    _busy_slurm(slurm)
    return slurm


def test_a_failed_update_does_not_stop_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Traps 16 and 17: jobs start and end between reading and writing; the rest goes on, the log says so."""
    slurm = _failing_slurm()
    jobs = [slurm.submit(Submission(time_limit_s=600)) for _ in range(3)]
    slurm.schedule()
    slurm.fail_updates = jobs[1:2]
    report = _reprioritizer(slurm, tmp_path).cycle()
    assert [failure.update.job_id for failure in report.failures] == jobs[1:2]
    assert [(site or 0) > 0 for site in _sites(slurm).values()] == [True, False, True]
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
        _reprioritizer(slurm, tmp_path).cycle()
    assert (slurm.update_count, list(tmp_path.iterdir())) == (0, [])


def test_an_operator_may_run_it(tmp_path: Path) -> None:
    """Trap 18: AdminLevel=Operator is enough."""
    levels = {"op": "Operator"}
    main = Partition(name="main", default=True, cpus=8)
    slurm = _busy_slurm(FakeSlurm(NODES, [main], {"normal": 0}, user="op", admin_levels=levels))
    slurm.submit(Submission(user="op", time_limit_s=600))
    slurm.schedule()
    assert _reprioritizer(slurm, tmp_path).cycle().sent == 1


class _Configured(FakeSlurm):
    """A Slurm with a configuration of the test's own."""

    config = SlurmConfig()

    def read_cluster(self) -> Cluster:
        """Return the cluster with that configuration."""
        cluster = super().read_cluster()
        return replace(cluster, config=self.config)


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
    slurm = _Configured(NODES, [Partition(name="main", default=True)], {"normal": 0})
    slurm.config = config
    with pytest.raises(UnsuitableSlurmError) as caught:
        _reprioritizer(slurm, tmp_path, policy).cycle()
    assert str(caught.value) == sentence


def test_what_counts_twice_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Trap 11: never double-count in silence; and not every minute."""
    main = Partition(name="main", default=True)
    slurm = FakeSlurm(NODES, [main], {"normal": 0}, priority_weights={"age": 1000})
    reprioritizer = _reprioritizer(slurm, tmp_path)
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
    _reprioritizer(slurm, tmp_path).cycle()
    slurm.accounting_fails = CommandFailedError("slurmdbd is down")
    _reprioritizer(slurm, tmp_path).cycle()
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
    reprioritizer = _reprioritizer(slurm, tmp_path)
    assert [reprioritizer.cycle().pending, reprioritizer.cycle().pending] == [1, 1]
    assert caplog.text.count("requeued jobs count their wait from the requeue") == 1


def test_a_snapshot_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The service must not go on from an old snapshot in silence."""
    with pytest.raises(SnapshotError, match="can't write the snapshot"):
        _reprioritizer(_busy_slurm(), tmp_path / "missing").cycle()


def test_a_policy_that_was_never_good_stops_the_cycle(tmp_path: Path) -> None:
    """There is no default to fall back to: the admin's file decides."""

    def broken() -> Policy:
        return parse_policy("mode: x\n")

    with pytest.raises(PolicyError):
        Reprioritizer(_busy_slurm(), broken, tmp_path / "snapshot.jsonl").cycle()


def test_reset_puts_every_site_factor_back_to_zero(tmp_path: Path) -> None:
    """The way back works without a policy, and may write nothing but zeros."""
    slurm = _busy_slurm()
    jobs = [slurm.submit(Submission(time_limit_s=600)) for _ in range(3)]
    slurm.schedule()
    _reprioritizer(slurm, tmp_path).cycle()
    plan = plan_of_reset(slurm)
    burst = reset(slurm, plan, Brakes())
    assert ([update.value for update in burst.sent], burst.failures) == ([0, 0, 0], [])
    assert _sites(slurm) == dict.fromkeys(jobs, 0)
    assert slurm.guard.access is Access.RESET
    with pytest.raises(WriteRefusedError):
        slurm.write_site_factors([SiteFactorUpdate(jobs[0], str(jobs[0]), 1)])


def test_reset_of_a_partition_leaves_the_others_alone(tmp_path: Path) -> None:
    """A partition that isn't there is named, with those that are."""
    partitions = [Partition(name="main", default=True), Partition(name="side")]
    slurm = FakeSlurm([replace(NODES[0], partitions=("main", "side"))], partitions, {"normal": 0})
    _busy_slurm(slurm)
    main, side = (slurm.submit(Submission(time_limit_s=600, partition=name)) for name in ("main", "side"))
    slurm.schedule()
    _reprioritizer(slurm, tmp_path).cycle()
    reset(slurm, plan_of_reset(slurm, ["side"]), Brakes())
    assert (slurm.site_factor_of(main) > 0, slurm.site_factor_of(side)) == (True, 0)
    with pytest.raises(ParseError, match="no such partition, got 'sid'; there are main, side"):
        plan_of_reset(slurm, ["sid"])


def _waiting(slurm: FakeSlurm, count: int) -> list[int]:
    """Return the ids of so many jobs that all want another SiteFactor."""
    jobs = [slurm.submit(Submission(gres="gpu:1", time_limit_s=600 + 600 * i)) for i in range(count)]
    slurm.schedule()
    return jobs


def _settled(slurm: FakeSlurm, folder: Path) -> dict[int, int | None]:
    """Return the SiteFactors after one cycle of a new process, which must leave nothing to do."""
    _reprioritizer(slurm, folder).cycle()
    assert _reprioritizer(slurm, folder).cycle().planned == 0
    return _sites(slurm)


@pytest.mark.parametrize("carried_out", range(7))
def test_slurmctld_that_dies_in_mid_burst_is_put_right_in_one_cycle(tmp_path: Path, carried_out: int) -> None:
    """Trap 26: however many updates were carried out, the next cycle brings the queue to the same order."""
    calm, slurm = _busy_slurm(), _busy_slurm()
    assert _waiting(calm, 6) == _waiting(slurm, 6)
    slurm.dies_after = carried_out
    if carried_out < 6:
        with pytest.raises(ControllerDownError):
            _reprioritizer(slurm, tmp_path).cycle()
    assert slurm.update_count == (carried_out if carried_out < 6 else 0)
    slurm.dies_after = None
    wanted, found = _settled(calm, tmp_path), _settled(slurm, tmp_path)
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
    _busy_slurm(slurm)
    jobs = _waiting(slurm, 6)
    slurm.left = carried_out
    with pytest.raises(_Killed):
        _reprioritizer(slurm, tmp_path).cycle()
    (tmp_path / "snapshot.jsonl").unlink()  # kill -9 leaves us no time to write one
    restarted = FakeSlurm.write_site_factors
    slurm.__class__ = type("Restarted", (FakeSlurm,), {"write_site_factors": restarted})
    sites = _settled(slurm, tmp_path)
    assert sorted(sites, key=lambda i: -(sites[i] or 0)) == jobs


def test_a_stop_ends_the_burst_between_two_chunks(tmp_path: Path) -> None:
    """SIGTERM: what was sent is known and in the snapshot, the rest waits for the next start."""
    slurm, brakes = _busy_slurm(), Brakes()
    _waiting(slurm, CHUNK + 5)
    brakes = Brakes(alive=lambda: brakes.stop.set() if slurm.update_count else None)
    report = _reprioritizer(slurm, tmp_path, ENFORCE, brakes).cycle()
    assert (report.sent, report.left_over, report.halted) == (CHUNK, 5, "stopped")
    assert "5 more wait for the next cycle; stopped; policy" in str(report)
    held = {job.job_id: job.site_factor for job in read_snapshot(tmp_path / "snapshot.jsonl").jobs}
    assert {i: site for i, site in _sites(slurm).items() if held[i] != site} == {}
    assert _settled(slurm, tmp_path) != {}


def test_what_the_deadline_cuts_off_comes_in_the_next_cycle(tmp_path: Path) -> None:
    """A cycle has its interval, at least 30 s; here the clock runs 20 s for each look at it."""
    times = iter(range(0, 10**6, 20))
    slurm, brakes = _busy_slurm(), Brakes(200.0, clock=lambda: float(next(times)))
    _waiting(slurm, 4 * CHUNK)
    report = _reprioritizer(slurm, tmp_path, ENFORCE, brakes).cycle()
    assert (0 < report.sent < 4 * CHUNK, report.halted) == (True, "deadline")
    assert report.sent + report.left_over == 4 * CHUNK


def test_the_kill_switch_lets_nothing_through(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The cycle goes on as in observe, says so, and needs no right to write; without the file it acts."""
    slurm, switch = _busy_slurm(), tmp_path / "STOP"
    _waiting(slurm, 3)
    reprioritizer = _reprioritizer(slurm, tmp_path, ENFORCE, Brakes(kill_switch=switch))
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
    slurm, switch = _busy_slurm(), tmp_path / "STOP"
    _waiting(slurm, CHUNK + 5)
    brakes = Brakes(kill_switch=switch, alive=lambda: switch.touch() if slurm.update_count else None)
    report = _reprioritizer(slurm, tmp_path, ENFORCE, brakes).cycle()
    assert (report.sent, report.left_over, report.halted) == (CHUNK, 5, f"kill switch {switch}")


def test_a_rate_limit_caps_the_burst_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Trap 18: an operator gets two requests a second; in 30 s that is 60, and our reads cost 12."""
    slurm = _Configured(
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
    _busy_slurm(slurm)
    _waiting(slurm, 100)
    brakes = Brakes(0.0, clock=lambda: 0.0)
    reprioritizer = _reprioritizer(slurm, tmp_path, ENFORCE, brakes)
    assert [reprioritizer.cycle().sent for _ in range(4)] == [48, 48, 4, 0]
    said = "slurmctld limits user op to 2 requests a second: at most 48 updates a cycle"
    assert caplog.text.count(said) == 1


def test_trap_28_a_scrontab_job_is_asked_once(tmp_path: Path) -> None:
    """Slurm lets nobody update it; as long as we live it isn't tried again."""
    slurm = _busy_slurm()
    cron = slurm.submit(Submission(time_limit_s=600, scrontab=True))
    slurm.schedule()
    reprioritizer = _reprioritizer(slurm, tmp_path)
    first, second = reprioritizer.cycle(), reprioritizer.cycle()
    assert [failure.update.job_id for failure in first.failures] == [cron]
    assert (second.planned, second.skipped) == (0, {"scrontab job": 1})


def test_trap_27_a_job_of_another_cluster_is_left_alone(tmp_path: Path) -> None:
    """In a federation the cluster that a job comes from updates it; ours by name is ours."""
    slurm = _busy_slurm()
    for origin in ("", "fake", "other"):
        slurm.submit(Submission(time_limit_s=600, origin=origin))
    slurm.schedule()
    report = _reprioritizer(slurm, tmp_path).cycle()
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
    _busy_slurm(slurm)
    jobs = _waiting(slurm, 6)
    reprioritizer = _reprioritizer(slurm, tmp_path)
    reprioritizer.cycle()
    slurm.off_s = off_s
    assert reprioritizer.cycle().failures == ()
    slurm.off_s = 0
    reprioritizer.cycle()
    assert reprioritizer.cycle().planned == 0
    sites = _sites(slurm)
    assert sorted(sites, key=lambda i: -(sites[i] or 0)) == jobs


# audit and profiles


def test_a_cycle_is_written_down_with_its_updates(tmp_path: Path) -> None:
    """Counts, RPCs and the job's own line; a cycle without a change adds no line of a job."""
    slurm, audit = _busy_slurm(), tmp_path / "audit.sqlite"
    _waiting(slurm, 3)
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
    slurm, audit = _Configured(NODES, [Partition(name="main", cpus=8)], {}), tmp_path / "audit.sqlite"
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
    slurm = _busy_slurm()
    _waiting(slurm, 1)
    _reprioritizer(slurm, tmp_path, policy).cycle()
    snapshot = read_snapshot(tmp_path / "snapshot.jsonl")
    assert (policy.weights["size"], snapshot.policy.weights["size"]) == (200, 900)
    assert snapshot.policy.hash == policy.hash
