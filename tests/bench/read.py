"""python -m tests.bench.read [RELEASE] [JOBS]: what reading the queue costs beside the bare commands.

On a cluster of the harness with its nodes drained, so that everything stays pending. Prints one JSON
object: `bare_s` is the time of squeue and sprio as processes that print to nowhere, `ours_s` that of
the gateway's first reading of all jobs, `again_s` of those in the five minutes after it, for which
scontrol isn't asked, `rss_mib` our process's peak memory; the best of three of each.
"""

import json
import sys

from tests.live.harness import Cluster, wait_for

DEFAULT_RELEASE, DEFAULT_JOBS = "24.11", 20_000

SUBMIT = """
import subprocess, sys
jobs = int(sys.argv[1])
forms = (
    ["--gres=gpu:a100:1"],
    ["--gpus=2", "--comment=score: est=20m"],
    ["--ntasks=4"],
    ["--gpus-per-node=v100:1"],
)
procs = []
for i in range(jobs):
    argv = ["sbatch", "--output=/dev/null", f"--time={1 + i % 999}", *forms[i % 4], "--wrap=true"]
    procs.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
    if len(procs) == 16:
        for proc in procs:
            proc.wait()
        procs.clear()
for proc in procs:
    proc.wait()
"""

MEASURE = """
import json, os, resource, subprocess, time
from slurm_score.slurm import parse, priorities
from slurm_score.slurm.commands import CommandGateway
fields = parse.squeue_format(chr(31), chr(31) + "0123456789abcdef")
env = os.environ | {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
states = ",".join(parse.ACTIVE_STATES)
bare = (["squeue", "-h", "-t", states, "-O", fields], ["sprio", "-h", "-o", priorities.SPRIO_FORMAT])
def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
def run_bare():
    for argv in bare:
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, env=env)
bare_s = min(timed(run_bare) for _ in range(3))
counts = []
ours_s = min(timed(lambda: counts.append(len(CommandGateway().read_jobs()))) for _ in range(3))
gateway = CommandGateway()
again_s = min([timed(gateway.read_jobs) for _ in range(4)][1:])
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"jobs": counts[0], "bare_s": bare_s, "ours_s": ours_s, "again_s": again_s, "rss_mib": rss}))
"""


def measure(release: str, jobs: int) -> dict[str, object]:
    """Return the figures for a queue of `jobs` pending records on one release."""
    with Cluster(release, daemons=(), slurm_conf={"MaxJobCount": "200000"}) as cluster:
        cluster.exec(["scontrol", "update", "PartitionName=main", "State=DOWN"])
        cluster.exec(["python3", "-c", SUBMIT, str(jobs)], user="alice", timeout_s=1800)
        wait_for(lambda: _pending(cluster) >= jobs, 120, "all jobs are in the queue", interval_s=1)
        python = "/opt/slurm-score/bin/python"
        answer = cluster.exec([python, "-c", MEASURE], user="scoreop", timeout_s=300).stdout
    figures: dict[str, object] = json.loads(answer)
    return {"release": release} | figures


def _pending(cluster: Cluster) -> int:
    return len(cluster.exec(["squeue", "-h", "-o", "%i"]).stdout.splitlines())


def main() -> None:
    """Print the figures, the last line as JSON."""
    release = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_RELEASE
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_JOBS
    figures = measure(release, jobs)
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
