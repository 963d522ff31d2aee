"""Laws of every schedule, over random workloads small enough to be checked by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_score.policy import Policy
from slurm_score.sim.engine import BACKFILLS, Options, Schedule
from slurm_score.sim.metrics import littles_law, used_over_time
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.policies import FIXED, NAMES, PREDICTORS, QueuePolicy, named
from slurm_score.sim.workload import Workload, rows_of
from tests.unit.sim_support import schedule, workload

PROCS = 8
BATCH_CONSERVATIVE = Options(backfill="conservative")


@st.composite
def workloads(draw: st.DrawFn, max_size: int = 25) -> Workload:
    """Draw jobs that crowd a machine of eight processors; run times are often below the requests."""
    rows, users = [], []
    submit_s = 0
    for _ in range(draw(st.integers(1, max_size))):
        submit_s += draw(st.sampled_from((0, 0, 1, 5, 20)))
        run_s = draw(st.integers(1, 60))
        request_s = draw(st.sampled_from((run_s, run_s + 1, 2 * run_s, 60, 1000)))
        rows.append((submit_s, run_s, draw(st.integers(1, PROCS)), max(run_s, request_s)))
        users.append(draw(st.integers(0, 2)))
    return workload(rows, users)


@st.composite
def policies(draw: st.DrawFn) -> QueuePolicy:
    """Draw any policy with any predictor of its own."""
    predictor = draw(st.sampled_from([name for name in PREDICTORS if name != "told"]))
    kind = draw(st.sampled_from([*NAMES, "multifactor", "ours"]))
    if kind == "ours":
        return QueuePolicy("ours", Policy(), predictor)
    if kind == "multifactor":
        return QueuePolicy("multifactor", Multifactor(size=500.0, fairshare=800.0, calc_period=10.0))
    return named(kind, predictor if kind in ("sjf", "saf", "wfp3", "unicep", "qssf") else "request")


@st.composite
def options(draw: st.DrawFn) -> Options:
    """Draw any way to schedule that there is."""
    backfill = draw(st.sampled_from(tuple(BACKFILLS)))
    orders = ["batch"] if backfill == "slurm" else ["batch", "pyss"]
    order = draw(st.sampled_from([*orders, "rlscheduler"] if backfill in ("none", "easy") else orders))
    plans = FIXED if backfill == "conservative" else ("request", "clairvoyant", "tsafrir", "recent")
    return Options(backfill=backfill, order=order, plan=draw(st.sampled_from(plans)))


@given(work=workloads(), policy=policies(), how=options())
def test_no_processor_is_used_twice_and_none_is_lost(
    work: Workload, policy: QueuePolicy, how: Options
) -> None:
    """Every job runs once, not before its submission; use is from 0 to all, and adds up to the work."""
    ran = schedule(work, PROCS, policy, how)
    assert (ran.wait_s >= 0).all()
    at_s, used = used_over_time(ran)
    assert ((used >= 0) & (used <= PROCS)).all()
    assert used[-1] == 0
    assert int((used[:-1] * np.diff(at_s)).sum()) == int((work.procs * work.run_s).sum())


@given(work=workloads(), policy=policies(), how=options())
def test_no_job_waits_at_an_empty_machine(work: Workload, policy: QueuePolicy, how: Options) -> None:
    """While somebody waits, somebody runs, or soon will: no pass is forgotten."""
    ran = schedule(work, PROCS, policy, how)
    patience_s = how.scheduler.batch_sched_delay_s if how.backfill == "slurm" else 0
    at_s, used = used_over_time(ran)
    for begin, end, busy in zip(at_s[:-1].tolist(), at_s[1:].tolist(), used.tolist(), strict=False):
        waiting = (work.submit_s < end) & (ran.start_s > begin)
        if busy == 0 and waiting.any():
            assert end - max(begin, work.submit_s[waiting].min()) <= patience_s


@given(work=workloads(), policy=policies(), how=options())
def test_littles_law(work: Workload, policy: QueuePolicy, how: Options) -> None:
    """Mean queue length = arrival rate x mean wait."""
    length, arrived = littles_law(schedule(work, PROCS, policy, how))
    assert length == pytest.approx(arrived, rel=1e-9)


@given(work=workloads(), policy=policies(), how=options())
def test_result_is_the_same_with_and_without_numba(work: Workload, policy: QueuePolicy, how: Options) -> None:
    """One source, two forms, equal to the second."""
    pytest.importorskip("numba", reason="without numba there is nothing to compare")
    compiled = schedule(work, PROCS, policy, replace(how, numba=True))
    plain = schedule(work, PROCS, policy, replace(how, numba=False))
    assert compiled.start_s.tolist() == plain.start_s.tolist()


def reservation_s(ran: Schedule, row: int) -> int | None:
    """Return by when a job must have started under EASY, by brute force; None if it never was a blocked head.

    It becomes the head when the last job before it has started. What is behind it and starts then or
    later must not delay it.
    """
    work = ran.workload
    head_s = max([int(work.submit_s[row]), *ran.start_s[:row].tolist()])
    if ran.start_s[row] <= head_s:
        return None
    rows = np.arange(len(work))
    counts = (ran.start_s <= head_s) & (ran.end_s > head_s) & ((rows < row) | (ran.start_s < head_s))
    ends = sorted((int(ran.start_s[i] + work.request_s[i]), int(work.procs[i])) for i in rows[counts])
    free = PROCS - sum(procs for _, procs in ends)
    for end_s, procs in ends:
        free += procs
        if free >= work.procs[row]:
            return end_s
    raise AssertionError("a job that fits the machine fits when it is empty")


@given(work=workloads())
def test_easy_never_delays_the_heads_reservation(work: Workload) -> None:
    """First come, first served with requests that runs keep to. Source: Lifka, 1995."""
    ran = schedule(work, PROCS)
    for row in range(len(work)):
        promised = reservation_s(ran, row)
        assert promised is None or ran.start_s[row] <= promised


def test_the_check_of_reservations_can_fail() -> None:
    """SJF lets a short job delay the wide one that was promised 10."""
    work = workload([(0, 10, 6, 10), (1, 20, 8, 20), (2, 15, 2, 15)])
    assert reservation_s(schedule(work, PROCS), 1) == 10
    unfair = schedule(work, PROCS, named("sjf"))
    assert unfair.start_s.tolist() == [0, 17, 2]
    assert reservation_s(unfair, 1) == 10


@settings(max_examples=30)
@given(work=workloads(max_size=12))
def test_conservative_never_starts_a_job_after_its_first_reservation(work: Workload) -> None:
    """The reservation made at submission, as if all that runs then took all that it asked for.

    That is the start which the job has without those behind it, when runs that are not over at its
    submission last as long as their requests. Source: Mu'alem and Feitelson, 2001.
    """
    ran = schedule(work, PROCS, options=BATCH_CONSERVATIVE)
    for row in range(len(work)):
        first = rows_of(work, slice(0, row + 1))
        over = ran.end_s[: row + 1] <= work.submit_s[row]
        slow = replace(first, run_s=np.where(over, first.run_s, first.request_s))
        promised = schedule(slow, PROCS, options=BATCH_CONSERVATIVE).start_s[row]
        assert ran.start_s[row] <= promised


@settings(max_examples=30)
@given(work=workloads(max_size=12))
def test_conservative_with_true_run_times_never_delays_for_those_behind(work: Workload) -> None:
    """Each job starts exactly when it would without all that came after it."""
    how = Options(backfill="conservative", plan="clairvoyant")
    ran = schedule(work, PROCS, options=how)
    for row in range(len(work)):
        alone = schedule(rows_of(work, slice(0, row + 1)), PROCS, options=how)
        assert ran.start_s[row] == alone.start_s[row]
