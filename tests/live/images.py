"""The images of the test cluster: one per Slurm release, built when their inputs change."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests
import yaml
from docker.client import DockerClient
from docker.errors import APIError, BuildError, DockerException, ImageNotFound

from . import engine
from .topology import DOCKER, ROOT

log = logging.getLogger("slurm-score-test")
RELEASE_LABEL = "slurm-score-test.release"
DIGEST_LABEL = "slurm-score-test.inputs"
REPOSITORY = "slurm-score-test"
BUILD_FILES = ("Dockerfile", "daemon.sh", "entrypoint.sh", "mariadb.cnf")
WHEEL_INPUTS = ("slurm_score", "job_submit", "etc")
PULL_SILENCE_S = 20  # a registry that says nothing for so long is not reached from here
PASSED_ON = (
    "PIP_INDEX_URL",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)


class ImageError(Exception):
    """An image cannot be made; the message says at which step and why."""


@dataclass(frozen=True)
class Release:
    """One Slurm release: the Debian suite that carries it, and debootstrap's script where that differs."""

    name: str
    suite: str
    script: str | None = None

    @property
    def tag(self) -> str:
        """The image's name."""
        return f"{REPOSITORY}:{self.name}"


def releases() -> dict[str, Release]:
    """Returns name -> release, oldest first, as docker/releases.yaml lists them."""
    table = yaml.safe_load((DOCKER / "releases.yaml").read_text())
    return {name: Release(name, **entry) for name, entry in table.items()}


def ensure(client: DockerClient, release: Release) -> str:
    """Returns the tag of the release's image, made now if it is missing or older than its inputs."""
    with _lock():
        digest = inputs_digest(release)
        present = _labels(client, release.tag)
        if present.get(DIGEST_LABEL) != digest:
            _build(client, release, digest)
    return release.tag


def inputs_digest(release: Release) -> str:
    """Returns a hash over everything that goes into the image, except the Debian packages of the day."""
    digest = hashlib.sha256(json.dumps([release.name, release.suite, requirements()]).encode())
    for path in sorted(_input_files()):
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def requirements() -> list[str]:
    """Returns the project's run-time dependencies, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(requirement) for requirement in project["dependencies"]]


def _input_files() -> Iterator[Path]:
    yield from (DOCKER / name for name in BUILD_FILES)
    yield ROOT / "pyproject.toml"
    for folder in WHEEL_INPUTS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    # Two test runs at once must not build the same image twice.
    path = ROOT / ".cache" / "images.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _labels(client: DockerClient, tag: str) -> Mapping[str, str]:
    try:
        return client.images.get(tag).labels
    except ImageNotFound:
        return {}


def _build(client: DockerClient, release: Release, digest: str) -> None:
    base = _base(client, release)
    log.info("building %s", release.tag)
    superseded = client.images.list(filters={"label": f"{RELEASE_LABEL}={release.name}"})
    try:
        image, _ = client.images.build(
            fileobj=_context(),
            custom_context=True,
            tag=release.tag,
            rm=True,
            forcerm=True,
            labels={RELEASE_LABEL: release.name, DIGEST_LABEL: digest},
            buildargs={
                "BASE": base,
                "RELEASE": release.name,
                **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            },
        )
    except BuildError as error:
        raise ImageError(f"{release.tag}: {error.msg}\n{_tail(error)}") from error
    for old in superseded:
        if old.id and old.id != image.id:
            # A cluster that still runs may keep the old image.
            with contextlib.suppress(APIError):
                client.images.remove(old.id)


def _tail(error: BuildError) -> str:
    return "".join(str(entry.get("stream", "")) for entry in list(error.build_log))[-3000:]


def _context() -> io.BytesIO:
    """Returns the build context as a tar archive without times, so that unchanged layers stay cached."""
    files = {name: (DOCKER / name).read_bytes() for name in BUILD_FILES}
    files["requirements.txt"] = "\n".join(requirements()).encode()
    files["ca-bundle.crt"] = _ca_bundle()
    files.update(_wheel())
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if name.endswith(".sh") else 0o644
            archive.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def _ca_bundle() -> bytes:
    """Returns this machine's own certificates where pip here is told to use them, else nothing."""
    path = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    return Path(path).read_bytes() if path and Path(path).is_file() else b""


def _wheel() -> dict[str, bytes]:
    """Returns file name -> content of the project's wheel, built from the tree as it is."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(ROOT)]
        # cwd: a folder named build/ beside the sources must not be taken for the module.
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0:
            raise ImageError(f"the wheel cannot be built:\n{(done.stdout + done.stderr)[-3000:]}")
        return {path.name: path.read_bytes() for path in Path(folder).glob("*.whl")}


def _base(client: DockerClient, release: Release) -> str:
    """Returns the name of a bare Debian image: pulled, or made here where no registry is reached."""
    own = f"{REPOSITORY}-base:{release.suite}"
    for name in (own, f"debian:{release.suite}-slim"):
        if client.images.list(name=name):
            return name
    try:
        return _pull(release)
    except (DockerException, requests.RequestException) as error:
        reason = getattr(error, "explanation", None) or error
        log.info("debian:%s-slim cannot be pulled (%s): making it with debootstrap", release.suite, reason)
    _debootstrap(client, release, own)
    return own


def _pull(release: Release) -> str:
    client = DockerClient.from_env(timeout=PULL_SILENCE_S)
    try:
        client.images.pull("debian", tag=f"{release.suite}-slim")
    finally:
        client.close()
    return f"debian:{release.suite}-slim"


def _debootstrap(client: DockerClient, release: Release, name: str) -> None:
    """Makes a minimal Debian from the packages and imports it as an image."""
    if os.geteuid() != 0:
        raise ImageError(f"debian:{release.suite}-slim: no registry is reached, and debootstrap needs root")
    if shutil.which("debootstrap") is None:
        if not engine.is_debian():
            raise ImageError(f"debian:{release.suite}-slim: no registry is reached; install debootstrap")
        engine.install_packages(["debootstrap"])
    # Not the default folder for temporary files: where that is a tmpfs, device files cannot be made in it.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder) / "root"
        _run(["debootstrap", "--variant=minbase", release.suite, str(root), *_script(release)])
        shutil.rmtree(root / "var/cache/apt/archives")
        archive = Path(folder) / "base.tar"
        _run(["tar", "--create", "--numeric-owner", f"--file={archive}", f"--directory={root}", "."])
        repository, _, tag = name.partition(":")
        client.api.import_image_from_file(str(archive), repository=repository, tag=tag)


def _script(release: Release) -> list[str]:
    # debootstrap's fourth argument is a script; the mirror before it may be empty, which means the default.
    return ["", f"/usr/share/debootstrap/scripts/{release.script}"] if release.script else []


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImageError(f"{argv[0]}: exit {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
