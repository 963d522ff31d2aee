"""A workload, a site's cluster and a policy in, a schedule out: the same with and without numba."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from slurm_score.columns import Ints
from slurm_score.errors import Problem, SimulationError, shown
from slurm_score.policy import Policy
from slurm_score.settings import meant
from slurm_score.sim import jit, nodes, state
from slurm_score.sim.cluster import Site
from slurm_score.sim.cluster_arrays import limits_of, needs_of, nodes_of
from slurm_score.sim.cluster_events import DONE, STUCK, run_cluster
from slurm_score.sim.engine import CHUNK, SMALL, Options, Schedule, prepared
from slurm_score.sim.multifactor import Multifactor
from slurm_score.sim.needs import Fitted, fit, members
from slurm_score.sim.node_events import HAPPENS, KEEPS_NOTHING, NodeEvent, Requeue
from slurm_score.sim.passes import Passes, in_place_of_loops
from slurm_score.sim.policies import FIXED, Pool, QueuePolicy, Ranked, qos_values, ranked
from slurm_score.sim.scheduler import ONE_RESERVATION
from slurm_score.sim.workload import Workload

BY_SLURM = Options(backfill="slurm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Who had what when: one row for each run's part of a node, int64[n_rows].

    `row` is a place in the workload, `node` one in the site, `gpu_type` one in its types or -1; times
    in s. `cores`, `mem_mib` and `gpus` are what was taken.
    """

    row: Ints
    node: Ints
    gpu_type: Ints
    cores: Ints
    mem_mib: Ints
    gpus: Ints
    begin_s: Ints
    end_s: Ints


@dataclass(frozen=True, slots=True)
class ClusterSchedule(Schedule):
    """A schedule on a site's cluster; `start_s` are the starts of the last runs.

    The wait of a job that ran more than once is all that isn't its run time.
    """

    site: Site
    last_s: Ints = field(repr=False)
    restarts: Ints = field(repr=False)
    use: Use = field(repr=False)

    @property
    def wait_s(self) -> Ints:
        """What each job waited in s, lost runs included, int64[n_jobs]."""
        return self.last_s - self.workload.submit_s - self.workload.run_s

    @property
    def end_s(self) -> Ints:
        """The end of each job in s, int64[n_jobs]."""
        return self.last_s

    @property
    def taken(self) -> tuple[Ints, Ints]:
        """When cores are taken or given back, in s, and how many; lost runs count as well."""
        use = self.use
        return np.r_[use.begin_s, use.end_s], np.r_[use.cores, -use.cores]


def simulate_cluster(
    workload: Workload,
    site: Site,
    policy: QueuePolicy,
    options: Options = BY_SLURM,
    *,
    happens: Sequence[NodeEvent] = (),
    requeue: Requeue = KEEPS_NOTHING,
    passes: Passes | None = None,
    progress: Callable[[int], None] | None = None,
) -> ClusterSchedule:
    """Return the schedule of a workload on a cluster.

    With `passes` the loops run then, whatever their intervals; only plain Python can do that.

    Backfill is `none` (the main loop alone), `slurm` with the options' scheduler, or `easy`: one
    reservation for each partition, at every event.

    Raises:
        SimulationError: what was asked for can't be simulated, or jobs wait for nodes that stay away.
    """
    _require(workload, site, policy, options, happens)
    if passes and options.numba:
        raise SimulationError([Problem("simulation", "given passes can't be compiled", "", "numba: false")])
    if options.backfill == "easy":
        options = replace(options, scheduler=ONE_RESERVATION)
    fitted = fit(workload, site)
    if not len(fitted.workload):
        raise SimulationError([Problem(workload.name, f"no job could ever run on {site.name}")])
    run = _Run(fitted, site, policy, options, happens, requeue, passes)
    run.go(progress)
    return run.schedule()


