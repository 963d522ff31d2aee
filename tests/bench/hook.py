"""python -m tests.bench.hook [RELEASE] [SUBMISSIONS] [PENDING]: what the submit hook costs slurmctld.

One `sbatch` after the other, 2,000 of them for each variant: no plugin, a hook that does nothing, ours, ours
before a service that never answers. Every run starts with an empty slurmctld that schedules nothing, so that
everything stays pending, and with 500 submissions that don't count. The variants take turns, two rounds in
opposite order; `rpc_us_*` is the lower of the two averages of REQUEST_SUBMIT_BATCH_JOB that sdiag tells, so
that what else the machine did in one round decides nothing. `hook_*` are of both rounds together, by the
hook's own clock (LuaSocket's, 1 µs). In the last run, `hook_p99_us_during_cycle`, cycles change all of 20,000
pending jobs in enforce meanwhile, after which `service_rss_mib` is taken.

In the variant of the hung service the breaker is open when the figures begin; every 10 s it asks again,
which is in them. Prints a table, and one JSON object as the last line.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.live.harness import Cluster
from tests.live.product import HOOK_PATH
from tests.live.storm.lab import EMPTY_HOOK, Lab

DEFAULT_RELEASE, DEFAULT_SUBMISSIONS, DEFAULT_PENDING = "24.11", 2_000, 20_000
SLURM_CONF = "/etc/slurm/slurm.conf"
PLUGIN = "JobSubmitPlugins=lua\n"
STATE = "/var/lib/slurm/slurmctld"
TIMES = "/tmp/hook-times"
WARM_UP = 500  # submissions before the figures begin: slurmctld has just started, and the breaker is to open
# A scheduler that goes through a growing queue makes submissions wait, more at the end than at the beginning.
NO_SCHEDULER = {"SchedulerParameters": "defer,sched_interval=-1,bf_interval=-1,batch_sched_delay=3600"}
FORMS = (["--gres=gpu:a100:1"], ["--gpus=2", "--comment=score: est=20m"], ["--ntasks=4"])
POLICY = """\
mode: enforce
slurm_factors: replace
max_snapshot_age: 1d
factors:
  wait: {{weight: 350}}
  remaining: {{weight: {weight}, half_at: 5h, predict: false}}
  size: {{weight: 200}}
  qos: {{weight: 500}}
  gres_fit: {{weight: 100}}
"""
# The product's module, its time in µs taken and written down at every 500th call.
TIMED_HOOK = f"""
package.path = "/etc/slurm/?.lua;" .. package.path
local score = require("slurm_score")
local gettime = require("socket").gettime
local times = {{}}
score.setup({{}})
function slurm_job_submit(job_desc, part_list, submit_uid)
  local began = gettime()
  local code = score.submit(job_desc, part_list, submit_uid)
  times[#times + 1] = string.format("%.0f", (gettime() - began) * 1e6)
  if #times % 500 == 0 then
    local file = assert(io.open("{TIMES}", "w"))
    file:write(table.concat(times, " "))
    file:close()
  end
  return code
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""


@dataclass
class Run:
    """The figures of one variant in one round: averages and times in µs."""

    rpc_us: float = 0.0
    hook_us: list[int] = field(default_factory=list)
    rejected: int = 0


class Bench:
    """The cluster, and what is done with it for each variant."""

    def __init__(self, cluster: Cluster, submissions: int, pending: int) -> None:
        self.lab = Lab(cluster)
        self.cluster = cluster
        self.submissions = submissions
        self.pending = pending
        self._conf = cluster.read_file(SLURM_CONF)

    def prepare(self) -> None:
        """Put the scripts in place and have the service know the cluster."""
        self.lab.write_scripts()
        self._set_policy(1000)
        self.lab.cycle()

    def no_plugin(self) -> Run:
        """Submit to a slurmctld without a plugin."""
        self._start(EMPTY_HOOK, self._conf.replace(PLUGIN, ""))
        return self._submit()

    def empty_hook(self) -> Run:
        """Submit through a hook that does nothing."""
        self._start(EMPTY_HOOK)
        return self._submit()

    def healthy(self) -> Run:
        """Submit through ours."""
        self._start(TIMED_HOOK)
        return self._submit()

    def hung(self) -> Run:
        """Submit through ours while the service takes requests and never answers."""
        self._start(TIMED_HOOK)
        with self.lab.service("silent"):
            return self._submit()

    def during_cycles(self) -> Run:
        """Submit through ours while cycles change all the jobs of a long queue."""
        self._start(EMPTY_HOOK)
        self.lab.storm(self._argvs(), self.pending, workers=8)
        self.lab.load_hook(TIMED_HOOK)
        weights = itertools.cycle((2000, 1000))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._submit)
            while not running.done():
                self._set_policy(next(weights))
                say(f"  {self.lab.cycle()}")
        return running.result()

    def service_rss_mib(self) -> float:
        """Return the memory that the service's process holds now, in MiB."""
        pid = self.cluster.read_file("/run/slurm-score-test/service.pid").strip()
        found = re.findall(r"VmRSS:\s*(\d+) kB", self.cluster.read_file(f"/proc/{pid}/status"))
        return int(found[0]) / 1024

    def _start(self, hook: str, conf: str | None = None) -> None:
        """Start slurmctld without a job of an earlier run."""
        self.cluster.stop_daemon("slurmctld")
        self.cluster.exec(["sh", "-c", f"rm -rf {STATE}/* {TIMES}"])
        self.cluster.write_file(SLURM_CONF, conf or self._conf)
        self.cluster.write_file(HOOK_PATH, hook)
        self.cluster.start_daemon("slurmctld")
        self.cluster.exec(["scontrol", "update", "PartitionName=main", "State=DOWN"])

    def _argvs(self) -> list[list[str]]:
        sbatch = ["sbatch", "--parsable", "--output=/dev/null"]
        return [[*sbatch, f"--time={1 + i}", *FORMS[i % len(FORMS)], "--wrap=true"] for i in range(999)]

    def _submit(self) -> Run:
        self.lab.storm(self._argvs(), WARM_UP)
        self.cluster.exec(["sdiag", "--reset"])
        storm = self.lab.storm(self._argvs(), self.submissions)
        count, total_us = re.findall(
            r"REQUEST_SUBMIT_BATCH_JOB\s.*count:(\d+)\s.*total_time:(\d+)",
            self.cluster.exec(["sdiag"]).stdout,
        )[0]
        times = self.cluster.exec(["cat", TIMES], check=False).stdout.split()
        return Run(int(total_us) / int(count), [int(us) for us in times[WARM_UP:]], len(storm.rejected))

    def _set_policy(self, weight: int) -> None:
        self.lab.product.set_policy(POLICY.format(weight=weight))


