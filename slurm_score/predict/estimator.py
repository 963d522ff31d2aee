"""What the score takes for the run time of each job: its runs, its hints, what a checkpoint saves. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_score.factors.remaining import claimed_s, limits_s
from slurm_score.hints import NO_HINTS
from slurm_score.model import Asked, Cluster, EndedRun, Job, Predicted
from slurm_score.predict.claims import Claims
from slurm_score.predict.kinds import COUNTED, kind_of_name
from slurm_score.predict.similar import HALF_AT_S, QUANTILE, SimilarRuns, restore
from slurm_score.units import format_duration


class Estimator:
    """The predictor and the hints' record together: runs in, jobs with predictions out.

    `half_at_s` is what a prediction is worth to the score by (Predicted.equivalent_s); it may be changed.
    """

    def __init__(self, quantile: float = QUANTILE, half_at_s: float = HALF_AT_S) -> None:
        self.quantile, self.half_at_s = quantile, half_at_s
        self._runs = SimilarRuns(quantile)
        self._claims = Claims(quantile)

    def __eq__(self, other: object) -> bool:
        """Whether both know the same."""
        return isinstance(other, Estimator) and self.stored() == other.stored()

    @property
    def knows_anything(self) -> bool:
        """Whether any run was observed: without one a job's limit is all there is."""
        return self._runs.observed

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Learn from the runs among these that tell how long a job runs."""
        counted = [run for run in runs if run.state in COUNTED]
        self._runs.observe(counted)
        self._claims.observe(counted)

    def predict_jobs(
        self, jobs: Sequence[Job], cluster: Cluster, ran_s: Mapping[int, float]
    ) -> dict[int, Predicted]:
        """Return predictions by job id; `ran_s` is by job id what a checkpoint may save of it."""
        if not self.knows_anything:
            return {}
        limits = limits_s(jobs, cluster)
        asked = [asked_of(job, limit) for job, limit in zip(jobs, limits, strict=True)]
        predicted = self._runs.predict_all(asked, self.half_at_s)
        return {
            job.job_id: self._finish(job, one, found, ran_s)
            for job, one, found in zip(jobs, asked, predicted, strict=True)
        }

    def _finish(self, job: Job, asked: Asked, found: Predicted, ran_s: Mapping[int, float]) -> Predicted:
        """Put hints in: `est=` is all of the run, `left=` and `progress=` tell of what is left of it."""
        hints = job.hints
        if hints is NO_HINTS:
            return found
        done_s = ran_s.get(job.job_id, 0.0) if hints.ckpt and job.restarts else 0.0
        if asked.claim_s is None:
            return _rest(found, done_s)
        if hints.left_s is None and not hints.progress:
            return _rest(self._calibrate(asked, found), done_s)
        return self._calibrate(asked, _rest(found, done_s))

    def _calibrate(self, asked: Asked, otherwise: Predicted) -> Predicted:
        claim_s = asked.claim_s or 0.0
        return self._claims.calibrate(asked.user, claim_s, asked.limit_s, otherwise, self.half_at_s)

    def stored(self) -> list[dict[str, Any]]:
        """Return all it knows as plain values, one dict for each line of the snapshot."""
        site, *users = self._runs.stored()
        return [site | {"half_at_s": self.half_at_s, "claims": self._claims.stored()}, *users]


def _rest(whole: Predicted, done_s: float) -> Predicted:
    """What is left to run of a job of which a checkpoint saved so much."""
    if not done_s:
        return whole
    words = f"{whole.source}, less {format_duration(done_s)} run before its requeue"
    return Predicted(max(0.0, whole.seconds - done_s), words, max(0.0, whole.scored_s - done_s))


def restore_estimator(stored: Sequence[Mapping[str, Any]]) -> Estimator:
    """Return the estimator that stored itself."""
    found = Estimator(stored[0]["quantile"], stored[0]["half_at_s"])
    found._runs = restore(stored)
    found._claims.restore(stored[0]["claims"])
    return found


def asked_of(job: Job, limit_s: float) -> Asked:
    """Return what a job asks for, with the limit that will hold for it."""
    claim_s, said = (0.0, 0) if job.hints is NO_HINTS else claimed_s(job.hints, limit_s)
    return Asked(
        user=job.user,
        limit_s=limit_s,
        cpus=job.cpus,
        gpus=job.gpus.total,
        gpu_types=",".join(sorted(name for name, _ in job.gpus.types)) if job.gpus.types else "",
        account=job.account,
        name=kind_of_name(job.name) if job.name else "",
        partition=job.partitions[0] if len(job.partitions) == 1 else "",
        qos=job.qos,
        claim_s=claim_s if said else None,
    )
