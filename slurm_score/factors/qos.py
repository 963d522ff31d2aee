"""How important the site declares a job: its QOS, and the urgency that a user may claim within it."""

from slurm_score.columns import columns_of
from slurm_score.factors.registry import Factor, FactorParams, Term, Weight
from slurm_score.hints import Urgency
from slurm_score.model import Job, Queue


class QosParams(FactorParams):
    """`urgent` names the QOS whose users may say `urgency=high`; lowering is open to everyone."""

    weight: Weight = 500
    urgent: tuple[str, ...] = ()


def value(priority: int, highest: int) -> float:
    """Return the factor of a QOS without urgency; the simulator uses it too."""
    return priority / highest if highest else 0.0


def claimed_urgency(job: Job, params: QosParams) -> Urgency:
    """Return the urgency of a job as far as its QOS allows it; `normal` where it claims too much."""
    urgency = job.hints.urgency or "normal"
    return "normal" if urgency == "high" and job.qos not in params.urgent else urgency


def compute(queue: Queue, params: QosParams) -> Term:
    """Return QOS priority / highest QOS priority, halved for low urgency, half-way to 1 for high.

    An unknown QOS counts as priority 0, and so do all where the highest is 0.
    """
    columns, qos = columns_of(queue), queue.cluster.qos
    highest = max(qos.values(), default=0)
    values = columns.qos.map(lambda name: value(qos.get(name, 0), highest))
    for i in columns.hinted:
        urgency = claimed_urgency(queue.jobs[i], params)
        if urgency != "normal":
            values[i] = values[i] / 2 if urgency == "low" else (1 + values[i]) / 2
    return Term(values)


def describe(queue: Queue, params: QosParams, i: int) -> str:
    """Return QOS and urgency in words."""
    job, qos = queue.jobs[i], queue.cluster.qos
    urgency = claimed_urgency(job, params)
    also = "" if urgency == "normal" else f", urgency {urgency}"
    if job.hints.urgency == "high" and urgency == "normal":
        also = f", and urgency=high is not open to QOS {job.qos or '(none)'}"
    if job.qos not in qos:
        return f"QOS {job.qos or '(none)'} is not known to slurmctld{also}"
    return f"QOS {job.qos} has priority {qos[job.qos]} of at most {max(qos.values())}{also}"


FACTOR = Factor(
    name="qos",
    header="QOS",
    position=40,
    summary="QOS priority / highest QOS priority; urgency=low halves it",
    params=QosParams,
    compute=compute,
    describe=describe,
)
