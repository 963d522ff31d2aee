"""The Docker side of a cluster: its network with fixed addresses, its containers, files in and out."""

from __future__ import annotations

import contextlib
import io
import ipaddress
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from docker.client import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

LOG_FOLDERS = ("/var/log/slurm", "/var/log/slurm-score", "/var/log/slurm-score-test", "/etc/slurm")
FIRST_HOST = 10  # of the subnet; the engine itself takes the first one or two
ATTEMPTS = 20


def create_network(client: DockerClient, name: str, labels: dict[str, str]) -> Network:
    """Returns a network whose subnet is a setting: only there may a container ask for its address.

    The engine is let choose a free subnet, which is then made again with that subnet as a setting; a second
    cluster that comes up at the same moment may have snatched it, hence the attempts.
    """
    for _ in range(ATTEMPTS):
        probe = client.networks.create(f"{name}-probe", labels=labels)
        probe.reload()
        subnet = probe.attrs["IPAM"]["Config"][0]["Subnet"]
        probe.remove()
        with contextlib.suppress(APIError):
            return client.networks.create(
                name, labels=labels, ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
            )
    raise RuntimeError(
        f"{name}: no free subnet in {ATTEMPTS} attempts; `docker network ls` shows who has them"
    )


def addresses(network: Network, hostnames: list[str]) -> dict[str, str]:
    """Returns host name -> address in the network, in order."""
    network.reload()
    subnet = ipaddress.ip_network(network.attrs["IPAM"]["Config"][0]["Subnet"])
    return {name: str(subnet[FIRST_HOST + index]) for index, name in enumerate(hostnames)}


def create_volume(client: DockerClient, name: str, labels: dict[str, str]) -> str:
    """Returns the name of a volume that several containers can share."""
    return str(client.volumes.create(name, labels=labels).name)


def create_container(
    client: DockerClient,
    image: str,
    network: Network,
    hosts: Mapping[str, str],
    hostname: str,
    *,
    role: str,
    labels: dict[str, str],
    environment: dict[str, str],
    volumes: Mapping[str, str],
) -> Container:
    """Returns the container, created but not started; volumes maps a volume to its folder there."""
    endpoint = client.api.create_endpoint_config(ipv4_address=hosts[hostname])
    return client.containers.create(
        image,
        [role],
        name=f"{network.name}-{hostname}",
        hostname=hostname,
        labels=labels,
        environment=environment,
        volumes=[f"{volume}:{folder}" for volume, folder in volumes.items()],
        network=network.name,
        networking_config={str(network.name): endpoint},
        # In /etc/hosts rather than the engine's name service: a killed node must keep its name.
        extra_hosts=dict(hosts),
    )


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """Returns a tar archive with the files under their absolute paths, all owned by root and readable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size = len(data)
            # Slurm loads a Lua script when it is newer than the last one, and the first one has to beat 1970.
            entry.mtime = int(time.time())
            entry.mode = 0o644 if isinstance(content, str) else 0o400
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def save_logs(container: Container, target: Path) -> None:
    """Writes console, daemon logs and configuration of a container, running or not, into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    (target / "console.log").write_bytes(container.logs(timestamps=True))
    for source in LOG_FOLDERS:
        # A container that failed early has no such folder yet.
        with contextlib.suppress(NotFound):
            chunks, _ = container.get_archive(source)
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
                tar.extractall(target, filter="data")
