"""slurm_score/slurm/pyslurm_gateway.py: when it can't be used, and what it leaves to the commands."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from slurm_score.errors import (
    CommandFailedError,
    ControllerDownError,
    NotPermittedError,
    SlurmError,
    WriteRefusedError,
)
from slurm_score.model import PastRun
from slurm_score.plan import SiteFactorUpdate
from slurm_score.slurm.gateway import Access, WriteGuard
from slurm_score.slurm.pyslurm_gateway import available
from tests.unit.pyslurm_stub import JOB, NODE_RECORD, Stub, commands, door, install

# whether it can be used


@pytest.mark.parametrize(
    ("version", "release", "reason"),
    [
        ("25.11.2", "25.11.3", ""),
        ("25.11.0", "25.11.0-rc1", ""),
        ("25.11.2", "24.11.5", "pyslurm is used with Slurm 25.11 only, got 24.11.5"),
        ("25.11.2", "25.1.1", "pyslurm is used with Slurm 25.11 only, got 25.1.1"),
        ("24.11.0", "24.11.5", "pyslurm is used with Slurm 25.11 only, got 24.11.5"),
        ("24.11.0", "25.11.3", "pyslurm 24.11.0 doesn't match Slurm 25.11.3"),
        ("25.11.2", "", "pyslurm is used with Slurm 25.11 only, got no release"),
    ],
)
def test_release_must_match(monkeypatch: pytest.MonkeyPatch, version: str, release: str, reason: str) -> None:
    """slurm-facts 6: pyslurm must match Slurm's X.Y exactly."""
    install(monkeypatch, Stub(version=version))
    assert available(release) == reason


def test_pyslurm_that_is_not_installed_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that installs it."""
    monkeypatch.setenv("PYSLURM_DISABLE_AUTO_INIT", "")
    monkeypatch.setitem(sys.modules, "pyslurm", None)
    assert available("25.11.3") == (
        "pyslurm is not installed; pip install 'slurm-score[pyslurm]' on a host with Slurm 25.11"
    )


def test_pyslurm_that_cannot_be_loaded_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It links libslurmfull.so, which not every package of Slurm has."""
    (tmp_path / "pyslurm.py").write_text("raise ImportError('libslurmfull.so: cannot open')")
    monkeypatch.setenv("PYSLURM_DISABLE_AUTO_INIT", "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyslurm", raising=False)
    assert available("25.11.3") == "pyslurm can't be loaded: libslurmfull.so: cannot open"


def test_import_finds_no_configuration_and_leaves_the_loader_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """slurm-facts 6: without slurm.conf the automatic start would end the interpreter."""
    (tmp_path / "pyslurm.py").write_text(
        "import os, sys\nsys.setdlopenflags(sys.getdlopenflags() | os.RTLD_GLOBAL)\n"
        "__version__ = '25.11.' + os.environ['PYSLURM_DISABLE_AUTO_INIT']\n"
    )
    monkeypatch.setenv("PYSLURM_DISABLE_AUTO_INIT", "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyslurm", raising=False)
    flags = sys.getdlopenflags()
    assert available("25.11.3") == ""
    assert sys.modules.pop("pyslurm").__version__ == "25.11.1"
    assert sys.getdlopenflags() == flags


