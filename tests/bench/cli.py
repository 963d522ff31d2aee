"""make bench-cli: how long a user waits for sscore and explain over 20,000 pending jobs.

The service runs as it does in the product, in a process of its own with a worker for reports, and answers
from a snapshot of 20,000 jobs. Each command is a fresh process, Python's start included, with its output
going to a pipe; the median of nine runs counts. On a busy machine its own CPU time tells more. Before them
the service has answered once: the first answer after a start waits for the snapshot to be read and is
printed on its own.

The last line is JSON: `jobs`, `sscore_s`, `sscore_one_s` (sscore -j ID), `explain_s`.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slurm_score.snapshot import Snapshot, write_snapshot
from tests.bench.score import POLICY, make_queue

JOBS, RUNS, START_S = 20_000, 9, 120.0
PROGRAMS = Path(sys.executable).parent


def prepare(folder: Path) -> dict[str, str]:
    """Write policy and snapshot of a long queue, and return the environment that names them."""
    queue = make_queue(JOBS, random.Random(1))
    write_snapshot(
        folder / "snapshot.jsonl",
        Snapshot(policy=POLICY, cluster=queue.cluster, pressure=queue.pressure, jobs=queue.jobs),
    )
    (folder / "policy.yaml").write_text("mode: enforce\n", encoding="utf-8")
    names = {
        "SNAPSHOT": "snapshot.jsonl",
        "POLICY": "policy.yaml",
        "SOCKET": "score.sock",
        "HOOK_SOCKET": "hook",
    }
    return dict(os.environ) | {f"SLURM_SCORE_{key}": str(folder / name) for key, name in names.items()}


@contextmanager
def served(env: Mapping[str, str]) -> Iterator[None]:
    """Run the service for as long as the context lasts."""
    service = subprocess.Popen([PROGRAMS / "slurm-score", "serve"], env=env)
    try:
        until = time.monotonic() + START_S
        while not Path(env["SLURM_SCORE_SOCKET"]).exists():
            if service.poll() is not None or time.monotonic() > until:
                raise SystemExit("the service does not start")
            time.sleep(0.05)
        yield
    finally:
        service.terminate()
        service.wait()


def seconds(env: Mapping[str, str], *argv: str) -> tuple[float, float]:
    """Return how long a command takes and how long it computes itself, in s; it must print something."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([PROGRAMS / argv[0], *argv[1:]], env=env, stdout=subprocess.PIPE, check=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if not done.stdout:
        raise SystemExit(f"{' '.join(argv)} printed nothing")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(env: Mapping[str, str], name: str, *argv: str) -> float:
    """Return the median of several runs, and print what they took."""
    runs = [seconds(env, *argv) for _ in range(RUNS)]
    took, computed = sorted(run[0] for run in runs), statistics.median(run[1] for run in runs)
    middle = statistics.median(took)
    tell(f"{name:<28} {middle:6.3f} s, {took[0]:.3f} to {took[-1]:.3f}; its own CPU time {computed:.3f} s")
    return middle


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print how long each command takes."""
    with tempfile.TemporaryDirectory(prefix="bench-cli.") as folder:
        env = prepare(Path(folder))
        with served(env):
            job = str(JOBS // 2)
            tell(f"{'first sscore after the start':<28} {seconds(env, 'sscore')[0]:6.3f} s")
            told = {
                "sscore_s": measure(env, "sscore", "sscore"),
                "sscore_one_s": measure(env, "sscore -j ID", "sscore", "-j", job),
                "explain_s": measure(env, "slurm-score explain ID", "slurm-score", "explain", job),
            }
            measure(env, "sscore -l", "sscore", "-l")
            measure(env, "sscore --json", "sscore", "--json")
            measure(env, "Python alone", Path(sys.executable).name, "-c", "print()")
    tell(json.dumps({"jobs": JOBS} | {name: round(value, 3) for name, value in told.items()}))


if __name__ == "__main__":
    main()
