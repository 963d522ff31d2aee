"""The bound on starvation: what factors/README.md states of the guard tier, stated once more as tests.

A job that reaches its guard at time t stands behind no job that reaches its own more than R + 1
minutes after t, R being the sum of Slurm's PriorityWeights; so from then on, the jobs before it only
become fewer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_score.columns import columns_of
from slurm_score.factors.wait import waits_s
from slurm_score.model import Cluster, Job, Offsets, PastRun, Queue, SlurmConfig
from slurm_score.plan import GUARD_ROOM, plan_updates
from slurm_score.policy import Policy, load_policy
from slurm_score.score import guards_s, score_queue
from tests.property.strategies import policies, queue_of, queues, yaml_policies
from tests.unit.builders import DAY, HOUR, MINUTE, NOW, make_cluster, make_job

STEP_S = 20 * MINUTE
"""How often the simulated partition starts its first job."""


def tight(policy: Policy, cluster: Cluster) -> Policy:
    """Return the policy with the smallest cap with which enforce runs (suitability.py)."""
    own_range = cluster.config.priority_range
    needed = policy.total_weight + policy.room + own_range + GUARD_ROOM
    return load_policy(policy.stored() | {"cap": needed})


def slip_min(cluster: Cluster) -> int:
    """Return how many minutes after a job another must reach its guard to stand behind it for certain."""
    return cluster.config.priority_range + 1


@st.composite
def waiting(draw: st.DrawFn) -> Queue:
    """Draw jobs that could start and have waited for up to 60 hours, some the best there are."""
    jobs = tuple(
        replace(
            best(
                i + 1,
                NOW - draw(st.integers(0, 60 * HOUR)),
                draw(st.sampled_from(("high", "normal", "gone"))),
            ),
            partitions=tuple(draw(st.lists(st.sampled_from(("main", "gpu")), min_size=1, unique=True))),
            time_limit_s=draw(st.sampled_from((1.0, math.inf))),
            past_runs=tuple(draw(st.lists(st.just(PastRun("NODE_FAIL", 5.0 * HOUR)), max_size=2))),
        )
        for i in range(draw(st.integers(2, 6)))
    )
    config = SlurmConfig(priority_weights={"age": draw(st.sampled_from((0, 5, 60, 1000)))}, release="24.11.5")
    return queue_of(jobs, make_cluster(config=config))


@given(queue=waiting(), policy=policies(), data=st.data())
@settings(max_examples=400)
def test_past_its_guard_a_job_stands_before_all_but_those_who_reached_theirs_earlier(
    queue: Queue, policy: Policy, data: st.DataObject
) -> None:
    """Whatever the offsets, and whatever Slurm's own factors give to each: among jobs past their guards
    R + 1 minutes decide, and no other job stands before one of them."""
    policy, most = tight(policy, queue.cluster), queue.cluster.config.priority_range
    offsets = Offsets(
        data.draw(st.sampled_from((0.0, 0.4, policy.room / 2, policy.room)), "score offset"),
        data.draw(st.sampled_from((0.0, 0.4, GUARD_ROOM / 2)), "guard offset"),
    )
    site = score_queue(replace(queue, offsets=offsets), policy).site
    past_min = (waits_s(queue, policy.factors["wait"]) - guards_s(queue, policy)) / MINUTE
    for i in np.flatnonzero(past_min >= 0):
        behind = (past_min < 0) | (past_min < past_min[i] - slip_min(queue.cluster))
        assert (site[i] > site[behind] + most).all()


@given(queue=queues(min_size=1), policy=policies())
def test_job_at_the_cap_has_waited_34_days_past_its_guard(queue: Queue, policy: Policy) -> None:
    """With the smallest cap and the largest offset there is room for so long in the tier, in order."""
    policy = tight(policy, queue.cluster)
    scores = score_queue(replace(queue, offsets=Offsets(policy.room, GUARD_ROOM / 2)), policy)
    at_the_cap = scores.site >= policy.cap
    assert (scores.points[at_the_cap] * MINUTE > 34 * DAY).all()
    assert scores.guarded[at_the_cap].all()


@given(queue=queues(min_size=1), policy=policies())
def test_guard_of_every_job_is_the_one_that_the_policy_names_for_it(queue: Queue, policy: Policy) -> None:
    """Worked out in columns or for one job, it is the same, and never above `after` without a name for it."""
    guard = policy.guard
    assert guards_s(queue, policy).tolist() == [guard.of(job.qos, job.partitions) for job in queue.jobs]
    named = {*guard.qos.values(), *guard.partitions.values(), guard.after}
    assert set(guards_s(queue, policy).tolist()) <= named


@given(queue=queues(min_size=1), policy=policies(), later_s=st.integers(0, 30 * DAY))
def test_time_at_which_a_job_reached_its_guard_never_moves(
    queue: Queue, policy: Policy, later_s: int
) -> None:
    """While it could start: so two jobs past their guards never change places."""
    later = replace(queue, now_s=queue.now_s + later_s)
    params = policy.factors["wait"]
    lasting = columns_of(queue).eligible & (waits_s(queue, params) > 0)
    reached = queue.now_s - waits_s(queue, params) + guards_s(queue, policy)
    still = later.now_s - waits_s(later, params) + guards_s(later, policy)
    assert reached[lasting].tolist() == still[lasting].tolist()


@dataclass
class Partition:
    """A partition that starts its first job every STEP_S, kept in order by the planner in enforce."""

    policy: Policy
    cluster: Cluster
    own: Sequence[int]
    jobs: tuple[Job, ...]
    now_s: float = NOW

    def cycle(self) -> list[Job]:
        """Plan and apply the updates; return the jobs in Slurm's order."""
        cluster = replace(self.cluster, time_s=self.now_s)
        queue = queue_of(self.jobs, cluster)
        plan = plan_updates(queue, score_queue(queue, self.policy), self.policy)
        held = {update.job_id: update.value for update in plan.updates}
        self.jobs = tuple(
            replace(job, site_factor=held.get(job.job_id, job.site_factor)) for job in self.jobs
        )
        return sorted(self.jobs, key=self._place)

    def step(self, first: Job, arriving: tuple[Job, ...]) -> None:
        """Start the first job; time passes and others arrive."""
        self.now_s += STEP_S
        self.jobs = (*(job for job in self.jobs if job.job_id != first.job_id), *arriving)

    def _place(self, job: Job) -> tuple[int, int, int]:
        own = self.own[job.job_id % len(self.own)]
        return (-((job.site_factor or 0) + own), job.submit_s, job.job_id)


