"""One job's score in words and numbers, and what blocks it if that isn't the score. Pure."""

from dataclasses import dataclass

from slurm_score.factors import registry
from slurm_score.model import Job, Queue
from slurm_score.plan import skip_reason
from slurm_score.policy import Policy
from slurm_score.score import Scores, queue_order
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
    "ReqNodeNotAvail": "nodes that it needs are not available",
    "launch": "its launch failed and Slurm holds it",
    "launch_failed_requeued_held": "its launch failed and Slurm holds it",
}


@dataclass(frozen=True, slots=True)
class TermLine:
    """One factor of one job: `part` = `weight` x `factor`; `details` are its sub-terms in [0, 1]."""

    name: str
    weight: int
    factor: float
    part: float
    words: str
    details: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One job's score, taken apart; `rank` counts from 1 among the `of` jobs that share a partition.

    `blocker` is empty where the score alone decides when it starts; `site_wanted` is what the policy
    wants Slurm to hold, `site_held` what it holds, None where it doesn't tell.
    """

    job: str
    user: str
    partition: str
    qos: str
    score: float
    terms: tuple[TermLine, ...]
    guard: str
    rank: int
    of: int
    site_wanted: int
    site_held: int | None
    untouched: str
    blocker: str
    reason: str
    policy_hash: str


def explain_job(queue: Queue, scores: Scores, policy: Policy, i: int) -> Explanation:
    """Return the explanation of job i of a queue, by the numbers that were scored."""
    job = queue.jobs[i]
    rank, of = _rank(queue, scores, i)
    return Explanation(
        job=job.label,
        user=job.user,
        partition=",".join(job.partitions),
        qos=job.qos,
        score=float(scores.score[i]),
        terms=tuple(_term_line(queue, scores, policy, i, column) for column in range(len(scores.names))),
        guard=_guard(policy, job) if scores.guarded[i] else "",
        rank=rank,
        of=of,
        site_wanted=int(scores.site[i]),
        site_held=job.site_factor,
        untouched=skip_reason(queue, i),
        blocker=blocker(job),
        reason=job.reason,
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
    used = {key: float(values[i]) for key, values in scores.details.get(name, {}).items()}
    every = factor.detail(queue, params, i) if factor.detail else {}
    return TermLine(
        name=name,
        weight=scores.weights[column],
        factor=float(scores.factors[i, column]),
        part=float(scores.parts[i, column]),
        words=factor.describe(queue, params, i),
        details={**every, **used},
    )


def _rank(queue: Queue, scores: Scores, i: int) -> tuple[int, int]:
    """Return the place among the eligible pending jobs that share a partition, and how many those are."""
    mine = set(queue.jobs[i].partitions)
    rivals = [
        k
        for k, job in enumerate(queue.jobs)
        if k == i or (job.eligible(queue.now_s) and mine.intersection(job.partitions))
    ]
    mine_first = queue_order(queue, scores, i)
    ahead = sum(queue_order(queue, scores, k) < mine_first for k in rivals)
    return ahead + 1, len(rivals)


def _guard(policy: Policy, job: Job) -> str:
    after = format_duration(policy.guard.of(job.qos, job.partitions))
    return f"it has waited longer than {after}: above every score, in the order in which jobs got there"
