"""slurm_score/nodestate.py: could a job start on a node in this state."""

import pytest

from slurm_score.errors import ParseError
from slurm_score.nodestate import NodeState, parse_node_state


@pytest.mark.parametrize(
    ("text", "base", "flags", "usable"),
    [
        ("IDLE", "IDLE", (), True),
        ("MIXED", "MIXED", (), True),
        ("ALLOCATED", "ALLOCATED", (), True),
        ("ALLOCATED+COMPLETING", "ALLOCATED", ("COMPLETING",), True),
        ("COMPLETING", "COMPLETING", (), True),
        ("IDLE+CLOUD+POWERED_DOWN", "IDLE", ("CLOUD", "POWERED_DOWN"), True),
        ("IDLE+CLOUD+POWERING_UP", "IDLE", ("CLOUD", "POWERING_UP"), True),
        (
            "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP",
            "MIXED",
            ("CLOUD", "NOT_RESPONDING", "POWERING_UP"),
            True,
        ),
        ("DOWN+CLOUD+NOT_RESPONDING+POWERING_UP", "DOWN", ("CLOUD", "NOT_RESPONDING", "POWERING_UP"), False),
        ("IDLE+CLOUD+DRAIN+POWERING_UP", "IDLE", ("CLOUD", "DRAIN", "POWERING_UP"), False),
        ("IDLE+CLOUD+POWER", "IDLE", ("CLOUD", "POWERED_DOWN"), True),
        ("IDLE+CLOUD+POWERING_DOWN", "IDLE", ("CLOUD", "POWERING_DOWN"), False),
        ("IDLE+PLANNED", "IDLE", ("PLANNED",), True),
        ("MIXED+PLANNED", "MIXED", ("PLANNED",), True),
        ("IDLE+REBOOT_REQUESTED", "IDLE", ("REBOOT_REQUESTED",), True),
        ("IDLE+REBOOT_ISSUED", "IDLE", ("REBOOT_ISSUED",), False),
        ("IDLE+MAINTENANCE", "IDLE", ("MAINTENANCE",), False),
        ("IDLE+RESERVED", "IDLE", ("RESERVED",), False),
        ("MIXED+DRAIN", "MIXED", ("DRAIN",), False),
        ("IDLE+DRAIN", "IDLE", ("DRAIN",), False),
        ("DOWN*", "DOWN", ("NOT_RESPONDING",), False),
        ("DOWN*+DRAIN", "DOWN", ("DRAIN", "NOT_RESPONDING"), False),
        ("IDLE*", "IDLE", ("NOT_RESPONDING",), False),
        ("IDLE+NOT_RESPONDING", "IDLE", ("NOT_RESPONDING",), False),
        ("IDLE+INVALID_REG", "IDLE", ("INVALID_REG",), False),
        ("INVAL", "INVAL", (), False),
        ("FUTURE", "FUTURE", (), False),
        ("UNKNOWN", "UNKNOWN", (), None),
        ("IDLE+OF_A_LATER_RELEASE", "IDLE", ("OF_A_LATER_RELEASE",), None),
        ("OF_A_LATER_RELEASE", "UNKNOWN", ("OF_A_LATER_RELEASE",), None),
    ],
)
def test_a_state_of_scontrol_is_usable_unusable_or_unknown(
    text: str, base: str, flags: tuple[str, ...], usable: bool | None
) -> None:
    """Source: sinfo(1), NODE STATE CODES. A word of a later release makes it unknown, not usable."""
    assert parse_node_state(text) == NodeState(base, flags, usable)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("idle", "IDLE"),
        ("mix", "MIXED"),
        ("alloc", "ALLOCATED"),
        ("comp", "COMPLETING"),
        ("idle~", "IDLE+POWERED_DOWN"),
        ("idle#", "IDLE+POWERING_UP"),
        ("idle%", "IDLE+POWERING_DOWN"),
        ("idle!", "IDLE+POWER_DOWN"),
        ("idle$", "IDLE+MAINTENANCE"),
        ("idle@", "IDLE+REBOOT_REQUESTED"),
        ("idle^", "IDLE+REBOOT_ISSUED"),
        ("mix-", "MIXED+PLANNED"),
        ("down*", "DOWN+NOT_RESPONDING"),
        ("plnd", "IDLE+PLANNED"),
        ("drained", "IDLE+DRAIN"),
        ("drained*", "IDLE+DRAIN+NOT_RESPONDING"),
    ],
)
def test_sinfo_s_short_form_means_the_same(short: str, long: str) -> None:
    """The signs behind a state are flags. Source: sinfo(1), NODE STATE CODES."""
    assert parse_node_state(short) == parse_node_state(long)


@pytest.mark.parametrize(
    "text", ["drain", "drng", "maint", "resv", "boot", "pow_dn", "fail", "failg", "block"]
)
def test_a_flag_that_stands_alone_makes_a_node_unusable(text: str) -> None:
    """sinfo leaves the base out there, so that it isn't known."""
    state = parse_node_state(text)
    assert (state.base, state.usable) == ("UNKNOWN", False)


@pytest.mark.parametrize("text", ["", " ", "+", "IDLE+", "IDLE DRAIN", "IDLE;", "1", "*", "idle?", "ídle"])
def test_what_is_no_state_is_refused(text: str) -> None:
    """One sentence with the forms that are allowed."""
    with pytest.raises(ParseError, match="not a node state"):
        parse_node_state(text)
