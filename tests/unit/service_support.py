"""A running service on two unix sockets in a temporary folder, and ways to ask it."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slurm_score.contention import gpu_pressure
from slurm_score.policy_yaml import parse_policy
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot
from tests.unit.builders import NOW, make_cluster, make_gpu_job, make_job

ENFORCE = "mode: enforce\n"
JOBS = (
    make_job(9, label="9_[3-9%3]", update_id="9_[3-9]", tasks="3-9"),
    make_job(10, qos="high"),
    make_gpu_job(26, "gpu:a100:1", label="26+0", update_id="26", het_job_id=26),
)


@dataclass
class Service:
    """The running service: its files, its clock, and ways to ask it."""

    folder: Path
    now_s: float = NOW
    running: State | None = None

    @property
    def state(self) -> State:
        """What the service answers from."""
        assert self.running is not None
        return self.running

    @property
    def policy(self) -> Path:
        """The policy file."""
        return self.folder / "policy.yaml"

    @property
    def snapshot(self) -> Path:
        """The snapshot file."""
        return self.folder / "snapshot.jsonl"

    @property
    def addresses(self) -> Addresses:
        """Where it listens."""
        return Addresses(hook=self.folder / "hook", readers=self.folder / "readers")

    @property
    def client(self) -> ServiceClient:
        """The client that the commands use."""
        return ServiceClient(self.addresses.readers)

    def score(self, **submission: Any) -> dict[str, Any]:
        """Return the answer that the hook gets for a submission, the newest files read."""
        self.state.refresh()
        return ServiceClient(self.addresses.hook).score(submission)

    def clock(self) -> float:
        """Return the service's time."""
        return self.now_s

    def publish(self, *jobs: Any) -> None:
        """Write a snapshot of now with these jobs."""
        cluster = make_cluster(time_s=float(self.now_s))
        policy = parse_policy(self.policy.read_text(encoding="utf-8"))
        pressure = gpu_pressure(jobs, cluster)
        write_snapshot(
            self.snapshot, Snapshot(policy=policy, cluster=cluster, pressure=pressure, jobs=tuple(jobs))
        )

    def ask(self, method: str, path: str, body: bytes = b"", *lines: str) -> tuple[int, str, str]:
        """Return status, content type and body of one raw HTTP exchange; the path tells the socket."""
        length = [] if any("chunked" in line for line in lines) else [f"Content-Length: {len(body)}"]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *length, *lines, "", ""])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self.addresses.hook if path == "/v1/score" else self.addresses.readers))
            connection.sendall(head.encode() + body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            told = response.read().decode()
            return response.status, response.headers.get_content_type(), told


@contextmanager
def answering(folder: Path) -> Iterator[Service]:
    """A service in enforce with a snapshot of three jobs, on no socket yet."""
    service = Service(folder)
    service.policy.write_text(ENFORCE, encoding="utf-8")
    service.publish(*JOBS)
    service.running = State(service.policy, service.snapshot, service.clock)
    try:
        yield service
    finally:
        service.running.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A running service in enforce with a snapshot of three jobs."""
    with answering(tmp_path) as service, running_service(service.state, service.addresses):
        yield service
