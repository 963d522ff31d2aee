"""Cycle after cycle until a signal: waits longer in trouble, stands by, tells systemd."""

import logging
from collections.abc import Callable

from slurm_score.brakes import Brakes
from slurm_score.duty import Duty
from slurm_score.errors import CommandTimedOutError, ControllerDownError, SlurmScoreError
from slurm_score.lock import FileLock
from slurm_score.reprioritizer import CycleReport
from slurm_score.service.notify import Notifier

HEARTBEAT_S = 20.0
"""How often the watchdog is fed in a pause."""

log = logging.getLogger(__name__)


class Loop:
    """Runs cycles where it is this instance's turn; a cycle that fails is logged and the next one tried."""

    def __init__(
        self,
        cycle: Callable[[], CycleReport],
        brakes: Brakes,
        duty: Duty,
        cycle_lock: FileLock,
        notifier: Notifier,
    ) -> None:
        self._cycle, self._brakes, self._duty = cycle, brakes, duty
        self._cycle_lock, self._notifier = cycle_lock, notifier

    def run(self) -> None:
        """Run until the brakes' `stop` is set, and say READY after the first attempt, good or bad."""
        stop, ready = self._brakes.stop, "READY=1\n"
        while not stop.is_set():
            status = self._turn()
            self._notifier.send(f"{ready}STATUS={status}")
            ready = ""
            self._rest(self._brakes.pace.pause_s)
        self._notifier.send("STOPPING=1")
        log.info("stopped")

    def turn(self) -> str:
        """Run a cycle, if it is our turn; return in a line what it did.

        Raises:
            SlurmScoreError: it couldn't be done.
        """
        reason = self._duty.standby()
        if reason:
            return f"stands by: {reason}"
        with self._cycle_lock.held(self._brakes.deadline_s, self._brakes.stop):
            return str(self._cycle())

    def _turn(self) -> str:
        self._brakes.begin()
        try:
            status = self.turn()
        except (ControllerDownError, CommandTimedOutError) as error:
            log.error("cycle given up: %s", error)
            self._brakes.slow_down("Slurm is in trouble")
            return f"cycle given up: {_first_line(error)}"
        except SlurmScoreError as error:
            log.error("cycle given up: %s", error)
            return f"cycle given up: {_first_line(error)}"
        log.info("%s", status)
        self._brakes.end()
        return status

    def _rest(self, pause_s: float) -> None:
        until_s = self._brakes.clock() + pause_s
        while True:
            self._notifier.alive()
            left_s = until_s - self._brakes.clock()
            if self._brakes.stop.wait(max(0.0, min(left_s, HEARTBEAT_S))) or left_s <= HEARTBEAT_S:
                return


def _first_line(error: SlurmScoreError) -> str:
    return str(error).partition("\n")[0]
