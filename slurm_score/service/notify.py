"""Tells systemd how the service does. Source: sd_notify(3), the protocol of $NOTIFY_SOCKET."""

import logging
import socket
from collections.abc import Mapping

log = logging.getLogger(__name__)


class Notifier:
    """Sends states to the supervisor that the environment names; without one it sends nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watched = "WATCHDOG_USEC" in environment

    def send(self, state: str) -> None:
        """Send a state such as `READY=1`; a supervisor that doesn't listen is logged, and no more."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.connect(self._address)
                out.send(state.encode())
        except OSError as error:
            log.warning("NOTIFY_SOCKET: %s", error.strerror or error)

    def alive(self) -> None:
        """Feed the watchdog, where there is one."""
        if self._watched:
            self.send("WATCHDOG=1")
