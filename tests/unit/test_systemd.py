"""etc/*.service: what they start exists, and they are shut in as far as the product allows."""

import configparser
import shlex
from pathlib import Path

import click
import pytest

from slurm_score.cli import main

UNITS = sorted((Path(__file__).parents[2] / "etc").glob("*.service"))


def unit(path: Path) -> configparser.ConfigParser:
    """Return a unit, with its names as they are written; a name that comes twice is an error."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def test_there_is_a_unit_for_each_daemon() -> None:
    """The reprioritizer and the service."""
    assert [path.name for path in UNITS] == ["slurm-score-reprioritize.service", "slurm-score-serve.service"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_command_and_options_exist(path: Path) -> None:
    """click itself reads the words of ExecStart."""
    program, name, *words = shlex.split(unit(path)["Service"]["ExecStart"])
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None
    assert (Path(program).name, path.name) == ("slurm-score", f"slurm-score-{name}.service")
    assert command.make_parser(click.Context(command)).parse_args(words)[1] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_daemon_runs_as_slurm_user_under_a_watchdog_without_rights(path: Path) -> None:
    """systemd.exec(5), systemd.service(5); SlurmUser has no rate limit, and owns the hook's socket."""
    service = unit(path)["Service"]
    wanted = {
        "User": "slurm",
        "Type": "notify",
        "Restart": "on-failure",
        "StateDirectory": "slurm-score",
        "CapabilityBoundingSet": "",
        "NoNewPrivileges": "yes",
        "PrivateTmp": "yes",
        "ProtectHome": "yes",
        "ProtectSystem": "strict",
    }
    assert {name: service[name] for name in wanted} == wanted
    assert {"WatchdogSec", "MemoryMax", "RestrictAddressFamilies"} <= set(service)


def test_only_the_service_has_the_folder_of_the_sockets() -> None:
    """systemd takes a RuntimeDirectory away when its unit stops: two units must not share it."""
    folders = [unit(path)["Service"].get("RuntimeDirectory") for path in UNITS]
    assert folders == [None, "slurm-score"]
    assert unit(UNITS[1])["Service"]["RuntimeDirectoryMode"] == "0755"


def test_the_reprioritizer_alone_gets_the_signal() -> None:
    """Its scontrol ends by itself, between two updates."""
    assert unit(UNITS[0])["Service"]["KillMode"] == "mixed"
