"""A queue under another policy: who moves, who gains and loses, and what it would cost. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slurm_score.columns import columns_of
from slurm_score.model import Floats, Queue
from slurm_score.plan import Plan, plan_updates
from slurm_score.policy import Policy
from slurm_score.ranks import Ranks, rank_queue
from slurm_score.score import Scores, score_queue

SIZES = ((0, "no GPU"), (1, "1 GPU"), (4, "2-4 GPUs"), (8, "5-8 GPUs"), (64, "9-64 GPUs"))
"""How jobs are told apart by size: the most GPUs of each class, and its name."""
LARGER = "above 64 GPUs"
NO_TYPE = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One job's place among the eligible jobs that share a partition, before and after, from 1."""

    job: str
    user: str
    partition: str
    qos: str
    before: int
    after: int
    of: int
    score_before: float
    score_after: float

    @property
    def gained(self) -> int:
        """How many places it moves to the front."""
        return self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a policy does to jobs that have something in common: how many move to the front, and back.

    `mean_gain` is the mean of the places that they gain.
    """

    name: str
    jobs: int
    forward: int
    back: int
    mean_gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What another policy would do to a queue now; `moves` of all eligible jobs, the farthest first.

    `updates` are those of the first cycles together, `now_updates` what the policy in force would send
    anyway. `guarded` counts jobs past their guard, before and after.
    """

    eligible: int
    moves: tuple[Move, ...]
    groups: Mapping[str, tuple[Group, ...]]
    updates: int
    now_updates: int
    cycles: int
    skipped: Mapping[str, int]
    guarded: tuple[int, int]

    @property
    def moved(self) -> tuple[Move, ...]:
        """The jobs that change their place."""
        return tuple(move for move in self.moves if move.gained)


def compare(queue: Queue, old: Policy, new: Policy) -> Comparison:
    """Return what the weights in force of `new` do to a queue that stands under those of `old`."""
    predicted = queue.predicted if new.factors["remaining"].predict else {}
    other = replace(queue, gpu_types=new.gpu_table, predicted=predicted)
    scores = score_queue(queue, old), score_queue(other, new)
    before, after = rank_queue(queue, scores[0]), rank_queue(other, scores[1])
    eligible = np.flatnonzero(columns_of(queue).eligible).tolist()
    now, then = plan_updates(queue, scores[0], old), plan_updates(other, scores[1], new)
    moves = {i: _move(queue, scores, before, after, i) for i in eligible}
    updates = _due(then)
    return Comparison(
        eligible=len(eligible),
        moves=tuple(sorted(moves.values(), key=lambda move: (-abs(move.gained), move.after, move.job))),
        groups={kind: _grouped(names, moves) for kind, names in _kinds(queue, before).items()},
        updates=updates,
        now_updates=_due(now),
        cycles=-(-updates // new.updates.per_cycle),
        skipped=then.skipped,
        guarded=(int(scores[0].guarded.sum()), int(scores[1].guarded.sum())),
    )


def _due(plan: Plan) -> int:
    return len(plan.updates) + plan.left_over


def _move(queue: Queue, scores: tuple[Scores, Scores], before: Ranks, after: Ranks, i: int) -> Move:
    job = queue.jobs[i]
    return Move(
        job=job.label,
        user=job.user,
        partition=",".join(job.partitions),
        qos=job.qos,
        before=int(before.rank[i]),
        after=int(after.rank[i]),
        of=int(after.of[i]),
        score_before=float(scores[0].score[i]),
        score_after=float(scores[1].score[i]),
    )


def _kinds(queue: Queue, ranks: Ranks) -> dict[str, Sequence[str]]:
    """By what jobs are told apart, with the name of each job's group."""
    return {
        "user": [job.user for job in queue.jobs],
        "QOS": [job.qos or NO_TYPE for job in queue.jobs],
        "GPU type": ["|".join(types) or NO_TYPE for types in ranks.types],
        "size": [_size(job.gpus.total) for job in queue.jobs],
    }


def _size(gpus: int) -> str:
    return next((name for most, name in SIZES if gpus <= most), LARGER)


def _grouped(names: Sequence[str], moves: Mapping[int, Move]) -> tuple[Group, ...]:
    """Return the groups of the jobs that move, whoever gains most first."""
    members: dict[str, list[int]] = defaultdict(list)
    for i, move in moves.items():
        members[names[i]].append(move.gained)
    groups = (
        Group(
            name=name,
            jobs=len(gains),
            forward=sum(gain > 0 for gain in gains),
            back=sum(gain < 0 for gain in gains),
            mean_gain=sum(gains) / len(gains),
        )
        for name, gains in members.items()
    )
    return tuple(sorted(groups, key=lambda group: (-group.mean_gain, group.name)))


@dataclass(frozen=True, slots=True)
class Influence:
    """How much one factor moves in a queue now.

    `share` is its part in the spread of the scores: the covariance of its points and the scores over the
    variance of the scores. The shares add up to 1; one below 0 works against the others. `spread` is the
    standard deviation of its points.
    """

    name: str
    weight: int
    share: float
    spread: float

    @property
    def idle(self) -> bool:
        """Whether it has a weight and moves nothing: all jobs have the same of it."""
        return self.weight > 0 and self.spread == 0


def influences(queue: Queue, scores: Scores) -> tuple[Influence, ...]:
    """Return what each factor moves among the eligible jobs that aren't past their guard."""
    rows = columns_of(queue).eligible & ~scores.guarded
    return tuple(_influences(scores, scores.parts[rows], scores.score[rows]))


def _influences(scores: Scores, parts: Floats, score: Floats) -> Iterator[Influence]:
    variance = float(score.var()) if score.size else 0.0
    for column, (name, weight) in enumerate(zip(scores.names, scores.weights, strict=True)):
        mine = parts[:, column]
        same = mine.size == 0 or bool((mine == mine[0]).all())
        shared = 0.0 if same else float(((mine - mine.mean()) * (score - score.mean())).mean())
        yield Influence(
            name, weight, shared / variance if variance else 0.0, 0.0 if same else float(mine.std())
        )
