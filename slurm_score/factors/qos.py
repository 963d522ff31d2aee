"""How important the site declares a job: its QOS."""

import numpy as np

from slurm_score.factors.registry import Factor, FactorParams, Term, Weight
from slurm_score.model import Queue


class QosParams(FactorParams):
    """QOS has no parameter besides its weight."""

    weight: Weight = 500


def compute(queue: Queue, params: QosParams) -> Term:  # noqa: ARG001 - the shape of every factor
    """Return QOS priority / highest QOS priority; 0 for an unknown QOS or where all are 0."""
    highest = max(queue.cluster.qos.values(), default=0)
    priority = queue.column_by(lambda job: job.qos, lambda name: queue.cluster.qos.get(name, 0))
    return Term(priority / highest if highest else np.zeros(len(queue)))


def describe(queue: Queue, params: QosParams, i: int) -> str:  # noqa: ARG001 - the shape of every factor
    """Return the QOS in words."""
    name = queue.jobs[i].qos
    if name not in queue.cluster.qos:
        return f"QOS {name or '(none)'} is not known to slurmctld"
    highest = max(queue.cluster.qos.values())
    return f"QOS {name} has priority {queue.cluster.qos[name]} of at most {highest}"


FACTOR = Factor(
    name="qos",
    header="QOS",
    position=40,
    summary="QOS priority / highest QOS priority",
    params=QosParams,
    compute=compute,
    describe=describe,
)
