"""The product's gateway reads in the recorded answers of real Slurm what the table says.

The tests expand over the folders in tests/data/slurm: a new release is a new folder.
"""

from __future__ import annotations

import math
import re

import pytest

from slurm_score.model import Cluster, Job, Partition, Queue, Reservation
from slurm_score.plan import skip_reason
from tests.contract.replay import RecordedCase, Replay, case_id, gateway_of, recorded
from tests.contract.situations import SITUATIONS
from tests.contract.situations_nodes import NODES, nodes_on
from tests.contract.table import NodeReading, Situation, node_reading_of, reading_of

DAY = 86400.0
NOT_ASKED_FOR_JOBS = {"cluster", "config-basic", "errors"}
JOB_CASES = [case for case in recorded(*SITUATIONS) if case.name not in NOT_ASKED_FOR_JOBS]


def prepared(case: RecordedCase) -> list[Situation]:
    """Return the situations that were prepared for a case."""
    return [situation for situation in SITUATIONS[case.name] if situation.name in case.jobs]


def read_jobs(case: RecordedCase) -> dict[str, Job]:
    """Return the jobs that the product reads, by label."""
    return {job.label: job for job in gateway_of(case).read_jobs()}


def read_cluster(case: RecordedCase) -> Cluster:
    """Return the cluster beside the jobs as the product reads it."""
    return gateway_of(case).read_cluster()


JOBS = [
    pytest.param(case, situation, id=f"{case.release}-{case.name}-{situation.name}")
    for case in JOB_CASES
    for situation in prepared(case)
    if situation.reads_on(case.release) is not None
]
NODE_ROWS = [
    pytest.param(case, node, reading, id=f"{case.release}-{case.name}-{node}")
    for case in recorded(*NODES)
    for node, reading in nodes_on(case.release, case.name).items()
]


@pytest.mark.parametrize(("case", "situation"), JOBS)
def test_job_is_read_as_it_was_submitted(case: RecordedCase, situation: Situation) -> None:
    """State, size, GPUs, limit, hold, pin, rank and hints of each record are those of the table."""
    job_id, jobs = case.jobs[situation.name], read_jobs(case)
    expected = situation.reads_on(case.release) or {}
    mine = {
        label.removeprefix(str(job_id)): job
        for label, job in jobs.items()
        if job_id in (job.job_id, job.het_job_id) or label.startswith(f"{job_id}_")
    }
    assert {s: reading_of(job, case.now_s, expected.get(s)) for s, job in mine.items()} == expected
    assert {job.user for label, job in jobs.items() if job.job_id == job_id} <= {situation.user}


@pytest.mark.parametrize("case", JOB_CASES, ids=case_id)
def test_no_job_is_read_that_was_not_submitted(case: RecordedCase) -> None:
    """No comment can forge a record, and a finished job is none (ACTIVE_STATES)."""
    submitted = {str(job_id) for job_id in case.jobs.values()}
    assert {label.partition("_")[0].partition("+")[0] for label in read_jobs(case)} <= submitted


@pytest.mark.parametrize("case", JOB_CASES, ids=case_id)
def test_every_record_of_slurm_is_understood(case: RecordedCase, caplog: pytest.LogCaptureFixture) -> None:
    """A record that can't be read is left out with a warning: there is none."""
    read_jobs(case)
    assert caplog.messages == []


@pytest.mark.parametrize(("case", "name", "expected"), NODE_ROWS)
def test_node_is_read_with_its_gpus_and_whether_a_job_could_start(
    case: RecordedCase, name: str, expected: NodeReading
) -> None:
    """GPUs by type, total and used, from scontrol show node -d; states from sinfo(1), NODE STATE CODES."""
    nodes = {node.name: node for node in read_cluster(case).nodes}
    assert node_reading_of(nodes[name], expected) == expected


@pytest.mark.parametrize("case", recorded(*NODES), ids=case_id)
def test_no_node_is_read_that_is_not_there(case: RecordedCase) -> None:
    """Powered-down nodes of a cloud are there, under PrivateData=cloud on every release."""
    assert {node.name for node in read_cluster(case).nodes} == set(NODES[case.name])


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
def test_partitions_are_read(case: RecordedCase) -> None:
    """Limits in seconds, CPUs of all nodes; DefaultTime=NONE is no limit of its own (case 18)."""
    assert dict(read_cluster(case).partitions) == {
        "main": Partition(name="main", default=True, max_time_s=7 * DAY, cpus=40),
        "short": Partition(name="short", max_time_s=3600, cpus=16),
    }


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
def test_qos_priorities_are_read(case: RecordedCase) -> None:
    """scontrol show assoc_mgr flags=qos prints them from slurmctld's memory."""
    assert dict(read_cluster(case).qos) == {"low": 0, "normal": 100, "high": 1000}


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
def test_features_and_partitions_of_nodes_are_read(case: RecordedCase) -> None:
    """ActiveFeatures and Partitions; a node without features has none, not one that is called (null)."""
    assert {node.name: (node.features, node.partitions) for node in read_cluster(case).nodes} == {
        "g1": (("a100", "nvlink"), ("main", "short")),
        "g2": (("a100",), ("main", "short")),
        "g3": (("v100",), ("main",)),
        "g4": (("a100", "v100"), ("main",)),
        "c1": ((), ("main",)),
    }