class _Run:
    """One simulation: the arrays of the kernels and what has been read out of them so far."""

    def __init__(
        self,
        fitted: Fitted,
        site: Site,
        policy: QueuePolicy,
        options: Options,
        happens: Sequence[NodeEvent],
        requeue: Requeue,
        passes: Passes | None = None,
    ) -> None:
        self.passes = passes
        work = self.work = fitted.workload
        self.site, self.policy, self.options = site, policy, options
        self.pool = Pool(procs=site.procs, qos=site.qos)
        self.order = np.argsort(work.submit_s, kind="stable")
        self.by_weight = np.argsort(site.weight, kind="stable")
        told = _ranked(policy, fitted, site, self.pool)
        jobs, setup, sizes = prepared(work, self.pool, policy, options, self.order, told)
        backfill = state.NO_BACKFILL if options.backfill == "none" else state.SLURM
        asked = fitted.asked
        procs = np.ascontiguousarray((asked.nodes * asked.cores)[self.order], np.int64)
        self.jobs = jobs._replace(procs=cast(Any, procs))
        self.setup = setup._replace(backfill=backfill)
        self.state = state.new_state(sizes._replace(profile=True), site.procs)
        fits, self.needs = needs_of(fitted, site, policy, self.order)
        self.limits = limits_of(site, policy, happens, requeue, fits)
        deepest = options.scheduler.bf_max_job_test
        self.cluster = nodes_of(fitted, site, self.by_weight, deepest, happens, fits)
        self.lines: list[Ints] = []

    def go(self, progress: Callable[[int], None] | None) -> None:
        """Run the kernel to the end."""
        worth_it = len(self.work) >= SMALL and jit.has_numba() and not self.passes
        if worth_it if self.options.numba is None else self.options.numba:
            kernel = jit.compiled(run_cluster)
        else:
            kernel = jit.plain(run_cluster, in_place_of_loops(self.passes) if self.passes else None)
            self.jobs, self.state = _plain(self.jobs), _plain(self.state)
            self.cluster, self.needs = _plain(self.cluster), _plain(self.needs)
        ended, code = CHUNK, -1
        while code != DONE:
            code = kernel(self.jobs, self.state, self.setup, self.cluster, self.limits, self.needs, ended)
            self._read_log()
            if code == STUCK:
                raise SimulationError([self._stuck()])
            if progress:
                progress(int(self.state.n[state.ENDED]))
            ended = int(self.state.n[state.ENDED]) + CHUNK

    def _stuck(self) -> Problem:
        name, left = self.work.name, len(self.work) - int(self.state.n[state.ENDED])
        if self.passes:
            return Problem(name, f"{left} jobs have not ended after the last of the given passes")
        what = f"{left} jobs wait for nodes of {self.site.name} that are down or drained to the end"
        return Problem(name, what)

    def schedule(self) -> ClusterSchedule:
        """Return what came out, in the order of the workload."""
        columns = {name: np.empty(len(self.work), np.int64) for name in ("start_s", "last_s", "restarts")}
        columns["start_s"][self.order] = self.state.start
        columns["last_s"][self.order] = self.cluster.ended_s
        columns["restarts"][self.order] = self.cluster.restarts
        return ClusterSchedule(
            self.work, self.pool, self.policy, self.options, columns["start_s"], self.site,
            columns["last_s"], columns["restarts"], self._use(),
        )  # fmt: skip

    def _read_log(self) -> None:
        count = int(self.cluster.n[nodes.LOGGED])
        h = self.cluster
        columns = (h.log_row, h.log_node, h.log_type, h.log_cores, h.log_mem, h.log_begin, h.log_end)
        self.lines.append(np.array([column[:count] for column in columns], np.int64).reshape(7, count))
        self.cluster.n[nodes.LOGGED] = 0

    def _use(self) -> Use:
        row, node, kind, cores, mem_mib, begin_s, end_s = np.concatenate(self.lines, axis=1)
        gpus = np.array(self.needs.gpus, np.int64)[row]
        return Use(
            row=self.order[row], node=self.by_weight[node], gpu_type=kind, cores=cores, mem_mib=mem_mib,
            gpus=gpus, begin_s=begin_s, end_s=end_s,
        )  # fmt: skip


def _plain(columns: Any) -> Any:
    return type(columns)(*state.as_lists(columns))


def _ranked(policy: QueuePolicy, fitted: Fitted, site: Site, pool: Pool) -> Ranked:
    """The policy's columns, with what only a cluster knows: partitions, nodes and GPUs."""
    rule, asked, work = policy.rule, fitted.asked, fitted.workload
    told = ranked(policy, replace(work, gpus=None) if isinstance(rule, Policy) else work, pool)
    gpus = (asked.nodes * asked.gpus).astype(np.float64)
    if isinstance(rule, Multifactor):
        part = asked.nodes / len(site.node_names)
        fixed = rule.fixed(work, pool.procs, qos_values(work, pool), part)
        factors = np.array([p.priority_job_factor for p in site.partitions], np.float64)
        fixed = fixed + rule.partition * (factors / max(1.0, factors.max()))[fitted.partition]
        return told._replace(fixed=fixed + rule.gpu * gpus / max(1, int(site.gpus.sum())))
    if not isinstance(rule, Policy):
        return told
    fit = rule.factors["gres_fit"]
    if fit.weight and fit.share_of_free:
        what = "of gres_fit only the sub-term scarcity can be simulated"
        raise SimulationError([Problem(policy.name, what, "", "the others must be 0")])
    member = members(site)
    total = np.where(gpus > 0, (member @ site.gpus.sum(axis=1))[fitted.partition],
                     (member @ site.cores)[fitted.partition])  # fmt: skip
    size = np.minimum(1.0, np.where(gpus > 0, gpus, asked.nodes * asked.cores) / total)
    names, code = work.qos_names or ("",), work.qos if work.qos is not None else 0 * asked.nodes
    guards = [[rule.guard.of(qos, (p.name,)) for p in site.partitions] for qos in names]
    return told._replace(
        size_points=rule.factors["size"].weight * size, guard=np.array(guards)[code, fitted.partition]
    )


def _require(
    workload: Workload, site: Site, policy: QueuePolicy, options: Options, happens: Iterable[NodeEvent]
) -> None:
    """Raise with everything that can't be."""
    known: Mapping[str, Sequence[str]] = {
        "backfill": ("none", "easy", "slurm"), "order": ("batch",), "plan": FIXED,
    }  # fmt: skip
    problems = [
        Problem(
            "simulation",
            f"{what} can't be had on a cluster",
            getattr(options, what),
            f"one of {', '.join(names)}",
        )
        for what, names in known.items()
        if getattr(options, what) not in names
    ]
    for event in happens:
        if event.node not in site.node_names:
            problems.append(
                Problem(
                    site.name, f"there is no such node{meant(event.node, site.node_names)}", shown(event.node)
                )
            )
        if event.what not in HAPPENS:
            problems.append(
                Problem(
                    site.name,
                    "nothing that happens to a node",
                    shown(event.what),
                    f"one of {', '.join(HAPPENS)}",
                )
            )
    if policy.predictor in ("similar", "told"):
        what = "a predictor outside the kernels can't be asked on a cluster"
        problems.append(Problem(policy.name, what, policy.predictor, "simulate a flat pool with it"))
    if not len(workload):
        problems.append(Problem(workload.name, "there is no job to simulate"))
    if options.numba and not jit.has_numba():
        problems.append(Problem("simulation", "numba is not installed", "", "install slurm-score[sim]"))
    if problems:
        raise SimulationError(problems)
