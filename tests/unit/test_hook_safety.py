"""What the hook's sources never call, whatever it is told."""

import re
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[2] / "job_submit").glob("*.lua"))
FORBIDDEN = re.compile(
    r"\b(io\.\w+|os\.(?:execute|remove|rename|exit|tmpname)|loadstring|load|dofile|loadfile)\s*\("
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_hook_starts_no_process_and_touches_no_file(path: Path) -> None:
    """Case 52: a fork of slurmctld under its locks takes tens of milliseconds; and text is never code."""
    assert not FORBIDDEN.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", ["io.popen('ls')", "os.execute('ls')", "load (text)", "io.open(name)"])
def test_the_check_finds_such_a_call(call: str) -> None:
    """The check can fail."""
    assert FORBIDDEN.findall(f"local x = {call}")
