"""slurm_score/service/viewers.py: whose jobs a caller is told of, by the kernel's word on who called."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.service.app import readers_app
from slurm_score.service.state import State
from slurm_score.service.viewers import PEER_UID, peer_uid, viewer_of
from slurm_score.snapshot import Snapshot, write_snapshot
from slurm_score.users import user_name
from tests.unit import service_support
from tests.unit.builders import NOW, make_cluster, make_job
from tests.unit.service_support import Service

# pytest finds fixtures by their names in the module.
service = service_support.service

NAMES = {1000: "alice", 1001: "oscar", 1002: "slurm", 1003: "bob"}
PRIVATE = SlurmConfig(slurm_user="slurm", private_data=("accounts", "jobs"), operators=("oscar",))


@pytest.mark.parametrize(
    ("uid", "viewer"),
    [(0, None), (1000, "alice"), (1001, None), (1002, None), (1003, "bob"), (7, None), (None, "")],
)
def test_private_jobs_are_shown_to_their_users_and_to_operators(uid: int | None, viewer: str | None) -> None:
    """slurm.conf(5), PrivateData: root, SlurmUser and operators see all, and 7, who runs the service."""
    assert viewer_of(uid, PRIVATE, NAMES.__getitem__, own_uid=7) == viewer


@pytest.mark.parametrize("private", [(), ("accounts", "users", "cloud")])
@pytest.mark.parametrize("uid", [1000, None])
def test_all_jobs_are_shown_to_all_where_jobs_are_not_private(
    private: tuple[str, ...], uid: int | None
) -> None:
    """Also over TCP, where nobody is known."""
    config = SlurmConfig(slurm_user="slurm", private_data=private)
    assert viewer_of(uid, config, NAMES.__getitem__, own_uid=7) is None


def test_the_kernel_tells_who_connected() -> None:
    """Over a unix socket; over TCP nobody does."""
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket(socket.AF_INET) as tcp:
        assert (peer_uid(ours), peer_uid(tcp), peer_uid(None)) == (os.geteuid(), None, None)


def test_the_service_is_told_by_the_kernel(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the socket through the event loop to the report: the uid of this process."""
    seen: list[Any] = []

    def noted(_: Path, asked: Any) -> bytes:
        seen.append(asked.uid)
        return b"{}"

    monkeypatch.setattr("slurm_score.service.reports.dump_jobs", noted)
    assert service.ask("GET", "/v1/jobs")[0] == 200
    assert seen == [os.geteuid()]


NOBODY = 3_999_999_999
"""A uid that no system knows: its name is the number."""


@pytest.fixture
def private(tmp_path: Path) -> Iterator[State]:
    """The state of a service of a cluster whose jobs are private: one job of nobody's, one of alice's."""
    policy, snapshot = tmp_path / "policy.yaml", tmp_path / "snapshot.jsonl"
    policy.write_text("mode: observe\n", encoding="utf-8")
    cluster = make_cluster()
    hidden = replace(cluster, config=replace(cluster.config, private_data=("jobs",)))
    jobs = (make_job(7, user=user_name(NOBODY)), make_job(8, qos="high"))
    write_snapshot(snapshot, Snapshot(policy=Policy(), cluster=hidden, jobs=jobs))
    state = State(policy, snapshot, lambda: NOW)
    yield state
    state.close()


def ask(state: State, uid: int | None, path: str, query: str = "") -> tuple[int, Any]:
    """Return status and answer of the application to a caller."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "headers": [], PEER_UID: uid}
    scope |= {"query_string": query.encode(), "raw_path": path.encode(), "root_path": ""}
    asyncio.run(readers_app(state)(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body)


@pytest.mark.parametrize(("uid", "ids"), [(0, ["8", "7"]), (NOBODY, ["7"]), (None, [])])
def test_private_jobs_are_listed_to_those_who_may_see_them(
    private: State, uid: int | None, ids: list[str]
) -> None:
    """As rows and as columns; the places count everybody's jobs."""
    assert [row["job"] for row in ask(private, uid, "/v1/jobs")[1]["jobs"]] == ids
    answer = ask(private, uid, "/v1/jobs", "field=job&field=rank")[1]["columns"]
    assert answer == {"job": ids, "rank": {0: [1, 2], NOBODY: [2], None: []}[uid]}


@pytest.mark.parametrize(
    ("uid", "job", "status"),
    [(0, "8", 200), (NOBODY, "7", 200), (NOBODY, "8", 404), (None, "7", 404), (NOBODY, "99", 404)],
)
def test_private_jobs_are_explained_to_those_who_may_see_them(
    private: State, uid: int | None, job: str, status: int
) -> None:
    """Another's job is answered as one that isn't there, word for word."""
    told, answer = ask(private, uid, f"/v1/jobs/{job}")
    assert told == status
    assert status == 200 or answer == {"error": f"job {job}: not pending in the last snapshot"}
