"""Updates on their way to Slurm, chunk by chunk, so that what was sent is known at any time."""

from collections.abc import Callable, Sequence

from slurm_score.brakes import Brakes
from slurm_score.slurm.gateway import Gateway, SiteFactorUpdate, UpdateFailure


class Burst:
    """Sends updates in their order until all are sent, the brakes halt it or Slurm fails.

    `sent` are those that went out in chunks that came to their end, `failures` those among them that
    Slurm didn't carry out, and `halted` is why the rest wasn't sent. Each prefix of a plan is a sound
    state of the queue: the plan begins with what matters most.
    """

    def __init__(self, updates: Sequence[SiteFactorUpdate]) -> None:
        self._updates = updates
        self.sent: list[SiteFactorUpdate] = []
        self.failures: list[UpdateFailure] = []
        self.halted = ""

    @property
    def left(self) -> int:
        """How many updates were not sent."""
        return len(self._updates) - len(self.sent)

    def send(
        self, gateway: Gateway, brakes: Brakes, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        """Send the updates, and tell `progress` after each chunk how many went out so far.

        Raises:
            SlurmError: a chunk failed; of its updates it isn't known which were carried out.
        """
        while self.left:
            self.halted = brakes.halt()
            if self.halted:
                return
            chunk = self._updates[len(self.sent) : len(self.sent) + brakes.chunk]
            began_s = brakes.clock()
            self.failures += gateway.write_site_factors(chunk)
            self.sent += chunk
            brakes.note_chunk(len(chunk), brakes.clock() - began_s)
            progress(len(self.sent))
