"""slurm-score simulate: what other policies would have done to a workload."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from slurm_score.cli.simulated import lines_of, told_of
from slurm_score.errors import Problem, SimulationError
from slurm_score.sim.cluster import Site
from slurm_score.sim.engine import BACKFILLS, ORDERS, Options, Schedule, simulate
from slurm_score.sim.hetero import simulate_cluster
from slurm_score.sim.inputs import read_cluster, read_events, read_workload
from slurm_score.sim.metrics import measure
from slurm_score.sim.multifactor import parse_multifactor
from slurm_score.sim.node_events import NodeEvent, Requeue
from slurm_score.sim.policies import NAMES, PREDICTORS, Pool, QueuePolicy, named
from slurm_score.sim.report import write_report
from slurm_score.sim.scheduler import Scheduler, parse_scheduler
from slurm_score.sim.synthetic import Recipe, synthetic
from slurm_score.sim.workload import Workload
from slurm_score.units import HOUR_S
from slurm_score.watch import read_policy

OWN_PREDICTORS = tuple(name for name in PREDICTORS if name != "told")

EPILOG = f"""\b
POLICY is one of
  {", ".join(NAMES)}
  multifactor[:SETTING,…]  Slurm's own: age=, size=, qos=, fairshare= (weights), max_age=,
                           decay_half_life=, calc_period=, small_relative, favor_small;
                           without settings those of --cluster
  a policy file of ours
and may end in @PREDICTOR, the run times it goes by: {", ".join(OWN_PREDICTORS)}.

\b
Example:
  slurm-score simulate --cluster site.yaml jobs.csv --policy multifactor --policy slurm-score.yaml
  slurm-score simulate --synthetic 1 --policy fcfs --policy wfp3 --policy sjf@recent"""


@click.command("simulate", epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--synthetic", "seed", type=click.IntRange(min=0), help="Also simulate an invented workload.")
@click.option("--policy", "specs", multiple=True, default=("fcfs",), show_default=True, metavar="POLICY",
              help="The order of the queue; several stand side by side.")  # fmt: skip
@click.option("--backfill", type=click.Choice(list(BACKFILLS)),
              help="Who may start before the head.  [default: easy; on a cluster slurm]")  # fmt: skip
@click.option("--scheduler", metavar="PARAMETERS",
              help="SchedulerParameters for backfill slurm.  [default: those of --cluster]")  # fmt: skip
@click.option("--order", type=click.Choice(list(ORDERS)), default="batch", show_default=True,
              help="What comes first in one second: sim/README.md.")  # fmt: skip
@click.option("--plan", type=click.Choice(OWN_PREDICTORS), default="request", show_default=True,
              help="The run times that reservations go by.")  # fmt: skip
@click.option("--procs", type=click.IntRange(min=1), help="Processors of the machine.  [default: the file's]")
@click.option("--cluster", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Nodes, partitions and QOS of the machine, as YAML: sim/README.md.")  # fmt: skip
@click.option("--events", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A table of time, node and what: fail, drain or resume; with --cluster.")  # fmt: skip
@click.option("--keep-wait", is_flag=True, help="A job that is requeued keeps its place by wait.")
@click.option("--keep-progress", is_flag=True, help="A job that is requeued goes on from where it was.")
@click.option("--starved-after", type=click.FloatRange(min=0), default=48.0, metavar="HOURS",
              help="The wait from which a job counts as starved.  [default: 48]")  # fmt: skip
@click.option("--waits", type=click.Path(dir_okay=False, writable=True, path_type=Path),
              help="Write job id and wait in s there, in the order of the input.")  # fmt: skip
@click.option("--report", "folder", type=click.Path(file_okay=False, path_type=Path),
              help="Write a page with plots, and the plots, into this folder.")  # fmt: skip
@click.option(
    "--numba/--no-numba", default=None, help="Compile; the results are the same.  [default: if many jobs]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, times in s.")
def command(
    files: tuple[Path, ...],
    seed: int | None,
    specs: tuple[str, ...],
    backfill: str | None,
    scheduler: str | None,
    order: str,
    plan: str,
    procs: int | None,
    cluster: Path | None,
    events: Path | None,
    keep_wait: bool,
    keep_progress: bool,
    starved_after: float,
    waits: Path | None,
    folder: Path | None,
    numba: bool | None,
    as_json: bool,
) -> None:
    """Simulate workloads under policies and compare what they bring; nothing is asked of Slurm.

    FILES are workloads in the Standard Workload Format, or tables (.csv, .txt): of `sacct -P`, of a Slurm
    site, of openb or of Philly; plain or gzipped. A table needs --cluster or --procs.
    """
    if not files and seed is None:
        raise click.UsageError("a FILE or --synthetic SEED is needed")
    if cluster and procs:
        raise click.UsageError("--procs and --cluster both say how large the machine is")
    if not cluster and (events or keep_wait or keep_progress):
        raise click.UsageError("--events, --keep-wait and --keep-progress need --cluster")
    backfill = backfill or ("slurm" if cluster else "easy")
    if scheduler is not None and backfill not in (("none", "slurm") if cluster else ("slurm",)):
        raise click.UsageError(f"--scheduler changes nothing with --backfill {backfill}")
    site = read_cluster(cluster) if cluster else None
    policies = [policy_of(spec, site) for spec in specs]
    works = [read_workload(path, procs) for path in files]
    works += [] if seed is None else [synthetic(seed, _recipe(site))]
    if waits and len(works) * len(policies) != 1:
        raise click.UsageError("--waits needs one workload and one --policy")
    options = Options(
        backfill=backfill, order=order, plan=plan, numba=numba,
        scheduler=_scheduler(scheduler, site),
    )  # fmt: skip
    machine = Machine(
        procs=procs,
        site=site,
        happens=tuple(read_events(events)) if events else (),
        requeue=Requeue(keeps_wait=keep_wait, checkpoints=keep_progress),
    )
    runs = [simulated(work, machine, policies, options) for work in works]
    measured = [[measure(s, starved_after * HOUR_S) for s in schedules] for schedules in runs]
    if waits:
        write_waits(waits, runs[0][0])
    if folder:
        write_report(folder, runs, measured)
    told = told_of(runs, measured, starved_after * HOUR_S)
    click.echo(json.dumps(told, indent=2) if as_json else "\n".join(lines_of(told)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What jobs run on: so many processors or a site's cluster, and what happens to that."""

    procs: int | None = None
    site: Site | None = None
    happens: tuple[NodeEvent, ...] = ()
    requeue: Requeue = field(default_factory=Requeue)

    def run(
        self, work: Workload, policy: QueuePolicy, options: Options, ended: Callable[[int], None]
    ) -> Schedule:
        """Return the schedule of a workload; `ended` is told how many jobs have ended."""
        if self.site is None:
            return simulate(work, pool_of(work, self.procs), policy, options, progress=ended)
        return simulate_cluster(
            work, self.site, policy, options, happens=self.happens, requeue=self.requeue, progress=ended
        )


