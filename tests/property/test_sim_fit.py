"""The simulator's gres_fit is the live path's, for jobs that wait on a cluster with some nodes away."""

from types import SimpleNamespace as Some

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_score.contention import gpu_pressure
from slurm_score.factors.gres_fit import GresFitParams, compute
from slurm_score.gres import GpuCount, GpuRequest
from slurm_score.model import Cluster, Job, Node, Partition, Queue
from slurm_score.policy import Policy
from slurm_score.sim import jit, nodes, state
from slurm_score.sim.cluster import Site
from slurm_score.sim.cluster_events import add_fit
from slurm_score.sim.engine import Options
from slurm_score.sim.hetero import _Run
from slurm_score.sim.needs import Fitted, fit
from slurm_score.sim.node_events import Requeue
from slurm_score.sim.policies import QueuePolicy
from slurm_score.sim.workload import Workload
from tests.property.test_sim_cluster_laws import queues

WEIGHT = 100


def simulated_fit(fitted: Fitted, site: Site, away: list[bool]) -> list[float]:
    """Return the points of gres_fit that the simulator gives each job, in the order of the workload."""
    run = _Run(fitted, site, QueuePolicy("ours", Policy()), Options(backfill="slurm"), (), Requeue())
    count = len(fitted.workload)
    h = nodes.Site(*state.as_lists(run.cluster))
    for place, node in enumerate(run.by_weight.tolist()):
        h.state[place] = nodes.DOWN if away[node] else nodes.UP
    s = Some(picks=list(range(count)), keys=[0.0] * count, spare=[0] * count)
    needs = nodes.Needs(*state.as_lists(run.needs))
    if run.limits.fits:
        jit.plain(add_fit)(s, h, run.limits, needs, count)
    points = np.empty(count)
    points[run.order] = s.keys
    return (-points).tolist()


def as_slurm_has_it(work: Workload, site: Site, away: list[bool]) -> Queue:
    """Return the same jobs and nodes as the live path reads them."""
    member = {p.name: p.nodes for p in site.partitions}
    found = tuple(
        Node(
            name=name, usable=not away[i], states=("DOWN" if away[i] else "IDLE",),
            cpus=int(site.cores[i]), mem_mib=int(site.mem_mib[i]), gpus=gpus_of(site, i),
            partitions=tuple(p for p, rows in member.items() if i in rows),
            features=tuple(sorted(site.features[i])),
        )
        for i, name in enumerate(site.node_names)
    )  # fmt: skip
    partitions = {p.name: Partition(name=p.name, default=p.default) for p in site.partitions}
    cluster = Cluster(time_s=1000.0, nodes=found, partitions=partitions)
    jobs = tuple(job_of(work, i) for i in range(len(work)))
    return Queue(jobs=jobs, cluster=cluster, now_s=1000.0, pressure=gpu_pressure(jobs, cluster))


def gpus_of(site: Site, node: int) -> GpuCount:
    """Return a node's GPUs by type."""
    types = dict(zip(site.gpu_types, site.gpus[node].tolist(), strict=True))
    return GpuCount(total=sum(types.values()), types={name: count for name, count in types.items() if count})


def job_of(work: Workload, i: int) -> Job:
    """Return one job; GPUs are asked for on each node."""
    asked = work.asked
    assert asked is not None
    count, each = int(asked.nodes[i]), int(asked.gpus[i])
    names = asked.gpu_sets[asked.gpu_set[i]]
    types = ((names[0], count * each),) if each and len(names) == 1 else ()
    return Job(
        job_id=i + 1, submit_s=0, eligible_s=0, nodes=count, cpus=count * int(asked.cores[i]),
        partitions=(asked.partitions[asked.partition[i]],), features=asked.features[asked.feature[i]],
        gpus=GpuRequest(total=count * each, types=types, per_node=each),
    )  # fmt: skip


@given(queue=queues(), drawn=st.data())
def test_contended_types_first_as_on_the_live_path(
    queue: tuple[Site, Workload], drawn: st.DataObject
) -> None:
    """The same points for each job, whatever its partition, features and type, and whatever node is away."""
    site, work = queue
    fitted = fit(work, site)
    assume(len(fitted.workload) > 0)
    away = drawn.draw(st.lists(st.booleans(), min_size=len(site.node_names), max_size=len(site.node_names)))
    live = compute(as_slurm_has_it(fitted.workload, site, away), GresFitParams())
    wanted = (WEIGHT * live.values).tolist()
    assert simulated_fit(fitted, site, away) == pytest.approx(wanted, abs=1e-9)
