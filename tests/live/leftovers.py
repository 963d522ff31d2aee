"""Removes containers, networks and volumes of clusters, above all of those whose owner is dead.

Run as a program (leftovers.py CLUSTER_ID) it waits for the end of its standard input, which comes with the
end of the process that holds the other side, and removes that cluster: nothing is left even after a SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from docker.client import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container

LABEL = "slurm-score-test"  # its value: the id of the cluster
OWNER_LABEL = "slurm-score-test.owner"  # its value: owner(), or KEEP
KEEP = "a person"


def owner() -> str:
    """Returns what identifies this process for ever: boot, pid namespace, pid, start time."""
    return "/".join([*_namespace(), str(os.getpid()), _start_time(os.getpid())])


def is_dead(owner_label: str) -> bool:
    """Returns whether the owner is known to be gone; False for one that cannot be seen from here."""
    if owner_label == KEEP:
        return False
    boot, namespace, pid, start = owner_label.split("/")
    here = _namespace()
    if boot != here[0]:
        return True
    return namespace == here[1] and _start_time(int(pid)) != start


def remove(client: DockerClient, cluster_id: str) -> None:
    """Removes all containers, networks and volumes of one cluster; what is gone already is no error."""
    selection: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={cluster_id}"}
    for container in client.containers.list(all=True, filters=selection, ignore_removed=True):
        _remove_container(container)
    for network in client.networks.list(filters=selection):
        with contextlib.suppress(NotFound):
            network.remove()
    for volume in client.volumes.list(filters=selection):
        with contextlib.suppress(NotFound):
            volume.remove()


def cluster_ids(client: DockerClient, *, owned_by: str | None = None) -> set[str]:
    """Returns the ids of the clusters whose owner is dead, or is the one named."""
    found = [
        *(c.labels for c in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)),
        *(network.attrs["Labels"] for network in client.networks.list(filters={"label": LABEL})),
    ]
    wanted = [
        labels
        for labels in found
        if OWNER_LABEL in labels
        and (labels[OWNER_LABEL] == owned_by if owned_by else is_dead(labels[OWNER_LABEL]))
    ]
    return {labels[LABEL] for labels in wanted}


def sweep(client: DockerClient) -> None:
    """Removes every cluster whose owner is dead."""
    for cluster_id in cluster_ids(client):
        remove(client, cluster_id)


def start_reaper(cluster_id: str) -> subprocess.Popen[bytes]:
    """Returns a process that removes the cluster once this one is gone, however it went."""
    # Its own session, so that Ctrl-C ends the tests and not the one that cleans up after them.
    return subprocess.Popen(
        [sys.executable, __file__, cluster_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_reaper(reaper: subprocess.Popen[bytes]) -> None:
    """Ends the reaper of a cluster that has been removed in the ordinary way."""
    with reaper:
        reaper.terminate()


def _remove_container(container: Container) -> None:
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return


def _namespace() -> tuple[str, str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return boot, str(Path("/proc/self/ns/pid").stat().st_ino)


def _start_time(pid: int) -> str:
    # Field 22 of stat(5), counted after the command name, which may hold spaces and parentheses.
    stat = Path("/proc", str(pid), "stat")
    return stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""


def main() -> None:
    """Waits for the end of standard input, then removes the cluster named on the command line."""
    sys.stdin.buffer.read()
    client = DockerClient.from_env()
    remove(client, sys.argv[1])
    client.close()


if __name__ == "__main__":
    main()
