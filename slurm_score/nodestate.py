"""Node states as sinfo and scontrol write them: could a job start there? Pure.

Two spellings of the same thing: scontrol joins words (`IDLE+CLOUD+POWERED_DOWN`), sinfo adds a sign
(`idle~`). Source: sinfo(1), NODE STATE CODES; slurm src/common/slurm_protocol_defs.c,
node_state_string, node_state_flag_string.
"""

import re
from dataclasses import dataclass

from slurm_score.errors import ParseError

SIGNS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
"""Sign behind a state in sinfo, and the flag that it stands for."""

_BASES = {
    "ALLOC": "ALLOCATED",
    "ALLOCATED": "ALLOCATED",
    "COMP": "COMPLETING",
    "COMPLETING": "COMPLETING",
    "DOWN": "DOWN",
    "ERROR": "ERROR",
    "FUTR": "FUTURE",
    "FUTURE": "FUTURE",
    "IDLE": "IDLE",
    "INVAL": "INVAL",
    "MIX": "MIXED",
    "MIXED": "MIXED",
    "UNK": "UNKNOWN",
    "UNKNOWN": "UNKNOWN",
}
_ALONE = {
    "BLOCK": "BLOCKED",
    "DRAIN": "DRAIN",
    "DRAINED": "DRAIN",
    "DRAINING": "DRAIN",
    "DRNG": "DRAIN",
    "FAIL": "FAIL",
    "FAILG": "FAIL",
    "FAILING": "FAIL",
    "MAINT": "MAINTENANCE",
    "NO_RESPOND": "NOT_RESPONDING",
    "NPC": "PERFCTRS",
    "PLANNED": "PLANNED",
    "PLND": "PLANNED",
    "POW_DN": "POWERING_DOWN",
    "POWER": "POWERED_DOWN",
    "POW_UP": "POWERING_UP",
    "RESV": "RESERVED",
    "BOOT": "REBOOT_ISSUED",
}
_IDLE_ALONE = frozenset({"DRAINED", "PLANNED", "PLND", "POW_UP"})
"""Flags that sinfo prints alone for idle nodes only; with the others the base can't be told."""

_UNUSABLE_BASES = frozenset({"DOWN", "ERROR", "FUTURE", "INVAL"})
_UNUSABLE_FLAGS = frozenset(
    {
        "BLOCKED",
        "DRAIN",
        "FAIL",
        "INVALID_REG",
        "MAINTENANCE",
        "NOT_RESPONDING",
        "PERFCTRS",
        "POWERING_DOWN",
        "POWER_DOWN",
        "REBOOT_ISSUED",
        "RESERVED",
    }
)
_USABLE_FLAGS = frozenset(
    {
        "CLOUD",
        "COMPLETING",
        "DYNAMIC_FUTURE",
        "DYNAMIC_NORM",
        "EXTERNAL",
        "PLANNED",
        "POWERED_DOWN",
        "POWERING_UP",
        "POWER_UP",
        "REBOOT_CANCEL",
        "REBOOT_CANCELED",
        "REBOOT_REQUESTED",
        "RES",
        "UNDRAIN",
    }
)
_WORD = re.compile(r"(?P<name>[A-Z][A-Z_]*)(?P<signs>[*~#!%$@^-]{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node's base state, its flags sorted, and whether a job could start there.

    `usable` is None where that can't be told: an unknown state, or a word of a later release.
    """

    base: str
    flags: tuple[str, ...]
    usable: bool | None

    def __str__(self) -> str:
        """Return the state as scontrol writes it."""
        return "+".join((self.base, *self.flags))


def parse_node_state(text: str) -> NodeState:
    """Return the state of a text such as `IDLE+CLOUD+POWERED_DOWN`, `MIXED+DRAIN`, `idle*` or `drng`.

    A powered-down node counts as usable, since Slurm wakes it up, and while it wakes up it can't
    respond yet: jobs are placed on it all the same. So does a planned one, since backfill may still
    use it until the planned job starts. Up to 20.11 `POWER` means powered down.

    Raises:
        ParseError: the text isn't a state at all.
    """
    words = [_WORD.fullmatch(word) for word in text.strip().upper().split("+")]
    found = [word for word in words if word]
    if len(found) < len(words):
        raise ParseError("not a node state", text, "such as IDLE, MIXED+DRAIN, down* or idle~")
    names = [word["name"] for word in found]
    flags = {_ALONE.get(name, name) for name in names[1:]}
    flags |= {SIGNS[sign] for word in found for sign in word["signs"]}
    base = _BASES.get(names[0], "")
    if not base:
        base = "IDLE" if names[0] in _IDLE_ALONE else "UNKNOWN"
        flags.add(_ALONE.get(names[0], names[0]))
    return NodeState(base, tuple(sorted(flags)), _usable(base, flags))


def _usable(base: str, flags: set[str]) -> bool | None:
    if "POWERING_UP" in flags:
        flags = flags - {"NOT_RESPONDING"}
    if base in _UNUSABLE_BASES or not _UNUSABLE_FLAGS.isdisjoint(flags):
        return False
    if base == "UNKNOWN" or not flags <= _USABLE_FLAGS:
        return None
    return True
