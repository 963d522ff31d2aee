"""slurm_score/predict: baselines, ours, hints and the replay, by hand and on a published schedule."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_score.hints import Hints
from slurm_score.model import Asked, EndedRun, Floats, Predicted
from slurm_score.predict.baselines import MedianOfFive, Tsafrir, UserRequest
from slurm_score.predict.claims import Claims
from slurm_score.predict.estimator import Estimator
from slurm_score.predict.interface import Predictor
from slurm_score.predict.kinds import kind_of_name
from slurm_score.predict.replay import accuracy, predict_each
from slurm_score.predict.similar import HALF_AT_S, MARGIN_S, SimilarRuns, restore
from slurm_score.predict.sources import Reading, read_sacct, read_swf
from tests.unit.builders import HOUR, make_cluster, make_job

SCHEDULES = Path(__file__).parents[3] / "shared" / "data" / "schedules"
SHORT_LOG = 6000
"""Jobs of a log that are enough to show a wrong rule."""


def asked(user: str = "ann", limit_s: float = 3600.0, **more: Any) -> Asked:
    """Return what a job asks for."""
    return Asked(user=user, limit_s=limit_s, **more)


def run(elapsed_s: float, end_s: int, user: str = "ann", limit_s: float = 3600.0, **more: Any) -> EndedRun:
    """Return a run that started as it was submitted."""
    known = {"submit_s": end_s - int(elapsed_s), "job_id": end_s} | more
    return EndedRun(user=user, limit_s=limit_s, end_s=end_s, elapsed_s=elapsed_s, **known)


def runs(*elapsed_s: float, **more: Any) -> list[EndedRun]:
    """Return runs that ended one after the other."""
    return [run(s, 10_000 * (i + 1), **more) for i, s in enumerate(elapsed_s)]


def after(predictor: Predictor, seen: list[EndedRun], job: Asked) -> tuple[float, str]:
    """Return what a predictor says after these runs."""
    predictor.observe(seen)
    found = predictor.predict(job)
    return found.seconds, found.source


@pytest.mark.parametrize(
    ("predictor", "seen", "seconds", "source"),
    [
        (UserRequest(), runs(10), 3600, "time limit"),
        (Tsafrir(), runs(10), 3600, "time limit"),
        (Tsafrir(), runs(1, 10, 15), 12, "mean of ann's last 2 runs"),
        (Tsafrir(), runs(9000, 9000), 3600, "mean of ann's last 2 runs"),
        (Tsafrir(), runs(10, 15, user="ben"), 3600, "time limit"),
        (MedianOfFive(), runs(1000, 1, 2, 3, 40, 50), 3, "last 5 like it of ann"),
        (MedianOfFive(), runs(1, 2), 1.5, "last 2 like it of ann"),
        (MedianOfFive(), runs(1, 2, cpus=8), 1.5, "mean of ann's last 2 runs"),
        (MedianOfFive(), runs(1, cpus=8), 3600, "time limit"),
    ],
)
def test_baselines_say_what_their_authors_say(
    predictor: Predictor, seen: list[EndedRun], seconds: float, source: str
) -> None:
    """Tsafrir, Etsion, Feitelson, TPDS 2007; the median as in ../shared/score-research.md, 1."""
    assert after(predictor, seen, asked()) == (seconds, source)


@pytest.mark.parametrize(
    ("seen", "job", "source"),
    [
        ([], asked(), "time limit"),
        (runs(60, user="ben"), asked(), "the site's last jobs, as ann has run none"),
        (runs(60, cpus=2), asked(), "last 1 jobs of ann, the nearest in limit and size first"),
        (runs(60, 60), asked(), "last 2 of ann's 1-CPU jobs of 01:00:00"),
        (
            runs(60, gpus=8, gpu_types="a100", name="train"),
            asked(gpus=8, gpu_types="a100", name="train"),
            "last 1 of ann's 8-GPU jobs named train of 01:00:00",
        ),
        (runs(60, name="a"), asked(name="b"), "last 1 jobs of ann, the nearest in limit and size first"),
        (runs(60, limit_s=math.inf), asked(limit_s=math.inf), "last 1 of ann's 1-CPU jobs without limit"),
    ],
)
def test_every_prediction_names_its_source(seen: list[EndedRun], job: Asked, source: str) -> None:
    """A new user, a new site, a job without limit: always an answer and where it comes from."""
    seconds, said = after(SimilarRuns(), seen, job)
    assert (seconds, said) == (60 + MARGIN_S if seen else 3600, source)


@pytest.mark.parametrize(
    ("seen", "job", "seconds"),
    [
        pytest.param(runs(10, 10, 10, 500, 500, 500), asked(), 502, id="the late ones before the early ones"),
        pytest.param(
            [*runs(10, 10), *runs(900, 900, cpus=8)], asked(cpus=8), 902, id="the repeats before others"
        ),
        pytest.param([*runs(10, name="a"), *runs(900, 900, name="b")], asked(name="a"), 12, id="by name"),
        pytest.param([*runs(10, gpus=1), *runs(900, 900, gpus=2)], asked(gpus=1), 12, id="by GPUs"),
        pytest.param(
            [*runs(10, gpus=1, gpu_types="v100"), *runs(900, 900, gpus=1, gpu_types="a100")],
            asked(gpus=1, gpu_types="a100"),
            902,
            id="by GPU types",
        ),
        pytest.param([*runs(30), *runs(*[900] * 9, user="ben")], asked(), 32, id="the user before the site"),
        pytest.param(runs(3600, 3600), asked(limit_s=600.0), 600, id="never above the limit"),
        pytest.param(runs(0, 0), asked(), 2, id="a run of no time, and the margin"),
    ],
)
def test_the_runs_most_like_the_job_tell(seen: list[EndedRun], job: Asked, seconds: float) -> None:
    """README.md of predict: likeness and age decide what a run counts."""
    assert after(SimilarRuns(), seen, job)[0] == seconds


@pytest.mark.parametrize(("limit_s", "half_at_s"), [(3600.0, 1800.0), (7200.0, 60.0), (9.0, 60.0)])
def test_the_score_goes_by_the_mean_factor_of_the_runs(limit_s: float, half_at_s: float) -> None:
    """By hand: the later of two counts 1, the other 0.95 × 0.75 and 0.99 × 0.95; each 0.03 for the site."""
    predictor = SimilarRuns()
    predictor.observe(runs(9000, 10, limit_s=limit_s))
    long, short = (half_at_s / (half_at_s + min(ran_s, limit_s)) for ran_s in (9000, 10))
    memories = [
        (short + older * long + 0.03 * (short + long)) / (1 + older + 0.06) for older in (0.7125, 0.9405)
    ]
    found = predictor.predict_all([asked(limit_s=limit_s)], half_at_s)[0]
    assert found.scored_s == pytest.approx(half_at_s / np.mean(memories) - half_at_s, abs=0.06)


def test_a_hint_counts_by_its_user_s_ratios_as_runs_do() -> None:
    """Of three claims of 10 min two came true and one ended at once; the mean factor, not the median."""
    claims = Claims(0.6)
    claims.observe(run(ran_s, 100 * i, claim_s=600.0) for i, ran_s in enumerate((600, 0, 600), start=1))
    found = claims.calibrate("ann", 600.0, 3600.0, None, 1800.0)
    mean = (0.75 * (1 + 0.81) + 1.0 * 0.9) / (1 + 0.9 + 0.81)
    assert found.seconds == 600.0
    assert found.scored_s == pytest.approx(1800.0 / mean - 1800.0)


def test_a_claim_on_a_job_that_may_run_for_ever_is_scored_as_that() -> None:
    """Nothing is known of the user's claims, and what stands for them has no end."""
    endless = Predicted(math.inf, "time limit")
    assert Claims(0.6).calibrate("ann", 60.0, math.inf, endless, 1800.0).scored_s == math.inf


