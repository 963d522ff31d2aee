"""What /metrics shows of the last cycles and of the service's own state, read when it is asked."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from slurm_score.errors import SnapshotError
from slurm_score.figures import Figures

if TYPE_CHECKING:
    from slurm_score.service.state import State


class StateCollector(Collector):
    """Shows a service's state to a registry of prometheus_client."""

    def __init__(self, state: "State") -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield what is known; nothing of the cycles where there is no snapshot."""
        yield _gauge("killed", "1 while the kill switch is on", float(bool(self._state.killed)))
        broken = float(bool(self._state.policy.error))
        yield _gauge("policy_broken", "1 while the policy file is broken and the former in force", broken)
        refused = CounterMetricFamily(
            "slurm_score_hook_without_answer",
            "Submissions without a first score since slurmctld loaded the hook: failed questions, "
            "and resting, those that the hook didn't ask after three failures in a row",
            labels=["why"],
        )
        refused.add_metric(["failed"], self._state.hook.failed)
        refused.add_metric(["resting"], self._state.hook.resting)
        yield refused
        try:
            figures = self._state.snapshot.latest().figures
        except SnapshotError:
            return
        yield from _of_queue(figures)
        yield from _of_cycles(figures)
        yield from _of_predictions(figures)


def _of_queue(figures: Figures) -> Iterator[Metric]:
    waits = figures.waits
    yield _gauge("jobs_waiting", "Pending jobs that could start", waits.jobs)
    yield _gauge("jobs_guarded", "Of these, jobs past their guard: above every score", waits.guarded)
    yield _gauge("wait_p95_seconds", "95th percentile of their waits", waits.p95_s)
    yield _by("longest_wait_qos_seconds", "Longest wait by QOS", "qos", waits.longest_by_qos_s)
    yield _by(
        "longest_wait_type_seconds",
        "Longest wait of the jobs that accept a GPU type; none: those that ask for no GPU",
        "type",
        waits.longest_by_type_s,
    )


def _of_cycles(figures: Figures) -> Iterator[Metric]:
    yield _by("cycle_seconds", "How long the last cycle took, by part", "part", figures.seconds)
    yield _gauge("updates_left_over", "Updates that wait for the next cycle", figures.left_over)
    yield _counter("cycles", "Cycles that came to their end", figures.cycles)
    yield _counter("updates_sent", "Updates sent to slurmctld", figures.sent)
    yield _counter("updates_failed", "Of these, updates that slurmctld refused", figures.failed)


def _of_predictions(figures: Figures) -> Iterator[Metric]:
    judged = figures.judged
    yield _counter("predicted_runs", "Ended runs whose time had been predicted", judged.runs)
    yield _counter("predictions_too_short", "Of these, runs that took longer than that", judged.too_short)
    yield _counter("prediction_error_seconds", "Sum of their absolute errors", judged.error_s)
    yield _counter("predicted_run_seconds", "Sum of their run times", judged.elapsed_s)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"slurm_score_{name}", text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"slurm_score_{name}", text, value)


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"slurm_score_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
