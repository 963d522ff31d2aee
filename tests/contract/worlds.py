"""The gateways that the laws are tested on, each with the same jobs: the fake, the commands on what each
release answered, and pyslurm's on a stub.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pytest

from slurm_score.gres import GpuCount
from slurm_score.model import Job, Node, Partition
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.slurm.gateway import Access, Gateway, SiteFactorUpdate
from slurm_score.slurm.pyslurm_gateway import PyslurmGateway
from tests.contract.lab_cases import contract_resets, contract_updates
from tests.contract.pyslurm_queue import BehavingStub
from tests.contract.replay import RecordedCase, Replay, gateway_of, recorded
from tests.unit.pyslurm_stub import Stub, install

UNDER_PYSLURM = "24.11"
"""The release whose answers stand for those of 25.11's commands, which pyslurm's gateway asks as well."""

RANGE_WRITES = 3
"""How many updates went out in the case `errors` before the one whose value is out of range."""


@dataclass(frozen=True)
class World:
    """A gateway and the job ids behind the names of CONTRACT; `sent` counts the updates that went out."""

    gateway: Gateway
    ids: Mapping[str, int]
    sent: Callable[[], int]

    def jobs(self) -> dict[str, Job]:
        """Return the jobs as they are read now, by label."""
        return {job.label: job for job in self.gateway.read_jobs()}

    def job(self, name: str, suffix: str = "") -> Job:
        """Return one of the jobs; `suffix` is what stands behind the job id in its label."""
        return self.jobs()[f"{self.ids[name]}{suffix}"]

    def update(self, name: str, value: int) -> SiteFactorUpdate:
        """Return the update of one of the jobs."""
        return SiteFactorUpdate(self.ids[name], str(self.ids[name]), value)

    def updates(self) -> list[SiteFactorUpdate]:
        """Return an update for each kind of job, two of which must fail."""
        return [map_update(update) for update in contract_updates(dict(self.ids))]

    def resets(self) -> list[SiteFactorUpdate]:
        """Return the updates that put the array and the het job back to zero."""
        return [map_update(update) for update in contract_resets(dict(self.ids))]


Worlds = Mapping[str, Callable[[pytest.MonkeyPatch], World]]


def map_update(update: list[int | str]) -> SiteFactorUpdate:
    """Return an update with its types."""
    job_id, name, value = update
    return SiteFactorUpdate(int(job_id), str(name), int(value))


def fake_slurm(user: str = "scoreop") -> FakeSlurm:
    """Return the shipped fake with five nodes, seen by a user."""
    nodes = [
        Node(name=f"g{i}", cpus=8, gpus=GpuCount(4, {"a100": 4}), partitions=("main",)) for i in range(5)
    ]
    main = Partition(name="main", default=True, max_time_s=604_800)
    slurm = FakeSlurm(nodes, [main], {"normal": 100}, user=user, admin_levels={"scoreop": "Operator"})
    slurm.guard.access = Access.ENFORCE
    return slurm


HOUR = Submission(user="alice", time_limit_s=3600)


def fake_world(_monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the shipped fake with the jobs of CONTRACT."""
    slurm = fake_slurm()
    ids = {"finished": slurm.submit(replace(HOUR, run_time_s=60))}
    slurm.advance(slurm.now_s + 60)
    ids["running"] = slurm.submit(replace(HOUR, nodes=5, tasks=5, cpus_per_task=8))
    slurm.schedule()
    ids |= {
        "plain": slurm.submit(replace(HOUR, gres="gpu:a100:1")),
        "held": slurm.submit(replace(HOUR, hold=True)),
        "array": slurm.submit(replace(HOUR, array="0-5%2", gpus="1")),
        "het": slurm.submit_het([replace(HOUR, tasks=1), replace(HOUR, tasks=2)]),
        "pinned": slurm.submit(HOUR),
        "of-bob": slurm.submit(replace(HOUR, user="bob")),
    }
    slurm.update_priority(ids["pinned"], 5000)
    slurm.schedule()
    return World(slurm, ids, lambda: slurm.update_count)


def recorded_world(case: RecordedCase, _monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the product's gateway on the answers of one release."""
    replay = Replay(case)
    return World(gateway_of(case, replay), case.jobs, lambda: replay.writes)


def pyslurm_world(case: RecordedCase, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return pyslurm's gateway on a stub that holds the jobs of CONTRACT.

    No Slurm 25.11 and so no pyslurm can be installed where these tests run. What is shown: the gateway
    keeps the laws if pyslurm's objects are what its source says, and if 25.11's commands answer as
    24.11's do. What isn't: that libslurm 25.11 fills the objects in like that.
    """
    replay = Replay(case)
    stub = BehavingStub(case.jobs, int(case.now_s), replay)
    install(monkeypatch, stub)
    gateway = PyslurmGateway(gateway_of(case, stub.run))
    return World(gateway, case.jobs, lambda: replay.writes)


WORLDS: Worlds = {
    "fake": fake_world,
    **{case.release: partial(recorded_world, case) for case in recorded("contract")},
    "pyslurm-stub": next(
        partial(pyslurm_world, case) for case in recorded("contract") if case.release == UNDER_PYSLURM
    ),
}
"""All of them, with the jobs of CONTRACT; we are an operator."""


def fake_with_two_jobs(user: str, _monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the shipped fake with a job of alice's and one of bob's, seen by a user."""
    slurm = fake_slurm(user)
    ids = {"plain": slurm.submit(HOUR), "of-bob": slurm.submit(replace(HOUR, user="bob"))}
    return World(slurm, ids, lambda: slurm.update_count)


def errors_world(case: RecordedCase, writes: int, _monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the product's gateway on the wrong questions of one release, after some of the updates."""
    replay = Replay(case)
    replay.writes = writes
    return World(gateway_of(case, replay), case.jobs, lambda: replay.writes - writes)


def errors_under_pyslurm(case: RecordedCase, writes: int, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the same through pyslurm's gateway, which leaves updates to the commands."""
    world = errors_world(case, writes, monkeypatch)
    commands = world.gateway
    assert isinstance(commands, CommandGateway)
    install(monkeypatch, Stub())
    return replace(world, gateway=PyslurmGateway(commands))


def errors_worlds(user: str, writes: int) -> Worlds:
    """Return the worlds of the case `errors`, where we are a user and that many updates went out before."""
    cases = {case.release: case for case in recorded("errors")}
    return {
        "fake": partial(fake_with_two_jobs, user),
        **{release: partial(errors_world, case, writes) for release, case in cases.items()},
        "pyslurm-stub": partial(errors_under_pyslurm, cases[UNDER_PYSLURM], writes),
    }


AS_ALICE = errors_worlds("alice", 0)
AS_OPERATOR = errors_worlds("scoreop", RANGE_WRITES)
