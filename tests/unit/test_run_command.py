"""slurm_score/slurm/commands.py: how a command is run, with small real programs."""

import os
from pathlib import Path

import pytest

from slurm_score.errors import (
    AccountingDownError,
    CommandFailedError,
    CommandNotFoundError,
    CommandTimedOutError,
    ControllerDownError,
    SlurmError,
)
from slurm_score.slurm.commands import Answer, run_command


def test_command_gets_its_input_and_both_outputs_are_read() -> None:
    """A script that copies stdin to stdout, complains, and fails."""
    answer = run_command(["sh", "-c", "cat; echo oops >&2; exit 3"], "é\n", 60)
    assert answer == Answer(3, "é\n", "oops\n")


def test_large_answers_on_both_pipes_block_nothing() -> None:
    """A pipe holds 64 KiB: whoever drains one only waits for ever."""
    script = "i=0; while [ $i -lt 20000 ]; do echo 1234567; echo 1234567 >&2; i=$((i+1)); done"
    answer = run_command(["sh", "-c", script], "", 60)
    assert (len(answer.stdout), len(answer.stderr)) == (160_000, 160_000)


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    """Slurm stores comments as bytes."""
    assert run_command(["printf", r"caf\351\n"], "", 60).stdout == "caf\ufffd\n"


def test_foreign_settings_do_not_reach_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 30: SQUEUE_FORMAT and its like would bring other columns; times are asked for as epoch seconds."""
    for name in ("SQUEUE_FORMAT", "SQUEUE_STATES", "SPRIO_FORMAT", "SCONTROL_ALL", "SACCT_FORMAT"):
        monkeypatch.setenv(name, "%all")
    for name in ("SINFO_FORMAT", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "LC_ALL"):
        monkeypatch.setenv(name, "relative")
    monkeypatch.setenv("SLURM_CONF", "/etc/other/slurm.conf")
    lines = run_command(["env"], "", 60).stdout.splitlines()
    ours = ("SQUEUE_", "SPRIO_", "SCONTROL_", "SACCT_", "SINFO_", "SLURM_", "LC_ALL")
    assert sorted(line for line in lines if line.startswith(ours)) == [
        "LC_ALL=C.UTF-8",
        "SLURM_BITSTR_LEN=0",
        "SLURM_CONF=/etc/other/slurm.conf",
        "SLURM_TIME_FORMAT=%s",
    ]


def test_missing_command_says_where_to_look() -> None:
    """The one remedy: PATH."""
    with pytest.raises(CommandNotFoundError, match="no-such-squeue: not found; are Slurm's commands on PATH"):
        run_command(["no-such-squeue", "-h"], "", 60)


def test_command_that_does_not_end_is_killed() -> None:
    """A hanging slurmctld doesn't hang the daemon."""
    with pytest.raises(CommandTimedOutError, match=r"sleep 3600: no answer within 0.05 s"):
        run_command(["sleep", "3600"], "", 0.05)


@pytest.mark.parametrize(
    ("name", "kind"), [("scontrol", ControllerDownError), ("sacct", AccountingDownError)]
)
def test_command_that_is_killed_while_a_daemon_is_down_says_which(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, kind: type[SlurmError]
) -> None:
    """With slurmctld down scontrol tries for 9 s at each update: its time is over before its input."""
    script = tmp_path / name
    script.write_text("#!/bin/sh\necho 'Connection refused for job 4' >&2\necho more >&2\nexec sleep 3600\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SlurmError, match="no answer within 1 s: 'Connection refused for job 4'") as caught:
        run_command([name], "", 1)
    assert type(caught.value) is kind
    assert caught.value.stderr == "Connection refused for job 4\nmore\n"


def test_command_that_cant_be_started_is_a_failure() -> None:
    """A folder is no program."""
    with pytest.raises(CommandFailedError, match="/: Permission denied"):
        run_command(["/"], "", 60)


def test_command_has_a_session_of_its_own() -> None:
    """A Ctrl-C at our terminal reaches us and not the scontrol that we run."""
    answer = run_command(["sh", "-c", "ps -o sid= -p $$; echo $$"], "", 60)
    session, own = answer.stdout.split()
    assert (session, session != str(os.getsid(0))) == (own, True)
