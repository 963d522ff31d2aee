"""A cycle in, what it decided about each job out, as far as that is news. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_score.model import Job, Queue
from slurm_score.plan import LEFT_ALONE, Plan, SiteFactorUpdate, skip_codes
from slurm_score.policy import Mode, Policy
from slurm_score.score import Scores, guard_base, site_factors
from slurm_score.slurm.gateway import UpdateFailure

SENT = "sent"
IN_BAND = "within the dead band"
LEFT_OVER = "left over"
GIVEN_UP = "cycle given up"

LABEL_WIDTH, WHY_WIDTH = 64, 300
"""squeue too cuts a list of array tasks at 64 characters."""

_NUMBER = re.compile(r"\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cycle came to: the queue as it was read, its scores and plan, and how far that was sent.

    `failures` are the updates among the `sent` ones that Slurm didn't carry out, `halted` is why not
    all of the plan was sent, `scrontab` what the planner was told of scrontab jobs.
    """

    queue: Queue
    scores: Scores
    plan: Plan
    sent: Sequence[SiteFactorUpdate] = ()
    failures: Sequence[UpdateFailure] = ()
    halted: str = ""
    scrontab: Collection[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about one job: from `old`, what Slurm held, to `new`, what is wanted.

    `array_id` is the number in front of the label, `parts` are weight x factor in the order of the
    factors. `why` is SENT, or the reason why nothing was: Slurm's sentence, the mode, why the planner
    left the job alone.
    """

    job_id: int
    array_id: int
    label: str
    user: str
    partition: str
    old: int | None
    new: int
    score: float
    guarded: bool
    parts: tuple[float, ...]
    why: str


def decisions(
    outcome: Outcome, policy: Policy, before: Mapping[int, str], *, given_up: bool = False
) -> list[Decision]:
    """Return the decisions that are news: every update that was sent, and every reason that changed.

    `before` holds the last `why` of each job that had one. That more updates are left over, or for
    another cause than before, is no news. In a cycle that was given up it isn't known of the last few
    updates whether Slurm carried them out; they count as left over.
    """
    jobs, scores = outcome.queue.jobs, outcome.scores
    whys = _whys(outcome, policy, given_up)
    rows = [i for i, job in enumerate(jobs) if _is_news(before.get(job.job_id), whys[i])]
    base = guard_base(outcome.queue, policy)
    wanted = site_factors(scores.points, scores.guarded, base, policy, outcome.plan.offsets)
    score, parts = np.round(scores.score[rows], 2).tolist(), np.round(scores.parts[rows], 2).tolist()
    return [
        Decision(
            job_id=jobs[i].job_id,
            array_id=array_id(jobs[i]),
            label=_cut(jobs[i].label or str(jobs[i].job_id)),
            user=text(jobs[i].user),
            partition=text(",".join(jobs[i].partitions)),
            old=jobs[i].site_factor,
            new=int(wanted[i]),
            score=score[n],
            guarded=bool(scores.guarded[i]),
            parts=tuple(parts[n]),
            why=text(whys[i]),
        )
        for n, i in enumerate(rows)
    ]


def last_whys(queue: Queue, before: Mapping[int, str], news: list[Decision]) -> dict[int, str]:
    """Return the last `why` of each job of a queue, after news of it; other jobs are forgotten."""
    kept = {job.job_id: before[job.job_id] for job in queue.jobs if job.job_id in before}
    return kept | {decision.job_id: decision.why for decision in news}


def array_id(job: Job) -> int:
    """Return the number that stands in front of a job's label: of its array, or of its het leader."""
    number = _NUMBER.match(job.label)
    return int(number[0]) if number else job.job_id


def _is_news(before: str | None, why: str) -> bool:
    if before is None or why == SENT:
        return True
    settled = before == SENT and why == IN_BAND
    waiting = before.startswith(LEFT_OVER) and why.startswith(LEFT_OVER)
    return not (before == why or settled or waiting)


def _whys(outcome: Outcome, policy: Policy, given_up: bool) -> list[str]:
    codes = skip_codes(outcome.queue, policy, outcome.scrontab)
    whys = [LEFT_ALONE[code] or IN_BAND for code in codes.tolist()]
    row = {job.job_id: i for i, job in enumerate(outcome.queue.jobs)}
    mode = "" if policy.mode is Mode.ENFORCE else f"mode is {policy.mode}"
    halted = outcome.halted or (GIVEN_UP if given_up else "")
    for job_id in outcome.plan.waiting:
        whys[row[job_id]] = mode or LEFT_OVER
    for update in outcome.plan.updates:
        whys[row[update.job_id]] = mode or (f"{LEFT_OVER}: {halted}" if halted else LEFT_OVER)
    for update in outcome.sent:
        whys[row[update.job_id]] = SENT
    for failure in outcome.failures:
        whys[row[failure.update.job_id]] = failure.message or "failed, Slurm doesn't say why"
    return [why[:WHY_WIDTH] for why in whys]


def text(given: str) -> str:
    """Return a text as SQLite takes it: without lone surrogates."""
    return given.encode("utf-8", "backslashreplace").decode()


def _cut(label: str) -> str:
    return text(label if len(label) <= LABEL_WIDTH else label[: LABEL_WIDTH - 3] + "...")
