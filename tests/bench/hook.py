"""python -m tests.bench.hook [RELEASE] [ROUNDS] [PENDING]: what the submit hook costs slurmctld.

One `sbatch` after the other, to a slurmctld that schedules nothing, so that everything stays pending. One
script holds all variants of the hook, and the job's name says which is meant: one that does nothing, ours,
ours before a service that never answers. They take turns, 100 submissions each, in another order each round,
so that all meet the same slurmctld, the same queue and the same machine. One in eight asks what nobody asked
before: in four logs of the Parallel Workloads Archive 6 to 19 % of the jobs differ in user, size or limit
from each of the last 4,096 kinds. In the variant `unheard` every one does. `rpc_us_*` is the average of
REQUEST_SUBMIT_BATCH_JOB that sdiag tells, over all rounds; `*_over_empty` is the median of the rounds'
ratios, told with their quartiles. `hook_*` are by the hook's own clock (LuaSocket's, 1 µs). Without a plugin
is a run of its own. In the last run, `hook_p99_us_during_cycle`, cycles change all of 20,000 pending jobs
in enforce meanwhile, after which `service_rss_mib` is taken.

In the variant of the hung service the breaker is open when the figures begin; every 10 s it asks again,
which is in them. Prints a table, and one JSON object as the last line.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean, quantiles
from typing import NamedTuple

from tests.live.harness import Cluster
from tests.live.product import HOOK_PATH
from tests.live.storm.lab import HOOK_SOCKET, Lab

DEFAULT_RELEASE, DEFAULT_ROUNDS, DEFAULT_PENDING = "24.11", 20, 20_000
BLOCK = 100  # submissions of one variant in one round
SLURM_CONF = "/etc/slurm/slurm.conf"
PLUGIN = "JobSubmitPlugins=lua\n"
STATE = "/var/lib/slurm/slurmctld"
TIMES = "/tmp/hook-times"
SILENT_SOCKET = "/run/slurm-score/silent.sock"
VARIANTS = ("empty_hook", "healthy", "unheard", "hung")
ORDERS = tuple(itertools.permutations(VARIANTS))
WARM_UP = 300  # submissions before the figures begin: slurmctld has just started, and the breaker is to open
# A scheduler that goes through a growing queue makes submissions wait, more at the end than at the beginning.
NO_SCHEDULER = {"SchedulerParameters": "defer,sched_interval=-1,bf_interval=-1,batch_sched_delay=3600"}
LIMITS_MIN = (10, 30, 60, 120, 240, 480, 720, 1440)
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
# The variants by the job's name; the time of ours in s, of which `TIMES.NAME` holds all at every 100th call.
HOOK = f"""
package.path = "/etc/slurm/?.lua;" .. package.path
local gettime = require("socket").gettime
local function load_module(socket)
  for name in pairs(package.loaded) do
    if name:find("^slurm_score") then package.loaded[name] = nil end
  end
  local module = require("slurm_score")
  module.setup({{ socket = socket }})
  return module
