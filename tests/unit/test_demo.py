"""The demo's two scenarios, played by the real service, reprioritizer and report on the fake Slurm."""

import pytest

from slurm_score.demo import show
from slurm_score.demo.play import first_come_first_served, under_product, without_guard
from slurm_score.demo.scenarios import FOUR_JOBS, STARVATION, Scenario
from slurm_score.policy import Mode, Policy
from slurm_score.slurm.fake import JobRun
from slurm_score.units import HOUR_S


def _starts(runs: dict[str, JobRun]) -> dict[str, int]:
    """Return by name how long after the partition opened each job started, in s."""
    opened_s = min(run.submit_s for run in runs.values()) + FOUR_JOBS.opens_s
    return {name: (run.start_s or 0) - opened_s for name, run in runs.items()}


def test_the_four_jobs_of_the_founding_article_start_in_the_order_it_asks_for() -> None:
    """JOB-004 first though it came last, JOB-003 at once on its V100, JOB-001 beside it, JOB-002 last."""
    with under_product(FOUR_JOBS) as product:
        product.set_mode(Mode.ENFORCE)
        product.play.play_to(FOUR_JOBS.opens_s)
        answer = product.client.jobs()
        runs = product.play.play_out()
    assert [job["job"] for job in answer["jobs"]] == ["4", "1", "3", "2"]
    assert [job["site_held"] for job in answer["jobs"]] == [job["site"] for job in answer["jobs"]]
    assert _starts(runs) == {"JOB-001": 0, "JOB-002": 15, "JOB-003": 0, "JOB-004": 0}


def test_first_come_first_served_keeps_the_urgent_job_waiting() -> None:
    """In order of submission JOB-002 blocks the two behind it until both A100 are free, then runs 60 s."""
    runs = first_come_first_served(FOUR_JOBS)
    assert _starts(runs) == {"JOB-001": 0, "JOB-002": 15, "JOB-003": 15, "JOB-004": 75}


def test_the_submit_hook_gives_the_demo_s_jobs_their_first_score() -> None:
    """In enforce a job has its SiteFactor when it is submitted, before a cycle runs."""
    with under_product(STARVATION) as product:
        product.set_mode(Mode.ENFORCE)
        product.reprioritizer.cycle()
        job_id = product.slurm.submit(STARVATION.arrivals[1].submission)
        first = product.slurm.site_factor_of(job_id)
    # remaining 450 x 30 min / (30 min + 12 h) = 18, size 200 x 4 / 4; no wait, QOS 0; gres_fit 100, since the
    # partition isn't open yet and so none of its a100 is usable; the offset is 1,089, as in every first cycle
    assert first == 318 + 1089


def test_the_guard_keeps_the_wide_job_from_starving() -> None:
    """Past guard.after (45 h) nothing starts before it: it waits for what runs, at most 5 h, no more."""
    with under_product(STARVATION) as product:
        product.set_mode(Mode.ENFORCE)
        guarded = product.play.play_out()["WIDE"]
    unguarded = without_guard(STARVATION)["WIDE"]
    after_s = Policy().guard.after
    assert guarded.start_s is not None
    assert unguarded.start_s is not None
    assert after_s < guarded.start_s - guarded.submit_s <= after_s + 5 * HOUR_S
    assert unguarded.start_s - unguarded.submit_s > 100 * HOUR_S  # not before the stream ends


def test_the_demo_shows_the_queue_before_and_after_and_explains_one_job() -> None:
    """The text holds what sscore prints in both orders, an explanation and the changes of the starts."""
    text = "".join(show.show_four_jobs())
    assert "Slurm's order: JOB-001 JOB-002 JOB-003 JOB-004" in text
    assert "Slurm's order: JOB-004 JOB-001 JOB-003 JOB-002" in text
    assert text.count("JOBID  PARTITION  USER  SCORE  RANK  WAIT  REMAIN  SIZE  QOS  GRESFIT") == 2
    assert "Job 4 of dee, partition main, QOS critical" in text
    assert "JOB-004  00:01:15  00:00:00  00:01:15 earlier" in text


@pytest.mark.parametrize("scenario", [FOUR_JOBS, STARVATION], ids=["four", "starvation"])
def test_every_job_of_a_scenario_is_done_in_the_end(scenario: Scenario) -> None:
    """What is compared are times of the same jobs, all of which ran."""
    runs = first_come_first_served(scenario)
    assert {run.state for run in runs.values()} == {"COMPLETED"}
    assert len(runs) == len(scenario.arrivals)
