"""Predictors outside the kernels: plain Python that is asked about jobs one by one. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from slurm_score.model import Asked, EndedRun, Predicted
from slurm_score.predict.similar import HALF_AT_S, QUANTILE, SimilarRuns
from slurm_score.sim import history, state
from slurm_score.sim.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What a predictor may know of a job that waits."""

    job_id: int
    user: int
    procs: int
    request_s: int
    submit_s: int


class Predictor(Protocol):
    """A predictor outside the kernels."""

    def observe(self, job: Submitted, run_s: int, end_s: int) -> None:
        """Take note of a run that has ended."""

    def predict(self, job: Submitted) -> float:
        """Return the run time in s that is expected of a job now."""


class Similar:
    """The product's own predictor.

    A waiting job is predicted anew once a run of its user has ended. What others' runs tell meanwhile
    counts for little and isn't asked for again.
    """

    def __init__(self, quantile: float = QUANTILE, half_at_s: float = HALF_AT_S) -> None:
        self._runs, self._half_at_s = SimilarRuns(quantile), half_at_s
        self._known: dict[int, dict[tuple[int, int], Predicted]] = {}

    def observe(self, job: Submitted, run_s: int, end_s: int) -> None:
        """Take note of a run that has ended."""
        self._runs.observe([_ended(job, run_s, end_s)])
        self._known.pop(job.user, None)

    def predict(self, job: Submitted) -> float:
        """Return the run time in s that is expected of a job now."""
        return self._predicted(job).seconds

    def scored(self, job: Submitted) -> float:
        """Return the run time in s that a score of ours goes by."""
        return self._predicted(job).scored_s

    def _predicted(self, job: Submitted) -> Predicted:
        known, key = self._known.setdefault(job.user, {}), (job.procs, job.request_s)
        if key not in known:
            asked = Asked(user=str(job.user), limit_s=float(job.request_s), cpus=job.procs)
            known[key] = self._runs.predict_all([asked], self._half_at_s)[0]
        return known[key]


def _ended(job: Submitted, run_s: int, end_s: int) -> EndedRun:
    return EndedRun(
        user=str(job.user),
        limit_s=float(job.request_s),
        cpus=job.procs,
        submit_s=job.submit_s,
        end_s=end_s,
        elapsed_s=float(run_s),
        job_id=job.job_id,
    )


def in_place_of_kernels(
    predictor: Predictor, workload: Workload, order: Any
) -> Mapping[Callable[..., Any], Any]:
    """Return what stands in the place of kernels: they learn as before, and the predictor with them.

    It is asked again about every job after each end. `order` holds the workload's rows in the
    order of submission.
    """
    w = workload
    rows = list(
        zip(w.job_id[order].tolist(), w.user[order].tolist(), w.procs[order].tolist(),
            w.request_s[order].tolist(), w.submit_s[order].tolist(), strict=True)
    )  # fmt: skip
    known: dict[int, float] = {}
    worth: dict[int, float] = {}
    score_s = predictor.scored if isinstance(predictor, Similar) else predictor.predict

    def job(row: int) -> Submitted:
        job_id, user, procs, request_s, submit_s = rows[row]
        return Submitted(job_id=job_id, user=user, procs=procs, request_s=request_s, submit_s=submit_s)

    def learn(jobs: state.Jobs, s: state.State, row: int) -> None:
        known.clear()
        worth.clear()
        history.learn(jobs, s, row)
        predictor.observe(job(row), jobs.run[row], s.start[row] + jobs.run[row])

    def told(_: state.Jobs, __: state.State, row: int) -> float:
        if row not in known:
            known[row] = float(predictor.predict(job(row)))
        return known[row]

    def scored(_: state.Jobs, __: state.State, row: int) -> float:
        if row not in worth:
            worth[row] = float(score_s(job(row)))
        return worth[row]

    return {history.learn: learn, history.told: told, history.scored: scored}
