"""Run times from the runs most like the job, of its user first: the predictor that the score uses. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_score.factors.remaining import left_of, value
from slurm_score.model import Asked, EndedRun, Floats, Predicted
from slurm_score.predict.interface import in_order
from slurm_score.predict.opinions import Opinions, weighted_median
from slurm_score.predict.runs import (
    CODE_COSTS,
    COLUMNS,
    COSTS,
    ELAPSED,
    END,
    GPUS,
    KERNELS,
    LIMIT,
    Runs,
    restored,
    row_of,
)
from slurm_score.units import MINUTE_S, format_duration

QUANTILE = 0.6
HALF_AT_S = 30.0 * MINUTE_S
STEPS = (-0.2, -0.1, 0.0, 0.1)
"""The quantiles around the wanted one that compete for each user."""
KEPT_RUNS, SITE_RUNS = 120, 100
SITE_WEIGHT, SITE_FACTOR_WEIGHT = 0.005, 0.03
"""What a run of anybody counts beside one of the user's own: in a quantile, and in the mean factor."""
MARGIN_S = 2.0
"""Repeats differ by a second or two; to be short by that much would be of no use to anybody."""
_UNKNOWN = Predicted(math.inf, "nothing")


@dataclass(frozen=True, slots=True)
class _Sample:
    """What a user's next job is compared with, by run time: `columns` and `base` as in Runs.

    `factor_base` is `base` with what the site's runs count in the mean factor.
    """

    columns: Floats
    base: Floats
    factor_base: Floats
    mine: NDArray[np.bool_]


class SimilarRuns:
    """Weighs the user's last runs, and a little the site's, by likeness and age; takes a quantile of them.

    Two memories times four quantiles give eight opinions. Whose past ones were good for this user counts
    more, and their weighted median is the prediction.
    """

    name = "similar runs"

    def __init__(self, quantile: float = QUANTILE) -> None:
        self.quantile = quantile
        self._levels = np.clip(np.array(STEPS) + quantile, 0.05, 0.95)
        self._users: dict[str, Runs] = {}
        self._unread: dict[str, list[list[float]]] = {}
        self._site = Runs(SITE_RUNS)
        self._opinions = Opinions(quantile)
        self._samples: dict[str, _Sample] = {}

    @property
    def observed(self) -> bool:
        """Whether any run was observed."""
        return len(self._site) > 0

    def observe(self, runs: Iterable[EndedRun]) -> None:
        """Learn from runs that ended since the last call, in any order."""
        for run in in_order(runs):
            self._judge(run)
            row = row_of(run)
            (self._of(run.user) or self._users.setdefault(run.user, Runs(KEPT_RUNS))).add(
                run.elapsed_s, run.end_s, row
            )
            self._site.add(run.elapsed_s, run.end_s, row)
            self._samples.clear()

    def predict(self, asked: Asked) -> Predicted:
        """Return how long such a job would run, at most its limit: always an answer, with its source."""
        return self.predict_all([asked])[0]

    def predict_all(self, asked: Sequence[Asked], half_at_s: float = HALF_AT_S) -> list[Predicted]:
        """Return predictions; equal jobs of one user cost as much as one.

        `half_at_s` is the policy's: what a run time that isn't sure is worth depends on it.
        """
        places: dict[str, dict[Asked, list[int]]] = {}
        for i, one in enumerate(asked):
            places.setdefault(one.user, {}).setdefault(one, []).append(i)
        found: list[Predicted] = [_UNKNOWN] * len(asked)
        for user, alike in places.items():
            told = self._predict(user, list(alike), half_at_s)
            for predicted, indexes in zip(told, alike.values(), strict=True):
                for i in indexes:
                    found[i] = predicted
        return found

    def _predict(self, user: str, asked: Sequence[Asked], half_at_s: float) -> list[Predicted]:
        if not self.observed:
            return [Predicted(one.limit_s, "time limit") for one in asked]
        sample = self._sample(user)
        columns = np.array([row_of(one) for one in asked])
        likeness, repeats = _likeness(sample, columns)
        said = _quantiles(sample.columns[ELAPSED], sample.base * likeness[:, None], self._levels)
        median = weighted_median(said, self._opinions.weights(user))
        limits = np.array([one.limit_s for one in asked])
        factors = _expected_factors(sample, likeness, limits, half_at_s)
        equivalents = np.round(np.maximum(left_of(factors, half_at_s), 0.0), 1)
        known = len(self._of(user) or ())
        return [
            Predicted(min(s + MARGIN_S, one.limit_s), _source(one, n, known), min(e, one.limit_s))
            for one, s, n, e in zip(asked, median.tolist(), repeats, equivalents.tolist(), strict=True)
        ]

    def _judge(self, run: EndedRun) -> None:
        """Compare what the opinions were at the run's submission, by what is still known, with the truth."""
        if not self.observed:
            return
        sample = self._sample(run.user)
        known = sample.columns[END] < run.submit_s
        if known.any():
            likeness, _ = _likeness(sample, np.array([row_of(run)]))
            said = _quantiles(
                sample.columns[ELAPSED], sample.base * (likeness * known)[:, None], self._levels
            )
            self._opinions.learn(run.user, np.minimum(said[0] + MARGIN_S, run.limit_s), run.elapsed_s)

    def _sample(self, user: str) -> _Sample:
        found = self._samples.get(user)
        if found is None:
            found = self._samples[user] = _sample(self._of(user), self._site)
        return found

    def _of(self, user: str) -> Runs | None:
        """A user's runs; those that were stored are put into columns when they are wanted first."""
        rows = self._unread.pop(user, None)
        if rows is not None:
            self._users[user] = restored(rows, KEPT_RUNS)
        return self._users.get(user)

    def stored(self) -> list[dict[str, Any]]:
        """Return all it knows as plain values, a dict for the site and one for each user, latest first."""
        known = self._unread | {user: runs.stored() for user, runs in self._users.items()}
        users = sorted(known.items(), key=lambda item: (-item[1][-1][END], item[0]))
        site = {"quantile": self.quantile, "runs": self._site.stored(), "losses": self._opinions.of_site()}
        return [site] + [
            {"user": user, "runs": rows, "losses": self._opinions.of_user(user)} for user, rows in users
        ]


