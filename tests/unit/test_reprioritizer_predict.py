"""What a site's own runs do to its order: from the end of a job to the first score of the next."""

from dataclasses import replace
from pathlib import Path

from slurm_score.explain import explain_job
from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition, Release
from slurm_score.policy import Mode, Policy
from slurm_score.policy_yaml import parse_policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.score import score_queue
from slurm_score.service.handlers import NewJob, ScoreRequest
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.snapshot import Snapshot, read_snapshot

ENFORCE = Policy(mode=Mode.ENFORCE)
SCRIPT = Submission(user="ann", time_limit_s=36_000, run_time_s=598)


def cycle_after_runs(
    folder: Path, runs: int, script: Submission = SCRIPT, policy: Policy = ENFORCE
) -> tuple[FakeSlurm, Snapshot, int]:
    """Return a cluster on which ann's script ran so often and waits once more, after a cycle."""
    node = Node(name="n1", cpus=1, partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True, cpus=1)], {"normal": 0})
    for _ in range(runs):
        slurm.submit(script)
        slurm.schedule()
        slurm.run_until_idle(100_000)
    slurm.submit(Submission(user="ben", time_limit_s=7200, run_time_s=7200))
    slurm.schedule()
    waiting = slurm.submit(script)
    path = folder / "snapshot.jsonl"
    Reprioritizer(slurm, lambda: policy, path, history=folder / "history.sqlite").cycle()
    return slurm, read_snapshot(path), waiting


def explained(snapshot: Snapshot, factor: str) -> str:
    """Return the words about a factor of the first job that waits."""
    queue = snapshot.queue()
    terms = explain_job(queue, score_queue(queue, ENFORCE), ENFORCE, 0).terms
    return next(term.words for term in terms if term.name == factor)


def test_the_next_submission_of_a_script_is_predicted_by_its_runs(tmp_path: Path) -> None:
    """598 s and the margin of 2 s; the limit was ten hours. Explain says so, SITE is another."""
    slurm, snapshot, waiting = cycle_after_runs(tmp_path, 3)
    assert explained(snapshot, "remaining") == (
        "00:10:00 to run, predicted: last 3 of ann's 1-CPU jobs named job of 10:00:00; one half at 00:30:00"
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


def test_without_predict_limits_and_hints_count_alone(tmp_path: Path) -> None:
    """Queue, hook and the GPUs' release go by the ten hours that the user asked for."""
    by_limit = parse_policy("mode: enforce\nfactors: {remaining: {predict: false}}")
    _, snapshot, _ = cycle_after_runs(tmp_path, 3, policy=by_limit)
    assert snapshot.predicted == {}
    assert explained(snapshot, "remaining") == "10:00:00 to run by its time limit; one half at 00:30:00"
    assert snapshot.predict(snapshot.queue().jobs) == {}


def test_explain_shows_hint_ratio_and_result(tmp_path: Path) -> None:
    """Three runs of 598 s were to take a minute, and so is the next."""
    hinted = replace(SCRIPT, comment="score: est=1m")
    slurm, snapshot, waiting = cycle_after_runs(tmp_path, 3, hinted)
    assert explained(snapshot, "remaining") == (
        "00:09:58 to run, predicted: hint 00:01:00 × 10, the ratio of ann's last 3 hints; "
        "one half at 00:30:00"
    )
    request = ScoreRequest(
        user="ann", partition="main", time_limit_min=600, qos="normal", name="job", comment=hinted.comment
    )
    answer = NewJob(request, snapshot, ENFORCE).answer_at(snapshot.cluster.time_s)
    assert answer.site_factor == next(j.site_factor for j in slurm.read_jobs() if j.job_id == waiting)


def test_the_first_score_of_a_new_job_is_the_same(tmp_path: Path) -> None:
    """The service predicts it from the snapshot as the reprioritizer does."""
    slurm, snapshot, waiting = cycle_after_runs(tmp_path, 3)
    request = ScoreRequest(user="ann", partition="main", time_limit_min=600, qos="normal")
    answer = NewJob(request, snapshot, ENFORCE).answer_at(snapshot.cluster.time_s)
    assert answer.site_factor == next(j.site_factor for j in slurm.read_jobs() if j.job_id == waiting)


def test_the_name_tells_scripts_apart(tmp_path: Path) -> None:
    """Equal in all else: short-8 is predicted by short-1 to 3, long-8 by long-1 to 3, in hook and queue."""
    node = Node(name="n1", cpus=1, partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True, cpus=1)], {"normal": 0})
    for number in range(1, 4):
        for name, run_time_s in (("short", 58), ("long", 5998)):
            slurm.submit(replace(SCRIPT, name=f"{name}-{number}", run_time_s=run_time_s))
    slurm.schedule()
    slurm.run_until_idle(100_000)
    slurm.submit(replace(SCRIPT, user="ben"))
    slurm.schedule()
    waiting = {name: slurm.submit(replace(SCRIPT, name=f"{name}-8")) for name in ("short", "long")}
    path = tmp_path / "snapshot.jsonl"
    Reprioritizer(slurm, lambda: ENFORCE, path).cycle()
    snapshot = read_snapshot(path)
    assert {name: snapshot.predicted[i].seconds for name, i in waiting.items()} == {"short": 60, "long": 6000}
    sites = {job.job_id: job.site_factor for job in slurm.read_jobs()}
    for name, job_id in waiting.items():
        request = ScoreRequest(
            user="ann", partition="main", time_limit_min=600, qos="normal", name=f"{name}-99"
        )
        answer = NewJob(request, snapshot, ENFORCE).answer_at(snapshot.cluster.time_s)
        assert answer.site_factor == sites[job_id]


def test_gpus_come_free_by_what_is_known_of_the_running_job(tmp_path: Path) -> None:
    """Three runs of ten minutes, a fourth under way with a limit of ten hours: explain says ten minutes."""
    gpus = GpuCount(1, {"a100": 1})
    node = Node(name="n1", cpus=2, gpus=gpus, partitions=("main",))
    slurm = FakeSlurm([node], [Partition(name="main", default=True, cpus=2)], {"normal": 0})
    script = replace(SCRIPT, gres="gpu:a100:1")
    for _ in range(3):
        slurm.submit(script)
        slurm.schedule()
        slurm.run_until_idle(100_000)
    slurm.submit(script)
    slurm.schedule()
    slurm.submit(script)
    path = tmp_path / "snapshot.jsonl"
    Reprioritizer(slurm, lambda: ENFORCE, path).cycle()
    snapshot = read_snapshot(path)
    assert snapshot.releases == {"a100": (Release(snapshot.cluster.time_s + 600, 1, True),)}
    text = explained(snapshot, "gres_fit")
    assert text.endswith("enough comes free within 00:10:00 by what is known of the running jobs")


def test_without_accounting_limits_count(tmp_path: Path) -> None:
    """No run is known: nothing is predicted, and the cycle goes on."""
    _, snapshot, _ = cycle_after_runs(tmp_path, 0)
    assert snapshot.predicted == {}
