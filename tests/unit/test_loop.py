"""slurm_score/loop.py, duty.py and lock.py: cycle after cycle, who acts, and what systemd hears."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_score.brakes import Brakes
from slurm_score.duty import Duty, other_host, same_host
from slurm_score.errors import ControllerDownError, LockedError, PolicyError, Problem
from slurm_score.gres import GpuCount
from slurm_score.lock import FileLock
from slurm_score.loop import Loop
from slurm_score.model import Node, Partition
from slurm_score.policy import Mode
from slurm_score.reprioritizer import CycleReport
from slurm_score.service.notify import Notifier
from slurm_score.slurm.fake import FakeSlurm
from slurm_score.slurm.gateway import ControllerHost

REPORT = CycleReport(
    mode=Mode.OBSERVE, policy_hash="abc", pending=2, planned=1, sent=0, failures=(), skipped={}
)
PRIMARY, BACKUP = ControllerHost("ctl1.example.org", True), ControllerHost("ctl2.example.org", True)
DOWN = ControllerHost("ctl1.example.org", False)


class Turns:
    """Cycles that end as they are told, the last of which stops the loop."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.stop = threading.Event()

    def __call__(self) -> CycleReport:
        """End as the next one in the list."""
        end = self.ends.pop(0)
        if not self.ends:
            self.stop.set()
        if end is not None:
            raise end
        return REPORT


def fake() -> FakeSlurm:
    """Return a cluster with one node."""
    node = Node(name="g1", cpus=8, gpus=GpuCount(), partitions=("main",))
    return FakeSlurm([node], [Partition(name="main", default=True)], {"normal": 0})


def loop_of(turns: Turns, folder: Path, *, slurm: FakeSlurm | None = None, address: str = "") -> Loop:
    """Return a loop without pauses over the turns."""
    gateway = slurm or fake()
    return Loop(
        turns,
        Brakes(0.0, stop=turns.stop),
        Duty(gateway, FileLock(folder / "instance.lock", "here"), "ctl1"),
        FileLock(folder / "cycle.lock", "here"),
        Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1"}),
    )


DOWN_ERROR = ControllerDownError("squeue: Unable to contact slurm controller")


