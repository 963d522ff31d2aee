"""Runs in the controller's container with the product's own Python: submits jobs, tells what the product
reads, or asks Slurm through the product's gateway and keeps every byte of the answers.

Standard input is a request in JSON, standard output the answer. Texts may hold lone surrogates, which
stand for bytes that aren't UTF-8.
"""

import base64
import dataclasses
import json
import pwd
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

from slurm_score.errors import SlurmError
from slurm_score.model import Job, Node
from slurm_score.slurm import commands, parse
from slurm_score.slurm.gateway import Access, SiteFactorUpdate, WriteGuard

TOKEN = "0123456789abcdef"  # instead of the random end of a record
FOREVER_S = 120.0

Command = dict[str, Any]


def main() -> None:
    """Answer one request: {"submit": [...]}, {"ask": [...]} or {"read": "jobs"}."""
    [(verb, what)] = json.load(sys.stdin).items()
    json.dump(_VERBS[verb](what), sys.stdout)


def _submit(jobs: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Run each argv as its user, in order, in the folder that every user may write to."""
    answers = []
    for job in jobs:
        user = pwd.getpwnam(job["user"])
        done = subprocess.run(
            job["argv"],
            capture_output=True,
            check=False,
            cwd="/tmp",
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            timeout=FOREVER_S,
        )
        answers.append({"stdout": done.stdout.decode(), "stderr": done.stderr.decode()})
    return answers


def _ask(steps: list[list[Any]]) -> dict[str, Any]:
    """Take the steps one after the other; return the commands that were run for them, and when."""
    taken: list[Command] = []
    run = subprocess.run

    def recording(argv: list[str], **options: Any) -> "subprocess.CompletedProcess[bytes]":
        done = run(argv, **options)
        taken.append(
            {
                "argv": list(argv),
                "stdin": (options.get("input") or b"").decode(),
                "exit": done.returncode,
                "stdout": base64.b64encode(done.stdout).decode(),
                "stderr": base64.b64encode(done.stderr).decode(),
            }
        )
        return done

    now_s = int(time.time())
    with (
        mock.patch.object(subprocess, "run", recording),
        mock.patch.object(secrets, "token_hex", return_value=TOKEN),
    ):
        raised = [_step(step) for step in steps]
    return {"now_s": now_s, "commands": taken, "raised": raised}


def _step(step: list[Any]) -> str:
    """Take one step and return the class of the error that it met, empty for none."""
    name, *arguments = step
    try:
        _STEPS[name](*arguments)
    except SlurmError as error:
        return type(error).__name__
    return ""


def _read(what: str) -> list[dict[str, Any]]:
    """Return what the product makes of the jobs or the nodes, as dictionaries."""
    items: tuple[Job, ...] | tuple[Node, ...]
    if what == "nodes":
        items = _gateway().read_cluster().nodes
    elif what == "jobs":
        items = _gateway().read_jobs()
    else:
        items = _read_with_field("NoSuchField")  # so that the product turns to JSON
    return [dataclasses.asdict(item) for item in items]


def _gateway() -> commands.CommandGateway:
    return commands.CommandGateway(WriteGuard(Access.ENFORCE))


def _read_with_field(field: str) -> tuple[Job, ...]:
    with mock.patch.object(parse, "JOB_FIELDS", (*parse.JOB_FIELDS[:-1], field, parse.JOB_FIELDS[-1])):
        return _gateway().read_jobs()


def _write(updates: list[list[Any]]) -> None:
    _gateway().write_site_factors([SiteFactorUpdate(*update) for update in updates])


def _run(argv: list[str]) -> None:
    commands.run_command(argv, "", FOREVER_S)


_STEPS: dict[str, Callable[..., Any]] = {
    "jobs": lambda: _gateway().read_jobs(),
    "jobs_with_field": _read_with_field,
    "cluster": lambda: _gateway().read_cluster(),
    "config": lambda: _gateway().read_config(),
    "past_runs": lambda job_ids: _gateway().read_past_runs(job_ids),
    "identity": lambda: _gateway().read_identity(),
    "write": _write,
    "run": _run,
}

_VERBS: dict[str, Callable[[Any], Any]] = {"submit": _submit, "ask": _ask, "read": _read}

if __name__ == "__main__":
    main()