def quantile(values: list[int], share: float) -> int:
    """Return the value that this share of the values doesn't exceed."""
    return sorted(values)[round(share * (len(values) - 1))]


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def measure(bench: Bench) -> dict[str, list[Run]]:
    """Return the runs of each variant, told as they come."""
    variants: dict[str, Callable[[], Run]] = {
        "no_plugin": bench.no_plugin,
        "empty_hook": bench.empty_hook,
        "healthy": bench.healthy,
        "hung": bench.hung,
    }
    runs: dict[str, list[Run]] = {name: [] for name in variants}
    say("variant            RPC us   hook us: p50      p99      max  rejected")
    for name in (*variants, *reversed(variants)):
        runs[name].append(tell(name, variants[name]()))
    runs["during_cycles"] = [tell("during_cycles", bench.during_cycles())]
    return runs


def tell(name: str, run: Run) -> Run:
    """Return the run, printed as a row of the table."""
    hook = (
        "".join(f"{quantile(run.hook_us, share):9}" for share in (0.5, 0.99, 1.0))
        if run.hook_us
        else 27 * " "
    )
    say(f"{name:<16} {run.rpc_us:8.0f}     {hook} {run.rejected:9}")
    return run


def figures(runs: Mapping[str, list[Run]]) -> dict[str, float]:
    """Return what the last line holds, but for the release and the memory."""
    hook = {name: [us for run in found for us in run.hook_us] for name, found in runs.items()}
    rpc = {f"rpc_us_{name}": round(min(run.rpc_us for run in found), 1) for name, found in runs.items()}
    return rpc | {
        "hook_p50_us": quantile(hook["healthy"], 0.5),
        "hook_p99_us": quantile(hook["healthy"], 0.99),
        "hook_max_us": quantile(hook["healthy"], 1.0),
        "hook_p50_us_hung": quantile(hook["hung"], 0.5),
        "hook_p99_us_hung": quantile(hook["hung"], 0.99),
        "hook_p99_us_during_cycle": quantile(hook["during_cycles"], 0.99),
        "rejected": sum(run.rejected for found in runs.values() for run in found),
    }


def main() -> None:
    """Print the table, and the figures as JSON."""
    given = [*sys.argv[1:], *("" for _ in range(3))]
    release = given[0] or DEFAULT_RELEASE
    submissions, pending = int(given[1] or DEFAULT_SUBMISSIONS), int(given[2] or DEFAULT_PENDING)
    with Cluster(release, daemons=("service",), slurm_conf=NO_SCHEDULER) as cluster:
        bench = Bench(cluster, submissions, pending)
        bench.prepare()
        told = figures(measure(bench))
        told["service_rss_mib"] = round(bench.service_rss_mib(), 1)
        cluster.exec(["sscore"], user="alice")
        told["service_rss_mib_after_sscore"] = round(bench.service_rss_mib(), 1)
    for name in ("no_plugin", "healthy", "hung", "during_cycles"):
        ratio = told[f"rpc_us_{name}"] / told["rpc_us_empty_hook"]
        say(f"{name} / empty_hook {ratio:.2f}")
    say(json.dumps({"release": release} | told))


if __name__ == "__main__":
    main()