def best(job_id: int, now_s: float, qos: str) -> Job:
    """Return a job with the best factors that there are, which arrives now."""
    return make_job(
        job_id, submit_s=int(now_s), eligible_s=int(now_s), qos=qos, cpus=24, time_limit_s=1.0, site_factor=0
    )


def worst(job_id: int, qos: str = "normal", wait_s: float = 0) -> Job:
    """Return a job with the worst factors that there are; QOS normal and slow are worth nothing."""
    return make_job(job_id, wait_s=wait_s, qos=qos, time_limit_s=float("inf"))


def two_of_the_best(site: Partition, qos: str) -> tuple[Job, ...]:
    """Return the jobs that arrive before the next step."""
    arrives_s = site.now_s + STEP_S
    number = 100 + int(arrives_s - NOW) // STEP_S * 2
    return best(number, arrives_s, qos), best(number + 1, arrives_s, qos)


def ahead_of_the_worst(order: list[Job]) -> set[int]:
    """Return the ids of the jobs that stand before job 1."""
    ids = [job.job_id for job in order]
    return set(ids[: ids.index(1)])


def small(own_range: int) -> Cluster:
    """Return a cluster whose Slurm adds up to so many points of its own."""
    return make_cluster(config=SlurmConfig(priority_weights={"age": own_range}, release="24.11.5"))


def guarded_by(policy: Policy, **after_h: int) -> Policy:
    """Return the policy with guards of so many hours for QOS normal, slow and high."""
    qos = {name: after_h[name] * HOUR for name in ("slow", "high")}
    guard = {"after": after_h["normal"] * HOUR, "qos": qos, "partitions": {}}
    return load_policy(policy.stored() | {"guard": guard})


guard_hours = st.fixed_dictionaries({name: st.integers(1, 8) for name in ("normal", "slow", "high")})
lower = st.sampled_from(("normal", "slow"))


@given(
    policy=yaml_policies(),
    own_range=st.sampled_from((0, 10, 150)),
    own=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    after_h=guard_hours,
    qos=st.tuples(lower, st.sampled_from(("high", "normal"))),
    others=st.lists(st.tuples(lower, st.integers(0, 8)), max_size=6),
)
@settings(max_examples=60)
def test_worst_job_starts_within_the_bound_under_a_stream_of_the_best(
    policy: Policy,
    own_range: int,
    own: list[float],
    after_h: dict[str, int],
    qos: tuple[str, str],
    others: list[tuple[str, int]],
) -> None:
    """Two of the best arrive for each job that starts. From R + 1 minutes past its guard on, the jobs
    before the worst only become fewer, one with every step."""
    cluster = small(own_range)
    policy = tight(guarded_by(policy, **after_h), cluster)
    jobs = [worst(1, qos[0]), *(best(i + 10, NOW, qos[1]) for i in range(2))]
    jobs += [worst(i + 2, name, wait_h * HOUR) for i, (name, wait_h) in enumerate(others)]
    site = Partition(policy, cluster, [int(share * own_range) for share in own], tuple(jobs))
    closed_s = NOW + after_h[qos[0]] * HOUR + slip_min(cluster) * MINUTE
    before: set[int] | None = None
    bound_s = math.inf
    while ahead := ahead_of_the_worst(order := site.cycle()):
        if site.now_s >= closed_s:
            assert before is None or ahead < before
            bound_s = min(bound_s, site.now_s + STEP_S * len(ahead))
            before = ahead
        site.step(order[0], two_of_the_best(site, qos[1]))
        assert site.now_s <= bound_s


def test_without_its_guard_the_worst_job_never_starts_under_that_stream() -> None:
    """The stream of the test above does starve it: the guard is what ends its wait."""
    ahead = {}
    for after_h in (6, 53):
        policy = guarded_by(Policy(), normal=after_h, slow=53, high=53)
        jobs = (worst(1), best(10, NOW, "high"), best(11, NOW, "high"))
        site = Partition(policy, small(150), [0], jobs)
        for _ in range(30):  # ten hours
            order = site.cycle()
            ahead[after_h] = len(ahead_of_the_worst(order))
            site.step(next(job for job in order if job.job_id != 1), two_of_the_best(site, "high"))
    assert ahead == {6: 0, 53: 31}