def _recipe(site: Site | None) -> Recipe:
    """What to invent: for a cluster, jobs of its size and its GPU types."""
    return Recipe(procs=site.procs, gpu_types=site.gpu_types) if site else Recipe()


def _scheduler(text: str | None, site: Site | None) -> Scheduler:
    if text is not None:
        return parse_scheduler(text, "--scheduler")
    return site.scheduler if site else Scheduler()


def policy_of(spec: str, site: Site | None = None) -> QueuePolicy:
    """Return the policy that a text names; the multifactor without settings is the site's.

    Raises:
        SimulationError: it names none.
        PolicyError: it names a file that is no policy.
    """
    name, _, predictor = spec.rpartition("@") if "@" in spec else (spec, "", "request")
    if predictor not in OWN_PREDICTORS:
        known = f"one of {', '.join(OWN_PREDICTORS)}"
        raise SimulationError([Problem(f"--policy {spec}", "unknown predictor", repr(predictor), known)])
    if name.partition(":")[0] == "multifactor":
        settings = name.partition(":")[2]
        by_site = site.multifactor if site and not settings else None
        return QueuePolicy(spec, by_site or parse_multifactor(settings))
    if name in NAMES or not (name.endswith((".yaml", ".yml")) or Path(name).exists()):
        return named(name, predictor)
    return QueuePolicy(spec, read_policy(Path(name)), predictor)


def pool_of(work: Workload, procs: int | None) -> Pool:
    """Return the machine for a workload.

    Raises:
        SimulationError: nobody says how large it is.
    """
    if total := procs or work.procs_total:
        return Pool(procs=total)
    raise SimulationError(
        [Problem(work.name, "its header doesn't say how many processors there are", "", "--procs N")]
    )


def simulated(
    work: Workload, machine: Machine, policies: Sequence[QueuePolicy], options: Options
) -> list[Schedule]:
    """Return a schedule for each policy, with a progress bar where someone looks."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        schedules = []
        for policy in policies:
            task = bar.add_task(f"{work.name} {policy.name}", total=len(work))

            def ended(jobs: int, task: Any = task) -> None:
                bar.update(task, completed=jobs)

            schedules.append(machine.run(work, policy, options, ended))
            bar.update(task, completed=len(work))
    return schedules


def write_waits(path: Path, schedule: Schedule) -> None:
    """Write a line with job id and wait for each job, in the order of the input."""
    rows = zip(schedule.workload.job_id.tolist(), schedule.wait_s.tolist(), strict=True)
    try:
        path.write_text("".join(f"{job_id} {wait_s}\n" for job_id, wait_s in rows), encoding="utf-8")
    except OSError as error:
        raise SimulationError([Problem(str(path), f"can't be written: {error}")]) from None