def test_what_is_stored_predicts_the_same_and_learns_on() -> None:
    """The service goes on from the snapshot with what the reprioritizer knew."""
    first = SimilarRuns()
    first.observe(runs(*range(1, 300), name="a") + runs(*range(5, 50), user="ben", cpus=4))
    again = restore(first.stored())
    jobs = [asked(), asked(name="a"), asked(user="ben", cpus=4), asked(user="cho")]
    for predictor in (first, again):
        predictor.observe([run(7, 9_000_000), run(8, 9_000_001, user="ben")])
    assert first.predict_all(jobs) == again.predict_all(jobs)


def test_kth_tsafrir_predictions_are_reproduced_job_by_job() -> None:
    """The schedule's think times hold them (Gaussier et al., SC'15); ends of a second by their starts."""
    path = SCHEDULES / "KTH-SP2.easypp-tsafrir.swf.gz"
    if not path.exists():
        pytest.skip("../shared/data is not here")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    stored = {int(row[0]): float(row[-1]) for line in lines if line[0] != ";" and (row := line.split())}
    log = list(read_swf(lines, Reading()))
    said = predict_each(log, Tsafrir()).tolist()
    assert len(log) == 28_481
    assert {r.job_id: seconds for r, seconds in zip(log, said, strict=True)} == stored