@pytest.mark.parametrize("case", recorded("inventory"), ids=case_id)
def test_leaf_switches_and_weights_of_nodes_are_read(case: RecordedCase) -> None:
    """scontrol show topology under topology/tree; only m1 was given a Weight."""
    nodes = read_cluster(case).nodes
    assert {(node.name.rstrip("0123456789"), node.switch) for node in nodes} == {
        ("m", "s1"),
        ("c", "s1"),
        ("n", "s2"),
        ("cl", "s3"),
    }
    assert {node.name: node.weight for node in nodes if node.weight != 1} == {"m1": 7}


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
def test_cluster_without_topology_has_no_switches(
    case: RecordedCase, caplog: pytest.LogCaptureFixture
) -> None:
    """scontrol show topology then prints nothing, on 22.05 with a complaint, and ends with 0."""
    assert {node.switch for node in read_cluster(case).nodes} == {""}
    assert caplog.messages == []


@pytest.mark.parametrize("case", recorded("node-states"), ids=case_id)
def test_active_reservations_are_read(case: RecordedCase) -> None:
    """Their nodes have the flag RESERVED, and one MAINTENANCE as well."""
    cluster = read_cluster(case)
    assert dict(cluster.reservations) == {
        "repair": Reservation(name="repair", active=True, nodes=("n6",)),
        "course": Reservation(name="course", active=True, nodes=("n7",)),
    }
    assert {node.name for node in cluster.nodes if "RESERVED" in node.states} == {"n6", "n7"}


@pytest.mark.parametrize("case", recorded("places"), ids=case_id)
def test_reservation_that_is_to_come_is_not_active(case: RecordedCase) -> None:
    """scontrol show reservation says State=INACTIVE; its nodes are free until then."""
    assert dict(read_cluster(case).reservations) == {
        "later": Reservation(name="later", active=False, nodes=("g1", "g2"))
    }


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
def test_cluster_without_reservations_has_none(case: RecordedCase) -> None:
    """scontrol says so in a sentence."""
    assert dict(read_cluster(case).reservations) == {}


@pytest.mark.parametrize("case", recorded("gpus-running"), ids=case_id)
def test_hosts_of_running_jobs_are_read(case: RecordedCase) -> None:
    """NodeList of squeue; of a job on two nodes as one list."""
    jobs, names = read_jobs(case), {job_id: name for name, job_id in case.jobs.items()}
    assert {names[int(label)]: job.node_list for label, job in jobs.items() if "_" not in label} == {
        "runs-gres": "g[1-2]",
        "runs-gpus": "g3",
        "runs-per-task": "g2",
        "runs-two-types": "g4",
        "runs-per-socket": "g1",
        "runs-without": "c1",
    }


@pytest.mark.parametrize("case", recorded("gpus"), ids=case_id)
def test_cpus_in_use_are_read(case: RecordedCase) -> None:
    """An --exclusive job takes every CPU of its nodes (CPUAlloc)."""
    assert {(node.cpus, node.cpus_used) for node in read_cluster(case).nodes} == {(8, 8)}


@pytest.mark.parametrize("case", recorded("json"), ids=case_id)
def test_unlimited_time_is_infinite(case: RecordedCase) -> None:
    """UNLIMITED is no number of seconds (case 17)."""
    assert read_jobs(case)[str(case.jobs["held"])].time_limit_s == math.inf


@pytest.mark.parametrize("case", recorded("json"), ids=case_id)
def test_an_answer_that_was_not_recorded_is_no_answer(case: RecordedCase) -> None:
    """The replay never makes up what Slurm would say."""
    with pytest.raises(Exception, match="sdiag"):
        Replay(case)(("sdiag",), "", 1.0)


@pytest.mark.parametrize("case", recorded("arrays", "het"), ids=case_id)
def test_every_record_of_a_job_tells_when_it_was_submitted(case: RecordedCase) -> None:
    """Tasks that wait, tasks that run, and components: one submission, seconds before the recording."""
    jobs = gateway_of(case).read_jobs()
    times: dict[str, set[int]] = {}
    for job in jobs:
        times.setdefault(re.split("[_+]", job.label)[0], set()).add(job.submit_s)
    assert times.keys() == {str(job_id) for job_id in case.jobs.values()}
    assert all(len(submitted) == 1 for submitted in times.values())
    assert all(case.now_s - 120 <= job.submit_s <= case.now_s for job in jobs)


@pytest.mark.parametrize("case", recorded("queue", "het", "json"), ids=case_id)
def test_job_outside_a_federation_has_no_origin(case: RecordedCase) -> None:
    """squeue prints NA, JSON an empty text."""
    assert {job.origin for job in gateway_of(case).read_jobs()} == {""}


@pytest.mark.parametrize("case", recorded("arrays-split"), ids=case_id)
def test_an_array_that_may_hide_a_held_or_pinned_task_is_left_alone(case: RecordedCase) -> None:
    """squeue merges such tasks into the array's row; an update of the row would reach them (traps 1, 2)."""
    arrays = tuple(job for job in gateway_of(case).read_jobs() if job.tasks)
    queue = Queue(jobs=arrays, cluster=Cluster(time_s=0.0), now_s=0.0)
    assert [skip_reason(queue, i) for i in range(3)] == ["may hide a held or pinned task"] * 3
    assert len(arrays) == 3


@pytest.mark.parametrize("case", recorded("arrays", "queue"), ids=case_id)
def test_other_arrays_hide_nothing(case: RecordedCase) -> None:
    """Neither a throttle nor tasks that run make an array suspicious."""
    jobs = [job for job in gateway_of(case).read_jobs() if not job.held]
    assert not [job.label for job in jobs if job.hides_tasks]
