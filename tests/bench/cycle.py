"""python -m tests.bench.cycle [RELEASE] [JOBS]: what a first full cycle costs slurmctld and its users.

A controller that schedules nothing holds 20,000 pending jobs with SiteFactor 0. In one run: the bare squeue
and sprio; updates by a bare scontrol that reads from standard input, as many as one of our cycles sends; then
one cycle of `slurm-score reprioritize --once` in enforce that changes every job. Its parts are those that it
writes down in its own audit (`slurm-score cycles`), its memory is the peak of its process. During both users
submit and list jobs, one after the other, in a loop; `submit_ms_*` and `squeue_ms_*` are the medians of that
before the burst and during it. Prints one JSON object as the last line.
"""

from __future__ import annotations

import json
import sys

from tests.bench.read import SUBMIT
from tests.live.harness import Cluster, wait_for
from tests.live.product import OPERATOR, Product

DEFAULT_RELEASE, DEFAULT_JOBS = "24.11", 20_000
NO_SCHEDULER = {"SchedulerParameters": "defer,sched_interval=-1,bf_interval=-1,batch_sched_delay=3600"}
PYTHON = "/opt/slurm-score/bin/python"
POLICY = """\
mode: enforce
slurm_factors: replace
updates: {per_cycle: 1000000}
"""

# In the controller's container: argv[1] is how many updates, standard output one JSON object.
MEASURE = """
import json, os, pwd, resource, statistics, subprocess, sys, threading, time
from slurm_score.slurm import parse, priorities

fields = parse.squeue_format(chr(31), chr(31) + "0123456789abcdef")
env = os.environ | {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
states = ",".join(parse.ACTIVE_STATES)
reads = (["squeue", "-h", "-t", states, "-O", fields], ["sprio", "-h", "-o", priorities.SPRIO_FORMAT])
submit = ["sbatch", "--parsable", "--output=/dev/null", "--time=7", "--wrap=true"]
listing = ["squeue", "--noheader", "--me"]

def seconds(argv, **options):
    began = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    return time.perf_counter() - began

def users(stop, times):
    while not stop.is_set():
        times[0].append(seconds(submit, user="alice"))
        times[1].append(seconds(listing, user="alice"))

def beside(work):
    times, stop = ([], []), threading.Event()
    thread = threading.Thread(target=users, args=(stop, times))
    thread.start()
    try:
        result = work()
    finally:
        stop.set()
        thread.join()
    return result, [statistics.median(column) * 1000 for column in times]

ids = subprocess.run(["sprio", "-h", "-o", "%i"], capture_output=True, text=True).stdout.split()
bare_read_s = min(sum(seconds(argv, env=env) for argv in reads) for _ in range(3))
lines = "".join(f"update JobId={job_id} SiteFactor={1 + i % 1500}\\n" for i, job_id in enumerate(ids))
bare_s, _ = beside(lambda: seconds(["scontrol"], input=lines.encode(), user="OPERATOR"))
_, before = beside(lambda: time.sleep(10))
cycle = ["slurm-score", "reprioritize", "--once"]
_, during = beside(lambda: subprocess.run(cycle, user="OPERATOR", check=True, stdout=sys.stderr))
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps({
    "bare_read_s": bare_read_s, "bare_updates_per_s": len(ids) / bare_s, "rss_mib": peak,
    "submit_ms_before": before[0], "submit_ms_during": during[0],
    "squeue_ms_before": before[1], "squeue_ms_during": during[1],
}))
""".replace("OPERATOR", OPERATOR)


def measure(release: str, jobs: int) -> dict[str, object]:
    """Return the figures for a queue of `jobs` pending records on one release."""
    with Cluster(release, daemons=("service",), slurm_conf=NO_SCHEDULER) as cluster:
        product = Product(cluster)
        product.set_policy("mode: observe\n")
        cluster.exec(["python3", "-c", SUBMIT, str(jobs)], user="alice", timeout_s=1800)
        wait_for(lambda: len(product.sites()) >= jobs, 120, f"Slurm ranks {jobs} jobs", interval_s=1)
        product.set_policy(POLICY)
        answer = cluster.exec([PYTHON, "-c", MEASURE], timeout_s=900).stdout
        told = cluster.exec(["slurm-score", "cycles", "--last", "1", "--json"], user=OPERATOR).stdout
    return _figures(json.loads(answer), json.loads(told)["cycles"][-1])


def _figures(measured: dict[str, float], cycle: dict[str, float]) -> dict[str, object]:
    wanted = {
        "jobs": cycle["pending"],
        "bare_read_s": measured["bare_read_s"],
        "read_s": cycle["read_s"],
        "score_s": cycle["score_s"],
        "plan_s": cycle["plan_s"],
        "updates_per_s": cycle["sent"] / cycle["write_s"],
        "bare_updates_per_s": measured["bare_updates_per_s"],
        "rss_mib": measured["rss_mib"],
        **{name: measured[name] for name in ("submit_ms_before", "submit_ms_during")},
        **{name: measured[name] for name in ("squeue_ms_before", "squeue_ms_during")},
    }
    return {name: round(value, 3) for name, value in wanted.items()}


def main() -> None:
    """Print the figures, the last line as JSON."""
    release = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_RELEASE
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_JOBS
    sys.stdout.write(json.dumps(measure(release, jobs)) + "\n")


if __name__ == "__main__":
    main()
