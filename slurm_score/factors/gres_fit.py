"""How well GPUs and job go together: who needs the contended type, and what is free of it."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from slurm_score.columns import Coded, columns_of
from slurm_score.contention import accepted_types, contention, match_now, usable_units
from slurm_score.factors.registry import Factor, FactorParams, Term, Weight
from slurm_score.model import Floats, Queue
from slurm_score.never import could_fit, why_never
from slurm_score.placement import fit_now
from slurm_score.request import Ask, ask_of
from slurm_score.supply import comes_free, comes_free_in_words

Share = Annotated[float, Field(ge=0, le=1000, strict=True)]


class GresFitParams(FactorParams):
    """The weights of the sub-terms inside the factor; at least one above 0.

    All but `scarcity` look at what is free now: see the README of the factors before they get one.
    """

    weight: Weight = 100
    scarcity: Share = 1.0
    ready: Share = 0.0
    match: Share = 0.0
    packing: Share = 0.0
    spread: Share = 0.0

    @model_validator(mode="after")
    def _weighs_something(self) -> "GresFitParams":
        if not sum(self.shares.values()):
            raise ValueError(f"{', '.join(self.shares)} are all 0; one must be above 0")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The inner weights by sub-term."""
        return {name: getattr(self, name) for name in TERMS}

    @property
    def share_of_free(self) -> float:
        """What share of the factor hangs on what is free now."""
        total = sum(self.shares.values())
        return (total - self.scarcity) / total


def scarcity(ask: Ask, queue: Queue) -> float:
    """Return s / (1 + s), s being the contention of the least contended type that the job accepts."""
    pressure = contention(ask, queue.cluster, queue.pressure)
    return 1.0 if math.isinf(pressure) else pressure / (1.0 + pressure)


def ready(ask: Ask, queue: Queue) -> float:
    """Return the share of the request that could start now."""
    return fit_now(ask, queue.cluster).ready


def match(ask: Ask, queue: Queue) -> float:
    """Return how well the best type that is free matches, 0 where none could serve the whole request."""
    return match_now(ask, queue.cluster, queue.gpu_types).value


def packing(ask: Ask, queue: Queue) -> float:
    """Return asked over free on the nodes that a best fit takes, 0 where it doesn't fit now."""
    return fit_now(ask, queue.cluster).packing


def spread(ask: Ask, queue: Queue) -> float:
    """Return 1 where it fits under one leaf switch now, else 0."""
    return fit_now(ask, queue.cluster).spread


SubTerm = Callable[[Ask, Queue], float]

TERMS: Mapping[str, SubTerm] = {
    "scarcity": scarcity,
    "ready": ready,
    "match": match,
    "packing": packing,
    "spread": spread,
}


def compute(queue: Queue, params: GresFitParams) -> Term:
    """Return the weighted mean of the sub-terms; a job without GPUs, or that can never start, has 0.

    Sub-terms of weight 0 are left out here: `detail` works them out for one job.
    """
    asks, used = _possible(queue), {name: share for name, share in params.shares.items() if share}
    details = {name: _column(queue, asks, TERMS[name]) for name in used}
    total = sum(share * details[name] for name, share in used.items())
    return Term(np.asarray(total / sum(used.values())), details)


def _possible(queue: Queue) -> Coded[Ask | None]:
    """The jobs' requests, None in the place of one that can never start."""
    asks = columns_of(queue).asks
    return Coded(
        asks.codes, tuple(ask if ask and could_fit(ask, queue.cluster) else None for ask in asks.values)
    )


def _column(queue: Queue, asks: Coded[Ask | None], term: SubTerm) -> Floats:
    return asks.map(lambda ask: term(ask, queue) if ask else 0.0)


def detail(queue: Queue, params: GresFitParams, i: int) -> dict[str, float]:  # noqa: ARG001
    """Return every sub-term of one job, those of weight 0 too."""
    ask = ask_of(queue.jobs[i])
    if ask is None or not could_fit(ask, queue.cluster):
        return dict.fromkeys(TERMS, 0.0)
    return {name: term(ask, queue) for name, term in TERMS.items()}


def describe(queue: Queue, params: GresFitParams, i: int) -> str:  # noqa: ARG001 - the shape of every factor
    """Return scarcity and fit in words."""
    ask, cluster = ask_of(queue.jobs[i]), queue.cluster
    if ask is None:
        return "asks for no GPU"
    if never := why_never(ask, cluster):
        return f"can never start: {never}"
    types, fit = accepted_types(ask, cluster), fit_now(ask, cluster)
    usable = usable_units(types, ask, cluster)
    pressure = contention(ask, cluster, queue.pressure)
    asked = "none is usable" if not usable else f"{pressure:.2g} asked for per usable one"
    now = _fits_now(ask, queue) if fit.ready >= 1 else f"{fit.ready:.0%} of it is free{_later(ask, queue)}"
    return f"accepts {'|'.join(types)}: {usable} usable, {asked}; {now}"


def _fits_now(ask: Ask, queue: Queue) -> str:
    best = match_now(ask, queue.cluster, queue.gpu_types).gpu_type
    return f"fits now, on {best}" if best else "fits now"


def _later(ask: Ask, queue: Queue) -> str:
    """When enough comes free, and by what that is told."""
    last = comes_free(ask, accepted_types(ask, queue.cluster), queue.cluster, queue.releases)
    return "" if last is None else f", enough comes free {comes_free_in_words(last, queue.now_s)}"


FACTOR = Factor(
    name="gres_fit",
    header="GRESFIT",
    position=50,
    summary="contended GPU types first (scarcity); fit with the free GPUs is shown and weighs 0",
    params=GresFitParams,
    compute=compute,
    describe=describe,
    detail=detail,
)
