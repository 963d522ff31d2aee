"""slurm_score/service/server.py and notify.py: its life in a process of its own, as systemd sees it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_score.errors import ServiceError
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient
from slurm_score.service.server import Addresses, Server
from slurm_score.snapshot import Snapshot, write_snapshot
from tests.unit import service_support
from tests.unit.builders import make_cluster, make_policy
from tests.unit.service_support import ENFORCE, Service

# pytest finds fixtures by their names in the module.
service = service_support.service
TIMEOUT_S = 60


class Supervisor:
    """The end of NOTIFY_SOCKET that systemd holds."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(TIMEOUT_S)

    def hears(self, state: str) -> bool:
        """Return True once a state has come; TimeoutError where it never does."""
        while self.socket.recv(4096).decode() != state:
            pass
        return True


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Supervisor]]:
    """Run `slurm-score serve` in a process, ready."""
    (folder / "policy.yaml").write_text(ENFORCE, encoding="utf-8")
    supervisor = Supervisor(folder)
    argv = [sys.executable, "-c", "from slurm_score.cli import main; main()", "serve"]
    argv += ["--policy", str(folder / "policy.yaml"), "--snapshot", str(folder / "snapshot.jsonl")]
    argv += ["--socket", str(folder / "readers"), "--hook-socket", str(folder / "hook"), *options]
    environment = os.environ | {"NOTIFY_SOCKET": str(supervisor.path), "WATCHDOG_USEC": "30000000"}
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert supervisor.hears("READY=1")
        yield process, supervisor
    finally:
        process.kill()
        process.communicate()
        supervisor.socket.close()


def test_systemd_hears_ready_alive_and_stopping(tmp_path: Path) -> None:
    """READY=1 once both sockets answer; SIGTERM ends it with 0 and takes the sockets away."""
    with serving(tmp_path) as (process, supervisor):
        for name in ("hook", "readers"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / name))
        assert supervisor.hears("WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        assert supervisor.hears("STOPPING=1")
        assert process.wait(TIMEOUT_S) == 0
    assert not (tmp_path / "hook").exists()
    assert not (tmp_path / "readers").exists()


def test_killed_service_starts_again(tmp_path: Path) -> None:
    """kill -9 leaves both socket files; the next start replaces them."""
    with serving(tmp_path) as (process, _):
        process.kill()
        process.wait(TIMEOUT_S)
    assert (tmp_path / "hook").exists()
    (tmp_path / "notify").unlink()
    with serving(tmp_path):
        assert "reason" in ServiceClient(tmp_path / "hook").score({})


def worker_of(process: subprocess.Popen[str]) -> int:
    """Return the process id of the worker that makes reports."""
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no worker")


def until(condition: Callable[[], bool], what: str) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_worker_that_died_is_replaced(tmp_path: Path) -> None:
    """The report that it was making is 503, the next one is made; submissions notice nothing."""
    write_snapshot(tmp_path / "snapshot.jsonl", Snapshot(policy=make_policy(), cluster=make_cluster()))
    with serving(tmp_path) as (process, _):
        readers = ServiceClient(tmp_path / "readers", TIMEOUT_S)
        assert readers.jobs()["jobs"] == []
        os.kill(worker_of(process), signal.SIGKILL)
        assert "reason" in ServiceClient(tmp_path / "hook").score({})
        told: list[tuple[str, int | None]] = []

        def is_made_again() -> bool:
            try:
                return bool(readers.jobs()["jobs"] == [])
            except ServiceError as error:
                told.append((str(error), error.status))
                return False

        until(is_made_again, "reports are made again")
    assert set(told) <= {("the report could not be made; ask again", 503)}


def test_worker_ends_with_the_service(tmp_path: Path) -> None:
    """However that ends: nothing of ours is left running."""
    write_snapshot(tmp_path / "snapshot.jsonl", Snapshot(policy=make_policy(), cluster=make_cluster()))
    with serving(tmp_path) as (process, _):
        ServiceClient(tmp_path / "readers", TIMEOUT_S).jobs()
        worker = Path(f"/proc/{worker_of(process)}/stat")
        process.kill()
        process.wait(TIMEOUT_S)
        until(lambda: not worker.exists() or worker.read_text().split()[2] == "Z", "the worker has ended")


def test_second_instance_ends_with_one_sentence(tmp_path: Path) -> None:
    """Exit code 1, and the first one goes on."""
    with serving(tmp_path) as (first, _):
        other = tmp_path / "other"
        other.mkdir()
        argv = [sys.executable, "-c", "from slurm_score.cli import main; main()", "serve"]
        argv += ["--policy", str(tmp_path / "policy.yaml"), "--snapshot", str(tmp_path / "snapshot.jsonl")]
        argv += ["--socket", str(other / "readers"), "--hook-socket", str(tmp_path / "hook")]
        second = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S)
        told = f"slurm-score: {tmp_path / 'hook'}: another instance serves it, 'pid {first.pid} on "
        assert (second.returncode, second.stderr.startswith(told)) == (1, True)
        assert second.stderr.count("\n") == 1
        assert "reason" in ServiceClient(tmp_path / "hook").score({})


def test_tcp_serves_reports_only(tmp_path: Path) -> None:
    """Only when asked for, on 127.0.0.1; scores are not given there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(tmp_path, "--tcp", str(port)):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=TIMEOUT_S) as answer:
            assert json.load(answer)["mode"] == "enforce"
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/score", b"{}", timeout=TIMEOUT_S)
        caught.value.close()


def test_claimed_sockets_are_given_back_when_another_cant_be_had(service: Service, tmp_path: Path) -> None:
    """Half a service is none: the hook's socket is free again."""
    addresses = Addresses(hook=tmp_path / "free", readers=service.addresses.readers)
    with pytest.raises(ServiceError, match="another instance serves it"):
        Server(service.state, addresses)
    assert not (tmp_path / "free").exists()


def test_no_request_is_lost_while_files_change(service: Service) -> None:
    """Policy and snapshot are replaced again and again; each submission has its answer by one of them."""
    weights = (7, 8)
    stop = threading.Event()

    def edit() -> None:
        while not stop.is_set():
            for weight in weights:
                service.policy.write_text(f"mode: enforce\nfactors: {{qos: {{weight: {weight}}}}}\n")
                service.publish()
                service.state.refresh()

    editor = threading.Thread(target=edit)
    editor.start()
    answers: list[int] = []
    try:
        client, deadline = ServiceClient(service.addresses.hook), time.monotonic() + TIMEOUT_S
        while not set(weights) <= set(answers) or len(answers) < 300:
            answers.append(client.score({"qos": "high"})["site_factor"])
            assert time.monotonic() < deadline
    finally:
        stop.set()
        editor.join()
    assert set(answers) <= {*weights, 510}


def test_request_in_flight_is_answered_before_the_service_ends(service: Service) -> None:
    """SIGTERM and `stop` finish what was begun."""
    folder = service.folder / "second"
    folder.mkdir(mode=0o755)
    addresses = Addresses(hook=folder / "hook", readers=folder / "readers")
    body = b'{"qos": "high"}'
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        with running_service(service.state, addresses):
            connection.connect(str(addresses.hook))
            connection.sendall(
                b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            late = threading.Thread(target=_send_later, args=(connection, body))
            late.start()
        late.join()
        told = connection.recv(65536)
        assert (told.split(b"\r\n")[0], b"\r\nconnection: close\r\n" in told) == (b"HTTP/1.1 200 OK", True)


def _send_later(connection: socket.socket, body: bytes) -> None:
    """Send the body when the service has begun to stop."""
    time.sleep(0.5)
    connection.sendall(body)
