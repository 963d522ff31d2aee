"""A Slurm cluster in containers: bring it up, run commands in it, break it, take it down."""

from __future__ import annotations

import atexit
import contextlib
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from docker.client import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from . import containers, engine, execute, images, leftovers, topology
from .engine import wait_for
from .execute import ExecError, ExecTimeoutError, Result

__all__ = ["Cluster", "ClusterError", "ExecError", "ExecTimeoutError", "Result", "wait_for"]

READY = b"entrypoint: ready"  # the last line of entrypoint.sh
STATE_FOLDER = "/var/lib/slurm/slurmctld"  # StateSaveLocation
READY_TIMEOUT_S = 120.0
DAEMON_TIMEOUT_S = 60.0
DAEMON_NOT_RUNNING = 3  # exit code of daemon.sh check
RESPONDING = {"idle", "mix", "alloc", "comp", "plnd"}  # sinfo appends * to a state that is out of date
LOG_ROOT = topology.ROOT / ".cache" / "live-logs"


class ClusterError(Exception):
    """A cluster does not come up or cannot do what it is told to; the message says what is missing."""


class Cluster:
    """One controller and its nodes, on a network of their own; two can stand side by side."""

    def __init__(
        self,
        release: str,
        *,
        daemons: Sequence[str] = ("service", "reprioritizer"),
        every: str = "60s",
        slurm_conf: Mapping[str, str | None] | None = None,
        files: Mapping[str, str] | None = None,
        shape: topology.Topology | None = None,
        keep: bool = False,
    ) -> None:
        """Describes a cluster; up() makes it.

        slurm_conf replaces parameters of slurm.conf (None takes one out); files are path -> text, put on
        every node before anything starts and taken instead of the product's own; shape is another cluster
        than docker/topology.yaml; keep leaves the cluster running when this process ends.
        """
        self.release = images.releases()[release]
        self.id = secrets.token_hex(4)
        self.name = f"{leftovers.LABEL}-{self.id}"
        self.topology = shape or topology.load()
        self._daemons = tuple(daemons)
        self._every = every
        self._slurm_conf = dict(slurm_conf or {})
        self._files = dict(files or {})
        self._keep = keep
        self._hosts: dict[str, str] = {}
        self._starts: dict[str, int] = {}
        self._client: DockerClient | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def nodes(self) -> list[str]:
        """The names of all containers, the controllers first."""
        return [*self.topology.controllers, *self.topology.nodes]

    @property
    def is_up(self) -> bool:
        """Whether there is something that could run commands or have logs."""
        return self._client is not None

    @property
    def client(self) -> DockerClient:
        """The connection to the engine; ClusterError before up() and after down()."""
        if self._client is None:
            raise ClusterError(f"{self.name}: is not up")
        return self._client

    # -- its life ------------------------------------------------------------------------------------------

    def up(self) -> Self:
        """Returns the cluster when all daemons answer and all nodes are there; ClusterError if that fails."""
        self._client = engine.connect()
        came_up = False
        try:
            leftovers.sweep(self.client)
            tag = images.ensure(self.client, self.release)
            if not self._keep:
                atexit.register(self.down)
                self._reaper = leftovers.start_reaper(self.id)
            self._create(tag)
            self._wait_ready(self.nodes)
            came_up = True
        finally:
            if not came_up:
                self.down()
        return self

    def down(self) -> None:
        """Removes the cluster; harmless when there is none (any more)."""
        atexit.unregister(self.down)
        if self._client is not None:
            leftovers.remove(self._client, self.id)
            self._client.close()
            self._client = None
        if self._reaper is not None:
            leftovers.stop_reaper(self._reaper)
            self._reaper = None

    def save_logs(self, folder: Path) -> Path:
        """Returns the folder, now with one sub-folder per container: daemon logs, configuration, console."""
        for node in self.nodes:
            # A cluster that failed early does not have all of them.
            with contextlib.suppress(NotFound):
                containers.save_logs(self.container(node), folder / node)
        return folder

    # -- commands and files --------------------------------------------------------------------------------

    def exec(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        node: str = "ctl",
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout_s: float = 60.0,
    ) -> Result:
        """Returns what the command returned; ExecError when check is set and that is not exit code 0.

        The command runs in /tmp, where every user may write, and is killed after timeout_s seconds
        (ExecTimeoutError).
        """
        container = self.container(node)
        result = execute.run(container, argv, user=user, stdin=stdin, env=env or {}, timeout_s=timeout_s)
        if check and result.returncode != 0:
            raise ExecError(f"{user}@{node}", argv, result)
        return result

    def write_file(
        self, path: str, text: str, *, owner: str = "root", mode: int = 0o644, node: str = "ctl"
    ) -> None:
        """Replaces the file in one step: a reader sees the old text or the new, never a part."""
        beside = f"{path}.{secrets.token_hex(4)}"
        argv = ["install", f"--owner={owner}", f"--mode={mode:o}", "/dev/stdin", beside]
        self.exec(argv, node=node, stdin=text)
        self.exec(["mv", "--no-target-directory", beside, path], node=node)

    def read_file(self, path: str, *, node: str = "ctl") -> str:
        """Returns the file's text; ExecError when there is no such file."""
        return self.exec(["cat", path], node=node).stdout

    def clear_jobs(self, timeout_s: float = 60.0) -> None:
        """Cancels every job and returns when none is left and every node is idle."""
        job_ids = self.exec(["squeue", "--noheader", "--format=%A"]).stdout.split()
        if job_ids:
            # Those that end by themselves meanwhile are an error to scancel, not to us.
            self.exec(["scancel", *sorted(set(job_ids))], check=False)
        wait_for(
            lambda: set(self._node_states().values()) == {"idle"},
            timeout_s,
            lambda: f"{self.name}: nodes are idle after their jobs were cancelled, {self._node_states()}",
        )

    # -- faults --------------------------------------------------------------------------------------------

    def start_daemon(self, name: str, *, node: str = "ctl", env: Mapping[str, str] | None = None) -> None:
        """Starts service, reprioritizer, slurmctld, slurmdbd, ... and returns when it answers."""
        self.exec(["daemon.sh", "start", name], node=node, env=env)
        wait_for(lambda: self._daemon_answers(name, node), DAEMON_TIMEOUT_S, f"{node}: {name} answers")

    def stop_daemon(self, name: str, signal: str = "TERM", *, node: str = "ctl") -> None:
        """Sends the signal to the daemon and returns when it is gone."""
        self.exec(["daemon.sh", "stop", name, signal], node=node)

    def kill(self, node: str) -> None:
        """Ends a whole container at once, as a power cut would; its files stay for start()."""
        self.container(node).kill()

    def start(self, node: str) -> None:
        """Starts a killed container again and returns when its daemons answer and the controller sees it."""
        self._starts[node] = self._ready_lines(node) + 1
        self.container(node).start()
        self._wait_ready([node])

    def pause(self, node: str) -> None:
        """Freezes all processes of a container; its kernel still accepts connections."""
        self.container(node).pause()

    def unpause(self, node: str) -> None:
        """Lets a frozen container go on."""
        self.container(node).unpause()

    def disconnect(self, node: str) -> None:
        """Takes a container off the network; exec still reaches it."""
        self._network().disconnect(self.container(node), force=True)

    def connect(self, node: str) -> None:
        """Puts a container back on the network, under its old address."""
        self._network().connect(self.container(node), ipv4_address=self._hosts[node])

    # -- inside --------------------------------------------------------------------------------------------

    def container(self, node: str) -> Container:
        """Returns the node's container, its state read anew; NotFound when there is none."""
        return self.client.containers.get(f"{self.name}-{node}")

    def _network(self) -> Network:
        return self.client.networks.get(self.name)

    def _labels(self) -> dict[str, str]:
        owner = leftovers.KEEP if self._keep else leftovers.owner()
        return {leftovers.LABEL: self.id, leftovers.OWNER_LABEL: owner}

    def _create(self, tag: str) -> None:
        network = containers.create_network(self.client, self.name, self._labels())
        self._hosts = containers.addresses(network, self.nodes)
        files = topology.render(self.topology, self.release.name, self._slurm_conf)
        key = {"/etc/munge/munge.key": secrets.token_bytes(128)}
        archive = containers.archive({**files, **self._files, **key})
        state = containers.create_volume(self.client, self.name, self._labels())
        for node in self.nodes:
            container = containers.create_container(
                self.client,
                tag,
                network,
                self._hosts,
                node,
                role=self._role(node),
                labels=self._labels(),
                environment=self._environment(node),
                volumes={state: STATE_FOLDER} if node in self.topology.controllers else {},
            )
            container.put_archive("/", archive)
            container.start()

    def _role(self, node: str) -> str:
        roles = {self.topology.controller: "ctl", self.topology.backup: "backup"}
        return roles.get(node, "node")

    def _environment(self, node: str) -> dict[str, str]:
        if node in self.topology.nodes:
            return {"GPUS": str(self.topology.nodes[node].devices)}
        return {"SLURM_SCORE_DAEMONS": ",".join(self._daemons), "SLURM_SCORE_EVERY": self._every}

    def _wait_ready(self, nodes: Sequence[str]) -> None:
        """Returns when the daemons in these containers answer and the controller sees the nodes."""
        slurm_nodes = [node for node in nodes if node in self.topology.nodes]
        try:
            wait_for(
                lambda: all(self._is_started(node) for node in nodes),
                READY_TIMEOUT_S,
                f"{self.name}: the daemons of {', '.join(nodes)} answer",
            )
            wait_for(
                lambda: all(self._node_states().get(node) in RESPONDING for node in slurm_nodes),
                READY_TIMEOUT_S,
                lambda: f"{self.name}: the nodes respond and have their GPUs, {self._node_states()}",
            )
        except (ClusterError, TimeoutError) as error:
            raise ClusterError(f"{error}; logs: {self.save_logs(LOG_ROOT / self.name)}") from error

    def _is_started(self, node: str) -> bool:
        container = self.container(node)
        if container.status == "exited":
            raise ClusterError(f"{self.name}: {node} ended: {container.logs(tail=8).decode().strip()}")
        return self._ready_lines(node) >= self._starts.get(node, 1)

    def _ready_lines(self, node: str) -> int:
        # The console is kept over a restart, so that what counts is how often the line is there.
        return self.container(node).logs().count(READY)

    def _node_states(self) -> dict[str, str]:
        """Returns node -> sinfo's short state of those that have the GPUs of the topology."""
        argv = ["sinfo", "--noheader", "--Node", "--format=%N %t %G"]
        try:
            lines = self.exec(argv, check=False, timeout_s=10).stdout.splitlines()
        except ExecTimeoutError:
            return {}
        rows = [line.split() for line in lines]
        return {
            name: state
            for name, state, gres in rows
            if name in self.topology.nodes and self.topology.nodes[name].own_gres in gres
        }

    def _daemon_answers(self, name: str, node: str) -> bool:
        result = self.exec(["daemon.sh", "check", name], node=node, check=False)
        if result.returncode == DAEMON_NOT_RUNNING:
            raise ClusterError(f"{self.name}: {node}: {result.stderr.strip()}")
        return result.returncode == 0
