"""The game of hints: a month of a simulated cluster, in which one user lies about how long his jobs run."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from slurm_score.hints import NO_HINTS, Hints
from slurm_score.model import EndedRun, Job
from slurm_score.policy import Policy
from slurm_score.predict.estimator import Estimator
from slurm_score.sim.engine import simulate
from slurm_score.sim.metrics import bounded_slowdowns
from slurm_score.sim.outside import Predictor, Submitted
from slurm_score.sim.policies import Pool, QueuePolicy
from slurm_score.sim.synthetic import Recipe, synthetic
from slurm_score.sim.workload import Workload, rows_of
from slurm_score.units import DAY_S, HOUR_S
from tests.unit.builders import make_cluster, make_job

MONTH = Recipe(jobs=1500, procs=32, users=20, load=0.85)
SEEDS = (1, 2, 3)
PLAYERS = 3
"""How many users of each month try it, each in a month of his own: those with the most jobs."""
LIE_S = 60.0
CLUSTER = make_cluster()


class Believed:
    """Takes every hint at its word, else the time limit."""

    def __init__(self, est_s: dict[int, float]) -> None:
        self.est_s = est_s

    def observe(self, job: Submitted, run_s: int, end_s: int) -> None:
        """Learn nothing."""

    def predict(self, job: Submitted) -> float:
        """Return the hint."""
        return self.est_s[job.job_id] or float(job.request_s)


class Calibrated:
    """The product's estimator: runs and hints. A user's jobs are predicted anew when one of his has ended."""

    def __init__(self, est_s: dict[int, float]) -> None:
        self.est_s, self.estimator = est_s, Estimator()
        self.jobs: defaultdict[int, dict[int, Job]] = defaultdict(dict)
        self.known: dict[int, dict[int, float]] = {}

    def observe(self, job: Submitted, run_s: int, end_s: int) -> None:
        """Learn a run with what was claimed of it."""
        self.known.pop(job.user, None)
        self.jobs[job.user].pop(job.job_id, None)
        self.estimator.observe(
            [
                EndedRun(
                    user=str(job.user), limit_s=float(job.request_s), cpus=job.procs, job_id=job.job_id,
                    submit_s=job.submit_s, end_s=end_s, elapsed_s=float(run_s),
                    claim_s=self.est_s[job.job_id] or None,
                )
            ]
        )  # fmt: skip

    def predict(self, job: Submitted) -> float:
        """Return what the score takes for the job's run time."""
        jobs = self.jobs[job.user]
        if job.job_id not in jobs:
            jobs[job.job_id] = self._job(job)
            self.known.pop(job.user, None)
        if job.user not in self.known:
            found = self.estimator.predict_jobs(list(jobs.values()), CLUSTER, {})
            self.known[job.user] = {job_id: one.scored_s for job_id, one in found.items()}
        return self.known[job.user].get(job.job_id) or self.est_s[job.job_id] or float(job.request_s)

    def _job(self, job: Submitted) -> Job:
        est_s = self.est_s[job.job_id]
        return make_job(
            job.job_id, user=str(job.user), cpus=job.procs, time_limit_s=float(job.request_s),
            hints=Hints(est_s=est_s) if est_s else NO_HINTS,
        )  # fmt: skip


def games() -> Iterator[tuple[Workload, int]]:
    """Yield months and a player in each, whose jobs all run an hour or more: his lie is a great one."""
    for seed in SEEDS:
        work = synthetic(seed, MONTH)
        long = work.run_s >= HOUR_S
        busiest = np.argsort(-np.bincount(work.user[long]), kind="stable")
        for player in busiest[:PLAYERS].tolist():
            yield rows_of(work, long | (work.user != player)), player


def hints_s(work: Workload, player: int, lies: bool) -> dict[int, float]:
    """Return the hint on each job in s: of the others two thirds tell the truth, a third nothing (0)."""
    others = np.where(work.user % 3 > 0, work.run_s, 0)
    mine = LIE_S if lies else work.run_s
    return dict(zip(work.job_id.tolist(), np.where(work.user == player, mine, others).tolist(), strict=True))


def slowdown(work: Workload, player: int, predictor: Predictor) -> float:
    """Return the player's mean bounded slowdown under the default policy."""
    policy = QueuePolicy("default", Policy(), "told")
    found = simulate(work, Pool(procs=MONTH.procs), policy, predictor=predictor)
    return float(bounded_slowdowns(found)[work.user == player].mean())


def gain(predictor: type[Believed | Calibrated]) -> float:
    """Return the geometric mean over all players of their slowdown without lies over that with them."""
    ratios = []
    for work, player in games():
        honest, lying = (
            slowdown(work, player, predictor(hints_s(work, player, lies))) for lies in (False, True)
        )
        ratios.append(honest / lying)
    return float(np.exp(np.log(ratios).mean()))


def test_who_lies_waits_no_less_than_by_telling_the_truth() -> None:
    """`est=1m` on every job of a month brings no lower mean slowdown. Single months vary by chance, so nine
    players count together."""
    spans_d = [float(np.ptp(work.submit_s)) / DAY_S for work, _ in games()]
    assert 25 < np.mean(spans_d) < 40
    assert gain(Calibrated) <= 1.0


def test_where_hints_were_believed_lies_would_pay() -> None:
    """The same months with every hint taken at its word: else the game would show nothing."""
    assert gain(Believed) > 1.2
