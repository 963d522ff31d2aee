"""What goes wrong on real Slurm while the reprioritizer works, and that the queue is right two cycles later.

No clock is set here: containers share the host's. Clocks that jump are in tests/unit/test_reprioritizer.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from .harness import Cluster, wait_for
from .product import OPERATOR, POLICY_PATH, Product

BY_LIMIT = """\
mode: {mode}
slurm_factors: replace
updates: {{min_age: 1s}}
factors:
  wait: {{weight: 0}}
  remaining: {{weight: 1000, half_at: 30m}}
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
SLOW = 'while read -r line; do echo "$line"; sleep 0.1; done | /usr/bin/scontrol'
HANGS = "exec sleep 600"
FIRST = "[ -e {done} ] || {{ touch {done}; {commands}; }} >/dev/null 2>&1\nexec /usr/bin/scontrol"


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

    def wrap(self, instead: str) -> dict[str, str]:
        """Puts a wrapper in scontrol's place and returns the environment in which it is found."""
        self.cluster.exec(["mkdir", "--parents", WRAPPERS])
        self.cluster.write_file(f"{WRAPPERS}/scontrol", WRAPPER.format(instead=instead), mode=0o755)
        return {"PATH": f"{WRAPPERS}:{PATH}"}

    def start(self, env: dict[str, str] | None = None) -> None:
        """Starts the reprioritizer with a cycle each second, as a daemon with an empty log."""
        self.cluster.exec(["truncate", "--size=0", LOG])
        settings = {"SLURM_SCORE_EVERY": "1s", "SLURM_SCORE_DEADLINE": "10s"} | (env or {})
        self.cluster.exec(["daemon.sh", "start", "reprioritizer"], env=settings)

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
        return self.cluster.read_file(LOG)

    def wait_for_log(self, text: str) -> None:
        """Returns when the log has the text."""
        wait_for(lambda: text in self.log(), 60, lambda: f"{text!r} in the log, {self.log()}")

    def assert_converged(self, *, also: tuple[str, ...] = ()) -> None:
        """Two cycles leave nothing to do; the order is right, no job lost, and held and pinned as before."""
        reports = [self.product.cycle().stdout for _ in range(3)]
        assert " 0 to change, 0 sent, 0 failed" in reports[-1], reports
        order = [name for name in self.product.order() if name not in also]
        assert order == ["pinned", *(f"t{i}" for i in range(1, JOBS + 1))]
        held, pinned = self.product.show_job(self.held), self.product.show_job(self.pinned)
        assert (held["Priority"], held["Reason"], pinned["Priority"]) == ("0", "JobHeldUser", "5000")
        assert not any("Held" in self.product.show_job(job_id)["Reason"] for job_id in self.jobs)


@pytest.fixture
def faulty(cluster: Cluster) -> Iterator[Faulty]:
    """The product on full nodes, in enforce, and no reprioritizer running."""
    cluster.exec(["daemon.sh", "stop", "reprioritizer"], check=False)
    try:
        yield _prepared(Product(cluster))
    finally:
        cluster.exec(["rm", "--recursive", "--force", WRAPPERS, STOP])
        cluster.exec(["daemon.sh", "stop", "reprioritizer", "KILL"], check=False)
        cluster.clear_jobs()
        cluster.start_daemon("reprioritizer")


def _prepared(product: Product) -> Faulty:
    product.set_policy(BY_LIMIT.format(mode="observe"))
    product.cycle()
    product.fill()
    made = product.cluster.exec(["bash", "-c", SUBMIT], user="alice")
    jobs = tuple(map(int, made.stdout.split()))
    pinned = product.submit("--job-name=pinned", "--exclusive", "--nodes=3", "--time=60")
    submitted_s = product.now_s()
    product.set_policy(BY_LIMIT.format(mode="enforce"))
    wait_for(lambda: set(jobs) <= product.sites().keys(), 30, "Slurm ranks the jobs")
    wait_for(lambda: product.now_s() > submitted_s + 2, 30, "the jobs are older than min_age")
    product.cluster.exec(["scontrol", "update", f"JobId={pinned}", "Priority=5000"])
    return Faulty(product, jobs, int(made.stderr.split()[-1]), pinned, submitted_s)


