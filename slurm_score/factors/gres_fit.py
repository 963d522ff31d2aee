"""How well GPUs and job go together: who needs the contended type, and what is free of it."""

from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from slurm_score import inventory
from slurm_score.columns import columns_of
from slurm_score.factors.registry import Factor, FactorParams, Term, Weight
from slurm_score.model import Floats, Queue

Share = Annotated[float, Field(ge=0, le=1000, strict=True)]


class GresFitParams(FactorParams):
    """`scarcity` and `ready` are the weights of the sub-terms inside the factor; at least one above 0."""

    weight: Weight = 100
    scarcity: Share = 1.0
    ready: Share = 0.0

    @model_validator(mode="after")
    def _weighs_something(self) -> "GresFitParams":
        if self.scarcity + self.ready == 0:
            raise ValueError("scarcity and ready are both 0; one must be above 0")
        return self


def compute(queue: Queue, params: GresFitParams) -> Term:
    """Return the weighted mean of the sub-terms; a job without GPUs has 0."""
    scarcity, ready = _scarcity(queue), _ready(queue)
    mean = (params.scarcity * scarcity + params.ready * ready) / (params.scarcity + params.ready)
    return Term(mean, {"scarcity": scarcity, "ready": ready})


def describe(queue: Queue, params: GresFitParams, i: int) -> str:  # noqa: ARG001 - the shape of every factor
    """Return scarcity and readiness in words."""
    job = queue.jobs[i]
    if not job.gpus.total:
        return "asks for no GPU"
    types = inventory.accepted_types(job.gpus, job.partitions, queue.cluster)
    if not types:
        return "asks for GPUs that its partition doesn't have"
    usable = inventory.usable_gpus(types, job.partitions, queue.cluster)
    free = inventory.ready_gpus(job.gpus, job.partitions, queue.cluster)
    pressure = inventory.contention(job.gpus, job.partitions, queue.cluster, queue.pressure)
    asked = "none is usable" if not usable else f"{pressure:.2g} asked for per usable GPU"
    return f"{free} of the {job.gpus.total} GPUs are ready; {'|'.join(types)}: {usable} usable, {asked}"


def _scarcity(queue: Queue) -> Floats:
    """Contended types first: s / (1 + s) of the least contended type that the job accepts."""
    pressure = columns_of(queue).requests.map(
        lambda key: inventory.contention(*key, queue.cluster, queue.pressure)
    )
    return np.where(np.isinf(pressure), 1.0, pressure / (1.0 + np.where(np.isinf(pressure), 0.0, pressure)))


def _ready(queue: Queue) -> Floats:
    """The share of the asked GPUs that could be had now."""
    return columns_of(queue).requests.map(
        lambda key: inventory.ready_gpus(*key, queue.cluster) / key[0].total if key[0].total else 0.0
    )


FACTOR = Factor(
    name="gres_fit",
    header="GRESFIT",
    position=50,
    summary="mean of scarcity (contended GPU types first) and ready (free now), weighted",
    params=GresFitParams,
    compute=compute,
    describe=describe,
)
