"""What the service answers. Pure: a request, a snapshot, a policy and the time in; an answer out."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from slurm_score.advice import advise
from slurm_score.counterfactual import counterfactuals
from slurm_score.errors import ParseError
from slurm_score.explain import explain_job
from slurm_score.gres import GresRequest, for_each_gpu, gres_request
from slurm_score.hints import parse_hints
from slurm_score.model import NO_OFFSETS, Cluster, Job, Offsets, Predicted, Queue
from slurm_score.policy import Mode, Policy
from slurm_score.predict.kinds import kind_of_name
from slurm_score.score import Scores, neutral_site, score_queue, scores_of, site_of
from slurm_score.snapshot import Snapshot
from slurm_score.units import MINUTE_S

Text = Annotated[str, Field(max_length=8192)]
Number = Annotated[int, Field(ge=0, le=2**63)]

MAX_MEM_MIB = 2**53


class ScoreRequest(BaseModel):
    """A job as the hook sees it at submission; null is Slurm's "not set". Unknown fields are ignored.

    Of the name its kind is kept: the jobs of a loop, numbered, are one and the same question.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    user: Text | None = None
    account: Text | None = None
    default_account: Text | None = None
    qos: Text | None = None
    default_qos: Text | None = None
    partition: Text | None = None
    time_limit_min: Number | Literal["UNLIMITED"] | None = None
    min_nodes: Number | None = None
    max_nodes: Number | None = None
    num_tasks: Number | None = None
    ntasks_per_node: Number | None = None
    cpus_per_task: Number | None = None
    min_cpus: Number | None = None
    tres_per_job: Text | None = None
    tres_per_node: Text | None = None
    tres_per_socket: Text | None = None
    tres_per_task: Text | None = None
    cpus_per_tres: Text | None = None
    mem_per_node_mib: Number | None = None
    mem_per_cpu_mib: Number | None = None
    mem_per_tres: Text | None = None
    features: Text | None = None
    prefer: Text | None = None
    req_nodes: Text | None = None
    exc_nodes: Text | None = None
    reservation: Text | None = None
    name: Annotated[Text, AfterValidator(kind_of_name)] | None = None
    comment: Text | None = None
    priority: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAnswer:
    """The first SiteFactor of a job, None to leave it alone, and lines for its user.

    `reason` says why an answer is neutral or none, and is empty for a score. `admin_comment` is
    what the hook appends to the job's, empty for nothing.
    """

    site_factor: int | None
    advice: tuple[str, ...] = ()
    admin_comment: str = ""
    reason: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """A snapshot's pending jobs, scored by the snapshot's own policy."""

    snapshot: Snapshot
    queue: Queue
    scores: Scores


class NewJob:
    """A submission before one snapshot: scored once, answered at any time.

    Nothing has been waited for yet, so the score depends on request, snapshot and policy alone; of the
    time depend the offset in its SiteFactor, and whether the snapshot is too old to score by. A job that
    is submitted held, or with a priority of its own, is left alone.
    """

    def __init__(self, request: ScoreRequest, snapshot: Snapshot, policy: Policy) -> None:
        self.request = request
        self._snapshot = snapshot
        # Where both are the same, the snapshot's has the weights in force.
        self._policy = snapshot.policy if snapshot.policy.hash == policy.hash else policy
        self._answers: tuple[int, ScoreAnswer] | None = None

    def answer_at(self, now_s: float) -> ScoreAnswer:
        """Return the answer to the hook; one and the same object as long as it doesn't change."""
        snapshot, policy = self._snapshot, self._policy
        age = now_s - snapshot.cluster.time_s
        if age > policy.max_snapshot_age:
            offsets = snapshot.offsets_at(now_s)
            return neutral_answer(f"the snapshot is {age:.0f} s old", policy, self.request, offsets)
        if self.request.priority is not None:
            return self._left_alone
        site = site_of(self._score, policy, snapshot.offsets_at(now_s))
        if self._answers is None or self._answers[0] != site:
            self._answers = site, _answer(site, policy, self._advice(site))
        return self._answers[1]

    @cached_property
    def _left_alone(self) -> ScoreAnswer:
        return neutral_answer("", self._policy, self.request)

    @cached_property
    def _job(self) -> Job:
        return job_from_request(self.request, self._snapshot.cluster)

    @cached_property
    def _predicted(self) -> Mapping[int, Predicted]:
        return self._snapshot.predict((self._job,))

    @cached_property
    def _score(self) -> float:
        queue = self._snapshot.queue((self._job,), predicted=self._predicted)
        return float(scores_of(queue, self._policy)[0])

    def _advice(self, site: int) -> tuple[str, ...]:
        seen, policy = self._snapshot, self._policy
        if policy.mode is Mode.OBSERVE:
            return ()
        predicted = self._predicted.get(self._job.job_id)
        return advise(
            self._job, site, policy, seen.cluster, seen.demand, seen.run_times, seen.releases, predicted
        )


