"""Whether this instance acts or stands by: one a cluster acts, beside the controller that acts."""

import logging
from collections.abc import Sequence

from slurm_score.lock import FileLock
from slurm_score.slurm.gateway import ControllerHost, Gateway

log = logging.getLogger(__name__)


class Duty:
    """Asks before each cycle who is to act; a change is logged once.

    With backup controllers it is the instance on the host of the first controller that answers. An
    instance on a host without a controller acts. `lock` is held as long as we act, so that of two
    instances that share a folder one acts only; a single cycle has none.
    """

    def __init__(self, gateway: Gateway, lock: FileLock | None, host: str) -> None:
        self._gateway, self._lock, self._host = gateway, lock, host
        self._said = ""

    def standby(self) -> str:
        """Return why this instance is not to act now, empty if it is.

        Raises:
            SlurmScoreError: no controller answers, or the lock can't be had at all.
        """
        controllers = self._gateway.read_controllers()
        reason = other_host(controllers, self._host) or self._locked_out()
        if reason and self._lock is not None:
            self._lock.release()
        self._say(f"stands by: {reason}" if reason else self._acting(controllers))
        return reason

    def _locked_out(self) -> str:
        holder = self._lock.take() if self._lock is not None else ""
        return f"{self._lock.path} is held by {holder}" if self._lock is not None and holder else ""

    def _acting(self, controllers: Sequence[ControllerHost]) -> str:
        hosts = [controller.host for controller in controllers]
        if len(hosts) < 2:
            return "acts"
        here = any(same_host(host, self._host) for host in hosts)
        where = f"{self._host} has the acting controller" if here else f"{self._host} is no controller's host"
        return f"acts: {where} ({', '.join(hosts)})"

    def _say(self, sentence: str) -> None:
        news = sentence != self._said and (self._said or sentence != "acts")
        self._said = sentence
        if news:
            log.warning("this instance %s", sentence)


def other_host(controllers: Sequence[ControllerHost], host: str) -> str:
    """Return that another controller's host is the one to act, empty if it is this host's turn."""
    if not any(same_host(controller.host, host) for controller in controllers):
        return ""
    acting = next((controller.host for controller in controllers if controller.up), host)
    return "" if same_host(acting, host) else f"the controller on {acting} acts"


def same_host(one: str, other: str) -> bool:
    """Return whether two names, short or long, can be those of one host."""
    a, b = one.lower().rstrip("."), other.lower().rstrip(".")
    if "." in a and "." in b:
        return a == b
    return a.partition(".")[0] == b.partition(".")[0]
