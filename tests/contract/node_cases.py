"""The cases that are recorded on the cluster of nodes; see lab_cases.py."""

from __future__ import annotations

from tests.contract.lab_cases import CaseFunction
from tests.contract.recording import Recording
from tests.contract.situations import SITUATIONS
from tests.live.harness import wait_for

STATES = {
    "n1": "MIXED",
    "n2": "ALLOCATED",
    "n3": "IDLE+DRAIN",
    "n4": "MIXED+DRAIN",
    "n5": "DOWN",
    "n6": "IDLE+MAINTENANCE+RESERVED",
    "n7": "IDLE+RESERVED",
    "n8": "DOWN+DRAIN+REBOOT_ISSUED",
    "n9": "MIXED+REBOOT_REQUESTED",
    "n10": "DOWN+NOT_RESPONDING",
    "n11": "IDLE+NOT_RESPONDING",
    "n12": "IDLE+PLANNED",
    "n13": "IDLE+COMPLETING",
    "n14": "IDLE+DRAIN+INVALID_REG",
    "n15": "MIXED+FAIL",
    "cl1": "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP",
    "cl2": "IDLE+CLOUD+POWERED_DOWN",
}
"""What scontrol must show of a node before the case is recorded."""


def inventory(case: Recording) -> None:
    """Nodes with two GPU types, MIG slices, shards, capitals in a type, no_consume, no type, no GPU, and
    jobs that wait for slices and shards.
    """
    stage = case.stage
    stage.root("scontrol", "update", "NodeName=m1", "Weight=7")
    stage.afterwards_run("scontrol update NodeName=m1 Weight=1")
    stage.submit(SITUATIONS["inventory"])
    stage.settle(SITUATIONS["inventory"])
    case.ask(["jobs"], ["cluster"])


def node_states(case: Recording) -> None:
    """Nodes in every state that a container can be brought into."""
    stage, cluster = case.stage, case.stage.cluster
    cluster.kill("n10")
    _wait_for_states(case, "n10")
    cluster.exec(["sed", "-i", "/^NodeName=n14 /d", "/etc/slurm/gres.conf"], node="n14")
    cluster.stop_daemon("slurmd", node="n14")
    cluster.start_daemon("slurmd", node="n14")
    stage.submit(SITUATIONS["node-states"])
    cluster.exec(["touch", f"/tmp/hold-{stage.ids['completing']}"], node="n13")
    stage.root("scancel", str(stage.ids["completing"]))
    for command in (
        "update NodeName=n3,n4 State=DRAIN Reason=test",
        "update NodeName=n5 State=DOWN Reason=State=IDLE",
        "update NodeName=n15 State=FAIL Reason=test",
        "create reservation=repair start=now duration=60 users=root flags=maint nodes=n6",
        "create reservation=course start=now duration=60 users=bob nodes=n7",
        "reboot n9",
        "reboot ASAP n8",
    ):
        stage.root("scontrol", *command.split())
    _wait_for_states(case, *(STATES.keys() - {"n11"}))
    cluster.kill("n11")
    _wait_for_states(case, *STATES)
    case.ask(["cluster"], ["jobs"], ["run", ["sinfo", "-h", "-N", "-o", "%N %t %T"]])


def _wait_for_states(case: Recording, *nodes: str) -> None:
    """Return when the nodes are in their states."""
    wanted = {node: STATES[node] for node in nodes}
    wait_for(
        lambda: wanted.items() <= _states(case).items(),
        120,
        lambda: f"{case.stage.release}: {sorted(wanted.items() - _states(case).items())} of {_states(case)}",
    )


def _states(case: Recording) -> dict[str, str]:
    lines = case.stage.root("scontrol", "show", "node", "--oneliner").splitlines()
    words = ([word.split("=", 1) for word in line.split() if "=" in word] for line in lines)
    pairs = ([(key, value) for key, value in line if key in {"NodeName", "State"}] for line in words)
    return {found[0][1]: found[1][1] for found in pairs}


NODE_CASES: dict[str, CaseFunction] = {"inventory": inventory, "node-states": node_states}
