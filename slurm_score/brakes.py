"""What ends a burst of updates before its time, and how large a burst may be."""

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

from slurm_score.model import SlurmConfig
from slurm_score.pace import CHUNK_FLOOR_S, READ_FLOOR_S, READS, Latency, Pace, updates_per_s
from slurm_score.slurm.gateway import Identity
from slurm_score.watch import is_there

CHUNK = 250
"""Updates that one scontrol is given: between two of them a burst can end."""

LIMITED_CHUNK_S = 5.0
"""How long a chunk may take where slurmctld limits our rate."""

LEAST_DEADLINE_S = 30.0

log = logging.getLogger(__name__)


class Brakes:
    """Looks, before each chunk, whether the burst may go on: no stop, time left, no kill switch, no trouble.

    `deadline_s` is the time that a cycle has in all, by default its interval and at least 30 s. `alive`
    is called before each chunk.
    """

    def __init__(
        self,
        every_s: float = 60.0,
        *,
        deadline_s: float | None = None,
        kill_switch: Path | None = None,
        stop: threading.Event | None = None,
        alive: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.deadline_s = max(every_s, LEAST_DEADLINE_S) if deadline_s is None else deadline_s
        self.stop, self.clock, self.pace = stop or threading.Event(), clock, Pace(every_s)
        self._kill_switch, self._alive = kill_switch, alive
        self._reads, self._chunks = Latency(READ_FLOOR_S), Latency(CHUNK_FLOOR_S)
        self._ends_s, self._rate, self._trouble, self._each_s = math.inf, math.inf, "", 0.0
        self._was_killed = self._was_limited = self._slowed = False

    def begin(self) -> None:
        """Begin a cycle: its time runs from now."""
        self._ends_s, self._trouble, self._slowed = self.clock() + self.deadline_s, "", False
        self._each_s = 0.0

    def end(self) -> None:
        """End a cycle: one without trouble is a step back towards the normal pace."""
        if not self._slowed:
            self.pace.speed_up()

    def left_s(self) -> float:
        """Return the time that the cycle has left, in s."""
        return self._ends_s - self.clock()

    def killed(self) -> str:
        """Return that the kill switch is on, empty if it is off; a change is logged."""
        path = self._kill_switch
        on = path is not None and is_there(path)
        if on != self._was_killed:
            said = "exists: nothing is written to Slurm" if on else "is gone: SiteFactors are written again"
            log.warning("kill switch %s %s", path, said)
        self._was_killed = on
        return f"kill switch {path}" if on else ""

    def halt(self) -> str:
        """Return why nothing more may be sent in this cycle, empty if it may go on."""
        self._alive()
        if self.stop.is_set():
            return "stopped"
        if self.left_s() <= self._each_s * self.chunk:
            return "deadline"  # a chunk that can't come to its end would be killed in its middle
        return self.killed() or self._trouble

    def note_reads(self, took_s: float) -> None:
        """Take note of how long slurmctld took to answer the reads of a cycle; a rate limit is no trouble."""
        if self._reads.is_slow(took_s) and self._rate == math.inf:
            self.slow_down(f"slurmctld took {took_s:.1f} s to be read")

    def note_chunk(self, updates: int, took_s: float) -> None:
        """Take note of how long a chunk of updates took; a slow one is the last of its cycle."""
        self._each_s = took_s / updates
        if self._chunks.is_slow(took_s, updates) and self._rate == math.inf:
            self._trouble = f"slurmctld took {took_s:.1f} s for {updates} updates"
            self.slow_down(self._trouble)

    def slow_down(self, why: str) -> None:
        """Send less and wait longer from now on."""
        self._slowed = True
        self.pace.slow_down(why)

    def note_rate(self, config: SlurmConfig, identity: Identity) -> None:
        """Take note of how many updates a second slurmctld takes from us; a limit is logged once."""
        self._rate = updates_per_s(config, identity)
        limited = self._rate < math.inf
        if limited and not self._was_limited:
            most = self._affordable(self.deadline_s)
            means = f": at most {int(most)} updates a cycle" if most < math.inf else ""
            log.warning(
                "slurmctld limits user %s to %g requests a second%s", identity.user, self._rate, means
            )
        self._was_limited = limited

    def most(self, updates: int) -> int:
        """Return how many of so many updates may be sent in this cycle."""
        return self.pace.most(int(min(updates, self._affordable(self.left_s()))))

    @property
    def chunk(self) -> int:
        """How many updates may be sent between two looks at the brakes."""
        return int(min(CHUNK, max(1.0, self._rate * LIMITED_CHUNK_S)))

    def _affordable(self, left_s: float) -> float:
        """Return how many updates the rate limit allows in a time, after our reads; always one."""
        return math.inf if self._rate == math.inf else max(1.0, self._rate * left_s - READS)
