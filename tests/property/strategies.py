"""Random jobs, clusters, queues and policies, as far as Slurm can bring them about."""

from dataclasses import replace

from hypothesis import strategies as st

from slurm_score.conditions import Load
from slurm_score.contention import gpu_pressure
from slurm_score.factors import registry
from slurm_score.gres import NO_GPUS, GpuCount, GpuRequest, gpu_request
from slurm_score.hints import Hints
from slurm_score.model import Cluster, Job, Node, Partition, PastRun, Queue, SlurmConfig
from slurm_score.policy import Policy, load_policy
from slurm_score.profiles import ProfileState, effective
from tests.unit.builders import DAY, NOW

PARTITIONS = ("main", "gpu", "both")
TYPES = ("a100", "h100", "v100")

durations = st.one_of(st.none(), st.just(float("inf")), st.integers(0, 60 * DAY).map(float))
hint_s = st.one_of(st.none(), st.integers(1, 60 * DAY).map(float))
past = st.integers(NOW - 60 * DAY, NOW)


@st.composite
def gpu_requests(draw: st.DrawFn) -> GpuRequest:
    """Draw what a job asks for: nothing, any GPU, one type or two, for the job or for each node."""
    if draw(st.booleans()):
        return NO_GPUS
    names = draw(st.lists(st.sampled_from(("", *TYPES)), min_size=1, max_size=2, unique=True))
    items = [f"gpu:{name}:{draw(st.integers(0, 8))}".replace("::", ":") for name in names]
    key = draw(st.sampled_from(("per_job", "per_node", "per_task")))
    return gpu_request(**{key: ",".join(items)}, nodes=draw(st.integers(1, 4)), tasks=draw(st.integers(1, 4)))


