"""slurm_score/slurm/updates.py and controllers.py: the lines for scontrol, and what its ping prints."""

import pytest

from slurm_score.plan import SiteFactorUpdate
from slurm_score.slurm.controllers import parse_ping
from slurm_score.slurm.gateway import ControllerHost
from slurm_score.slurm.updates import update_lines


def lines(*updates: tuple[str, int]) -> list[str]:
    """Return the lines for updates given as (id, value)."""
    return [line.rstrip("\n") for line in update_lines([SiteFactorUpdate(1, i, v) for i, v in updates])]


def test_neighbours_with_one_value_share_a_line() -> None:
    """The order of the plan stays: jobs apart from each other are not brought together."""
    assert lines(("1", 5), ("2", 5), ("3", 6), ("4", 5)) == [
        "update JobId=1,2 SiteFactor=5",
        "update JobId=3 SiteFactor=6",
        "update JobId=4 SiteFactor=5",
    ]


def test_an_array_stands_alone() -> None:
    """Its list of tasks holds commas itself (trap 12)."""
    assert lines(("1", 5), ("9_[0-5,7]", 5), ("2", 5), ("3", 5)) == [
        "update JobId=1 SiteFactor=5",
        "update JobId=9_[0-5,7] SiteFactor=5",
        "update JobId=2,3 SiteFactor=5",
    ]


@pytest.mark.parametrize("digits", [1, 7, 10, 20])
def test_a_line_is_no_longer_than_scontrol_reads(digits: int) -> None:
    """4,095 characters, and 300 ids; none is lost or doubled, and the order stays."""
    ids = [f"{10 ** (digits - 1) + i}" for i in range(1000)]
    made = lines(*((job_id, 5) for job_id in ids))
    found = [line.removeprefix("update JobId=").split(" ")[0].split(",") for line in made]
    assert [job_id for part in found for job_id in part] == ids
    assert max(map(len, made)) < 4000
    assert max(map(len, found)) <= 300


PINGS = {
    "one": "Slurmctld(primary) at ctl is UP\n",
    "down": "Slurmctld(primary) at ctl is DOWN\n",
    "two": "Slurmctld(primary) at ctl1 is DOWN\nSlurmctld(backup) at ctl2.example.org is UP\n",
    "three, as root": (
        "Slurmctld(primary) at a is DOWN\nSlurmctld(backup1) at b is UP\nSlurmctld(backup2) at c is UP\n"
        "*****************************************\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n"
        "*****************************************\n"
    ),
    "nothing": "",
}


@pytest.mark.parametrize(
    ("name", "controllers"),
    [
        ("one", [("ctl", True)]),
        ("down", [("ctl", False)]),
        ("two", [("ctl1", False), ("ctl2.example.org", True)]),
        ("three, as root", [("a", False), ("b", True), ("c", True)]),
        ("nothing", []),
    ],
)
def test_ping_tells_the_controllers_in_their_order(name: str, controllers: list[tuple[str, bool]]) -> None:
    """scontrol.c, _print_ping, from 22.05 to 26.05; root sees a box of asterisks as well."""
    assert parse_ping(PINGS[name]) == tuple(ControllerHost(host, up) for host, up in controllers)