def test_the_loop_goes_on_after_a_failed_cycle(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Trap 26: slurmctld is down for a while; the loop says so, slows down, and comes back step by step."""
    with caplog.at_level(logging.INFO):
        loop_of(Turns(DOWN_ERROR, DOWN_ERROR, None, None, None), tmp_path).run()
    assert [record.getMessage() for record in caplog.records] == [
        "cycle given up: squeue: Unable to contact slurm controller",
        "Slurm is in trouble: 1/2 of the updates, the next cycle in 0 s",
        "cycle given up: squeue: Unable to contact slurm controller",
        "Slurm is in trouble: 1/4 of the updates, the next cycle in 0 s",
        str(REPORT),
        "Slurm answers well: 1/2 of the updates, the next cycle in 0 s",
        str(REPORT),
        "Slurm answers well: the normal pace, a cycle every 0 s",
        str(REPORT),
        "stopped",
    ]


def test_a_policy_that_is_wrong_does_not_slow_the_loop_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is the admin's trouble and not slurmctld's: the repaired file counts at once."""
    loop_of(Turns(PolicyError([Problem("policy.yaml", "wrong")]), None), tmp_path).run()
    assert [record.getMessage() for record in caplog.records] == ["cycle given up: policy.yaml: wrong"]


def test_systemd_hears_of_the_first_attempt_of_each_report_and_of_the_end(tmp_path: Path) -> None:
    """sd_notify(3): READY once, even where slurmctld is down at first; the watchdog is fed each turn."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(10)
        listener.bind(str(tmp_path / "notify"))
        loop_of(Turns(DOWN_ERROR, None), tmp_path, address=str(tmp_path / "notify")).run()
        heard = [listener.recv(1000).decode() for _ in range(5)]
    assert heard == [
        f"READY=1\nSTATUS=cycle given up: {DOWN_ERROR}",
        "WATCHDOG=1",
        f"STATUS={REPORT}",
        "WATCHDOG=1",
        "STOPPING=1",
    ]


# who acts


@pytest.mark.parametrize(
    ("controllers", "host", "acting"),
    [
        ([PRIMARY], "ctl1", ""),
        ([PRIMARY, BACKUP], "ctl1", ""),
        ([PRIMARY, BACKUP], "ctl2", "ctl1.example.org"),
        ([DOWN, BACKUP], "ctl2.example.org", ""),
        ([DOWN, BACKUP], "ctl1.example.org", "ctl2.example.org"),
        ([PRIMARY, BACKUP], "login1", ""),
    ],
)
def test_the_host_of_the_first_controller_that_answers_acts(
    controllers: list[ControllerHost], host: str, acting: str
) -> None:
    """Trap 29; a host without a controller acts."""
    assert other_host(controllers, host) == (f"the controller on {acting} acts" if acting else "")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ctl", "CTL", True),
        ("ctl", "ctl.example.org", True),
        ("ctl.example.org.", "ctl.example.org", True),
        ("ctl.a.org", "ctl.b.org", False),
        ("ctl1", "ctl", False),
    ],
)
def test_short_and_long_names_are_one_host(one: str, other: str, same: bool) -> None:
    """slurm.conf may name a host either way, whatever hostname(1) says."""
    assert same_host(one, other) is same


def test_a_standby_takes_over_and_says_each_change_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it stands by it holds no lock, so that the other instance can."""
    slurm, lock = fake(), FileLock(tmp_path / "lock", "ctl2")
    duty = Duty(slurm, lock, "ctl2")
    told = []
    for controllers in (
        (PRIMARY, BACKUP),
        (PRIMARY, BACKUP),
        (DOWN, BACKUP),
        (DOWN, BACKUP),
        (PRIMARY, BACKUP),
    ):
        slurm.controllers = controllers
        told.append(duty.standby())
    there = "the controller on ctl1.example.org acts"
    assert told == [there, there, "", "", there]
    assert FileLock(tmp_path / "lock", "ctl1").take() == ""
    assert [record.getMessage() for record in caplog.records] == [
        f"this instance stands by: {there}",
        "this instance acts: ctl2 has the acting controller (ctl1.example.org, ctl2.example.org)",
        f"this instance stands by: {there}",
    ]


def test_an_instance_on_a_login_node_acts_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There is nobody to stand by for; the lock keeps a second one on this folder back."""
    slurm = fake()
    slurm.controllers = (PRIMARY, BACKUP)
    duty = Duty(slurm, FileLock(tmp_path / "lock", "login1"), "login1")
    assert [duty.standby(), duty.standby()] == ["", ""]
    assert [record.getMessage() for record in caplog.records] == [
        "this instance acts: login1 is no controller's host (ctl1.example.org, ctl2.example.org)"
    ]


def test_a_second_instance_stands_by_until_the_first_is_gone(tmp_path: Path) -> None:
    """The lock's file says who holds it."""
    first, second = (
        FileLock(tmp_path / "lock", "ctl1"),
        Duty(fake(), FileLock(tmp_path / "lock", "ctl1"), "ctl1"),
    )
    assert first.take() == ""
    assert second.standby() == f"{tmp_path / 'lock'} is held by 'pid {os.getpid()} on ctl1'"
    first.release()
    assert second.standby() == ""


def test_no_controller_at_all_is_slurmctld_down(tmp_path: Path) -> None:
    """Nobody acts, and the loop slows down."""
    slurm = fake()
    slurm.controllers = (DOWN,)
    with pytest.raises(ControllerDownError, match="Unable to contact slurm controller"):
        loop_of(Turns(None), tmp_path, slurm=slurm).turn()


# the lock of a cycle


def test_a_cycle_waits_for_the_one_before(tmp_path: Path) -> None:
    """A cycle by hand and one of the loop never send at the same time."""
    held, wanted = FileLock(tmp_path / "lock", "a"), FileLock(tmp_path / "lock", "b")
    assert held.take() == ""
    threading.Timer(0.2, held.release).start()
    with wanted.held(10.0, threading.Event()):
        assert held.take() != ""


def test_a_lock_that_stays_taken_is_an_error_that_names_the_holder(tmp_path: Path) -> None:
    """One sentence; so it is where we are told to stop."""
    holder, stop = FileLock(tmp_path / "other", "a"), threading.Event()
    assert holder.take() == ""
    waiting = FileLock(tmp_path / "other", "b")
    sentence = f"other: held by 'pid {os.getpid()} on a'; one writer at a time"
    with pytest.raises(LockedError, match=sentence), waiting.held(0.0, stop):
        pass
    stop.set()
    with pytest.raises(LockedError, match=sentence), waiting.held(60.0, stop):
        pass


def test_a_lock_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Not an OSError out of the depth."""
    with pytest.raises(LockedError, match="can't be opened: No such file or directory"):
        FileLock(tmp_path / "missing" / "lock", "a").take()


def test_a_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    """A cycle by root must not empty a file that somebody else has chosen."""
    (tmp_path / "precious").write_text("text")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(LockedError, match="can't be opened"):
        FileLock(tmp_path / "lock", "a").take()
    assert (tmp_path / "precious").read_text() == "text"


def test_a_signal_ends_the_pause(tmp_path: Path) -> None:
    """The loop is in a pause of an hour when the stop comes."""
    ran = threading.Event()

    def cycle() -> CycleReport:
        ran.set()
        return REPORT

    brakes = Brakes(3600.0)
    thread = threading.Thread(target=_run, args=(cycle, brakes, tmp_path))
    thread.start()
    assert ran.wait(10)
    brakes.stop.set()
    thread.join(10)
    assert not thread.is_alive()


def _run(cycle: Callable[[], CycleReport], brakes: Brakes, folder: Path) -> None:
    duty = Duty(fake(), None, "here")
    Loop(cycle, brakes, duty, FileLock(folder / "lock", "here"), Notifier({})).run()
