"""What a predictor is. Pure."""

from collections.abc import Iterable
from typing import Protocol

from slurm_score.model import Asked, EndedRun, Predicted


class Predictor(Protocol):
    """Predicts run times and learns from the runs that ended."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    def predict(self, asked: Asked) -> Predicted:
        """Return how long such a job would run, at most its limit: always an answer, with its source."""
        ...

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Learn from runs that ended since the last call, in any order."""
        ...


def in_order(runs: Iterable[EndedRun]) -> list[EndedRun]:
    """Return runs in the order of their ends, those of one second in the order of their starts."""
    return sorted(runs, key=lambda run: (run.end_s, run.start_s, run.job_id, run.submit_s, run.user))
