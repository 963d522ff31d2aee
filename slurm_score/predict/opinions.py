"""Which of several opinions has been right for a user: weights learned from their past losses. Pure."""

import numpy as np

from slurm_score.model import Floats

FORGET, SITE_FORGET = 0.99, 0.9999
SITE_SHARE, SITE_STEP = 0.1, 0.01
ETA = 2.0
UNIT_S = 3600.0


class Opinions:
    """Exponential weights over opinions, by discounted losses of a user and a little of the site.

    The loss is the root of the error in hours, counted with the quantile where the opinion was too short
    and with the rest where it was too long: the root keeps one long job from outweighing fifty short ones.
    """

    def __init__(self, quantile: float) -> None:
        self._short, self._long = 2 * quantile, 2 * (1 - quantile)
        self._users: dict[str, Floats] = {}
        self._site: Floats | float = 0.0

    def weights(self, user: str) -> Floats:
        """Return what each opinion counts for a user, float64[opinions], the best of them 1."""
        losses = self._users.get(user, 0.0) + SITE_SHARE * self._site
        return np.exp(-ETA * (losses - np.min(losses)))

    def learn(self, user: str, said: Floats, ran_s: float) -> None:
        """Note how far the opinions, float64[opinions] in s, were from the truth."""
        factor = np.where(said < ran_s, self._short, self._long)
        loss = np.sqrt(np.abs(said - ran_s) / UNIT_S) * factor
        self._users[user] = self._users.get(user, 0.0) * FORGET + loss
        self._site = self._site * SITE_FORGET + SITE_STEP * loss

    def of_user(self, user: str) -> list[float]:
        """Return a user's losses as plain numbers, none where nothing was learned."""
        return _plain(self._users.get(user))

    def of_site(self) -> list[float]:
        """Return the site's losses as plain numbers, none where nothing was learned."""
        return _plain(self._site)

    def restore(self, user: str, losses: list[float]) -> None:
        """Take a user's losses back; the site's, for an empty user."""
        if losses and user:
            self._users[user] = np.array(losses)
        elif losses:
            self._site = np.array(losses)


def _plain(losses: Floats | float | None) -> list[float]:
    return losses.tolist() if isinstance(losses, np.ndarray) else []


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """Return of each row the least value with half of the weights up to it; float64[rows]."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.cumsum(np.broadcast_to(weights, values.shape[1:])[order], axis=1)
    place, rows = (ranked < 0.5 * ranked[:, -1:]).sum(axis=1), np.arange(len(values))
    found: Floats = values[rows, order[rows, place]]
    return found
