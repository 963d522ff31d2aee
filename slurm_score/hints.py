"""What users tell the score in --comment: `score: est=20m`. Pure.

A hint can only ever help to place the job; a hint that can't be read is named to the user and
ignored, and the rest of the comment is nobody's business here.
"""

import difflib
import re
from dataclasses import dataclass

from slurm_score.errors import ParseError, shown
from slurm_score.units import parse_duration

MAX_COMMENT = 1024
MAX_PROBLEMS = 3
KEYS = ("est", "left")

_MARK = re.compile(r"(?:^|[\s;,])score:([^;\r\n]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hints:
    """What a comment says: `est_s` the whole run time, `left_s` what is left of it, both in s or None."""

    est_s: float | None = None
    left_s: float | None = None
    problems: tuple[str, ...] = ()


NO_HINTS = Hints()


def parse_hints(comment: str) -> Hints:
    """Return the hints of a comment, with a sentence for each one that was ignored.

    Hints stand behind `score:` up to a `;` or the end of the line; only the first 1,024
    characters count. Never raises: what can't be read is a problem, not an error.
    """
    match = _MARK.search(comment[:MAX_COMMENT])
    if not match:
        return NO_HINTS
    values: dict[str, float] = {}
    problems: list[str] = []
    for word in match[1].replace(",", " ").split():
        key, equals, value = word.partition("=")
        problem = _read_word(key.lower(), equals, value, word, values)
        if problem:
            problems.append(problem)
    return Hints(values.get("est"), values.get("left"), tuple(problems[:MAX_PROBLEMS]))


def _read_word(key: str, equals: str, value: str, word: str, values: dict[str, float]) -> str:
    if not equals:
        return f"hint {shown(word, 40)} ignored: not key=value"
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, 1)
        meant = f", did you mean '{near[0]}'?" if near else ""
        return f"hint {shown(key, 40)} ignored: unknown{meant} (known: {', '.join(KEYS)})"
    if key in values:
        return f"hint {shown(word, 40)} ignored: {key} was given before"
    try:
        values[key] = parse_duration(value)
    except ParseError:
        return f"hint {shown(word, 40)} ignored: not a duration such as 20m, 2h30m or 1-12:00"
    return ""
