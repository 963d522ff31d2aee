"""slurm_score/report/explanation.py: what people read of one job."""

from dataclasses import replace
from typing import Any

import pytest

from slurm_score.contention import gpu_pressure
from slurm_score.model import Job, Offsets
from slurm_score.policy import Policy
from slurm_score.report.explanation import format_explanation, in_words, ordinal
from slurm_score.service.handlers import explain, score_snapshot
from slurm_score.snapshot import Snapshot
from tests.unit.builders import HOUR, make_cluster, make_gpu_job, make_job


def answer(*jobs: Job, i: int = 0, **changes: Any) -> dict[str, Any]:
    """Return what the service says of job i."""
    cluster = make_cluster()
    seen = Snapshot(policy=Policy(), cluster=cluster, jobs=jobs, pressure=gpu_pressure(jobs, cluster))
    return explain(score_snapshot(replace(seen, **changes)), i)


def lines(*jobs: Job, i: int = 0, **changes: Any) -> list[str]:
    """Return its lines."""
    return format_explanation(answer(*jobs, i=i, **changes)).splitlines()


def test_everything_of_a_job_that_waits_its_turn() -> None:
    """Formula, numbers, terms in words, what Slurm holds, where it stands, what would change it.

    By hand: 350 x 13.5/54, 450 x 30/90, 200 x 1/8; of a100 3 + 1 are asked for and 4 usable, so 100 x 1/2.
    v100 then: 1 of 4, 100 x 0.25/1.25, and nobody in front of it.
    """
    job = make_gpu_job(
        7,
        "gpu:a100:1",
        wait_s=13.5 * HOUR,
        reason="Resources",
        site_factor=310,
        slurm_parts=(20, 0, 0, 0, 1000, 0, 30, 0),
        priority=1300,
    )
    jobs = (job, make_gpu_job(8, "gpu:a100:3", user="bob", qos="high"))
    assert (
        format_explanation(answer(*jobs, offsets=Offsets(3.2, 0.0)))
        == f"""\
Job 7 of alice, partition gpu, QOS normal

score = sum of weight x factor over wait, remaining, size, qos, gres_fit
      = 350 x 0.2500 + 450 x 0.3333 + 200 x 0.1250 + 500 x 0.0000 + 100 x 0.5000
      = 87.5 + 150.0 + 25.0 + 0.0 + 50.0
      = 312.5

wait          87.5   28%  has waited 13:30:00 of 2-06:00:00
remaining    150.0   48%  01:00:00 to run by its time limit; one half at 00:30:00
size          25.0    8%  asks for 1 of the 8 GPUs of its partition
qos            0.0    0%  QOS normal has priority 0 of at most 1000
gres_fit      50.0   16%  accepts a100: 4 usable, 1 asked for per usable one; fits now, on a100 \
(scarcity 0.50, ready 1.00, match 1.00, packing 0.50, spread 1.00)

SiteFactor wanted 316 = 312.5 + 3.2 that all jobs share, rounded; Slurm holds 310.
Slurm's priority 1300 = SiteFactor 310 + age 20 + partition 1000 - nice 30.

It is 2nd of 2 for a100 in gpu; 3 GPUs ahead.
Slurm's reason: Resources.

What would change it:
  limit 00:30:00 instead of 01:00:00 (if it surely ends by then): scores higher
    score 387.5 (+75.0), same rank: 2nd of 2 for a100 in gpu; 3 GPUs ahead
    scontrol update JobId=7 TimeLimit=30
    or submit it anew with --time=00:30:00: score 300.0, without the wait so far
  v100 instead of a100: has fewer GPUs ahead
    score 195.0 (-117.5), same rank: 1st of 1 for v100 in gpu; 0 GPUs ahead
    submit it anew with --gpus=v100:1; the wait so far is lost

Policy {Policy().hash}.
"""
    )


def test_a_blocked_job_reads_what_it_waits_for() -> None:
    """Slurm's words behind ours, and where it stands once it may start."""
    job = make_job(9, eligible_s=None, reason="Dependency", dependency="afterok:7", time_limit_s=600.0)
    assert lines(job)[-6:] == [
        "SiteFactor wanted 346 = 345.8 + 0.0 that all jobs share, rounded; Slurm holds 0.",
        "",
        "What it waits for is not the score: it waits for another job (afterok:7): Dependency.",
        "It is 1st of 1 in main.",
        "",
        f"Policy {Policy().hash}.",
    ]


