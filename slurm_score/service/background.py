"""The service in a thread of this process: for the demo and for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from slurm_score.errors import ServiceError
from slurm_score.service.server import Addresses, Server
from slurm_score.service.state import State

START_TIMEOUT_S = 10.0


@contextmanager
def running_service(state: State, addresses: Addresses) -> Iterator[None]:
    """Serve for as long as the context lasts.

    Raises:
        ServiceError: a socket can't be had, or it doesn't listen in time.
    """
    server = Server(state, addresses)
    thread = threading.Thread(target=server.run, name="slurm-score-service")
    thread.start()
    try:
        if not server.listens.wait(START_TIMEOUT_S):
            raise ServiceError(f"{addresses.hook}: the service doesn't listen after {START_TIMEOUT_S:g} s")
        yield
    finally:
        server.stop()
        thread.join()
