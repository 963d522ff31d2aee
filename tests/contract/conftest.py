"""What every test on recorded answers needs."""

from __future__ import annotations

import pytest

from tests.contract import replay


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token and the user of the recording, since both are part of what was asked."""
    replay.same_token(monkeypatch)
    replay.become(monkeypatch, "scoreop")
