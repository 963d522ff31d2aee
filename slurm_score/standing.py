"""Where a job stands: its place among those that want the same, and what is asked for before it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from slurm_score.columns import Bools, Ints, columns_of
from slurm_score.contention import accepted_types
from slurm_score.model import Job, Queue
from slurm_score.request import Ask, ask_of

OrderKey = tuple[int, int, int]
"""-SiteFactor, submit time, job id: the order that Slurm will keep, as score.queue_order."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The place of a job, from 1 among `of`, in one partition.

    With `types` only the eligible jobs count that accept one of these GPU types, and `gpus_ahead` is what
    those before it ask for, all tasks counted. Without, it asks for no GPU and all eligible jobs count.
    """

    partition: str
    types: tuple[str, ...]
    rank: int
    of: int
    gpus_ahead: int


def standings(queue: Queue, site: Ints, i: int, job: Job, key: OrderKey) -> tuple[Standing, ...]:
    """Return where `job` stands in each of its partitions, in the place of job i of the queue.

    `site` are the SiteFactors of the others, int64[n_jobs], `key` is the job's own place in the order.
    """
    return tuple(_standings(queue, site, i, job, key))


def place(queue: Queue, site: Ints, i: int, partitions: tuple[str, ...], key: OrderKey) -> tuple[int, int]:
    """Return the place, from 1, among the eligible jobs of these partitions, and how many those are.

    The job itself always counts, in the place of job i.
    """
    rivals = _sharing(queue, i, partitions)
    ahead = rivals & _before(queue, site, key)
    return int(ahead.sum()) + 1, int(rivals.sum()) + 1


def _standings(queue: Queue, site: Ints, i: int, job: Job, key: OrderKey) -> Iterator[Standing]:
    columns, ahead = columns_of(queue), _before(queue, site, key)
    types = accepted_types(ask_of(job), queue.cluster)
    alike = _alike(queue, frozenset(types))
    units = columns.asks.map(_units) * columns.tasks
    for partition in job.partitions:
        rivals = _sharing(queue, i, (partition,))
        if types:
            rivals &= alike
        first = rivals & ahead
        gpus = int(units[first].sum()) if types else 0
        yield Standing(partition, types, int(first.sum()) + 1, int(rivals.sum()) + 1, gpus)


def _alike(queue: Queue, types: frozenset[str]) -> Bools:
    """Return who accepts one of these types, bool[n_jobs]; one job is asked about many times."""
    key = ("alike", types)
    found: Bools | None = queue.memo.get(key)
    if found is None:
        asks = columns_of(queue).asks
        found = asks.mask(lambda ask: not types.isdisjoint(accepted_types(ask, queue.cluster)))
        queue.memo[key] = found
    return found


def _sharing(queue: Queue, i: int, partitions: tuple[str, ...]) -> Bools:
    columns, mine = columns_of(queue), frozenset(partitions)
    found: Bools = columns.eligible & columns.partitions.mask(lambda names: not mine.isdisjoint(names))
    found[i] = False
    return found


def _before(queue: Queue, site: Ints, key: OrderKey) -> Bools:
    columns = columns_of(queue)
    mine, submit_s, job_id = key
    earlier = (columns.submit_s < submit_s) | ((columns.submit_s == submit_s) & (columns.job_id < job_id))
    found: Bools = (site > -mine) | ((site == -mine) & earlier)
    return found


def _units(ask: Ask | None) -> int:
    return 0 if ask is None else ask.units