@st.composite
def jobs(draw: st.DrawFn, job_id: int = 1) -> Job:
    """Draw a pending job: ordinary, held, pinned, dependent, requeued, an array, a het component."""
    tasks = draw(st.sampled_from(("", "", "", "0-9", "3,5-7")))
    return Job(
        job_id=job_id,
        label=str(job_id),
        update_id=str(job_id),
        tasks=tasks,
        het_job_id=draw(st.sampled_from((None, None, None, job_id, job_id + 1000))),
        user=draw(st.sampled_from(("alice", "bob"))),
        qos=draw(st.sampled_from(("normal", "high", "gone", ""))),
        partitions=tuple(draw(st.lists(st.sampled_from((*PARTITIONS, "gone")), max_size=2, unique=True))),
        priority=draw(st.sampled_from((0, 1, 5000, 4_294_967_295))),
        submit_s=draw(past),
        eligible_s=draw(st.one_of(st.none(), past, st.integers(NOW, NOW + DAY))),
        time_limit_s=draw(durations),
        nodes=draw(st.integers(1, 8)),
        cpus=draw(st.integers(1, 4096)),
        gpus=draw(gpu_requests()),
        past_runs=tuple(
            PastRun(state, wait_s)
            for state, wait_s in draw(
                st.lists(
                    st.tuples(
                        st.sampled_from(("NODE_FAIL", "PREEMPTED", "REQUEUED", "FAILED")),
                        st.integers(0, 30 * DAY).map(float),
                    ),
                    max_size=3,
                )
            )
        ),
        hints=Hints(draw(hint_s), draw(hint_s)),
        site_factor=draw(st.one_of(st.none(), st.integers(-100, 3000))),
        pinned=draw(st.sampled_from((False, False, False, True))),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node with GPUs of at most two types, some of them and of its CPUs in use."""
    has = draw(st.dictionaries(st.sampled_from(TYPES), st.integers(0, 8), max_size=2))
    used = {gpu_type: draw(st.integers(0, count)) for gpu_type, count in has.items()}
    return Node(
        name=name,
        usable=draw(st.booleans()),
        cpus=draw(st.integers(0, 128)),
        cpus_used=draw(st.integers(0, 128)),
        gpus=GpuCount(sum(has.values()), has),
        gpus_used=GpuCount(sum(used.values()), used),
        partitions=tuple(draw(st.lists(st.sampled_from(PARTITIONS), max_size=3, unique=True))),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw a cluster of up to four nodes in three partitions."""
    count = draw(st.integers(0, 4))
    return Cluster(
        time_s=NOW,
        config=SlurmConfig(
            priority_type="priority/multifactor",
            priority_weights={"age": draw(st.integers(0, 5000)), "qos": draw(st.integers(0, 5000))},
        ),
        partitions={
            name: Partition(
                name=name,
                default_time_s=draw(durations),
                max_time_s=draw(durations),
                cpus=draw(st.integers(0, 512)),
            )
            for name in PARTITIONS
        },
        nodes=tuple(draw(nodes(f"n{i}")) for i in range(count)),
        qos=draw(st.dictionaries(st.sampled_from(("normal", "high")), st.integers(0, 10_000))),
    )


def queue_of(some: tuple[Job, ...], cluster: Cluster) -> Queue:
    """Return a queue of jobs with the GPU pressure that they make."""
    return Queue(jobs=some, cluster=cluster, now_s=cluster.time_s, pressure=gpu_pressure(some, cluster))


@st.composite
def queues(draw: st.DrawFn, min_size: int = 0) -> Queue:
    """Draw up to six jobs with different ids on a cluster."""
    count = draw(st.integers(min_size, 6))
    return queue_of(tuple(draw(jobs(i + 1)) for i in range(count)), draw(clusters()))


guards = st.integers(1, 53).map(lambda hours: hours * 3600.0)
weights = st.dictionaries(st.sampled_from(tuple(registry())), st.integers(0, 2000), min_size=1)
whens = st.fixed_dictionaries(
    {"hours": st.sampled_from(("", "20:00-06:00", "00:00-12:00,22:10-22:30")), "days": st.just("mon-sat")},
    optional={"pending_jobs": st.sampled_from((">2", "<9 >12")), "pending_per_free_gpu": st.just(">1 <0.5")},
)
profiles = st.dictionaries(
    st.sampled_from(("night", "busy")), st.fixed_dictionaries({"when": whens, "weights": weights})
)
loads = st.builds(
    Load,
    pending_jobs=st.integers(0, 20).map(float),
    pending_per_free_gpu=st.sampled_from((0.0, 0.7, 3.0, float("inf"))),
)


@st.composite
def yaml_policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with any weights, inner weights, guards and profiles, guards below the maximum wait."""
    stored = Policy().stored()
    for name in registry():
        stored["factors"][name]["weight"] = draw(st.integers(0, 2000))
    stored["factors"]["gres_fit"] |= {"ready": draw(st.sampled_from((0.0, 0.5, 3.0)))}
    stored["factors"]["remaining"] |= {"half_at": draw(st.sampled_from((1.0, 1800.0, 86_400.0)))}
    stored["factors"]["wait"]["keep_after"] = draw(
        st.lists(st.sampled_from(("NODE_FAIL", "PREEMPTED", "REQUEUED")), unique=True)
    )
    stored["guard"] = {
        "after": draw(guards),
        "qos": draw(st.dictionaries(st.sampled_from(("normal", "high", "")), guards)),
        "partitions": draw(st.dictionaries(st.sampled_from(PARTITIONS), guards)),
    }
    stored["profiles"] = draw(profiles)
    stored["handover"] = draw(st.sampled_from((1.0, 1800.0, 6 * 3600.0)))
    return load_policy(stored)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with the weights in force at some time of the week and under some load."""
    at_s = NOW + 60.0 * draw(st.integers(0, 7 * 24 * 60))
    return effective(draw(yaml_policies()), at_s, draw(loads), ProfileState(), lambda _: 3600.0)[0]


def shifted(queue: Queue, by_s: int) -> Queue:
    """Return the queue with every time later by `by_s`."""
    moved = tuple(
        replace(
            job,
            submit_s=job.submit_s + by_s,
            eligible_s=None if job.eligible_s is None else job.eligible_s + by_s,
        )
        for job in queue.jobs
    )
    return queue_of(moved, replace(queue.cluster, time_s=queue.cluster.time_s + by_s))
