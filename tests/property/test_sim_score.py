"""The simulator ranks by the product's own score: bit for bit the same numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.factors import registry
from slurm_score.model import Cluster, Job, Partition, Queue
from slurm_score.policy import Policy, load_policy
from slurm_score.score import score_queue
from slurm_score.sim import jit, state
from slurm_score.sim.engine import Options, prepared
from slurm_score.sim.policies import Pool, QueuePolicy, ranked
from slurm_score.sim.ranking import GUARD_TIER, rank_queue
from slurm_score.sim.workload import Workload
from tests.unit.builders import DAY, HOUR
from tests.unit.sim_support import workload

QOS = {"normal": 0, "low": 250, "high": 1000}
POOL = Pool(procs=96, qos=QOS)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with any weights and times, and a guard for one QOS."""
    weights = {name: draw(st.integers(0, 1000)) for name in ("wait", "remaining", "size", "qos", "gres_fit")}
    after = draw(st.integers(HOUR, 100 * DAY))
    factors = {
        name: {**factor.params().model_dump(), "weight": weights.get(name, 0)}
        for name, factor in registry().items()
    }
    factors["wait"]["max_wait"] = after + draw(st.integers(1, 10 * DAY))
    factors["remaining"]["half_at"] = draw(st.integers(1, DAY))
    guard = {"after": float(after), "qos": {"high": float(draw(st.integers(1, after)))}, "partitions": {}}
    return load_policy({"factors": factors, "guard": guard})


@st.composite
def waiting(draw: st.DrawFn) -> Workload:
    """Draw jobs that wait: any wait up to ten days, any size and request."""
    count = draw(st.integers(1, 12))
    submit_s = sorted(draw(st.lists(st.integers(0, 10 * DAY), min_size=count, max_size=count)))
    requests = draw(st.lists(st.integers(1, 30 * DAY), min_size=count, max_size=count))
    procs = draw(st.lists(st.integers(1, 96), min_size=count, max_size=count))
    names = draw(st.lists(st.sampled_from(("normal", "low", "high", "gone")), min_size=count, max_size=count))
    rows = [(s, r, p, r) for s, r, p in zip(submit_s, requests, procs, strict=True)]
    return workload(rows, qos=names)


def ranks(work: Workload, policy: Policy, now_s: int) -> list[float]:
    """Return the ranks that the simulator gives its waiting jobs."""
    ours = QueuePolicy("ours", policy)
    told = ranked(ours, work, POOL)
    jobs, setup, sizes = prepared(work, POOL, ours, Options(), np.arange(len(work)), told)
    jobs = state.Jobs(*state.as_lists(jobs))
    fresh = state.State(*state.as_lists(state.new_state(sizes, POOL.procs)))
    fresh.queue[: len(work)] = range(len(work))
    fresh.n[state.WAITING] = len(work)
    jit.plain(rank_queue)(jobs, fresh, setup, now_s)
    return fresh.keys[: len(work)]


def queue_of(work: Workload, now_s: int) -> Queue:
    """Return the same jobs as Slurm would show them."""
    assert work.qos is not None
    columns = (work.job_id, work.submit_s, work.procs, work.request_s, work.qos)
    jobs = tuple(
        Job(
            job_id=job_id,
            partitions=("main",),
            submit_s=submit_s,
            eligible_s=submit_s,
            time_limit_s=float(request_s),
            cpus=procs,
            qos=work.qos_names[qos],
        )
        for job_id, submit_s, procs, request_s, qos in zip(*(c.tolist() for c in columns), strict=True)
    )
    partitions = {"main": Partition(name="main", cpus=POOL.procs)}
    return Queue(
        jobs=jobs, cluster=Cluster(time_s=float(now_s), partitions=partitions, qos=QOS), now_s=float(now_s)
    )


@given(work=waiting(), policy=policies(), later_s=st.integers(0, DAY))
def test_simulator_ranks_by_the_score_of_the_live_path(work: Workload, policy: Policy, later_s: int) -> None:
    """Below the guard the rank is the score with its sign turned, bit for bit; past it, the same order."""
    now_s = int(work.submit_s[-1]) + later_s
    got = ranks(work, policy, now_s)
    wanted = score_queue(queue_of(work, now_s), policy)
    assert [key < -GUARD_TIER / 2 for key in got] == wanted.guarded.tolist()
    for key, guarded, points in zip(got, wanted.guarded.tolist(), wanted.points.tolist(), strict=True):
        if guarded:
            assert (now_s - (key + GUARD_TIER)) / 60 == pytest.approx(points, abs=1e-9)
        else:
            assert -key == points