def test_slurmctld_killed_in_mid_burst(faulty: Faulty) -> None:
    """Trap 26: the loop says so, waits for it, and goes on by itself; nothing of ours is restarted."""
    _save_state(faulty)
    assert faulty.start_slowly() < JOBS
    faulty.cluster.stop_daemon("slurmctld", "KILL")
    faulty.wrap("exec /usr/bin/scontrol")
    faulty.wait_for_log("cycle given up: ")
    faulty.cluster.start_daemon("slurmctld")
    faulty.wait_for_log(" 0 to change")
    assert "Slurm is in trouble: 1/2 of the updates" in faulty.log()
    faulty.assert_converged()


def _save_state(faulty: Faulty) -> None:
    """Returns when slurmctld has written down the jobs; one that never wrote all files would not start."""
    folder = "/var/lib/slurm/slurmctld"
    if faulty.cluster.exec(["test", "-e", f"{folder}/assoc_usage"], check=False).returncode:
        faulty.product.stop_slurmctld()
        faulty.cluster.start_daemon("slurmctld")
    wait_for(
        lambda: (
            int(faulty.cluster.exec(["stat", "--format=%Y", f"{folder}/job_state"]).stdout)
            > faulty.submitted_s
        ),
        30,
        "slurmctld saves the jobs",
    )


def test_reprioritizer_killed_in_mid_burst(faulty: Faulty) -> None:
    """kill -9: the next start takes up what is left, and the lock of the dead one is free."""
    assert faulty.start_slowly() < JOBS
    faulty.cluster.stop_daemon("reprioritizer", "KILL")
    faulty.start(faulty.wrap("exec /usr/bin/scontrol"))
    faulty.wait_for_log(" 0 to change")
    assert faulty.log().count(" sent, ") <= 3
    faulty.assert_converged()


def test_signal_in_mid_burst_ends_it_between_two_chunks(faulty: Faulty) -> None:
    """The chunk that is on its way comes to its end, and the report tells what was sent."""
    assert faulty.start_slowly() < JOBS
    faulty.cluster.stop_daemon("reprioritizer", "TERM")
    assert faulty.updated() == JOBS
    assert f"{JOBS} to change, {JOBS} sent, 0 failed" in faulty.log()
    assert faulty.log().endswith("slurm_score.loop: stopped\n")
    faulty.assert_converged()


def test_second_reprioritizer_stands_by(faulty: Faulty) -> None:
    """It names the lock and who holds it, and takes over when the first is gone."""
    faulty.start()
    faulty.wait_for_log(" 0 to change")
    argv = ["timeout", "--signal=TERM", "2", "slurm-score", "reprioritize", "--every", "1s"]
    second = faulty.cluster.exec(argv, user=OPERATOR, check=False)
    assert re.search(r"stands by: .*instance\.lock is held by 'pid \d+ on ctl'", second.stderr)
    assert " to change" not in second.stderr
    faulty.cluster.stop_daemon("reprioritizer")
    alone = faulty.cluster.exec(argv, user=OPERATOR, check=False)
    assert " 0 to change" in alone.stderr
    faulty.assert_converged()


def test_scontrol_that_hangs(faulty: Faulty) -> None:
    """It is killed at the cycle's deadline; the next cycle does its work."""
    argv = ["slurm-score", "reprioritize", "--once", "--deadline", "1s"]
    hung = faulty.cluster.exec(argv, user=OPERATOR, env=faulty.wrap(HANGS), check=False)
    assert (hung.returncode, faulty.updated()) == (1, 0)
    assert "slurm-score: scontrol: no answer within 10 s" in hung.stderr
    faulty.assert_converged()


def test_kill_switch(faulty: Faulty) -> None:
    """While the file is there slurmctld gets no update, and the report says why."""
    before = faulty.product.update_rpcs()
    faulty.cluster.write_file(STOP, "")
    report = faulty.product.cycle().stdout
    assert f"{JOBS} to change, 0 sent, 0 failed" in report
    assert f"kill switch {STOP}" in report
    assert (faulty.product.update_rpcs(), faulty.updated()) == (before, 0)
    faulty.cluster.exec(["rm", STOP])
    faulty.assert_converged()