def test_library_is_started_with_whole_task_lists(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """slurm-facts 2: task lists are cut at 64 characters otherwise; what the commands do is said once."""
    stub = Stub()
    install(monkeypatch, stub)
    with caplog.at_level(logging.INFO):
        both = door(commands())
        both.read_jobs()
        both.read_cluster()
    assert stub.inits == ["0"]
    assert [record.getMessage() for record in caplog.records] == [
        "pyslurm 25.11.2 reads jobs, nodes and partitions; SiteFactors, QOS, configuration and accounting "
        "are read, and updates sent, through Slurm's commands"
    ]


# what pyslurm can't tell


@pytest.mark.parametrize(
    ("tres", "lacking"),
    [
        (["cpu"], "gres/gpu, gres/gpu:a100"),
        (["gres/gpu"], "gres/gpu:a100"),
        (["gres/gpu:a100"], "gres/gpu"),
    ],
)
def test_commands_are_read_where_slurm_does_not_count_a_gpu_type(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tres: list[str], lacking: str
) -> None:
    """pyslurm knows GPUs in use, and the types of --gpus, from counted TRES only."""
    install(monkeypatch, Stub(tres=tres))
    both = door(commands())
    for _ in range(2):
        assert [node.name for node in both.read_cluster().nodes] == ["n1"]
        assert both.read_jobs() == ()
    assert [record.getMessage() for record in caplog.records] == [
        f"pyslurm: AccountingStorageTRES lacks a GPU type, got '{lacking}'; {what} are read through Slurm's "
        "commands instead"
        for what in ("nodes and partitions", "jobs")
    ]


def test_cluster_without_gpus_needs_none_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are no GPUs."""
    install(
        monkeypatch,
        Stub(tres=["cpu"], nodes=[NODE_RECORD | {"configured_gres": {"shard": 8}, "allocated_gres": {}}]),
    )
    assert [job.job_id for job in door(commands()).read_jobs()] == [812]


@pytest.mark.parametrize("name", ["shard", "gres/shard:a100", "mps"])
def test_nodes_whose_gpus_are_shared_come_from_the_commands(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """allocated_gres counts shares, and says nothing of the GPUs that they are on (core/node.pyx)."""
    node = NODE_RECORD | {"configured_gres": {"gpu:a100": 4, name: 16}, "allocated_gres": {"shard": 3}}
    install(monkeypatch, Stub(nodes=[node]))
    both = door(commands())
    assert [node.name for node in both.read_cluster().nodes] == ["n1"]
    assert [job.job_id for job in both.read_jobs()] == [812]
    assert "pyslurm doesn't tell which GPUs are shared" in caplog.text


@pytest.mark.parametrize(
    "changes", [{"cpus": None, "gres": None}, {"array_id": 3, "array_tasks_waiting": "x"}]
)
def test_commands_are_read_where_a_record_is_not_readable(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """The commands' reader names the record and keeps the others."""
    install(monkeypatch, Stub(jobs=[JOB, JOB | changes]))
    slurm = commands()
    assert door(slurm).read_jobs() == ()
    assert [argv[0] for argv, _ in slurm.asked] == ["squeue", "sprio"]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Unable to contact slurm controller (connect failure)", ControllerDownError),
        ("Access/permission denied", NotPermittedError),
        ("Zero Bytes were transmitted or received", CommandFailedError),
    ],
)
def test_failed_call_is_told_by_its_cause(
    monkeypatch: pytest.MonkeyPatch, sentence: str, kind: type[SlurmError]
) -> None:
    """Slurm's own sentence is kept word for word."""
    install(monkeypatch, Stub(error=sentence))
    with pytest.raises(SlurmError) as caught:
        door(commands()).read_jobs()
    assert type(caught.value) is kind
    assert str(caught.value) == f"pyslurm.Nodes.load: {sentence}"


# what the commands do


def test_configuration_accounting_and_identity_come_from_the_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pyslurm would ask slurmdbd where slurmctld's memory knows."""
    install(monkeypatch, Stub())
    slurm = commands()
    both = door(slurm)
    assert both.read_config().release == "22.05.8"
    assert both.read_past_runs([7]) == {7: (PastRun("NODE_FAIL", 500.0),)}
    assert both.read_identity().admin_level == "None"
    assert [argv[0] for argv, _ in slurm.asked] == ["scontrol", "sacct", "scontrol"]


def test_updates_go_through_scontrol(monkeypatch: pytest.MonkeyPatch) -> None:
    """slurm-facts 6: pyslurm never sends a site_factor of 0 and can't name an array's pending tasks."""
    install(monkeypatch, Stub())
    slurm = commands()
    updates = [SiteFactorUpdate(3, "3_[6-99:3]", 700), SiteFactorUpdate(4, "4", 0)]
    assert door(slurm, Access.ENFORCE).write_site_factors(updates) == ()
    assert slurm.asked == [
        (("scontrol",), "update JobId=3_[6-99:3] SiteFactor=700\nupdate JobId=4 SiteFactor=0\n")
    ]


def test_there_is_one_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only unless told, and a guard given to this gateway is the one that decides."""
    install(monkeypatch, Stub())
    slurm = commands()
    both = door(slurm, Access.ENFORCE)
    both.guard = WriteGuard(Access.RESET)
    with pytest.raises(WriteRefusedError, match="1 updates refused: access is reset, not enforce"):
        both.write_site_factors([SiteFactorUpdate(4, "4", 1)])
    both.guard.access = Access.READ_ONLY
    with pytest.raises(WriteRefusedError, match="access is read-only"):
        both.write_site_factors([SiteFactorUpdate(4, "4", 0)])
    assert slurm.asked == []
