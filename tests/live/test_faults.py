"""What goes wrong on real Slurm while the reprioritizer works, and that the queue is right two cycles later.

Two controllers, rate limits and clocks are in test_controllers.py and test_limits.py.
"""

from __future__ import annotations

import re

from .faulty import BY_LIMIT, JOBS, STOP, Faulty
from .harness import wait_for
from .product import OPERATOR, POLICY_PATH

HANGS = "exec sleep 600"
FIRST = "[ -e {done} ] || {{ touch {done}; {commands}; }} >/dev/null 2>&1\nexec /usr/bin/scontrol"


def test_slurmctld_killed_in_mid_burst(faulty: Faulty) -> None:
    """Trap 26: the loop says so, waits for it, and goes on by itself; nothing of ours is restarted."""
    faulty.save_state()
    assert faulty.start_slowly() < JOBS
    faulty.cluster.stop_daemon("slurmctld", "KILL")
    faulty.wrap("exec /usr/bin/scontrol")
    faulty.wait_for_log("cycle given up: ")
    faulty.cluster.start_daemon("slurmctld")
    faulty.wait_for_log(" 0 to change")
    assert "Slurm is in trouble: 1/2 of the updates" in faulty.log()
    faulty.assert_converged()


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
    """It is killed at the cycle's deadline, not later; the next cycle does its work."""
    argv = ["slurm-score", "reprioritize", "--once", "--deadline", "3s"]
    hung = faulty.cluster.exec(argv, user=OPERATOR, env=faulty.wrap(HANGS), check=False)
    assert (hung.returncode, faulty.updated()) == (1, 0)
    assert re.search(r"slurm-score: scontrol: no answer within [0-2]\.\d+ s", hung.stderr), hung.stderr
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
    submitted_s = product.now_s()
    wait_for(lambda: array in product.sites(), 30, "Slurm ranks the array")
    wait_for(lambda: product.now_s() > submitted_s + 2, 30, "the array is older than min_age")
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