def test_obstacles_stand_beside_slurms_reason() -> None:
    """Slurm says Resources of a request that can never be met."""
    said = lines(make_gpu_job(1, "gpu:a100:5", reason="Resources"))
    assert "Beside its score: it can never start: it asks for 5 a100, there are 4." in said
    assert "Slurm's reason: Resources." in said


def test_a_guarded_job_reads_where_its_tier_begins() -> None:
    """60 minutes past 45 h, on 1600 + 1089 + 1."""
    said = lines(make_job(wait_s=46 * HOUR))
    words = "above every score, in the order in which jobs got there"
    assert f"Guard: it has waited longer than 1-21:00:00: {words}." in said
    sum_ = "60.0 minutes past the guard + 2690.0 where that tier begins"
    assert f"SiteFactor wanted 2750 = {sum_}, rounded; Slurm holds 0." in said


def test_a_pinned_job_reads_that_it_is_left_alone() -> None:
    """And no advice: its score decides nothing."""
    said = lines(make_job(priority=5000, pinned=True))
    assert (
        "Left alone: pinned; the policy would give it 158 = 158.3 + 0.0 that all jobs share, rounded." in said
    )
    assert "What would change it:" not in said


def test_a_site_factor_that_slurm_does_not_tell_is_not_made_up() -> None:
    """Nor a sum with it."""
    said = lines(make_job(site_factor=None, slurm_parts=(1, 0, 0, 0, 0, 0, 0, 0)))
    assert not any("Slurm's priority" in line for line in said)
    assert "Left alone: not ranked by Slurm yet; the policy would give it 158" in "\n".join(said)


@pytest.mark.parametrize(
    ("priority", "said"),
    [
        (1300, "310 + age 20 + partition 1000 - nice 30."),
        (1299, "310 + age 20 + partition 1000 - nice 30, each rounded by Slurm."),
    ],
)
def test_slurms_rounding_is_told_where_its_parts_miss_the_sum(priority: int, said: str) -> None:
    """sprio prints each part rounded; a negative nice is added."""
    job = make_job(site_factor=310, slurm_parts=(20, 0, 0, 0, 1000, 0, 30, 0), priority=priority)
    assert f"Slurm's priority {priority} = SiteFactor {said}" in lines(job)
    kind = make_job(site_factor=310, slurm_parts=(0, 0, 0, 0, 0, 0, -5, 0), priority=315)
    assert "Slurm's priority 315 = SiteFactor 310 + nice 5." in lines(kind)


def test_a_promise_that_hangs_on_a_prediction_says_about() -> None:
    """Its user's runs aren't in the snapshot."""
    told = answer(make_job())
    for change in told["changes"]:
        change["exact"] = False
    said = format_explanation(told).splitlines()
    assert "    score about 233.3 (+75.0), same rank: 1st of 1 in main" in said
    assert "    or submit it anew with --time=00:30:00: score about 233.3, without the wait so far" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (3, "3 ranks forward"),
        (1, "1 rank forward"),
        (0, "same rank"),
        (-1, "1 rank back"),
        (-2, "2 ranks back"),
    ],
)
def test_ranks_are_told_in_words(change: int, words: str) -> None:
    """Back as well, where another type helps otherwise."""
    told = answer(make_job())
    told["changes"][0]["ranks_gained"] = change
    assert any(f", {words}: " in line for line in format_explanation(told).splitlines())


def test_a_place_is_told_as_people_say_it() -> None:
    """The words of the task itself."""
    told = {"partition": "main", "types": ["h100"], "rank": 7, "of": 41, "gpus_ahead": 38}
    assert in_words(told) == "7th of 41 for h100 in main; 38 GPUs ahead"
    assert in_words(told | {"types": []}) == "7th of 41 in main"
    assert in_words(told | {"types": ["a100", "h100"]}) == "7th of 41 for a100|h100 in main; 38 GPUs ahead"


@pytest.mark.parametrize(
    ("n", "word"),
    [
        *[(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")],
        *[(21, "21st"), (101, "101st"), (111, "111th"), (1012, "1012th"), (1022, "1022nd")],
    ],
)
def test_ordinals_are_english(n: int, word: str) -> None:
    """11th to 13th in every hundred."""
    assert ordinal(n) == word


def test_no_name_can_steer_the_terminal() -> None:
    """User, reason and QOS come from others."""
    said = format_explanation(answer(make_job(user="a\x1b[31mb", reason="x\ny")))
    assert "a?[31mb" in said
    assert "x?y" in said
