"""A workload, a machine and a policy in, a schedule out: the same every time, with and without numba."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from slurm_score.columns import Ints
from slurm_score.errors import Problem, SimulationError
from slurm_score.policy import Policy
from slurm_score.sim import jit, state
from slurm_score.sim.events import run
from slurm_score.sim.outside import Predictor, Similar, in_place_of_kernels
from slurm_score.sim.policies import FIXED, PREDICTORS, Pool, QueuePolicy, Ranked, ranked, ranked_by
from slurm_score.sim.scheduler import Scheduler
from slurm_score.sim.workload import Workload

BACKFILLS = {
    "none": state.NO_BACKFILL,
    "easy": state.EASY,
    "easy-sjbf": state.EASY_SJBF,
    "easy++": state.EASY_PLUS_PLUS,
    "conservative": state.CONSERVATIVE,
    "slurm": state.SLURM,
}
ORDERS = {"pyss": state.PYSS, "batch": state.BATCH, "rlscheduler": state.RLSCHEDULER}

SMALL = 5000
"""Below so many jobs plain Python is done before a kernel is loaded, let alone compiled."""

CHUNK = 4096
"""Ends between two reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to schedule.

    `plan` is the predictor for reservations (policies.PREDICTORS); the policy has its own for the
    order. `numba` says whether to compile; None: where numba is installed and there are many jobs.
    `scheduler` is what backfill slurm goes by.
    """

    backfill: str = "easy"
    order: str = "batch"
    plan: str = "request"
    numba: bool | None = None
    scheduler: Scheduler = field(default_factory=Scheduler)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each job of a workload started, int64[n_jobs] in s, and under what."""

    workload: Workload
    pool: Pool
    policy: QueuePolicy
    options: Options
    start_s: Ints = field(repr=False)

    @property
    def wait_s(self) -> Ints:
        """The wait of each job in s, int64[n_jobs]."""
        return self.start_s - self.workload.submit_s

    @property
    def end_s(self) -> Ints:
        """The end of each job in s, int64[n_jobs]."""
        return self.start_s + self.workload.run_s

    @property
    def taken(self) -> tuple[Ints, Ints]:
        """When processors are taken or given back, in s, and how many; in any order."""
        procs = self.workload.procs
        return np.r_[self.start_s, self.end_s], np.r_[procs, -procs]


