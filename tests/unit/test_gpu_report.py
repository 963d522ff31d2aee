"""What there is of each GPU type, from the snapshot to /v1/gpus, /metrics and `slurm-score gpus`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_score.cli import main
from slurm_score.contention import gpu_pressure
from slurm_score.errors import ServiceError
from slurm_score.policy_yaml import parse_policy
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot
from slurm_score.supply import supply_of
from tests.unit import service_support
from tests.unit.builders import NOW, drained, make_cluster, make_gpu_job, make_queue
from tests.unit.service_support import Service

service = service_support.service


def publish(path: Path) -> None:
    """Write a snapshot: v100 drained, 2 a100 asked for alone, a v100, and 2 of any type."""
    cluster = drained(make_cluster(), "g3")
    jobs = (make_gpu_job(1, "gpu:a100:2"), make_gpu_job(2, "gpu:2"), make_gpu_job(3, "gpu:v100:1"))
    snapshot = Snapshot(
        policy=parse_policy(""), cluster=cluster, pressure=gpu_pressure(jobs, cluster), jobs=jobs
    )
    write_snapshot(path, replace(snapshot, supply=supply_of(make_queue(*jobs, cluster=cluster))))


def test_gpus_command_prints_a_line_for_each_partition_and_type(tmp_path: Path) -> None:
    """Two of four a100 asked for alone, two by who would take a v100 as well: 4 asked of 4 usable."""
    publish(tmp_path / "snapshot.jsonl")
    (tmp_path / "policy.yaml").write_text("", encoding="utf-8")
    state = State(tmp_path / "policy.yaml", tmp_path / "snapshot.jsonl", lambda: float(NOW))
    addresses = Addresses(hook=tmp_path / "hook", readers=tmp_path / "readers")
    with running_service(state, addresses):
        printed = CliRunner().invoke(main, ["gpus", "--socket", str(addresses.readers)])
        answer = CliRunner().invoke(main, ["gpus", "--socket", str(addresses.readers), "--json"])
    header, *rows = (line.split() for line in printed.stdout.splitlines())
    assert header[:7] == ["PARTITION", "TYPE", "TOTAL", "USED", "FREE", "BROKEN", "NODE_MAX"]
    assert header[7:] == ["BLOCK", "ASKED", "FLEXIBLE", "CONTENTION"]
    assert rows == [
        ["gpu", "a100", "4", "0", "4", "0", "2", "2x2", "2", "2", "1.00"],
        ["gpu", "v100", "4", "0", "0", "4", "0", "0x0", "1", "2", "none", "usable"],
    ]
    assert json.loads(answer.stdout)["gpus"][1]["contention"] is None


def test_metrics_show_every_type(service: Service) -> None:
    """One gauge, what is counted as a label; types that are gone leave no line behind."""
    publish(service.snapshot)
    service.state.refresh()
    _, _, text = service.ask("GET", "/metrics")
    assert 'slurm_score_gpus{partition="gpu",type="a100",what="block"} 4.0' in text
    assert 'slurm_score_gpus{partition="gpu",type="v100",what="broken"} 4.0' in text
    service.publish()
    service.state.refresh()
    assert "slurm_score_gpus{" not in service.ask("GET", "/metrics")[2]


def test_gpus_without_a_snapshot_are_503(tmp_path: Path) -> None:
    """Not an empty list, which would say that there are none."""
    (tmp_path / "policy.yaml").write_text("", encoding="utf-8")
    state = State(tmp_path / "policy.yaml", tmp_path / "snapshot.jsonl")
    addresses = Addresses(hook=tmp_path / "hook", readers=tmp_path / "readers")
    with running_service(state, addresses), pytest.raises(ServiceError, match="no snapshot yet") as caught:
        ServiceClient(addresses.readers).gpus()
    assert caught.value.status == 503


def test_client_asks_for_gpus(service: Service) -> None:
    """The answer carries the snapshot's time."""
    assert ServiceClient(service.addresses.readers).gpus() == {"time_s": float(NOW), "gpus": []}