def test_kth_baselines_are_the_published_ones_and_ours_is_better() -> None:
    """evaluation.md, to 1 %; ours on the first jobs of the log only, the whole by make verify-predict."""
    path = SCHEDULES / "KTH-SP2.easy.swf.gz"
    if not path.exists():
        pytest.skip("../shared/data is not here")
    log = list(read_swf(gzip.decompress(path.read_bytes()).decode().splitlines(), Reading()))
    ran = ran_of(log)
    for predictor, published in ((UserRequest(), (4818, 669, 0.473)), (MedianOfFive(), (4227, 196, 0.570))):
        found = accuracy(predictor.name, predict_each(log, predictor), ran)
        assert (found.mae_s, found.median_s, found.min_max) == pytest.approx(published, rel=0.01)
    log.sort(key=lambda r: r.submit_s)
    few = log[:SHORT_LOG]
    ours, median = (
        accuracy(p.name, predict_each(few, p), ran_of(few)) for p in (SimilarRuns(), MedianOfFive())
    )
    assert ours.mae_s < median.mae_s
    assert ours.median_s < median.median_s
    assert ours.too_short <= 0.40


def ran_of(log: list[EndedRun]) -> Floats:
    """Return the run times of a log."""
    return np.array([r.elapsed_s for r in log])


def test_history_at_a_submission_is_what_had_ended_before() -> None:
    """A run that ends in the second of a submission isn't known to it."""
    log = [
        run(50, 100, submit_s=0),
        run(50, 200, submit_s=100),
        run(50, 300, submit_s=101),
    ]
    assert predict_each(log, MedianOfFive()).tolist() == [3600, 3600, 50]


@pytest.mark.parametrize(
    ("known", "claim_s", "limit_s", "seconds"),
    [
        pytest.param([], 60.0, 3600.0, 60.0, id="a first hint is believed where nothing else is known"),
        pytest.param([(60, 60)] * 3, 600.0, 3600.0, 600.0, id="who told the truth is believed"),
        pytest.param([(60, 3000)] * 3, 60.0, 3600.0, 3000.0, id="who didn't is not"),
        pytest.param([(60, 3000)] * 3, 120.0, 3600.0, 3600.0, id="never above the limit"),
        pytest.param([(600, 60)] * 3, 600.0, 3600.0, 60.0, id="who claims too much gets less"),
        pytest.param([(60, 60)] * 3 + [(3600, 36)] * 3, 60.0, 9e9, 60.0, id="claims near it come first"),
    ],
)
def test_a_hint_counts_as_far_as_past_ones_came_true(
    known: list[tuple[float, float]], claim_s: float, limit_s: float, seconds: float
) -> None:
    """The hint × the user's own ratio."""
    claims = Claims(0.6)
    claims.observe(run(ran, 100 * (i + 1), claim_s=said) for i, (said, ran) in enumerate(known))
    assert claims.calibrate("ann", claim_s, limit_s, None, HALF_AT_S).seconds == pytest.approx(seconds)


