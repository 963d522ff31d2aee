"""Thirty jobs that all want another SiteFactor, and what a fault must not do to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .harness import STATE_FOLDER, Cluster, wait_for
from .product import Product

BY_LIMIT = """\
mode: {mode}
slurm_factors: replace
updates: {{min_age: 1s}}
factors:
  wait: {{weight: 0}}
  remaining: {{weight: 1000, half_at: 30m, predict: false}}
  size: {{weight: 0}}
  qos: {{weight: 0}}
  gres_fit: {{weight: 0}}
"""
"""Shorter jobs first, by points that nothing but the time limit changes."""

JOBS = 30
LOG = "/var/log/slurm-score/reprioritizer.log"
STOP = "/var/lib/slurm-score/STOP"
WRAPPERS = "/tmp/wrappers"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SUBMIT = f"""
sbatch --parsable --output=/dev/null --job-name=held --hold --time=1 --wrap='sleep 1000' >&2
for i in $(seq {JOBS}); do
  sbatch --parsable --output=/dev/null --job-name=t$i --exclusive --nodes=3 --time=$i --wrap='sleep 1000'
done
"""

WRAPPER = """#!/bin/bash
# scontrol as it is, but for updates from standard input.
[ $# -gt 0 ] && exec /usr/bin/scontrol "$@"
{instead}
"""
SLOW = 'while read -r line; do echo "$line"; sleep 0.2; done | /usr/bin/scontrol'


@dataclass(frozen=True)
class Faulty:
    """A product with thirty jobs that all want another SiteFactor, one held and one pinned."""

    product: Product
    jobs: tuple[int, ...]
    held: int
    pinned: int
    submitted_s: int

    @property
    def cluster(self) -> Cluster:
        """The cluster that it runs on."""
        return self.product.cluster

    def on(self, host: str) -> Faulty:
        """Returns the same, seen and handled from another controller's host."""
        return replace(self, product=Product(self.cluster, host))

    def wrap(self, instead: str) -> dict[str, str]:
        """Puts a wrapper in scontrol's place and returns the environment in which it is found."""
        self.product.exec(["mkdir", "--parents", WRAPPERS])
        text = WRAPPER.format(instead=instead)
        self.cluster.write_file(f"{WRAPPERS}/scontrol", text, mode=0o755, node=self.product.host)
        return {"PATH": f"{WRAPPERS}:{PATH}"}

    def start(self, env: dict[str, str] | None = None) -> None:
        """Starts the reprioritizer with a cycle each second, as a daemon with an empty log."""
        self.clear_log()
        settings = {"SLURM_SCORE_EVERY": "1s", "SLURM_SCORE_DEADLINE": "10s"} | (env or {})
        self.product.exec(["daemon.sh", "start", "reprioritizer"], env=settings)

    def start_slowly(self) -> int:
        """Starts it and returns how many updates were carried out, once it is in the middle of its burst."""
        self.start(self.wrap(SLOW))
        wait_for(lambda: self.updated() >= 3, 30, lambda: f"some of the updates, {self.log()}")
        return self.updated()

    def updated(self) -> int:
        """Returns how many of the jobs have a SiteFactor."""
        sites = self.product.sites()
        return sum(sites.get(job_id, 0) > 0 for job_id in self.jobs)

    def log(self) -> str:
        """Returns the reprioritizer's log."""
        return self.cluster.read_file(LOG, node=self.product.host)

    def clear_log(self) -> None:
        """Empties the reprioritizer's log."""
        self.product.exec(["truncate", "--size=0", LOG])

    def wait_for_log(self, text: str) -> None:
        """Returns when the log has the text."""
        wait_for(lambda: text in self.log(), 60, lambda: f"{text!r} in the log, {self.log()}")

    def save_state(self) -> None:
        """Returns when slurmctld has written down the jobs; one without all its files would not start."""
        if self.product.exec(["test", "-e", f"{STATE_FOLDER}/assoc_usage"], check=False).returncode:
            self.product.stop_slurmctld()
            self.cluster.start_daemon("slurmctld", node=self.product.host)
        stat = ["stat", "--format=%Y", f"{STATE_FOLDER}/job_state"]
        wait_for(
            lambda: int(self.product.exec(stat).stdout) > self.submitted_s, 30, "slurmctld saves the jobs"
        )

    def assert_converged(self, *, also: tuple[str, ...] = ()) -> None:
        """Two cycles leave nothing to do; the order is right, no job lost, and held and pinned as before."""
        reports = [self.product.cycle().stdout for _ in range(3)]
        assert " 0 to change, 0 sent, 0 failed" in reports[-1], reports
        order = [name for name in self.product.order() if name not in also]
        assert order == ["pinned", *(f"t{i}" for i in range(1, JOBS + 1))]
        jobs = self.product.show_jobs()
        held, pinned = jobs[self.held], jobs[self.pinned]
        assert (held["Priority"], held["Reason"], pinned["Priority"]) == ("0", "JobHeldUser", "5000")
        assert not any("Held" in jobs[job_id]["Reason"] for job_id in self.jobs)


def prepared(product: Product, policy: str = BY_LIMIT) -> Faulty:
    """Returns the jobs of the faults on full nodes, in enforce, before any cycle."""
    product.set_policy(policy.format(mode="observe"))
    product.cycle()
    product.fill("1-0")
    made = product.exec(["bash", "-c", SUBMIT], user="alice")
    jobs = tuple(map(int, made.stdout.split()))
    pinned = product.submit("--job-name=pinned", "--exclusive", "--nodes=3", "--time=60")
    submitted_s = product.now_s()
    product.set_policy(policy.format(mode="enforce"))
    wait_for(lambda: set(jobs) <= product.sites().keys(), 30, "Slurm ranks the jobs")
    wait_for(lambda: product.now_s() > submitted_s + 2, 30, "the jobs are older than min_age")
    product.exec(["scontrol", "update", f"JobId={pinned}", "Priority=5000"])
    return Faulty(product, jobs, int(made.stderr.split()[-1]), pinned, submitted_s)