def neutral_answer(
    reason: str,
    policy: Policy,
    request: ScoreRequest | None = None,
    offsets: Offsets = NO_OFFSETS,
) -> ScoreAnswer:
    """Return the answer where nothing is known of the cluster: every factor at its neutral value.

    Held and pinned jobs are left alone here as well.
    """
    asked = request or ScoreRequest()
    known = Job(job_id=0, qos=asked.qos or asked.default_qos or "", hints=parse_hints(asked.comment or ""))
    lines = advise(known, 0, policy, Cluster(time_s=0.0), {}, {}, {})
    if asked.priority is not None:
        why = "submitted held" if asked.priority == 0 else "submitted with its own priority"
        return _answer(None, policy, lines, why)
    return _answer(neutral_site(policy, offsets), policy, lines, reason)


def job_from_request(request: ScoreRequest, cluster: Cluster) -> Job:
    """Return the job that a request describes, as it will stand in the queue, submitted just now."""
    partition = request.partition or cluster.default_partition
    tasks = request.num_tasks or (request.ntasks_per_node or 1) * (request.min_nodes or 1)
    asked, nodes = _gres(request, tasks), request.min_nodes or 1
    cpus = max(
        request.min_cpus or 1,
        tasks * (request.cpus_per_task or 1),
        for_each_gpu(request.cpus_per_tres or "", asked.gpus.total) if asked.gpus.total else 0,
    )
    return Job(
        job_id=0,
        label="new",
        user=request.user or "",
        account=request.account or request.default_account or "",
        qos=request.qos or request.default_qos or "",
        partitions=tuple(filter(None, partition.split(","))),
        submit_s=int(cluster.time_s),
        eligible_s=int(cluster.time_s),
        time_limit_s=_limit_s(request.time_limit_min),
        nodes=nodes,
        max_nodes=request.max_nodes or 0,
        cpus=cpus,
        mem_mib=_mem_mib(request, nodes, cpus, asked.gpus.total),
        gpus=asked.gpus,
        slices=asked.slices,
        shards=asked.shards,
        features=request.features or "",
        prefer=request.prefer or "",
        req_nodes=request.req_nodes or "",
        exc_nodes=request.exc_nodes or "",
        reservation=request.reservation or "",
        hints=parse_hints(request.comment or ""),
        name=request.name or "",
    )


def score_snapshot(snapshot: Snapshot) -> Scored:
    """Return the snapshot's pending jobs with their scores."""
    queue = snapshot.queue()
    return Scored(snapshot, queue, score_queue(queue, snapshot.policy))


def list_gpus(snapshot: Snapshot) -> dict[str, Any]:
    """Return what slurm-score gpus prints of each type in each partition, `contention` null for infinite."""
    rows = []
    for found in snapshot.supply:
        pressure = snapshot.pressure.get(found.gpu_type, 0.0)
        unusable = math.isinf(pressure) or found.broken == found.total
        rows.append(asdict(found) | {"contention": None if unusable else pressure})
    return {"time_s": snapshot.cluster.time_s, "gpus": rows}


def explain(scored: Scored, i: int) -> dict[str, Any]:
    """Return one pending job's explanation, and what would put it forward."""
    seen, queue, scores = scored.snapshot, scored.queue, scored.scores
    changes = counterfactuals(queue, scores, seen.policy, i, seen.predict, seen.run_times, seen.jobs)
    told = asdict(explain_job(queue, scores, seen.policy, i))
    return told | {"changes": [asdict(change) for change in changes]}


def _answer(site: int | None, policy: Policy, advice: tuple[str, ...], reason: str = "") -> ScoreAnswer:
    """What the mode allows of an answer: nothing in observe, words in advise, the number in enforce."""
    if policy.mode is not Mode.ENFORCE:
        site, reason = None, reason or f"mode is {policy.mode}"
    noted = policy.admin_comment and site is not None
    return ScoreAnswer(
        site_factor=site,
        advice=() if policy.mode is Mode.OBSERVE else advice,
        admin_comment=f"slurm-score:site={site},policy={policy.hash}" if noted else "",
        reason=reason,
        policy=policy.hash,
    )


def _limit_s(minutes: int | str | None) -> float | None:
    if minutes is None:
        return None
    return math.inf if isinstance(minutes, str) else minutes * MINUTE_S


def _mem_mib(request: ScoreRequest, nodes: int, cpus: int, gpus: int) -> int:
    """The memory that is asked for on all nodes together; a partition's default isn't known here."""
    of_gpus = for_each_gpu(request.mem_per_tres or "", gpus) if gpus else 0
    of_cpus = (request.mem_per_cpu_mib or 0) * cpus
    return min(MAX_MEM_MIB, (request.mem_per_node_mib or 0) * nodes or of_cpus or of_gpus)


def _gres(request: ScoreRequest, tasks: int) -> GresRequest:
    try:
        return gres_request(
            per_job=request.tres_per_job or "",
            per_node=request.tres_per_node or "",
            per_socket=request.tres_per_socket or "",
            per_task=request.tres_per_task or "",
            nodes=request.min_nodes or 1,
            tasks=tasks,
        )
    except ParseError:
        return GresRequest()  # Slurm itself will refuse what can't be read