end
local ours = load_module("{HOOK_SOCKET}")
local variants = {{ healthy = ours, unheard = ours, hung = load_module("{SILENT_SOCKET}") }}
local times = {{ healthy = {{}}, unheard = {{}}, hung = {{}} }}
function slurm_job_submit(job_desc, part_list, submit_uid)
  local name = job_desc.name
  local score = variants[name]
  if not score then return slurm.SUCCESS end
  local began = gettime()
  local code = score.submit(job_desc, part_list, submit_uid)
  local known = times[name]
  known[#known + 1] = gettime() - began
  if #known % 100 == 0 then
    local file = assert(io.open("{TIMES}." .. name, "w"))
    file:write(table.concat(known, " "))
    file:close()
  end
  return code
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""


class Turn(NamedTuple):
    """What sdiag told of some submissions: the average in µs; and how many were rejected."""

    rpc_us: float
    rejected: int


class Bench:
    """The cluster, and what is done with it for each variant."""

    def __init__(self, cluster: Cluster, pending: int) -> None:
        self.lab = Lab(cluster)
        self.cluster = cluster
        self.pending = pending
        self._conf = cluster.read_file(SLURM_CONF)
        self._submitted: Counter[str] = Counter()

    def prepare(self) -> None:
        """Put the scripts in place and have the service know the cluster."""
        self.lab.write_scripts()
        self._set_policy(1000)
        self.lab.cycle()

    def no_plugin(self, rounds: int) -> list[Turn]:
        """Submit to a slurmctld without a plugin."""
        self._start(self._conf.replace(PLUGIN, ""))
        self._submit("empty_hook", WARM_UP)
        return [self._submit("empty_hook") for _ in range(rounds)]

    def in_turns(self, rounds: int) -> dict[str, list[Turn]]:
        """Submit through each variant, round after round."""
        self._start(self._conf)
        turns: dict[str, list[Turn]] = {name: [] for name in VARIANTS}
        with self.lab.faulty_service("silent", SILENT_SOCKET):
            for name in VARIANTS:
                self._submit(name, WARM_UP)
            for number in range(rounds):
                for name in ORDERS[number % len(ORDERS)]:
                    turns[name].append(self._submit(name))
        return turns

    def during_cycles(self, submissions: int) -> Turn:
        """Submit through ours while cycles change all the jobs of a long queue."""
        self._start(self._conf)
        self.lab.storm(self._argvs("empty_hook", 0, 999), self.pending, workers=8)
        weights = itertools.cycle((2000, 1000))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._submit, "healthy", submissions)
            while not running.done():
                self._set_policy(next(weights))
                say(f"  {self.lab.cycle()}")
        return running.result()

    def hook_us(self, variant: str) -> list[int]:
        """Return what ours took, by its own clock, since slurmctld started, without the first submissions."""
        return [round(1e6 * float(s)) for s in self.cluster.read_file(f"{TIMES}.{variant}").split()][WARM_UP:]

    def service_rss_mib(self) -> float:
        """Return the memory that the service's process holds now, in MiB."""
        pid = self.cluster.read_file("/run/slurm-score-test/service.pid").strip()
        found = re.findall(r"VmRSS:\s*(\d+) kB", self.cluster.read_file(f"/proc/{pid}/status"))
        return int(found[0]) / 1024

    def _start(self, conf: str) -> None:
        """Start slurmctld without a job of an earlier run."""
        self.cluster.stop_daemon("slurmctld")
        self.cluster.exec(["sh", "-c", f"rm -rf {STATE}/* {TIMES}.*"])
        self.cluster.write_file(SLURM_CONF, conf)
        self.cluster.write_file(HOOK_PATH, HOOK)
        self.cluster.start_daemon("slurmctld")
        self.cluster.exec(["scontrol", "update", "PartitionName=main", "State=DOWN"])

    def _argvs(self, variant: str, first: int, count: int) -> list[list[str]]:
        """Return submissions from the first-th of a variant on."""
        sbatch = ["sbatch", "--parsable", "--output=/dev/null", f"--job-name={variant}"]
        limits = (
            2000 + i if variant == "unheard" or i % 8 == 0 else LIMITS_MIN[i // 8 % len(LIMITS_MIN)]
            for i in range(first, first + count)
        )
        return [
            [*sbatch, f"--time={limit}", *FORMS[i % len(FORMS)], "--wrap=true"]
            for i, limit in enumerate(limits, first)
        ]

    def _submit(self, variant: str, count: int = BLOCK) -> Turn:
        """Submit so many jobs and return what they cost."""
        argvs = self._argvs(variant, self._submitted[variant], count)
        self._submitted[variant] += count
        self.cluster.exec(["sdiag", "--reset"])
        storm = self.lab.storm(argvs, count)
        number, total_us = re.findall(
            r"REQUEST_SUBMIT_BATCH_JOB\s.*count:(\d+)\s.*total_time:(\d+)",
            self.cluster.exec(["sdiag"]).stdout,
        )[0]
        return Turn(int(total_us) / int(number), len(storm.rejected))

    def _set_policy(self, weight: int) -> None:
        self.lab.product.set_policy(POLICY.format(weight=weight))


def quantile(values: list[int], share: float) -> int:
    """Return the value that this share of the values doesn't exceed."""
    return sorted(values)[round(share * (len(values) - 1))]


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def told_of(turns: Mapping[str, list[Turn]], hook_us: Mapping[str, list[int]]) -> dict[str, float]:
    """Return the figures of the variants, printed as a table as well."""
    say("variant            RPC us   over the empty hook: quartiles     hook us: p50     p99     max")
    told: dict[str, float] = {}
    for name, found in turns.items():
        told[f"rpc_us_{name}"] = round(fmean(turn.rpc_us for turn in found), 1)
        ratios = [a.rpc_us / b.rpc_us for a, b in zip(found, turns["empty_hook"], strict=True)]
        low, middle, high = quantiles(ratios, n=4)
        told[f"{name}_over_empty"] = round(middle, 3)
        times = [quantile(hook_us[name], share) for share in (0.5, 0.99, 1.0)] if name in hook_us else []
        row = f"{name:<16} {told[f'rpc_us_{name}']:8.0f}   {low:17.2f} {middle:6.2f} {high:6.2f}         "
        say(row + "".join(f"{us:8}" for us in times))
    return told


def measure(bench: Bench, rounds: int) -> dict[str, float]:
    """Return what the last line holds, but for the release and the memory."""
    turns = {"no_plugin": bench.no_plugin(rounds), **bench.in_turns(rounds)}
    hook_us = {name: bench.hook_us(name) for name in VARIANTS[1:]}
    told = told_of(turns, hook_us)
    cycles = bench.during_cycles(rounds * BLOCK)
    times = bench.hook_us("healthy")
    rejected = sum(turn.rejected for found in turns.values() for turn in found) + cycles.rejected
    return told | {
        "rpc_us_during_cycles": round(cycles.rpc_us, 1),
        "hook_p50_us": quantile(hook_us["healthy"], 0.5),
        "hook_p99_us": quantile(hook_us["healthy"], 0.99),
        "hook_max_us": quantile(hook_us["healthy"], 1.0),
        "hook_p50_us_unheard": quantile(hook_us["unheard"], 0.5),
        "hook_p99_us_unheard": quantile(hook_us["unheard"], 0.99),
        "hook_p50_us_hung": quantile(hook_us["hung"], 0.5),
        "hook_p99_us_hung": quantile(hook_us["hung"], 0.99),
        "hook_p99_us_during_cycle": quantile(times, 0.99),
        "rejected": rejected,
    }


def main() -> None:
    """Print the table, and the figures as JSON."""
    given = [*sys.argv[1:], *("" for _ in range(3))]
    release = given[0] or DEFAULT_RELEASE
    rounds, pending = int(given[1] or DEFAULT_ROUNDS), int(given[2] or DEFAULT_PENDING)
    with Cluster(release, daemons=("service",), slurm_conf=NO_SCHEDULER) as cluster:
        bench = Bench(cluster, pending)
        bench.prepare()
        told = measure(bench, rounds)
        told["service_rss_mib"] = round(bench.service_rss_mib(), 1)
        cluster.exec(["sscore"], user="alice")
        told["service_rss_mib_after_sscore"] = round(bench.service_rss_mib(), 1)
    say(json.dumps({"release": release} | told))


if __name__ == "__main__":
    main()
