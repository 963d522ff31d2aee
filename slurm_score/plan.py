"""What is wanted and what Slurm holds in, the updates to send out. Pure.

Slurm's own answer (sprio's SITE) is the truth about what it holds; no memory of ours is needed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from slurm_score.model import Job, Queue
from slurm_score.score import Scores

NOT_RANKED = "not ranked by Slurm yet"


@dataclass(frozen=True, slots=True)
class SiteFactorUpdate:
    """One `scontrol update JobId=<update_id> SiteFactor=<value>`; `job_id` is the record's number."""

    job_id: int
    update_id: str
    value: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The updates to send, and how many jobs get none, by reason."""

    updates: tuple[SiteFactorUpdate, ...]
    skipped: Mapping[str, int]


def plan_updates(queue: Queue, scores: Scores) -> Plan:
    """Return the updates that bring Slurm's SiteFactors to the wanted ones: changed jobs only.

    Held and pinned jobs are left alone, a het job is updated through its leader, and a job that
    sprio doesn't list is left for the cycle in which it can compete. Highest values first.
    """
    updates: list[SiteFactorUpdate] = []
    skipped: Counter[str] = Counter()
    for job, wanted in zip(queue.jobs, scores.site.tolist(), strict=True):
        reason = skip_reason(job) or ("unchanged" if job.site_factor == wanted else "")
        if reason:
            skipped[reason] += 1
        else:
            updates.append(SiteFactorUpdate(job.job_id, job.update_id, wanted))
    return Plan(tuple(sorted(updates, key=lambda update: (-update.value, update.job_id))), dict(skipped))


def plan_reset(jobs: tuple[Job, ...]) -> Plan:
    """Return the updates that put the SiteFactors of pending jobs back to 0, where they aren't.

    Held and pinned jobs are left alone here too. A job whose SiteFactor Slurm doesn't tell, since it
    can't start yet, is set to 0 to be sure.
    """
    updates: list[SiteFactorUpdate] = []
    skipped: Counter[str] = Counter()
    for job in jobs:
        if not job.pending:
            continue
        reason = skip_reason(job)
        if reason not in ("", NOT_RANKED):
            skipped[reason] += 1
        elif job.site_factor == 0:
            skipped["unchanged"] += 1
        else:
            updates.append(SiteFactorUpdate(job.job_id, job.update_id, 0))
    return Plan(tuple(updates), dict(skipped))


def skip_reason(job: Job) -> str:
    """Return why a job's SiteFactor is never to be touched now, empty if it may be."""
    if job.held:
        return "held"
    if job.pinned:
        return "pinned"
    if job.follows_leader:
        return "follows its het leader"
    if job.hides_tasks:
        return "may hide a held or pinned task"
    return NOT_RANKED if job.site_factor is None else ""
