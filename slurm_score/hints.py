"""What users tell the score in --comment: `score: est=20m ckpt=yes gpu=a100|h100`. Pure.

A hint can only ever help to place the job; a hint that can't be read is named to the user and
ignored, and the rest of the comment is nobody's business here.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from slurm_score.errors import ParseError, shown
from slurm_score.units import format_duration, parse_duration

Urgency = Literal["low", "normal", "high"]

MAX_COMMENT = 1024
MAX_PROBLEMS = 3
MAX_GPU_TYPES = 8
MAX_VRAM_GIB = 4096.0

_MARK = re.compile(r"(?:^|[\s;,])score:[ \t]*([^;\r\n]*)", re.IGNORECASE)
_GPU_TYPE = re.compile(r"[a-z0-9][a-z0-9_.+-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,3})?", re.ASCII)
_GIB = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(?:g|gb|gib)?", re.ASCII | re.IGNORECASE)
_DATE = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:t(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hints:
    """What a comment says; None or empty where it says nothing.

    `est_s` is the whole run time and `left_s` what is left of it, in s; `progress` is the share that
    is done, in [0, 1]; `ckpt` whether a requeued job goes on where it was; `gpu` the acceptable GPU
    types, best first, in lower case; `vram_gib` the memory needed on each GPU; `deadline` a day or a
    time by the controller's clock, as in `2026-12-24T18:00`. `problems` holds a sentence for each
    hint that was ignored.
    """

    est_s: float | None = None
    left_s: float | None = None
    progress: float | None = None
    ckpt: bool | None = None
    gpu: tuple[str, ...] = ()
    vram_gib: float | None = None
    urgency: Urgency | None = None
    deadline: str = ""
    problems: tuple[str, ...] = ()


NO_HINTS = Hints()


def parse_hints(comment: str) -> Hints:
    """Return the hints of a comment, with a sentence for each one that was ignored.

    Hints stand behind `score:` up to a `;` or the end of the line; only the first 1,024
    characters count, and of each key the first. Never raises: what can't be read is a problem,
    not an error.
    """
    match = _MARK.search(comment[:MAX_COMMENT])
    if not match:
        return NO_HINTS
    values: dict[str, Any] = {}
    problems: list[str] = []
    for word in match[1].replace(",", " ").split():
        problem = _read_word(word, values)
        if problem and problem not in problems:
            problems.append(problem)
    return Hints(**values, problems=tuple(problems[:MAX_PROBLEMS]))


def format_hints(hints: Hints) -> str:
    """Return the comment that says these hints, empty for none."""
    words = [
        f"{key}={write(value)}"
        for key, (field, _, write) in _KEYS.items()
        if (value := getattr(hints, field)) not in (None, (), "")
    ]
    return f"score: {' '.join(words)}" if words else ""


def _read_word(word: str, values: dict[str, Any]) -> str:
    key, equals, text = word.partition("=")
    key = key.lower()
    if not equals:
        return f"hint {shown(word, 40)} ignored: not key=value"
    if key not in _KEYS:
        near = difflib.get_close_matches(key, _KEYS, 1)
        meant = f", did you mean '{near[0]}'?" if near else ""
        return f"hint {shown(key, 40)} ignored: unknown{meant} (known: {', '.join(_KEYS)})"
    field, read, _ = _KEYS[key]
    if field in values:
        return f"hint {shown(word, 40)} ignored: {key} was given before"
    try:
        values[field] = read(text)
    except ParseError as error:
        return f"hint {shown(word, 40)} ignored: {error.problem.what}"
    return ""


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ParseError:
        raise ParseError("not a duration such as 20m, 2h30m or 1-12:00", text) from None


def _percent(text: str) -> float:
    number = text.removesuffix("%")
    if not _NUMBER.fullmatch(number) or not 0 <= float(number) <= 100:
        raise ParseError("not a percentage from 0 to 100", text)
    return float(number) / 100


def _yes_or_no(text: str) -> bool:
    if text.lower() not in {"yes", "no"}:
        raise ParseError("not yes or no", text)
    return text.lower() == "yes"


def _gpu_types(text: str) -> tuple[str, ...]:
    types = tuple(dict.fromkeys(text.lower().split("|")))
    if len(types) > MAX_GPU_TYPES or not all(_GPU_TYPE.fullmatch(gpu_type) for gpu_type in types):
        raise ParseError("not GPU types such as a100|h100", text)
    return types


def _vram(text: str) -> float:
    match = _GIB.fullmatch(text)
    if not match or not 0 < float(match[1]) <= MAX_VRAM_GIB:
        raise ParseError("not GiB for each GPU, such as 40", text)
    return float(match[1])


def _urgency(text: str) -> str:
    if text.lower() not in {"low", "normal", "high"}:
        raise ParseError("not low, normal or high", text)
    return text.lower()


def _deadline(text: str) -> str:
    if not _DATE.fullmatch(text):
        raise ParseError("not a time such as 2026-12-24T18:00", text)
    return text.upper()


def _number(value: float) -> str:
    return repr(round(value, 3)).removesuffix(".0")


Reader = Callable[[str], Any]
Writer = Callable[[Any], str]

_KEYS: Mapping[str, tuple[str, Reader, Writer]] = {
    "est": ("est_s", _duration, format_duration),
    "left": ("left_s", _duration, format_duration),
    "progress": ("progress", _percent, lambda share: f"{_number(share * 100)}%"),
    "ckpt": ("ckpt", _yes_or_no, lambda yes: "yes" if yes else "no"),
    "gpu": ("gpu", _gpu_types, "|".join),
    "vram": ("vram_gib", _vram, _number),
    "urgency": ("urgency", _urgency, str),
    "deadline": ("deadline", _deadline, str),
}
"""Keys as users write them: the field of Hints, its reader, its writer."""

KEYS = tuple(_KEYS)
