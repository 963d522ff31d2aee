"""What slurm-score simulate tells of schedules: as JSON and as tables."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from slurm_score.report.table import format_table
from slurm_score.sim.engine import Schedule
from slurm_score.sim.gpu_metrics import by_type
from slurm_score.sim.hetero import ClusterSchedule
from slurm_score.sim.metrics import Metrics, by_gpu_type, by_qos, by_size, by_user
from slurm_score.units import format_duration


def told_of(
    runs: Sequence[Sequence[Schedule]], measured: Sequence[Sequence[Metrics]], starved_s: float
) -> dict[str, Any]:
    """Return what is told of simulated schedules, as JSON has it."""
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
                    {"policy": s.policy.name, **asdict(m), **_tables(s), **_on_cluster(s)}
                    for s, m in zip(schedules, figures, strict=True)
                ],
            }
            for schedules, figures in zip(runs, measured, strict=True)
        ],
    }


def _tables(schedule: Schedule) -> dict[str, Any]:
    rows = {"users": by_user, "sizes": by_size, "qos": by_qos, "gpu_types": by_gpu_type}
    return {name: [asdict(row) for row in table(schedule)] for name, table in rows.items()}


def _on_cluster(schedule: Schedule) -> dict[str, Any]:
    """What only a cluster has: restarted runs, and each GPU type's use."""
    if not isinstance(schedule, ClusterSchedule):
        return {}
    rows = [asdict(row) | {"fragmentation": row.fragmentation} for row in by_type(schedule)]
    return {"restarts": int(schedule.restarts.sum()), "gpus": rows}


HEADERS = ["NAME", "SLOWDOWN", "WAIT", "P95", "P99", "LONGEST", "USED", "MAKESPAN", "STARVED", "GINI"]


def lines_of(told: dict[str, Any]) -> Iterator[str]:
    """Yield what is told, as tables."""
    for work in told["workloads"]:
        jobs = work["policies"][0]["jobs"]
        yield (
            f"{work['name']}: {jobs} jobs on {work['procs']} processors, backfill {told['backfill']} by "
            f"{told['plan']}, order {told['order']}"
        )
        yield from (f"Note: {remark}" for remark in work["remarks"])
        yield format_table(HEADERS, [_cells(row) for row in work["policies"]])
        yield from _gpu_lines(work["policies"])
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


def _gpu_lines(policies: list[dict[str, Any]]) -> Iterator[str]:
    rows = [
        [row["policy"], gpu["name"], str(gpu["gpus"]), f"{gpu['used']:.1%}", f"{gpu['fragmentation']:.1%}"]
        for row in policies
        for gpu in row.get("gpus", ())
    ]
    if rows:
        yield format_table(["NAME", "GPU", "GPUS", "USED", "FRAGMENTED"], rows)
        yield "FRAGMENTED is the part of the free GPUs that is on nodes where others of the type are taken."
    for row in policies:
        if row.get("restarts"):
            yield f"{row['policy']}: {row['restarts']} runs were ended by a failure or by preemption."
