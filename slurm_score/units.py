"""Times and counts as Slurm and people write them. Pure."""

import math
import re

from slurm_score.errors import ParseError

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60, 3600, 86400, 604800
MAX_DURATION_S = 100 * 365 * DAY_S

_UNIT_S = {"s": 1, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
_PEOPLE = re.compile(r"(?:\d{1,12}(?:\.\d{1,6})?[smhdw])+", re.ASCII)
_PEOPLE_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
_SLURM = re.compile(r"(?:(?P<days>\d{1,9})-)?(?P<clock>\d{1,12}(?::\d{1,9}){0,2})", re.ASCII)
_DURATION_FORMS = "20m, 2h30m, 1d12h, or as for sbatch --time: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S"
_UNKNOWN_TIME = frozenset({"", "n/a", "none", "not_set", "unknown", "(null)", "invalid", "partition_limit"})
_SUFFIX = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_MEM = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)([KMGTP]?)B?", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"(\d{1,18})([KMGTP]?)", re.ASCII | re.IGNORECASE)


def parse_duration(text: str) -> float:
    """Return seconds > 0 from a duration as people write it: `90m`, `2h30m`, `1-12:00`, `30:00`.

    A bare number is minutes and `30:00` half an hour, as for sbatch --time.

    Raises:
        ParseError: not a duration, zero, or more than a hundred years.
    """
    word = text.strip().lower()
    if _PEOPLE.fullmatch(word):
        seconds = sum(float(n) * _UNIT_S[unit] for n, unit in _PEOPLE_PART.findall(word))
    else:
        seconds = _slurm_seconds(word, text)
    if not 0 < seconds <= MAX_DURATION_S:
        raise ParseError("not a duration between 1s and 100 years", text, _DURATION_FORMS)
    return seconds


def parse_time_limit(text: str) -> float | None:
    """Return a time limit in seconds: `math.inf` for UNLIMITED, None where it is not known.

    `Partition_Limit`, `NOT_SET`, `N/A`, `INVALID` and nothing at all are "not known": the caller
    may know the partition's limit.

    Raises:
        ParseError: none of the forms that squeue prints.

    Source: squeue(1), TimeLimit; slurm src/common/parse_time.c, secs2time_str, mins2time_str.
    """
    word = text.strip().lower()
    if word in _UNKNOWN_TIME:
        return None
    if word in {"unlimited", "infinite"}:
        return math.inf
    return _slurm_seconds(word, text)


def parse_timestamp(text: str) -> int | None:
    """Return seconds since the epoch, None for the words that mean "no such time".

    Raises:
        ParseError: neither a number of seconds nor such a word.

    Source: squeue(1) under SLURM_TIME_FORMAT=%s.
    """
    word = text.strip().lower()
    if word in _UNKNOWN_TIME:
        return None
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise ParseError("not a time", text, "seconds since the epoch, N/A or Unknown")
    return int(word) or None


def parse_count(text: str) -> int:
    """Return a whole number; K, M, G, T and P multiply by powers of 1,024.

    Raises:
        ParseError: not a number with one of those suffixes.

    Source: slurm gres.html, "Count".
    """
    match = _COUNT.fullmatch(text.strip())
    if not match:
        raise ParseError("not a count", text, "a whole number, K, M, G, T or P may follow")
    return int(match[1]) * _SUFFIX[match[2].upper()]


def parse_mem_mib(text: str) -> int:
    """Return MiB, rounded up: `4000M`, `1.5T`, `512K`; a bare number is MiB.

    Raises:
        ParseError: not a number with one of those suffixes.

    Source: slurm src/common/slurm_protocol_api.c, convert_num_unit.
    """
    match = _MEM.fullmatch(text.strip())
    if not match:
        raise ParseError("not an amount of memory", text, "a number, K, M, G, T or P may follow")
    return math.ceil(float(match[1]) * _SUFFIX[match[2].upper() or "M"] / _SUFFIX["M"])


def format_duration(seconds: float | None) -> str:
    """Return `D-HH:MM:SS` as Slurm prints it, UNLIMITED for infinity, N/A for None or NaN.

    Fractions are cut; a negative duration is shown as 00:00:00.
    """
    if seconds is None or math.isnan(seconds):
        return "N/A"
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(max(0, int(seconds)), DAY_S)
    clock = f"{rest // HOUR_S:02}:{rest % HOUR_S // MINUTE_S:02}:{rest % MINUTE_S:02}"
    return f"{days}-{clock}" if days else clock


def _slurm_seconds(word: str, text: str) -> float:
    match = _SLURM.fullmatch(word)
    if not match:
        raise ParseError("not a time", text, _DURATION_FORMS)
    numbers = [int(n) for n in match["clock"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return int(match["days"]) * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds
    if len(numbers) == 1:
        return numbers[0] * MINUTE_S
    hours, minutes, seconds = [0, 0, *numbers][-3:]
    return hours * HOUR_S + minutes * MINUTE_S + seconds
