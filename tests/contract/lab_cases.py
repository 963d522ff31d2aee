"""The cases that are recorded on the lab: each function prepares one and asks what is to be recorded.

Its docstring says in case.yaml what is in the case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.contract.recording import Recording
from tests.contract.situations import PREEMPTOR, SITUATIONS
from tests.live.harness import wait_for

CaseFunction = Callable[[Recording], None]
UNKNOWN_ID = 999_999


def json(case: Recording) -> None:
    """Few jobs and the nodes as text, and as JSON, which the product reads where the text can't be.

    All of them are in a state that lasts, since text and JSON are asked for one after the other.
    """
    _reserve(case)
    _prepare(case)
    case.stage.wait_until("array", "BeginTime", "%r")
    case.stage.wait_until("pending", "BeginTime", "%r")
    case.ask(["jobs"], ["jobs_with_field", "NoSuchField"], ["cluster"])
    case.ask(["run", ["scontrol", "show", "job", "-o"]], ["run", ["scontrol", "show", "node", "--json"]])


def cluster(case: Recording) -> None:
    """Configuration, partitions, nodes, QOS, and who each user is to slurmctld, on an idle cluster."""
    case.ask(["cluster"])
    for user in ("root", "slurm", "scoreop", "alice"):
        case.ask(["identity"], user=user)


def queue(case: Recording) -> None:
    """Jobs that wait behind one that holds every node: held, pinned, scored, with all kinds of limit."""
    stage = case.stage
    _reserve(case)
    stage.afterwards_run(
        "scontrol update NodeName=g1 AvailableFeatures=a100,nvlink",
        "scontrol update NodeName=g1 ActiveFeatures=a100,nvlink",
    )
    bad_constraints, *others = SITUATIONS["queue"]
    stage.submit((bad_constraints,))
    stage.wait_until(bad_constraints.name, "BadConstraints", "%r")
    stage.submit(others)
    stage.settle(SITUATIONS["queue"])
    case.ask(["jobs"])


def places(case: Recording) -> None:
    """Jobs that say where to run, on how many nodes and with how much memory, and the reservations."""
    _reserve(case)
    _prepare(case)
    case.ask(["jobs"], ["cluster"])


def _reserve(case: Recording) -> None:
    """Reserve g1 or g2 for later, as long as the case lasts."""
    later = "create reservation=later start=now+2days duration=60 users=alice nodes=g1,g2"
    case.stage.root("scontrol", *later.split(" "))
    case.stage.afterwards_run("scontrol delete ReservationName=later")


def gpus(case: Recording) -> None:
    """Every way to ask for GPUs, all of it pending, and the nodes, all of them in use."""
    _prepare(case)
    case.ask(["jobs"], ["cluster"])


def gpus_running(case: Recording) -> None:
    """Running jobs with GPUs, and the nodes that they run on."""
    _prepare(case)
    case.ask(["jobs"], ["cluster"])


def arrays(case: Recording) -> None:
    """Arrays: whole, throttled, running in part, with lists and steps."""
    _prepare(case)
    case.ask(["jobs"])


def arrays_split(case: Recording) -> None:
    """Pending arrays of which a task was given a limit, a priority or a hold of its own."""
    _prepare(case)
    names = [situation.name for situation in SITUATIONS["arrays-split"][1:]]
    case.stage.wait_until_ranked(*names)
    case.ask(["jobs"], ["run", ["squeue", "-h", "-r", "-t", "PENDING", "-o", "%A|%i|%T|%r|%Q|%l"]])
    for name in names:
        case.ask(["run", ["scontrol", "show", "job", "-o", str(case.stage.ids[name])]])


def het(case: Recording) -> None:
    """Heterogeneous jobs, running, pending and held."""
    _prepare(case)
    case.ask(["jobs"])


def comments(case: Recording) -> None:
    """Jobs whose comments and names hold what breaks a reader: separators, control characters, bad UTF-8."""
    _prepare(case)
    case.ask(["jobs"])
    case.stage.root("sh", "-c", "! ls /tmp/pwned")


def flagged(case: Recording) -> None:
    """Jobs in states with a flag: completing for good or to run again, suspended, stopped, special exit."""
    stage = case.stage
    stage.submit(SITUATIONS["flagged"])
    ids = stage.ids
    stage.wait_until("finished", "COMPLETED")
    for name in ("completing", "requeued-and-completing"):
        stage.cluster.exec(["touch", f"/tmp/hold-{ids[name]}"], node="g1")
    try:
        stage.root("scancel", str(ids["completing"]))
        stage.root("scontrol", "requeue", str(ids["requeued-and-completing"]))
        stage.root("scontrol", "requeuehold", "State=SpecialExit", str(ids["special-exit"]))
        stage.root("scancel", "--signal=STOP", str(ids["stopped"]))
        stage.root("scontrol", "suspend", str(ids["suspended"]))
        states = {
            "completing": "COMPLETING",
            "requeued-and-completing": "COMPLETING",
            "special-exit": "SPECIAL_EXIT",
            "stopped": "STOPPED",
            "suspended": "SUSPENDED",
        }
        for name, state in states.items():
            stage.wait_until(name, state)
        stage.wait_until_ranked("requeued-and-completing")
        case.ask(["jobs"], ["run", ["squeue", "-h", "-t", "all", "-o", "%A|%i|%T|%r"]])
    finally:
        stage.cluster.exec(["sh", "-c", "rm -f /tmp/hold-*"], node="g1")


def requeued(case: Recording) -> None:
    """Jobs with earlier runs, by squeue and by sacct: requeued by their user, after a node's failure, by
    preemption, and held.
    """
    stage = case.stage
    stage.root("sacctmgr", "--immediate", "modify", "qos", "high", "set", "preempt=low")
    stage.afterwards_run(
        "scontrol update NodeName=g3 State=RESUME", "sacctmgr --immediate modify qos high set preempt="
    )
    stage.submit(SITUATIONS["requeued"])
    _requeue(case)
    stage.submit((PREEMPTOR,))
    stage.wait_until("preemptor", "RUNNING")
    stage.settle(SITUATIONS["requeued"])
    ids = [stage.ids[s.name] for s in SITUATIONS["requeued"]]
    wait_for(lambda: _ends_known(case, ids), 60, "accounting tells how the earlier runs ended")
    case.ask(["jobs"], ["past_runs", ids])


def _requeue(case: Recording) -> None:
    """Requeue what its users requeue; let one run again on g3, and g3 fail.

    A job that has just been requeued can't start on its old node before its credential has run out.
    """
    stage = case.stage
    by_user, twice, held = (
        str(stage.ids[f"requeued-{how}"]) for how in ("by-user", "then-failed", "and-held")
    )
    stage.root("scontrol", "requeue", f"{by_user},{twice}")
    stage.root("scontrol", "requeuehold", held)
    stage.wait_until("requeued-then-failed", "PENDING")
    stage.root("scontrol", "update", f"JobId={twice}", "ReqNodeList=g3", "StartTime=now")
    stage.wait_until("requeued-then-failed", "RUNNING")
    stage.root("scontrol", "update", "NodeName=g3", "State=DOWN", "Reason=test")


def _ends_known(case: Recording, ids: list[int]) -> bool:
    argv = ["sacct", "-D", "-X", "-n", "-P", "-o", "State", "-j", ",".join(map(str, ids))]
    states = Counter(case.stage.root(*argv).split("\n"))
    return states["REQUEUED"] == 3 and states["NODE_FAIL"] == 2 and states["PREEMPTED"] == 1


def contract(case: Recording) -> None:
    """The jobs that every gateway is tested with, before and after two writes."""
    stage = case.stage
    _prepare(case)
    stage.wait_until("finished", "COMPLETED")
    ids = stage.ids
    case.ask(["jobs"], ["cluster"], ["past_runs", [ids["plain"], ids["running"]]], ["identity"])
    case.ask(["write", contract_updates(ids)])
    case.ask(["jobs"])
    case.ask(["write", contract_resets(ids)])
    case.ask(["jobs"])


def contract_updates(ids: dict[str, int]) -> list[list[int | str]]:
    """Return the updates of the first write, as (job id, id to name, value)."""
    return [
        [ids["plain"], str(ids["plain"]), 7],
        [UNKNOWN_ID, str(UNKNOWN_ID), 7],
        [ids["finished"], str(ids["finished"]), 7],
        [ids["array"], f"{ids['array']}_[0-5]", 9],
        [ids["het"], str(ids["het"]), 11],
    ]


def contract_resets(ids: dict[str, int]) -> list[list[int | str]]:
    """Return the updates of the second write, which go back to zero."""
    return [[job_id, name, 0] for job_id, name, _ in contract_updates(ids) if job_id != UNKNOWN_ID][-2:]


def errors(case: Recording) -> None:
    """What Slurm says to who asks wrongly: refused updates, unknown ids and fields, daemons that are down."""
    stage = case.stage
    _prepare(case)
    plain, bobs, array = (stage.ids[name] for name in ("plain", "of-bob", "array"))
    case.ask(["write", [[plain, str(plain), 5]]], user="alice")
    case.ask(["write", [[bobs, str(bobs), 5], [plain, str(plain), 5]]], user="alice")
    case.ask(["write", [[UNKNOWN_ID, str(UNKNOWN_ID), 5], [array, f"{array}_7", 5], [plain, str(plain), 5]]])
    case.ask(["write", [[plain, str(plain), 2**31]]])
    stage.cluster.stop_daemon("slurmdbd")
    try:
        case.ask(["past_runs", [plain]])
    finally:
        stage.cluster.start_daemon("slurmdbd")
    stage.cluster.stop_daemon("slurmctld")
    try:
        case.ask(["jobs"], ["config"], ["cluster"], ["write", [[plain, str(plain), 6]]])
        case.ask(["run", ["sprio", "-h"]])
    finally:
        stage.cluster.start_daemon("slurmctld")


def _prepare(case: Recording) -> None:
    """Submit what the table has for the case, and wait until it is so."""
    case.stage.submit(SITUATIONS[case.name])
    case.stage.settle(SITUATIONS[case.name])


LAB_CASES: dict[str, CaseFunction] = {
    "json": json,
    "cluster": cluster,
    "queue": queue,
    "places": places,
    "gpus": gpus,
    "gpus-running": gpus_running,
    "arrays": arrays,
    "arrays-split": arrays_split,
    "het": het,
    "comments": comments,
    "flagged": flagged,
    "requeued": requeued,
    "contract": contract,
    "errors": errors,
}
"""Case by the name of its folder.

json comes first, since old releases list every job that there ever was in JSON; errors last, since
22.05.8 can lose track of used GPUs when slurmctld is started again.
"""