def restore(stored: Sequence[Mapping[str, Any]]) -> SimilarRuns:
    """Return the predictor that stored itself."""
    site, *users = stored
    found = SimilarRuns(site["quantile"])
    found._site = restored(site["runs"], SITE_RUNS)
    found._opinions.restore("", site["losses"])
    for one in users:
        found._unread[one["user"]] = one["runs"]
        found._opinions.restore(one["user"], one["losses"])
    return found


def _sample(own: Runs | None, site: Runs) -> _Sample:
    n = 0 if own is None else len(own)
    columns, base = site.columns, np.full((len(KERNELS), len(site)), SITE_WEIGHT)
    if own is not None:
        columns = np.concatenate((own.columns, columns), axis=1)
        base = np.concatenate((own.base, base), axis=1)
    order = np.argsort(columns[ELAPSED], kind="stable")
    base, mine = base[:, order], order < n
    return _Sample(columns[:, order], base, np.where(mine, base, SITE_FACTOR_WEIGHT), mine)


def _likeness(sample: _Sample, asked: Floats) -> tuple[Floats, list[int]]:
    """Return how much each past run counts for each job, in (0, 1], float64[n_jobs, n_runs].

    With it how many of its user's runs are repeats of the job.
    """
    found = np.ones((len(asked), sample.columns.shape[1]))
    for column in range(LIMIT, COLUMNS):
        theirs, ours = sample.columns[column], asked[:, column - LIMIT]
        if column not in COSTS and not theirs.any() and not ours.any():
            continue
        values, which = np.unique(ours, return_inverse=True) if len(ours) > 1 else (ours, 0)
        found *= _likeness_in(column, theirs, values[:, None])[which]
    return found, ((found == 1.0) & sample.mine).sum(axis=1).tolist()


def _likeness_in(column: int, theirs: Floats, ours: Floats) -> Floats:
    if column in COSTS:
        once, each = COSTS[column]
        distance = np.abs(theirs - ours)
        return np.exp(-once * (distance > 0) - each * distance)
    differs = theirs != ours
    if column != GPUS:  # of GPUs 0 is no GPU, of the others it is "not known"
        differs &= (theirs != 0) & (ours != 0)
    return np.where(differs, math.exp(-CODE_COSTS[column]), 1.0)


def _quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return quantiles of values in ascending order, by weights float64[n_jobs, kernels, n_values].

    The rows of cumulated weights, each brought to [0, 1], are laid end to end, so that one search finds
    all of them. float64[n_jobs, kernels × levels].
    """
    n_jobs, kernels, n = weights.shape
    cumulated = np.cumsum(weights, axis=2, out=np.empty(weights.shape)).reshape(n_jobs * kernels, n)
    cumulated /= cumulated[:, -1:].copy()
    rows = np.arange(float(len(cumulated)))[:, None]
    cumulated += rows
    places = np.searchsorted(cumulated.ravel(), (rows + levels - 1e-9).ravel())
    found: Floats = values[places.reshape(n_jobs, -1) % n]
    return found


def _expected_factors(sample: _Sample, likeness: Floats, limits: Floats, half_at_s: float) -> Floats:
    """Return what the factor `remaining` is on average over the runs, both memories alike.

    No run counts for longer than a job's limit. The order by score asks for the factor, so its mean
    foretells more than the factor of any one run time would. float64[n_jobs].
    """
    elapsed, base = sample.columns[ELAPSED], sample.factor_base.T
    values = value(elapsed, half_at_s)
    sums = likeness @ (base * values[:, None])
    cut = np.flatnonzero(limits < elapsed[-1])
    if len(cut):
        gained = np.maximum(value(limits[cut], half_at_s)[:, None] - values, 0.0)
        sums[cut] += (likeness[cut] * gained) @ base
    found: Floats = (sums / (likeness @ base)).mean(axis=1)
    return found


def _source(asked: Asked, repeats: int, known: int) -> str:
    user = asked.user or "this user"
    if repeats:
        return f"last {repeats} of {user}'s {_kind(asked)}"
    if known:
        return f"last {known} jobs of {user}, the nearest in limit and size first"
    return f"the site's last jobs, as {user} has run none"


def _kind(asked: Asked) -> str:
    size = f"{asked.gpus}-GPU" if asked.gpus else f"{asked.cpus}-CPU"
    named = f" named {asked.name}" if asked.name else ""
    limit = "without limit" if math.isinf(asked.limit_s) else f"of {format_duration(asked.limit_s)}"
    return f"{size} jobs{named} {limit}"
