"""The service from the outside: JSON over HTTP on a unix socket."""

import http.client
import json
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from slurm_score.errors import ServiceError

MAX_PATH = 60_000
"""Bytes of a question; a server counts the length of an address in 16 bits."""

Query = Sequence[tuple[str, str]]


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection whose other end is a unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class ServiceClient:
    """Asks the scoring service."""

    def __init__(self, socket_path: Path, timeout_s: float = 10.0) -> None:
        self._path = socket_path
        self._timeout_s = timeout_s

    def jobs(self, wanted: Query = ()) -> dict[str, Any]:
        """Return pending jobs as rows, best first, and the weights; `wanted` are keys of app.jobs' query."""
        return self._ask("GET", f"/v1/jobs?{urlencode(wanted, errors='replace')}")

    def columns(self, names: Iterable[str], wanted: Query = ()) -> dict[str, Any]:
        """Return columns of pending jobs, best first, and the weights.

        Raises:
            ServiceError: with status 422 where there is no such column.
        """
        return self.jobs([*wanted, *(("field", name) for name in names)])

    def job(self, job_id: str) -> dict[str, Any]:
        """Return one pending job, explained.

        Raises:
            ServiceError: with status 404 where it isn't pending.
        """
        return self._ask("GET", f"/v1/jobs/{quote(job_id, safe='', errors='replace')}")

    def gpus(self) -> dict[str, Any]:
        """Return what there is of each GPU type in each partition, and who wants it."""
        return self._ask("GET", "/v1/gpus")

    def health(self) -> dict[str, Any]:
        """Return mode, policy, snapshot and hook as the service sees them."""
        return self._ask("GET", "/healthz")

    def score(self, submission: dict[str, Any]) -> dict[str, Any]:
        """Return the answer that the hook gets for a submission."""
        return self._ask("POST", "/v1/score", json.dumps(submission))

    def _ask(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        if len(path) > MAX_PATH:
            raise ServiceError(
                f"too many ids and names in one question, got {len(path):,} bytes; {MAX_PATH:,} are allowed"
            )
        connection = _UnixConnection(self._path, self._timeout_s)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            told = response.read()
            if response.status == http.client.SERVICE_UNAVAILABLE and not told.startswith(b"{"):
                raise ServiceError(f"{self._path}: the scoring service is busy; ask again", response.status)
            answer = json.loads(told)
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ServiceError(f"{self._path}: the scoring service does not answer: {why}") from error
        finally:
            connection.close()
        if not isinstance(answer, dict):
            raise ServiceError(f"{self._path}: not an answer of the scoring service: {answer!r}")
        if response.status != http.client.OK:
            raise ServiceError(str(answer.get("error", f"HTTP {response.status}")), response.status)
        return answer
