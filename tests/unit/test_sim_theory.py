"""Queueing theory: mean waits inside a 99 % confidence interval of independent replications.

One time unit is a 10,000th of the mean service time, so that whole numbers don't matter. The first fifth
of each replication, while the empty system fills, isn't counted.
"""

import math
from statistics import fmean, stdev

import numpy as np
import pytest

from slurm_score.sim.engine import Options, Schedule, simulate
from slurm_score.sim.metrics import littles_law
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.policies import Pool, QueuePolicy, named
from slurm_score.sim.workload import Workload

UNIT = 10_000
JOBS = 20_000
REPLICATIONS = 20
T_99 = 2.861
"""Student's t for 99 % and 19 degrees of freedom."""

QOS_ONLY = QueuePolicy("qos", Multifactor(age=0.0, qos=1000.0))


def replication(seed: int, load: float, servers: int, urgent: float = 0.0) -> Workload:
    """Return Poisson arrivals of jobs with exponential service; `urgent` is the share of the higher class."""
    random = np.random.Generator(np.random.PCG64(seed))
    submit_s = np.cumsum(random.exponential(UNIT / (load * servers), JOBS)).astype(np.int64)
    run_s = np.maximum(1, random.exponential(UNIT, JOBS)).astype(np.int64)
    return Workload(
        name=f"M/M/{servers}",
        job_id=np.arange(JOBS),
        submit_s=submit_s,
        run_s=run_s,
        procs=np.ones(JOBS, np.int64),
        request_s=run_s,
        user=np.zeros(JOBS, np.int64),
        qos=(random.random(JOBS) < urgent).astype(np.int64),
        qos_names=("normal", "urgent"),
    )


def schedules(load: float, servers: int, policy: QueuePolicy, urgent: float = 0.0) -> list[Schedule]:
    """Return the schedules of all replications."""
    pool = Pool(procs=servers, qos={"normal": 0, "urgent": 10})
    options = Options(backfill="none")
    return [
        simulate(replication(seed, load, servers, urgent), pool, policy, options)
        for seed in range(REPLICATIONS)
    ]


def interval(ran: list[Schedule], qos: int | None = None) -> tuple[float, float]:
    """Return the interval of the mean wait, in service times; of one class where it is given."""
    means = []
    for one in ran:
        counted = np.arange(JOBS) >= JOBS // 5
        if qos is not None and one.workload.qos is not None:
            counted &= one.workload.qos == qos
        means.append(float(one.wait_s[counted].mean()) / UNIT)
    half = T_99 * stdev(means) / math.sqrt(len(means))
    return fmean(means) - half, fmean(means) + half


def erlang_wait(load: float, servers: int) -> float:
    """Return the mean wait of M/M/c in service times. Source: Erlang's C formula."""
    offered = load * servers
    below = sum(offered**k / math.factorial(k) for k in range(servers))
    last = offered**servers / math.factorial(servers) / (1 - load)
    return last / (below + last) / (servers * (1 - load))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_mean_wait_of_one_server(load: float) -> None:
    """M/M/1: the mean wait is rho / (1 - rho) service times."""
    low, high = interval(schedules(load, 1, named("fcfs")))
    assert low < load / (1 - load) < high
    assert high - low < 0.2 * load / (1 - load)


@pytest.mark.parametrize(("load", "servers"), [(0.8, 4), (0.9, 16)])
def test_mean_wait_of_many_servers(load: float, servers: int) -> None:
    """M/M/c, by Erlang's C formula."""
    low, high = interval(schedules(load, servers, named("fcfs")))
    wanted = erlang_wait(load, servers)
    assert low < wanted < high
    assert high - low < 0.3 * wanted


def test_mean_waits_of_two_classes() -> None:
    """Non-preemptive priority: R / (1 - rho1) and R / ((1 - rho1)(1 - rho)). Source: Cobham, 1954."""
    load, share = 0.8, 0.3
    ran = schedules(load, 1, QOS_ONLY, share)
    rest = load  # the mean residual service: sum of rate x E[S^2] / 2
    urgent, normal = rest / (1 - load * share), rest / ((1 - load * share) * (1 - load))
    low, high = interval(ran, qos=1)
    assert low < urgent < high
    low, high = interval(ran, qos=0)
    assert low < normal < high
    assert high - low < 0.2 * normal


def test_erlang_wait_agrees_with_one_server() -> None:
    """The two formulas meet at c = 1."""
    assert erlang_wait(0.8, 1) == pytest.approx(4.0)


def test_littles_law_holds_for_each_replication() -> None:
    """Mean queue length = arrival rate x mean wait, on each run."""
    for one in schedules(0.8, 4, named("wfp3"))[:3]:
        length, arrived = littles_law(one)
        assert length == pytest.approx(arrived, rel=1e-12)
        assert length > 1