def test_a_user_who_always_claims_a_minute_gains_nothing_after_three_jobs() -> None:
    """Nor before, where runs without hints are known: they stand for the hints that aren't known yet."""
    estimator = Estimator()
    estimator.observe(runs(*[3000.0] * 5))
    cheat, honest = make_job(1, user="ann", hints=Hints(est_s=60.0)), make_job(2, user="ann")
    for i in range(5):
        said = estimator.predict_jobs([cheat, honest], make_cluster(), {})
        assert said[1].seconds == pytest.approx(said[2].seconds, rel=0.001)
        assert said[1].scored_s == pytest.approx(said[2].scored_s, rel=0.001)
        estimator.observe([run(3000.0, 100_000 + i, claim_s=60.0)])


def test_progress_and_est_combine() -> None:
    """Half of two hours is one; three such claims came true."""
    estimator = Estimator()
    estimator.observe(run(600, 100 * i, claim_s=600.0) for i in range(1, 4))
    job = make_job(1, user="ann", time_limit_s=9.0 * HOUR, hints=Hints(est_s=2.0 * HOUR, progress=0.5))
    said = estimator.predict_jobs([job], make_cluster(), {})[1]
    assert (said.seconds, said.source) == (HOUR, "hint 01:00:00 × 1, the ratio of ann's last 3 hints")


def test_runs_that_something_else_ended_tell_nothing() -> None:
    """A node failure says nothing of the job."""
    estimator = Estimator()
    estimator.observe(runs(5, 6, state="NODE_FAIL") + runs(7, 8, state="PREEMPTED"))
    assert not estimator.knows_anything


@pytest.mark.parametrize(
    ("hints", "left_s", "words"),
    [
        pytest.param(Hints(), 3000.0, "last 3 of ann's 1-CPU jobs of 09:00:00", id="no ckpt="),
        pytest.param(Hints(ckpt=False), 3000.0, "last 3 of ann's 1-CPU jobs of 09:00:00", id="ckpt=no"),
        pytest.param(
            Hints(ckpt=True),
            2100.0,
            "last 3 of ann's 1-CPU jobs of 09:00:00, less 00:15:00 run before its requeue",
            id="the runs like it, less what was run",
        ),
        pytest.param(
            Hints(ckpt=True, est_s=2000.0),
            1100.0,
            "hint 00:33:20 × 1, the ratio of ann's last 3 hints, less 00:15:00 run before its requeue",
            id="est= is all of it",
        ),
        pytest.param(
            Hints(ckpt=True, left_s=2000.0),
            2000.0,
            "hint 00:33:20 × 1, the ratio of ann's last 3 hints",
            id="left= is what is left",
        ),
        pytest.param(
            Hints(ckpt=True, est_s=2000.0, progress=0.5),
            1000.0,
            "hint 00:16:40 × 1, the ratio of ann's last 3 hints",
            id="progress= tells what was done",
        ),
        pytest.param(
            Hints(ckpt=True, est_s=600.0),
            0.0,
            "hint 00:10:00 × 1, the ratio of ann's last 3 hints, less 00:15:00 run before its requeue",
            id="never less than nothing",
        ),
    ],
)
def test_what_a_checkpoint_saved_is_counted_once(hints: Hints, left_s: float, words: str) -> None:
    """15 minutes before a requeue, after three runs of 50 minutes with hints that came true."""
    estimator = Estimator()
    estimator.observe(runs(*[2998.0] * 3, claim_s=2998.0, limit_s=9.0 * HOUR))
    job = make_job(1, user="ann", time_limit_s=9.0 * HOUR, restarts=1, hints=hints)
    said = estimator.predict_jobs([job], make_cluster(), {1: 900.0})[1]
    assert (said.seconds, said.source) == (left_s, words)


