"""Every example that a --help shows runs as it stands there, on a fake Slurm and the real service."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from slurm_score.audit import AuditTrail
from slurm_score.errors import ServiceError
from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition
from slurm_score.report.manpages import subcommands
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.slurm.fake import FakeSlurm, Submission
from slurm_score.watch import read_policy
from tests.docs import PROGRAMS

JOB = 812
"""The job of the examples: the last that was submitted."""

BLOCK = re.compile(r"^ *Examples?:\n((?: +\S.*\n|\n(?= +\$))+)", re.MULTILINE)
DAEMONS = {"slurm-score serve", "slurm-score reprioritize --every"}
"""Beginnings of examples that run until they are stopped."""

CODES = {"slurm-score check": {0, 1}, "slurm-score status": {0, 1, 2}, "slurm-score policy diff": {0, 1}}
"""Exit codes that --help documents for what a command finds; all others are to end with 0."""

SACCT = """\
JobIDRaw|User|Submit|End|ElapsedRaw|State
1|alice|1793520000|1793523600|3000|COMPLETED
2|alice|1793606400|1793610000|3200|COMPLETED
"""
"""The file sacct.txt of the examples."""
JOBS = """\
JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|ReqCPUS|ReqTRES|User|QOS|Partition
7|2026-01-01T00:00:00|60|1|1|4|cpu=4,gres/gpu:a100=2|ann|low|all
8|2026-01-01T00:00:10|60|1|1|4|cpu=4,gres/gpu:a100=1|bob|high|all
"""
CLUSTER = """\
nodes: [{names: g1, cores: 4, mem_mb: 1000, gres: "gpu:a100:2"}]
partitions: {all: {nodes: g1}}
qos: {low: 1, high: 9}
"""


@dataclass(frozen=True)
class Site:
    """A folder in the place of /, with the variables that make our commands use it."""

    root: Path

    def at(self, path: str) -> Path:
        """Return where a path of the examples is."""
        return self.root / path.lstrip("/")

    @property
    def env(self) -> dict[str, str]:
        """The variables that name our files."""
        state = self.at("/var/lib/slurm-score")
        return {
            "SLURM_SCORE_POLICY": str(self.at("/etc/slurm/slurm-score.yaml")),
            "SLURM_SCORE_SNAPSHOT": str(state / "snapshot.jsonl"),
            "SLURM_SCORE_AUDIT": str(state / "audit.sqlite"),
            "SLURM_SCORE_HISTORY": str(state / "history.sqlite"),
            "SLURM_SCORE_SOCKET": str(self.at("/run/readers")),
            "SLURM_SCORE_HOOK_SOCKET": str(self.at("/run/hook")),
        }


class Slurm(FakeSlurm):
    """The fake with what only `explain --start` asks."""

    def read_expected_start(self, job_id: int) -> int | None:
        """Return ten minutes from now."""
        assert job_id
        return self.now_s + 600


def a_slurm() -> Slurm:
    """Return a cluster of full nodes, as of now, with waiting jobs of alice and bob, job 812 among them."""
    parts = [Partition(name="main", default=True, cpus=64), Partition(name="gpu", cpus=64)]
    nodes = [
        Node(name=f"{gpu}-1", cpus=32, gpus=GpuCount(4, {gpu: 4}), partitions=("main", "gpu"))
        for gpu in ("a100", "v100")
    ]
    now_s = int(time.time())
    slurm = Slurm(nodes, parts, {"normal": 0, "high": 100}, start_s=now_s - 60)
    for _ in range(2):
        slurm.submit(Submission(gres="gpu:4", cpus_per_task=32, time_limit_s=36_000, run_time_s=36_000))
    slurm.schedule()
    for i in range(3, JOB + 1):
        kinds = {0: Submission(user="alice", gres="gpu:a100:1"), 1: Submission(user="bob", partition="gpu")}
        slurm.submit(kinds[i % 2] if i > JOB - 6 else Submission(hold=True))
    slurm.advance(now_s)
    return slurm


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """What the examples find: Slurm behind the commands, policy, a cycle's files and the service."""
    site, slurm = Site(tmp_path), a_slurm()
    for folder in ("/etc/slurm", "/var/lib/slurm-score", "/run", "/run/2"):
        site.at(folder).mkdir(parents=True)
    policy, snapshot = site.at("/etc/slurm/slurm-score.yaml"), Path(site.env["SLURM_SCORE_SNAPSHOT"])
    policy.write_text("mode: observe\n", encoding="utf-8")
    (tmp_path / "new.yaml").write_text("factors: {wait: {weight: 9}, size: {weight: 4}}\n", encoding="utf-8")
    (tmp_path / "sacct.txt").write_text(SACCT, encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(JOBS, encoding="utf-8")
    (tmp_path / "site.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "slurm-score.yaml").write_text("mode: observe\n", encoding="utf-8")
    trail = AuditTrail(Path(site.env["SLURM_SCORE_AUDIT"]))
    Reprioritizer(slurm, lambda: read_policy(policy), snapshot, audit=trail).cycle()
    for module in [one for name, one in sys.modules.items() if name.startswith("slurm_score.cli.")]:
        if hasattr(module, "CommandGateway"):
            monkeypatch.setattr(module, "CommandGateway", lambda: slurm)
    monkeypatch.chdir(tmp_path)
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    addresses = Addresses(hook=site.at("/run/hook"), readers=site.at("/run/readers"))
    state = State(policy, snapshot)
    with running_service(state, addresses):
        yield site
    state.close()


def commands() -> Iterator[tuple[click.Command, click.Context]]:
    """Yield the programs and every command of theirs."""
    for name, program in PROGRAMS.items():
        context = click.Context(program, info_name=name, terminal_width=300, **program.context_settings)
        yield program, context
        yield from subcommands(program, context)


def examples_of(text: str) -> list[str]:
    """Return the command lines of the examples in a help text; where a $ marks them the rest is output."""
    lines = [
        line.strip() for block in BLOCK.findall(f"{text}\n") for line in block.splitlines() if line.strip()
    ]
    marked = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return marked or lines


def all_examples() -> list[str]:
    """Return every example once."""
    found = [line for command, context in commands() for line in examples_of(command.get_help(context))]
    return list(dict.fromkeys(found))


def test_every_command_has_an_example() -> None:
    """One that begins with its own name; groups are there for their subcommands."""
    without = [
        context.command_path
        for command, context in commands()
        if not isinstance(command, click.Group)
        and not any(
            line.startswith(context.command_path.removesuffix(" decisions"))
            for line in examples_of(command.get_help(context))
        )
    ]
    assert without == []


@pytest.mark.parametrize("example", [one for one in all_examples() if not one.startswith(tuple(DAEMONS))])
def test_example_runs(site: Site, example: str) -> None:
    """It ends with 0, or with what its --help says of what it found; no traceback, no complaint of usage."""
    program, *words = shlex.split(example.replace(" /etc/", f" {site.root}/etc/"))
    result = CliRunner().invoke(PROGRAMS[program], words)
    codes = next((codes for name, codes in CODES.items() if example.startswith(name)), {0})
    assert result.exit_code in codes, result.output
    assert "Usage:" not in result.output


@pytest.mark.parametrize("example", [one for one in all_examples() if one.startswith(tuple(DAEMONS))])
def test_example_of_a_daemon_runs_until_it_is_stopped(site: Site, example: str) -> None:
    """It says or does what it is to do first, and ends with 0 at SIGTERM."""
    hook, readers = site.at("/run/2/hook"), site.at("/run/2/readers")  # the others are taken
    env = os.environ | {"SLURM_SCORE_HOOK_SOCKET": str(hook), "SLURM_SCORE_SOCKET": str(readers)}
    code = "from slurm_score.cli import main; main()"
    argv = [sys.executable, "-c", code, *shlex.split(example)[1:]]
    with subprocess.Popen(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            if "serve" in example:
                wait_for(lambda: answers(readers))
            else:
                assert process.stderr is not None
                assert "cycle given up: scontrol: not found" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def answers(readers: Path) -> bool:
    """Return whether the service answers: from then on a signal ends it in good order."""
    try:
        return bool(ServiceClient(readers).health())
    except ServiceError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    latest_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < latest_s
        time.sleep(0.05)


def test_help_has_no_marks_of_its_source() -> None:
    """click takes \\b for itself only where it begins a paragraph."""
    assert [
        context.command_path for command, context in commands() if "\b" in command.get_help(context)
    ] == []


def test_examples_are_found_in_a_help_text() -> None:
    """A block of lines, or lines marked with $ amid what they print."""
    assert examples_of("Examples:\n  a b\n  a c\n\nOptions:\n  -x\n") == ["a b", "a c"]
    assert examples_of("  Example:\n    $ a\n    out\n    $ b\n    …\n") == ["a", "b"]
