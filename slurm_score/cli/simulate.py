"""slurm-score simulate: what other policies would have done to a workload."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from slurm_score.errors import Problem, SimulationError
from slurm_score.report.table import format_table
from slurm_score.sim.engine import BACKFILLS, ORDERS, Options, Schedule, simulate
from slurm_score.sim.metrics import Metrics, by_gpu_type, by_qos, by_size, by_user, measure
from slurm_score.sim.multifactor import parse_multifactor
from slurm_score.sim.policies import NAMES, PREDICTORS, Pool, QueuePolicy, named
from slurm_score.sim.report import write_report
from slurm_score.sim.swf import read_swf
from slurm_score.sim.synthetic import synthetic
from slurm_score.sim.workload import Workload
from slurm_score.units import HOUR_S, format_duration
from slurm_score.watch import read_policy

OWN_PREDICTORS = tuple(name for name in PREDICTORS if name != "told")

EPILOG = f"""\b
POLICY is one of
  {", ".join(NAMES)}
  multifactor[:SETTING,…]  Slurm's own: age=, size=, qos=, fairshare= (weights), max_age=,
                           decay_half_life=, calc_period=, small_relative, favor_small
  a policy file of ours
and may end in @PREDICTOR, the run times it goes by: {", ".join(OWN_PREDICTORS)}.
\b
Example:
  slurm-score simulate --synthetic 1 --policy fcfs --policy wfp3 --policy sjf@recent"""


@click.command("simulate", epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--synthetic", "seed", type=click.IntRange(min=0), help="Also simulate an invented workload.")
@click.option("--policy", "specs", multiple=True, default=("fcfs",), show_default=True, metavar="POLICY",
              help="The order of the queue; several stand side by side.")  # fmt: skip
@click.option("--backfill", type=click.Choice(list(BACKFILLS)), default="easy", show_default=True,
              help="Who may start before the head of the queue.")  # fmt: skip
@click.option("--order", type=click.Choice(list(ORDERS)), default="batch", show_default=True,
              help="What comes first in one second: sim/README.md.")  # fmt: skip
@click.option("--plan", type=click.Choice(OWN_PREDICTORS), default="request", show_default=True,
              help="The run times that reservations go by.")  # fmt: skip
@click.option("--procs", type=click.IntRange(min=1), help="Processors of the machine.  [default: the file's]")
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
    backfill: str,
    order: str,
    plan: str,
    procs: int | None,
    starved_after: float,
    waits: Path | None,
    folder: Path | None,
    numba: bool | None,
    as_json: bool,
) -> None:
    """Simulate workloads under policies and compare what they bring; nothing is asked of Slurm.

    FILES are workloads in the Standard Workload Format, plain or gzipped.
    """
    if not files and seed is None:
        raise click.UsageError("a FILE or --synthetic SEED is needed")
    policies = list(map(policy_of, specs))
    works = [read_swf(path, procs) for path in files]
    works += [] if seed is None else [synthetic(seed)]
    if waits and len(works) * len(policies) != 1:
        raise click.UsageError("--waits needs one workload and one --policy")
    options = Options(backfill=backfill, order=order, plan=plan, numba=numba)
    runs = [simulated(work, pool_of(work, procs), policies, options) for work in works]
    measured = [[measure(s, starved_after * HOUR_S) for s in schedules] for schedules in runs]
    if waits:
        write_waits(waits, runs[0][0])
    if folder:
        write_report(folder, runs, measured)
    told = _told(runs, measured, starved_after * HOUR_S)
    click.echo(json.dumps(told, indent=2) if as_json else "\n".join(_lines(told)))


def policy_of(spec: str) -> QueuePolicy:
    """Return the policy that a text names.

    Raises:
        SimulationError: it names none.
        PolicyError: it names a file that is no policy.
    """
    name, _, predictor = spec.rpartition("@") if "@" in spec else (spec, "", "request")
    if predictor not in OWN_PREDICTORS:
        known = f"one of {', '.join(OWN_PREDICTORS)}"
        raise SimulationError([Problem(f"--policy {spec}", "unknown predictor", repr(predictor), known)])
    if name.partition(":")[0] == "multifactor":
        return QueuePolicy(spec, parse_multifactor(name.partition(":")[2]))
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
    work: Workload, pool: Pool, policies: Sequence[QueuePolicy], options: Options
) -> list[Schedule]:
    """Return a schedule for each policy, with a progress bar where someone looks."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        schedules = []
        for policy in policies:
            task = bar.add_task(f"{work.name} {policy.name}", total=len(work))

            def ended(jobs: int, task: Any = task) -> None:
                bar.update(task, completed=jobs)

            schedules.append(simulate(work, pool, policy, options, progress=ended))
            bar.update(task, completed=len(work))
    return schedules


def write_waits(path: Path, schedule: Schedule) -> None:
    """Write a line with job id and wait for each job, in the order of the input."""
    rows = zip(schedule.workload.job_id.tolist(), schedule.wait_s.tolist(), strict=True)
    try:
        path.write_text("".join(f"{job_id} {wait_s}\n" for job_id, wait_s in rows), encoding="utf-8")
    except OSError as error:
        raise SimulationError([Problem(str(path), f"can't be written: {error}")]) from None


def _told(
    runs: Sequence[Sequence[Schedule]], measured: Sequence[Sequence[Metrics]], starved_s: float
) -> dict[str, Any]:
    options = runs[0][0].options
    return {
        "backfill": options.backfill,
        "order": options.order,
        "plan": options.plan,
        "starved_after_s": starved_s,
        "workloads": [
            {
                "name": schedules[0].workload.name,
                "procs": schedules[0].pool.procs,
                "remarks": list(schedules[0].workload.remarks),
                "policies": [
                    {"policy": s.policy.name, **asdict(m), **_tables(s)}
                    for s, m in zip(schedules, figures, strict=True)
                ],
            }
            for schedules, figures in zip(runs, measured, strict=True)
        ],
    }


def _tables(schedule: Schedule) -> dict[str, Any]:
    rows = {"users": by_user, "sizes": by_size, "qos": by_qos, "gpu_types": by_gpu_type}
    return {name: [asdict(row) for row in table(schedule)] for name, table in rows.items()}


HEADERS = ["NAME", "SLOWDOWN", "WAIT", "P95", "P99", "LONGEST", "USED", "MAKESPAN", "STARVED", "GINI"]


def _lines(told: dict[str, Any]) -> Iterator[str]:
    for work in told["workloads"]:
        jobs = work["policies"][0]["jobs"]
        yield (
            f"{work['name']}: {jobs} jobs on {work['procs']} processors, backfill {told['backfill']} by "
            f"{told['plan']}, order {told['order']}"
        )
        yield from (f"Note: {remark}" for remark in work["remarks"])
        yield format_table(HEADERS, [_cells(row) for row in work["policies"]])
    starved_after = format_duration(told["starved_after_s"])
    yield f"SLOWDOWN is the average bounded slowdown; STARVED are jobs that waited over {starved_after}."


def _cells(row: dict[str, Any]) -> list[str]:
    times = ("mean_wait_s", "p95_wait_s", "p99_wait_s", "max_wait_s")
    return [
        row["policy"],
        f"{row['slowdown']:.2f}",
        *(format_duration(round(row[name])) for name in times),
        f"{row['utilisation']:.1%}",
        format_duration(row["makespan_s"]),
        f"{row['starved']:.2%}",
        f"{row['slowdown_gini']:.2f}",
    ]
