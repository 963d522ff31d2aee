"""The service in a thread of this process: for the demo and for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from slurm_score.errors import ServiceError

START_TIMEOUT_S = 10.0


class _Announcing(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = threading.Event()

    async def main_loop(self) -> None:
        """Serve until told to stop; by now the socket is there."""
        self.listens.set()
        await super().main_loop()


@contextmanager
def running_service(app: Starlette, socket_path: Path) -> Iterator[None]:
    """Serve an application on a unix socket for as long as the context lasts.

    Raises:
        ServiceError: it doesn't listen in time.
    """
    config = uvicorn.Config(app, uds=str(socket_path), log_config=None, access_log=False, lifespan="off")
    server = _Announcing(config)
    thread = threading.Thread(target=server.run, name="slurm-score-service")
    thread.start()
    try:
        if not server.listens.wait(START_TIMEOUT_S):
            raise ServiceError(f"{socket_path}: the service doesn't listen after {START_TIMEOUT_S:g} s")
        yield
    finally:
        server.should_exit = True
        thread.join()
