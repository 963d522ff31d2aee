"""What a site's own runs do to its order: from the end of a job to the first score of the next."""

from pathlib import Path

from slurm_score.explain import explain_job
from slurm_score.model import Node, Partition
from slurm_score.policy import Mode, Policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.score import score_queue
from slurm_score.service.handlers import NewJob, ScoreRequest
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.snapshot import Snapshot, read_snapshot

ENFORCE = Policy(mode=Mode.ENFORCE)
SCRIPT = Submission(user="ann", time_limit_s=36_000, run_time_s=598)


def cycle_after_runs(folder: Path, runs: int) -> tuple[FakeSlurm, Snapshot, int]:
    """Return a cluster on which ann's script ran so often and waits once more, after a cycle."""
    node = Node(name="n1", cpus=1, partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True, cpus=1)], {"normal": 0})
    for _ in range(runs):
        slurm.submit(SCRIPT)
        slurm.schedule()
        slurm.run_until_idle(100_000)
    slurm.submit(Submission(user="ben", time_limit_s=7200, run_time_s=7200))
    slurm.schedule()
    waiting = slurm.submit(SCRIPT)
    path = folder / "snapshot.jsonl"
    Reprioritizer(slurm, lambda: ENFORCE, path, history=folder / "history.sqlite").cycle()
    return slurm, read_snapshot(path), waiting


def test_the_next_submission_of_a_script_is_predicted_by_its_runs(tmp_path: Path) -> None:
    """598 s and the margin of 2 s; the limit was ten hours. Explain says so, SITE is another."""
    slurm, snapshot, waiting = cycle_after_runs(tmp_path, 3)
    queue = snapshot.queue()
    explained = explain_job(queue, score_queue(queue, ENFORCE), ENFORCE, 0)
    text = next(term.words for term in explained.terms if term.name == "remaining")
    assert text == (
        "00:10:00 to run, predicted: last 3 of ann's 1-CPU jobs of 10:00:00; one half at 00:30:00"
    )
    (learned,) = (job.site_factor for job in slurm.read_jobs() if job.job_id == waiting)
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other, _, its_job = cycle_after_runs(other_folder, 0)
    (unlearned,) = (job.site_factor for job in other.read_jobs() if job.job_id == its_job)
    assert (learned or 0) - (unlearned or 0) in {
        316,
        317,
    }  # 450 × (30 / 40 - 30 / 630) = 316.07, both rounded


def test_the_first_score_of_a_new_job_is_the_same(tmp_path: Path) -> None:
    """The service predicts it from the snapshot as the reprioritizer does."""
    slurm, snapshot, waiting = cycle_after_runs(tmp_path, 3)
    request = ScoreRequest(user="ann", partition="main", time_limit_min=600, qos="normal")
    answer = NewJob(request, snapshot, ENFORCE).answer_at(snapshot.cluster.time_s)
    assert answer.site_factor == next(j.site_factor for j in slurm.read_jobs() if j.job_id == waiting)


def test_without_accounting_limits_count(tmp_path: Path) -> None:
    """No run is known: nothing is predicted, and the cycle goes on."""
    _, snapshot, _ = cycle_after_runs(tmp_path, 0)
    assert snapshot.predicted == {}
