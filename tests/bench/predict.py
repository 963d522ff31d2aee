"""python -m tests.bench.predict [verify]: what predictions cost; or how good they are on four logs.

Without a word the last line is JSON with the costs: 20,000 pending jobs, all different, of 300 users with
full histories; one new job through the service's snapshot; a million runs out of a file of `sacct -P`.
`verify` prints the accuracy of all predictors on the logs in ../shared and exits 1 where a bound is missed.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from slurm_score.cli.history_import import opened, read_runs
from slurm_score.cli.predict import format_accuracy, replay_log
from slurm_score.model import Cluster, EndedRun, Job
from slurm_score.policy import load_policy
from slurm_score.predict.baselines import Tsafrir
from slurm_score.predict.estimator import Estimator
from slurm_score.predict.replay import predict_each
from slurm_score.predict.similar import KEPT_RUNS
from slurm_score.predict.sources import Reading
from slurm_score.snapshot import Snapshot, read_snapshot, write_snapshot

SCHEDULES = Path("..", "shared", "data", "schedules")
PUBLISHED = {
    "KTH-SP2": ((4818, 669, 0.473), (4227, 196, 0.570)),
    "CTC-SP2": ((13139, 3542, 0.392), (6599, 558, 0.589)),
    "SDSC-SP2": ((9410, 3014, 0.323), (3773, 211, 0.606)),
    "SDSC-BLUE": ((5489, 1736, 0.313), (1985, 94, 0.620)),
}
"""MAE s, median AE s and mean of min/max of the user's request and of the median of the last five."""
WITHIN, MOST_SHORT = 0.01, 0.40
ONE, IMPORTED = 1000, 1_000_000
DAY = 86_400


def estimator(users: int) -> Estimator:
    """Return an estimator that knows as many runs of each user as it keeps."""
    chance, found = random.Random(1), Estimator()
    runs = [
        EndedRun(
            user=f"u{chance.randrange(users)}", limit_s=3600.0 * chance.randint(1, 72),
            cpus=chance.randint(1, 64), name=f"kind{chance.randrange(9)}", partition="main",
            submit_s=i, end_s=i + 10_000, elapsed_s=chance.expovariate(1 / 3000), job_id=i,
        )
        for i in range(users * KEPT_RUNS)
    ]  # fmt: skip
    found.observe(runs)
    return found


def pending(count: int, users: int) -> list[Job]:
    """Return jobs of which no two of one user are alike."""
    chance = random.Random(2)
    return [
        Job(
            job_id=i, user=f"u{i % users}", cpus=1 + i // users, time_limit_s=60.0 * chance.randint(10, 4000),
            partitions=("main",), name=f"kind{chance.randrange(9)}",
        )
        for i in range(count)
    ]  # fmt: skip


def best_s(call: object, times: int) -> float:
    """Return the shortest time of some calls."""
    assert callable(call)
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def costs() -> dict[str, float]:
    """Return the costs in s and MiB."""
    known, cluster = estimator(300), Cluster(time_s=0.0)
    jobs = pending(20_000, 300)
    learned = {"predict_20k_s": best_s(lambda: known.predict_jobs(jobs, cluster, {}), 5)}
    learned["predict_20k_2000_users_s"] = best_s(
        lambda: known.predict_jobs(pending(20_000, 2000), cluster, {}), 3
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.jsonl")
        write_snapshot(path, Snapshot(policy=load_policy({}), cluster=cluster, estimator=known))
        learned["snapshot_read_s"] = best_s(lambda: read_snapshot(path, with_jobs=False), 3)
        snapshot = read_snapshot(path, with_jobs=False)
        began = time.perf_counter()
        for job in jobs[:ONE]:
            snapshot.estimator.predict_jobs((job,), snapshot.cluster, {})
        learned["predict_one_s"] = (time.perf_counter() - began) / ONE
        return learned | _import(Path(folder))


def _import(folder: Path) -> dict[str, float]:
    file, history = folder / "sacct.txt", folder / "history.sqlite"
    with file.open("w") as out:
        out.writelines(_sacct_lines(IMPORTED))
    words = ["history", "import", str(file), "--history", str(history)]
    code = f"from slurm_score.cli import main; main({words})"
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    took = time.perf_counter() - began
    rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"import_million_s": took, "import_rss_mib": rss, "history_mib": history.stat().st_size / 2**20}


def _sacct_lines(count: int) -> Iterator[str]:
    chance = random.Random(3)
    yield (
        "JobIDRaw|User|Account|Partition|QOS|ReqTRES|TimelimitRaw|Submit|End|ElapsedRaw|State|Restarts|Comment|JobName\n"
    )
    for i in range(count):
        user, run = chance.randrange(500), chance.randint(1, 90_000)
        end, tres = 1_700_000_000 + 60 * i, "cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1"
        yield (
            f"{i}|user{user}|acct{user % 20}|main|normal|{tres}|1440|"
            f"{end - run}|{end}|{run}|COMPLETED|0||train_{i}\n"
        )


def verify() -> int:
    """Print the accuracy on each log and what is missed; return how many bounds are."""
    missed = 0
    for log, published in PUBLISHED.items():
        wrong, jobs = tsafrir_misses(SCHEDULES / f"{log}.easypp-tsafrir.swf.gz")
        missed += _check(not wrong, f"{log}: {wrong} of {jobs} stored Tsafrir predictions are not reproduced")
        path = SCHEDULES / f"{log}.easy.swf.gz"
        found = replay_log(path)
        show(log, format_accuracy(found))
        request, _, median, ours = found
        for base, told in zip((request, median), published, strict=True):
            got = (base.mae_s, base.median_s, base.min_max)
            missed += _check(
                all(abs(a - b) <= WITHIN * b for a, b in zip(got, told, strict=True)),
                f"{log}: {base.predictor} is {got}, published {told}",
            )
        best = [min(getattr(a, name) for a in found[:3]) for name in ("mae_s", "median_s")]
        ratios = (ours.mae_s / best[0], ours.median_s / best[1])
        show("ours / best of the three: MAE {:.3f}, median {:.3f}\n".format(*ratios))
        missed += _check(ours.mae_s < best[0], f"{log}: our MAE isn't the least")
        missed += _check(ours.median_s < best[1], f"{log}: our median error isn't the least")
        missed += _check(ours.too_short <= MOST_SHORT, f"{log}: {ours.too_short:.3f} of ours are too short")
    return missed


def tsafrir_misses(schedule: Path) -> tuple[int, int]:
    """Return how many predictions that a schedule holds as think times we don't get, and of how many."""
    runs = list(read_runs(schedule, Reading()))
    with opened(schedule) as lines:
        stored = {int(row[0]): float(row[-1]) for line in lines if line[0] != ";" and (row := line.split())}
    said = predict_each(runs, Tsafrir()).tolist()
    return sum(stored[run.job_id] != seconds for run, seconds in zip(runs, said, strict=True)), len(runs)


def _check(holds: bool, what: str) -> int:
    if not holds:
        show(f"MISSED {what}")
    return not holds


def show(*lines: str) -> None:
    """Print lines."""
    sys.stdout.write("\n".join((*lines, "")))


def main(words: list[str]) -> int:
    """Run what is asked for and return the exit code."""
    if words == ["verify"]:
        return 1 if verify() else 0
    show(json.dumps({name: round(value, 5) for name, value in costs().items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