SACCT = """JobIDRaw|User|State|Submit|End|ElapsedRaw|TimelimitRaw|ReqTRES|JobName
5|ann|COMPLETED|100|200|50|60|billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2|train-17
6|ann|CANCELLED by 1000|100|200|50|UNLIMITED||a|b
7|ann|RUNNING|100|Unknown|50|60||x
8|ann|CANCELLED|100|200|0|60||never ran
9|ann|COMPLETED
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train-17", "train-#"),
        ("2026-11-30_run7", "#-#-#_run#"),
        ("two\nlines", "two"),
        ("a\x1b[31mred\x1f", "a?[#mred?"),
        ("caf\u00e9", "caf\u00e9"),
        ("x" * 1000, "x" * 64),
        ("", ""),
    ],
)
def test_kind_of_a_name_has_no_numbers_and_can_be_printed(name: str, kind: str) -> None:
    """A kind is the kind of itself, and nothing in it moves a terminal's cursor."""
    assert kind_of_name(name) == kind
    assert kind_of_name(kind) == kind


def test_files_of_sacct_are_read_by_the_names_in_their_first_line() -> None:
    """What runs, never ran or can't be read is left out; the last is counted."""
    reading = Reading()
    found = list(read_sacct(SACCT.splitlines(keepends=True), reading, "f"))
    assert found == [
        EndedRun(
            user="ann", limit_s=3600.0, cpus=4, gpus=2, gpu_types="a100", name="train-#",
            submit_s=100, end_s=200, elapsed_s=50.0, job_id=5,
        ),
        EndedRun(
            user="ann", limit_s=math.inf, name="a|b", submit_s=100, end_s=200, elapsed_s=50.0, job_id=6,
            state="CANCELLED",
        ),
    ]  # fmt: skip
    assert (reading.unreadable, reading.first) == (1, "'9|ann|COMPLETED'")


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ("COMPLETED", True),
        ("FAILED", True),
        ("OUT_OF_MEMORY", True),
        ("TIMEOUT", True),
        ("CANCELLED by 1000", False),
        ("DEADLINE", False),
        ("NODE_FAIL", False),
        ("BOOT_FAIL", False),
    ],
)
def test_a_run_of_less_than_a_second_counts_if_the_job_was_started(state: str, counts: bool) -> None:
    """sacct prints 0 s for it, as for a job that was cancelled while it waited (observed on 22.05)."""
    line = f"8|ann|{state}|100|200|0|60||train"
    found = list(read_sacct([SACCT.splitlines()[0], line], Reading(), "f"))
    assert [run.elapsed_s for run in found] == ([0.0] if counts else [])


def test_swf_jobs_that_never_ran_are_left_out() -> None:
    """Standard Workload Format 2.2: -1 is not known. The partition field is left alone: see read_swf."""
    lines = [
        "; UnixStartTime: 0\n",
        "1 0 5 10 4 -1 -1 8 60 -1 1 3 -1 9 2 1 -1 -1\n",
        "2 0 -1 -1 4 -1 -1 8 60 -1 5 3 -1 -1 -1 -1 -1 -1\n",
        "3 0 5\n",
    ]
    reading = Reading()
    expected = EndedRun(
        user="3",
        limit_s=60.0,
        cpus=8,
        name="executable 9",
        partition="queue 2",
        submit_s=0,
        end_s=15,
        elapsed_s=10.0,
        job_id=1,
    )
    assert list(read_swf(lines, reading)) == [expected]
    assert reading.unreadable == 1
