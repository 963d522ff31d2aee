"""How much a cycle sends and how long the loop then waits: in trouble less, and longer. Pure."""

import logging
import math
from collections import deque

from slurm_score.model import SlurmConfig
from slurm_score.slurm.gateway import Identity

SLOWER = 4.0
"""So many times the best recent time is slow."""

READ_FLOOR_S = 2.0
CHUNK_FLOOR_S = 2.0
"""Nothing that is done within these is slow."""

RECENT = 100
"""How many times are remembered."""

LONGEST_PAUSE_S = 600.0
LEAST_STEPS = 4
"""A sixteenth of the updates is as little as is sent, unless the pause needs more steps to its longest."""

READS = 13
"""RPCs that the reads of a cycle cost: they count against the rate limit too.

Source: sdiag before and after a cycle without updates; squeue and `show node` ask for the partitions too."""

log = logging.getLogger(__name__)


class Latency:
    """Knows how quick Slurm can be with one kind of question, and tells when it is much slower."""

    def __init__(self, floor_s: float) -> None:
        self._floor_s = floor_s
        self._recent: deque[float] = deque(maxlen=RECENT)

    def is_slow(self, took_s: float, parts: int = 1) -> bool:
        """Return whether a question of `parts` parts was slow, each part seen against the best recent one."""
        each = took_s / max(1, parts)
        best = min(self._recent, default=math.inf)
        self._recent.append(each)
        return took_s > self._floor_s and each > SLOWER * best


class Pace:
    """Halves what is sent and doubles the pause with every step of trouble; good cycles take steps back."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._steps = 0
        self._most_steps = max(LEAST_STEPS, math.ceil(math.log2(LONGEST_PAUSE_S / max(1.0, every_s))))

    @property
    def pause_s(self) -> float:
        """The time to the next cycle: the interval, doubled for each step, ten minutes at most."""
        return min(max(self._every_s, LONGEST_PAUSE_S), self._every_s * (1 << self._steps))

    def most(self, updates: int) -> int:
        """Return how many of so many updates may be sent: half of them for each step, but always one."""
        return max(min(updates, 1), updates >> self._steps)

    def slow_down(self, why: str) -> None:
        """Take a step, and log what it means."""
        if self._steps < self._most_steps:
            self._steps += 1
            log.warning("%s: %s", why, str(self))

    def speed_up(self) -> None:
        """Take a step back towards the normal pace, and log it, where there is one to take."""
        if self._steps:
            self._steps -= 1
            log.info("Slurm answers well: %s", str(self))

    def __str__(self) -> str:
        """Return the pace in words."""
        if not self._steps:
            return f"the normal pace, a cycle every {self.pause_s:g} s"
        return f"1/{1 << self._steps} of the updates, the next cycle in {self.pause_s:g} s"


def updates_per_s(config: SlurmConfig, identity: Identity) -> float:
    """Return how many RPCs a second slurmctld lets us send in the long run, `math.inf` for any number.

    A refill never makes more than a full bucket: with 5 in the bucket and 20 a second it is 5 a second,
    since who is told to back off waits for whole seconds.

    Source: slurm.conf(5), SlurmctldParameters: rl_refill_rate (2) in each rl_refill_period (1 s), up to
    rl_bucket_size (30); root and SlurmUser are exempt. Measured on 24.11 (tests/live/test_controllers.py).
    """
    if not config.rate_limited or identity.user in {"root", config.slurm_user}:
        return math.inf
    words = (word.partition("=") for word in config.slurmctld_parameters)
    said = {name: int(value) for name, _, value in words if value.isdecimal() and int(value)}
    refill = min(said.get("rl_refill_rate", 2), said.get("rl_bucket_size", 30))
    return refill / said.get("rl_refill_period", 1)
