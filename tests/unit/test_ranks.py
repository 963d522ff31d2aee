"""slurm_score/ranks.py: the places of a whole queue."""

import random
from typing import Any

from slurm_score.gres import NO_GPUS, gpu_request
from slurm_score.model import Job, Queue
from slurm_score.policy import Policy
from slurm_score.ranks import Ranks, rank_queue
from slurm_score.score import queue_order, score_queue
from slurm_score.standing import place, standings
from tests.unit.builders import make_gpu_job, make_job, make_queue


def ranked(queue: Queue) -> Ranks:
    """Return the places under the default policy."""
    return rank_queue(queue, score_queue(queue, Policy()))


def test_places_count_in_partition_and_for_the_type() -> None:
    """An urgent job first; a job that waits for another has a place and takes none; CPUs have no type."""
    queue = make_queue(
        make_job(1, partitions=("gpu",)),
        make_gpu_job(2, "gpu:a100:1", qos="high"),
        make_gpu_job(3, "gpu:v100:1"),
        make_gpu_job(4, "gpu:1", eligible_s=None, dependency="afterok:3"),
        make_gpu_job(5, "gpu:2", qos="low"),
        make_job(6),
        make_job(7, partitions=("main", "gpu"), qos="high"),
    )
    places = ranked(queue)
    assert [queue.jobs[i].job_id for i in places.order] == [2, 7, 5, 3, 4, 1, 6]
    assert places.rank.tolist() == [5, 1, 4, 5, 3, 2, 2]
    assert places.of.tolist() == [5, 5, 5, 6, 5, 2, 6]
    assert places.type_rank.tolist() == [0, 1, 2, 4, 2, 0, 0]
    assert places.type_of.tolist() == [0, 2, 2, 4, 3, 0, 0]
    assert places.types[4] == ("a100", "v100")


def test_a_request_that_no_node_can_serve_has_no_place_for_a_type() -> None:
    """It accepts none of the types that there are."""
    places = ranked(make_queue(make_gpu_job(1, "gpu:h100:1")))
    assert (places.types, places.type_rank.tolist(), places.rank.tolist()) == (((),), [0], [1])


def test_an_empty_queue_has_no_places() -> None:
    """Nothing to rank is no fault."""
    assert len(ranked(make_queue()).order) == 0


def random_job(job_id: int, chance: random.Random) -> Job:
    """Return a job with partitions, types and a state of any kind."""
    where = chance.choice((("main",), ("gpu",), ("main", "gpu")))
    changes: dict[str, Any] = {"partitions": where, "qos": chance.choice(("normal", "high", "low"))}
    changes |= {"eligible_s": None} if chance.random() < 0.2 else {}
    wants = chance.choice(("", "gpu:1", "gpu:a100:1", "gpu:v100:2", "gpu:h100:1"))
    return make_job(job_id, gpus=gpu_request(per_job=wants) if wants else NO_GPUS, **changes)


def test_places_are_those_that_explain_tells_of_one_job() -> None:
    """Over a mixed queue of 200 jobs: one way to count places, however many are counted at once."""
    chance = random.Random(4)
    queue = make_queue(*(random_job(i, chance) for i in range(1, 201)))
    scores = score_queue(queue, Policy())
    places = rank_queue(queue, scores)
    for i, job in enumerate(queue.jobs):
        key = queue_order(queue, scores, i)
        assert (places.rank[i], places.of[i]) == place(queue, scores.site, i, job.partitions, key)
        told = standings(queue, scores.site, i, job, key)
        if len(told) == 1 and told[0].types:
            assert (places.type_rank[i], places.type_of[i]) == (told[0].rank, told[0].of)
