"""sscore as a process of its own on a terminal (pty) and in a pipe: width, colour, and who reads along."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from slurm_score.policy import Policy
from slurm_score.service.background import running_service
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot
from tests.unit.builders import NOW, make_cluster, make_job

SSCORE = [sys.executable, "-c", "from slurm_score.cli.sscore import main; main()"]
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
WIDE = "JOBID      PARTITION  USER   SCORE  RANK  WAIT  REMAIN  SIZE  QOS  GRESFIT"
JOB = "123456789  main       alice    158     1     0     150     8    0        0"


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of a running service that knows one job."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "policy.yaml").write_text("mode: observe\n", encoding="utf-8")
    jobs = (make_job(123456789, name="学習no"),)
    write_snapshot(folder / "snapshot.jsonl", Snapshot(policy=Policy(), cluster=make_cluster(), jobs=jobs))
    state = State(folder / "policy.yaml", folder / "snapshot.jsonl", lambda: NOW)
    with running_service(state, Addresses(hook=folder / "hook.sock", readers=folder / "score.sock")):
        yield str(folder / "score.sock")


def environment(socket: str, **changes: str) -> dict[str, str]:
    """Return the environment of a user's shell."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    return kept | {"SLURM_SCORE_SOCKET": socket, "TERM": "xterm", "LC_ALL": "C.UTF-8"} | changes


def on_terminal(env: dict[str, str], columns: int, *argv: str) -> str:
    """Return what sscore writes on a terminal of so many columns, standard error included."""
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        done = subprocess.run(
            [*SSCORE, *argv], stdout=theirs, stderr=theirs, env=env, timeout=60, check=False
        )
        assert done.returncode == 0
        return os.read(ours, 65536).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_header_is_bold_on_a_terminal(socket: str) -> None:
    """And nothing else: the rows are text."""
    assert on_terminal(environment(socket), 80) == f"{BOLD}{WIDE}{PLAIN}\n{JOB}\n"
    assert on_terminal(environment(socket), 80, "-h") == "123456789  main  alice  158  1  0  150  8  0  0\n"


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_nothing_is_bold_where_nobody_wants_it(socket: str, changes: dict[str, str]) -> None:
    """no-color.org, and terminals that can't."""
    assert on_terminal(environment(socket, **changes), 80) == f"{WIDE}\n{JOB}\n"


def test_a_narrow_terminal_is_told_what_had_no_room(socket: str) -> None:
    """Closer together first, then without the columns that matter least; the sentence stands below."""
    assert on_terminal(environment(socket, NO_COLOR="1"), 50).splitlines() == [
        "JOBID     PARTITION USER  SCORE RANK WAIT REMAIN",
        "123456789 main      alice   158    1    0    150",
        "sscore: no room at 50 columns for SIZE, QOS, GRESFIT; -O and a pipe show all",
    ]


def test_a_pipe_gets_every_column_and_no_colour(socket: str) -> None:
    """However narrow the terminal is that it was called from, and even where colour is forced."""
    env = environment(socket, COLUMNS="20", FORCE_COLOR="1", CLICOLOR_FORCE="1")
    done = subprocess.run(SSCORE, capture_output=True, text=True, env=env, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (f"{WIDE}\n{JOB}\n", "")


def test_a_reader_that_has_seen_enough_causes_no_traceback(socket: str) -> None:
    """`sscore | head -0`: the pipe is closed before anything is written."""
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w") as pipe:
        done = subprocess.run(
            SSCORE, stdout=pipe, stderr=subprocess.PIPE, env=environment(socket), timeout=60
        )
    assert done.stderr == b""


def test_a_terminal_without_a_name_s_letters_shows_question_marks(socket: str) -> None:
    """One user's job name must not stop another's sscore."""
    env = environment(socket, PYTHONIOENCODING="latin-1")
    argv = [*SSCORE, "-h", "-O", "job,name"]
    done = subprocess.run(argv, capture_output=True, env=env, timeout=60, check=True)
    assert done.stdout == b"123456789  ??no\n"
