"""Prepares situations on a running cluster, and waits until they are what the table says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.contract.shapes import EPILOG, EPILOG_PATH
from tests.contract.table import Situation
from tests.live.harness import Cluster, wait_for

PYTHON = "/opt/slurm-score/bin/python"
SCRIPT = Path(__file__).with_name("in_container.py")
SETTLE_S = 90.0
EVERY_TASK = {"SLURM_BITSTR_LEN": "0"}


@dataclass
class Stage:
    """A cluster on which situations are prepared; `ids` has the job id of each by its name.

    `afterwards` undoes what a case changed, once its jobs are gone.
    """

    cluster: Cluster
    ids: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    afterwards: list[Callable[[], object]] = field(default_factory=list)

    @property
    def release(self) -> str:
        """The release of the cluster."""
        return self.cluster.release.name

    def install(self) -> None:
        """Put the script that asks Slurm on the controller and the epilog on the nodes."""
        self.cluster.write_file("/tmp/in_container.py", SCRIPT.read_text())
        for node in self.cluster.nodes[1:]:
            self.cluster.write_file(EPILOG_PATH, EPILOG, mode=0o755, node=node)

    def clear(self) -> None:
        """End every job, undo what was changed, and forget the jobs' names."""
        self.cluster.clear_jobs()
        for undo in self.afterwards:
            undo()
        self.ids, self.left_out, self.afterwards = {}, {}, []

    def root(self, *argv: str) -> str:
        """Return what a command of root's printed."""
        return self.cluster.exec(argv).stdout

    def afterwards_run(self, *commands: str) -> None:
        """Run commands of root's once the jobs are gone, whatever becomes of them.

        Some releases take a node back by themselves, and then refuse to be told so.
        """
        for command in commands:
            self.afterwards.append(partial(self.cluster.exec, command.split(" "), check=False))

    def submit(self, situations: Iterable[Situation]) -> None:
        """Submit the situations in order, as far as the release takes them, and run what follows."""
        wanted = [s for s in situations if self.release not in s.refused]
        self.left_out |= {s.name: s.refused[self.release] for s in situations if self.release in s.refused}
        while wanted:
            at_once = next((n for n, s in enumerate(wanted, 1) if s.starts), len(wanted))
            batch, wanted = wanted[:at_once], wanted[at_once:]
            self._submit_batch(batch)
            if batch[-1].starts:
                self.wait_for_start(batch[-1].name)

    def _submit_batch(self, batch: Sequence[Situation]) -> None:
        argvs = [{"user": s.user, "argv": self._sbatch(s)} for s in batch]
        for situation, answer in zip(batch, self.in_container({"submit": argvs}), strict=True):
            if not answer["stdout"].strip():
                raise ValueError(f"{self.release}: {situation.name} is refused: {answer['stderr'].strip()}")
            self.ids[situation.name] = int(answer["stdout"].split(";")[0])
        for situation in batch:
            for command in situation.then:
                self.root(*command.format(id=self.ids[situation.name], **self.ids).split())

    def _sbatch(self, situation: Situation) -> list[str]:
        limit = [] if situation.time is None else [f"--time={situation.time}"]
        options = [o.format(**self.ids) if o.startswith("--dependency") else o for o in situation.options]
        name, script = f"--job-name={situation.name}", f"--wrap={situation.command}"
        return ["sbatch", "--parsable", "--output=/dev/null", name, script, *limit, *options]

    def in_container(self, request: Mapping[str, Any], *, user: str = "root") -> Any:
        """Return the answer of the script in the container."""
        argv = [PYTHON, "/tmp/in_container.py"]
        result = self.cluster.exec(argv, user=user, stdin=json.dumps(request), timeout_s=300)
        return json.loads(result.stdout)

    def wait_for_start(self, name: str) -> None:
        """Return when a job, or a task of it, runs."""
        self.wait_until(name, "RUNNING")

    def wait_until(self, name: str, word: str, field: str = "%T") -> None:
        """Return when squeue prints the word for a job, or for a task of it: its state, or %r its reason."""
        argv = ["squeue", "-h", "--states=all", f"--jobs={self.ids[name]}", f"--format={field}"]
        wait_for(
            lambda: word in self.root(*argv).splitlines(),
            SETTLE_S,
            lambda: f"{self.release}: {name} is {word}, {self.root(*argv).splitlines()}",
        )

    def settle(self, situations: Iterable[Situation]) -> None:
        """Return when squeue and sprio list every record that the table names, in its state."""
        wanted = {
            f"{self.ids[s.name]}{suffix}": (reading.state, reading.held, reading.site is not None)
            for s in situations
            if s.name in self.ids
            for suffix, reading in (s.reads_on(self.release) or {}).items()
        }
        wait_for(
            lambda: wanted.items() <= self._records().items(),
            SETTLE_S,
            lambda: (
                f"{self.release}: {sorted(wanted.items() - self._records().items())} of {self._records()}"
            ),
        )

    def wait_until_ranked(self, *names: str) -> None:
        """Return when sprio lists the jobs."""
        wanted = {str(self.ids[name]) for name in names}
        wait_for(
            lambda: wanted <= set(self.root("sprio", "--noheader", "--format=%i").split()),
            SETTLE_S,
            f"{self.release}: sprio lists {names}",
        )

    def _records(self) -> dict[str, tuple[str, bool, bool]]:
        """Return state, whether held, and whether ranked, by the label of each record."""
        ranked = set(self.root("sprio", "--noheader", "--format=%i").split())
        argv = ["squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%i|%A|%T|%Q"]
        rows = self.cluster.exec(argv, env=EVERY_TASK).stdout.splitlines()
        parts = (row.split("|") for row in rows)
        return {label: (state, priority == "0", job in ranked) for label, job, state, priority in parts}