def test_slurmdbd_down(faulty: Faulty) -> None:
    """Nothing that the order needs comes from there."""
    faulty.cluster.stop_daemon("slurmdbd")
    try:
        assert f"{JOBS} to change, {JOBS} sent, 0 failed" in faulty.product.cycle().stdout
    finally:
        faulty.cluster.start_daemon("slurmdbd")
    faulty.assert_converged()


def test_node_down(faulty: Faulty) -> None:
    """Its job goes back into the queue, and the cycles go on; nothing starts meanwhile."""
    scontrol = ["scontrol", "update"]
    faulty.cluster.exec([*scontrol, "PartitionName=main", "State=DOWN"])
    try:
        faulty.cluster.exec([*scontrol, "NodeName=g3", "State=DOWN", "Reason=test"])
        faulty.assert_converged(also=("filler",))
    finally:
        # it may have come back by itself
        faulty.cluster.exec([*scontrol, "NodeName=g3", "State=RESUME"], check=False)
        faulty.cluster.exec([*scontrol, "PartitionName=main", "State=UP"])


def test_policy_broken_while_it_runs(faulty: Faulty) -> None:
    """The one before stays in force, also for what comes later; the repaired one counts at once."""
    faulty.start()
    faulty.wait_for_log(" 0 to change")
    faulty.cluster.write_file(POLICY_PATH, "mode: enfroce\n")
    faulty.wait_for_log("is not used, the one before stays in force")
    later = faulty.product.submit("--job-name=later", "--exclusive", "--nodes=3", "--time=1")
    wait_for(lambda: faulty.product.sites().get(later, 0) > 0, 60, "the later job has its score")
    faulty.cluster.exec(["scancel", str(later)])
    faulty.product.set_policy(BY_LIMIT.format(mode="enforce"))
    faulty.assert_converged()


def test_jobs_change_between_reading_and_writing(faulty: Faulty) -> None:
    """Traps 12 and 16: one is held, one cancelled, one requeued, one starts, and a task leaves its array."""
    product = faulty.product
    product.set_policy(BY_LIMIT.format(mode="observe"))
    array = product.submit("--job-name=array", "--array=0-5", "--exclusive", "--nodes=3", "--time=100")
    wait_for(lambda: array in product.sites(), 30, "Slurm ranks the array")
    product.set_policy(BY_LIMIT.format(mode="enforce"))
    held, cancelled = faulty.jobs[4], faulty.jobs[5]
    commands = "; ".join(
        [
            f"/usr/bin/scontrol hold {held}",
            f"scancel {cancelled}",
            f"/usr/bin/scontrol update JobId={array}_3 Nice=1",
            "/usr/bin/scontrol requeue $(squeue -h -n filler -o %A)",
            "sleep 1",
        ]
    )
    sent = FIRST.format(done="/tmp/wrappers/done", commands=commands)
    argv = ["slurm-score", "reprioritize", "--once"]
    report = faulty.cluster.exec(argv, env=faulty.wrap(sent)).stdout  # as root, who may hold and requeue
    assert f"{JOBS + 1} to change, {JOBS + 1} sent, 1 failed" in report
    reports = [product.cycle().stdout for _ in range(3)]
    assert " 0 to change, 0 sent, 0 failed" in reports[-1], reports
    assert product.show_job(held)["Priority"] == "0"
    assert product.show_job(faulty.pinned)["Priority"] == "5000"
    others = [job_id for job_id in faulty.jobs if job_id not in {held, cancelled}]
    assert not any("Held" in product.show_job(job_id)["Reason"] for job_id in others)
    records = product.sites()
    assert sum(records.get(job_id, 0) > 0 for job_id in others) >= len(others) - 1  # one may run
    tasks = faulty.cluster.exec(["squeue", "-h", "-r", "-n", "array", "-o", "%i"]).stdout.split()
    assert sorted(tasks) == [f"{array}_{i}" for i in range(6)]
