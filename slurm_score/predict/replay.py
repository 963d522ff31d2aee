"""How good predictors are on a log: at each submission they know what had ended before. Pure."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_score.model import EndedRun, Floats
from slurm_score.predict.interface import Predictor


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far predictions are from run times, in s; `too_short` is the share of them below."""

    predictor: str
    jobs: int
    mae_s: float
    median_s: float
    min_max: float
    too_short: float


def predict_each(runs: Sequence[EndedRun], predictor: Predictor) -> Floats:
    """Return what a predictor says of each run at its submission, float64[n_runs].

    Of one second the submissions come first, in the order given: a run that ends then isn't known yet.
    """
    said = np.zeros(len(runs))
    ending: list[tuple[int, int]] = []
    for i in sorted(range(len(runs)), key=lambda i: (runs[i].submit_s, i)):
        run = runs[i]
        predictor.observe([runs[j] for j in _ended_before(ending, run.submit_s)])
        said[i] = predictor.predict(run).seconds
        heapq.heappush(ending, (run.end_s, i))
    return said


def _ended_before(ending: list[tuple[int, int]], time_s: int) -> Iterator[int]:
    while ending and ending[0][0] < time_s:
        yield heapq.heappop(ending)[1]


def accuracy(name: str, said: Floats, ran: Floats) -> Accuracy:
    """Return the accuracy of predictions; of two zeros the smaller over the greater counts as 1."""
    errors, top = np.abs(said - ran), np.maximum(said, ran)
    ratio = np.where(top > 0, np.minimum(said, ran) / np.where(top > 0, top, 1.0), 1.0)
    short = float(np.mean(said < ran))
    return Accuracy(
        name, len(ran), float(errors.mean()), float(np.median(errors)), float(ratio.mean()), short
    )


def replay(runs: Sequence[EndedRun], predictors: Sequence[Predictor]) -> list[Accuracy]:
    """Return the accuracy of each predictor on a log that holds at least one run."""
    ran = np.array([run.elapsed_s for run in runs])
    return [accuracy(predictor.name, predict_each(runs, predictor), ran) for predictor in predictors]