def simulate(
    workload: Workload,
    pool: Pool,
    policy: QueuePolicy,
    options: Options = Options(),
    *,
    predictor: Predictor | None = None,
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Return the schedule of a workload; `progress` is told now and then how many jobs have ended.

    Jobs of one second are submitted in the order of the file.

    Raises:
        SimulationError: what was asked for can't be simulated; with every reason.
    """
    _require(workload, pool, policy, options, predictor)
    order = np.argsort(workload.submit_s, kind="stable")
    jobs, setup, sizes = prepared(workload, pool, policy, options, order, ranked(policy, workload, pool))
    fresh = state.new_state(sizes, pool.procs)
    asked = _outside(policy, options, predictor)
    worth_it = len(workload) >= SMALL and jit.has_numba()
    if not asked and (worth_it if options.numba is None else options.numba):
        kernel = jit.compiled(run)
    else:
        jobs, fresh = state.Jobs(*state.as_lists(jobs)), state.State(*state.as_lists(fresh))
        kernel = jit.plain(run, in_place_of_kernels(asked, workload, order) if asked else None)
    ended = CHUNK
    while kernel(jobs, fresh, setup, ended):
        if progress:
            progress(ended)
        ended += CHUNK
    start_s = np.empty(len(workload), np.int64)
    start_s[order] = fresh.start
    return Schedule(workload, pool, policy, options, start_s)


def prepared(
    workload: Workload, pool: Pool, policy: QueuePolicy, options: Options, order: Any, told: Ranked
) -> tuple[state.Jobs, state.Setup, state.Sizes]:
    """Return the columns in order of submission, and all choices as numbers."""
    users, user = np.unique(workload.user, return_inverse=True)
    predictors = (PREDICTORS[options.plan], ranked_by(policy))
    groups, group = _groups(workload, user) if state.RECENT in predictors else (1, 0 * user)
    columns = (workload.submit_s, workload.run_s, workload.procs, workload.request_s, user, group)
    floats = (told.fixed, told.size_points, told.qos_points, told.guard)
    jobs = state.Jobs(
        *(cast(Any, np.ascontiguousarray(column[order], np.int64)) for column in columns),
        *(cast(Any, np.ascontiguousarray(column[order], np.float64)) for column in floats),
    )
    setup = state.Setup(
        procs=pool.procs,
        order=ORDERS[options.order],
        backfill=BACKFILLS[options.backfill],
        plan_by=predictors[0],
        plan_anew=options.plan == "similar",
        rank=told.rank,
        rank_by=predictors[1],
        learns=not set(predictors) <= {state.REQUEST, state.CLAIRVOYANT},
        users=len(users),
        **scheduler_settings(options.scheduler),
    )._replace(**cast("dict[str, Any]", told.parameters))
    running = min(len(workload), 2 * pool.procs)
    return (
        jobs,
        setup,
        state.Sizes(
            len(workload), len(users), groups, running, options.backfill in ("conservative", "slurm")
        ),
    )


def scheduler_settings(scheduler: Scheduler) -> dict[str, int]:
    """Return what the kernels need of Slurm's scheduler."""
    return {
        "queue_depth": scheduler.queue_depth,
        "batch_sched_delay": scheduler.batch_sched_delay_s,
        "bf_interval": scheduler.bf_interval_s,
        "bf_max_job_test": scheduler.bf_max_job_test,
        "bf_max_job_user": scheduler.bf_max_job_user,
        "bf_job_part_count_reserve": scheduler.bf_job_part_count_reserve,
        "bf_resolution": scheduler.bf_resolution_s,
        "bf_window": scheduler.bf_window_s,
        "end_window": scheduler.end_window_s,
        "bf_window_linear": scheduler.bf_window_linear_s,
    }


def _groups(workload: Workload, user: Ints) -> tuple[int, Ints]:
    """How many sets there are of jobs of the same user, size and request, and which each job is in."""
    group = user
    for column in (workload.procs, workload.request_s):
        values, code = np.unique(column, return_inverse=True)
        _, group = np.unique(group * len(values) + code, return_inverse=True)
    return int(group.max()) + 1, group


def _outside(policy: QueuePolicy, options: Options, predictor: Predictor | None) -> Predictor | None:
    """The predictor that the kernels ask, if any."""
    names = {options.plan, policy.predictor}
    if "similar" not in names:
        return predictor if "told" in names else None
    rule = policy.rule
    if not isinstance(rule, Policy):
        return Similar()
    return Similar(rule.factors["remaining"].quantile, rule.factors["remaining"].half_at)


def _require(
    workload: Workload, pool: Pool, policy: QueuePolicy, options: Options, predictor: Predictor | None
) -> None:
    """Raise with everything that can't be."""
    problems = [
        Problem("simulation", f"unknown {what}", repr(value), f"one of {', '.join(known)}")
        for what, value, known in (
            ("backfill", options.backfill, BACKFILLS),
            ("order", options.order, ORDERS),
            ("plan", options.plan, PREDICTORS),
        )
        if value not in known
    ]
    if len(workload) and workload.procs.max() > pool.procs:
        widest = int(workload.procs.max())
        problems.append(
            Problem(workload.name, f"a job needs {widest} processors", "", f"there are {pool.procs}")
        )
    if not len(workload):
        problems.append(Problem(workload.name, "there is no job to simulate"))
    problems += _order_problems(options)
    if options.numba and not jit.has_numba():
        problems.append(Problem("simulation", "numba is not installed", "", "install slurm-score[sim]"))
    problems += _predictor_problems({options.plan, policy.predictor}, predictor)
    if problems:
        raise SimulationError(problems)


def _predictor_problems(names: set[str], predictor: Predictor | None) -> Iterator[Problem]:
    """What keeps the predictors from being asked."""
    if "told" in names and predictor is None:
        yield Problem("simulation", "predictor told needs a predictor")
    if names >= {"told", "similar"}:
        yield Problem("simulation", "predictors told and similar don't go together")


def _order_problems(options: Options) -> Iterator[Problem]:
    """What doesn't go together among the options."""
    if options.backfill == "conservative" and options.plan not in FIXED:
        what = "conservative backfill breaks its promises where a run outlives its plan"
        yield Problem("simulation", what, options.plan, f"plan must be one of {', '.join(FIXED)}")
    if options.order == "rlscheduler" and options.backfill not in ("none", "easy"):
        what = "order rlscheduler has a backfill of its own"
        yield Problem("simulation", what, options.backfill, "backfill none or easy")
    if options.backfill == "slurm" and options.order != "batch":
        yield Problem(
            "simulation", "backfill slurm looks at a second as a whole", options.order, "order batch"
        )
