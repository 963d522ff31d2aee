"""One job's score in words and numbers, where it stands, and what blocks it if that isn't the score. Pure."""

from dataclasses import dataclass

from slurm_score.factors import registry
from slurm_score.model import SLURM_PARTS, Job, Queue
from slurm_score.obstacles import obstacles
from slurm_score.plan import skip_reason
from slurm_score.policy import Policy
from slurm_score.score import Scores, guard_base, queue_order
from slurm_score.standing import Standing, place, standings
from slurm_score.units import format_duration

_WAITS_ITS_TURN = frozenset({"Priority", "Resources", "None", ""})
_BLOCKERS = {
    "Dependency": "it waits for another job",
    "DependencyNeverSatisfied": "the job that it depends on can never satisfy it",
    "BeginTime": "its begin time has not come",
    "JobHeldUser": "its user holds it",
    "JobHeldAdmin": "an administrator holds it",
    "BadConstraints": "no node can ever meet its constraints; Slurm holds it",
    "JobArrayTaskLimit": "its array runs as many tasks at once as it allows itself",
    "PartitionTimeLimit": "it asks for more time than its partition gives",
    "PartitionNodeLimit": "it asks for more nodes than its partition gives",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition starts no jobs",
    "Licenses": "it waits for a licence",
    "Reservation": "it waits for its reservation",
    "ReservationDeleted": "its reservation is gone",
    "ReqNodeNotAvail": "nodes that it needs are not available",
    "Nodes": "nodes that it needs are not available",
    "NodeDown": "a node that it needs is down",
    "MaxMemPerLimit": "it asks for more memory than a CPU or node of its partition gives",
    "InvalidAccount": "its account is not valid any more",
    "InvalidQOS": "its QOS is not valid any more",
    "AccountNotAllowed": "its partition doesn't let its account in",
    "QOSNotAllowed": "its partition or its association doesn't let its QOS in",
    "JobHoldMaxRequeue": "it was requeued too often; Slurm holds it",
    "launch": "its launch failed and Slurm holds it",
    "launch_failed_requeued_held": "its launch failed and Slurm holds it",
}


@dataclass(frozen=True, slots=True)
class TermLine:
    """One factor of one job: `part` = `weight` x `factor`; `details` are its sub-terms in [0, 1].

    `share` is what part of the score it makes, in [0, 1].
    """

    name: str
    weight: int
    factor: float
    part: float
    share: float
    words: str
    details: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One job's score, taken apart; `rank` counts from 1 among the `of` jobs that share a partition.

    `blocker` is what Slurm's `reason` says beside the score, empty where it says that the job waits its
    turn; `obstacles` are what the snapshot tells beside it. `site_wanted` is what the policy wants Slurm
    to hold: `points`, which are the score or, past the guard, the minutes since, and `offset`, which all
    jobs of its tier share, rounded. `site_held` is what Slurm holds, None where it doesn't tell;
    `priority` is Slurm's whole number: `site_held` and `slurm_parts`, of which nice is taken off, each of
    which sprio rounds.
    """

    job: str
    job_id: int
    user: str
    partition: str
    qos: str
    score: float
    terms: tuple[TermLine, ...]
    guard: str
    rank: int
    of: int
    standings: tuple[Standing, ...]
    points: float
    offset: float
    site_wanted: int
    site_held: int | None
    priority: int
    slurm_parts: dict[str, int]
    untouched: str
    blocker: str
    obstacles: tuple[str, ...]
    reason: str
    expected_start_s: int | None
    policy_hash: str


def explain_job(queue: Queue, scores: Scores, policy: Policy, i: int) -> Explanation:
    """Return the explanation of job i of a queue, by the numbers that were scored."""
    job, key = queue.jobs[i], queue_order(queue, scores, i)
    rank, of = place(queue, scores.site, i, job.partitions, key)
    return Explanation(
        job=job.label,
        job_id=job.job_id,
        user=job.user,
        partition=",".join(job.partitions),
        qos=job.qos,
        score=float(scores.score[i]),
        terms=tuple(_term_line(queue, scores, policy, i, column) for column in range(len(scores.names))),
        guard=_guard(policy, job) if scores.guarded[i] else "",
        rank=rank,
        of=of,
        standings=standings(queue, scores.site, i, job, key),
        points=float(scores.points[i]),
        offset=guard_base(queue, policy) + queue.offsets.guard if scores.guarded[i] else queue.offsets.score,
        site_wanted=int(scores.site[i]),
        site_held=job.site_factor,
        priority=job.priority,
        slurm_parts=dict(zip(SLURM_PARTS, job.slurm_parts, strict=True)) if job.slurm_parts else {},
        untouched=skip_reason(queue, i),
        blocker=blocker(job),
        obstacles=obstacles(queue, i),
        reason=job.reason,
        expected_start_s=job.start_s,
        policy_hash=policy.hash,
    )


def blocker(job: Job) -> str:
    """Return in words what keeps a job from starting that is not its score, Slurm's own reason with it.

    Slurm gives a fresh job no reason until the scheduler has looked at it; its dependency and its
    priority tell before that.

    Source: squeue(1), JOB REASON CODES.
    """
    reason = "" if job.reason in _WAITS_ITS_TURN else job.reason
    word = reason.split(",")[0].split(" ")[0]
    if word in _BLOCKERS:
        what = _BLOCKERS[word]
    elif job.dependency:
        what, word = _BLOCKERS["Dependency"], "Dependency"
    elif word.startswith("QOSMin"):
        what = "it asks for less than its QOS demands"
    elif word.startswith(("QOS", "Assoc")):
        what = f"a limit of its {'QOS' if word.startswith('QOS') else 'association'} is reached"
    elif job.held:
        what = "it is held at priority 0"
    else:
        what = "Slurm says why" if reason else ""
    on = f" ({job.dependency})" if word == "Dependency" and job.dependency else ""
    return f"{what}{on}" + (f": {reason}" if reason else "")


def _term_line(queue: Queue, scores: Scores, policy: Policy, i: int, column: int) -> TermLine:
    name = scores.names[column]
    factor, params = registry()[name], policy.factors[name]
    part, score = float(scores.parts[i, column]), float(scores.score[i])
    used = {key: float(values[i]) for key, values in scores.details.get(name, {}).items()}
    every = factor.detail(queue, params, i) if factor.detail else {}
    return TermLine(
        name=name,
        weight=scores.weights[column],
        factor=float(scores.factors[i, column]),
        part=part,
        share=part / score if score else 0.0,
        words=factor.describe(queue, params, i),
        details={**every, **used},
    )


def _guard(policy: Policy, job: Job) -> str:
    after = format_duration(policy.guard.of(job.qos, job.partitions))
    return f"it has waited longer than {after}: above every score, in the order in which jobs got there"
