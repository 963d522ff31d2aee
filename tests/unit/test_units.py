"""slurm_score/units.py: times and counts as Slurm and people write them."""

import math

import pytest

from slurm_score.errors import ParseError
from slurm_score.units import (
    MAX_DURATION_S,
    format_duration,
    parse_count,
    parse_duration,
    parse_mem_mib,
    parse_time_limit,
    parse_timestamp,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("90s", 90),
        ("20m", 1200),
        ("2h30m", 9000),
        ("1d12h", 129_600),
        ("1w", 604_800),
        ("1.5h", 5400),
        ("20", 1200),
        ("30:00", 1800),
        ("2:30:45", 9045),
        ("1-12", 129_600),
        ("1-12:00", 129_600),
        ("1-12:00:05", 129_605),
        (" 20M ", 1200),
        ("36500d", MAX_DURATION_S),
    ],
)
def test_duration_is_read_as_people_and_sbatch_write_it(text: str, seconds: float) -> None:
    """A bare number is minutes and 30:00 half an hour, as for sbatch --time (case 19)."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "0m", "00:00:00", "-5m", "+5m", "36501d", "1e9d", "5 m", "m", "1h2", "2h:30", "soon"),
        *("1:2:3:4", "1-", "-1", "1-2-3", "1.5", "30:00.5", "UNLIMITED", "N/A", "٣m", "1h\x00", "９m"),
    ],
)
def test_other_duration_is_refused(text: str) -> None:
    """What is no duration above 0 s and up to a hundred years is a ParseError that shows the forms."""
    with pytest.raises(ParseError) as caught:
        parse_duration(text)
    assert caught.value.problem.allowed == (
        "20m, 2h30m, 1d12h, or as for sbatch --time: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("UNLIMITED", math.inf),
        ("unlimited", math.inf),
        ("INFINITE", math.inf),
        ("Partition_Limit", None),
        ("NOT_SET", None),
        ("N/A", None),
        ("INVALID", None),
        ("NONE", None),
        ("(null)", None),
        ("", None),
        ("30:00", 1800.0),
        ("5:00", 300.0),
        ("0:00", 0.0),
        ("1:00:00", 3600.0),
        ("2-12:30:45", 217_845.0),
        ("7-00:00:00", 604_800.0),
    ],
)
def test_time_limit_is_read_as_squeue_prints_it(text: str, seconds: float | None) -> None:
    """Cases 17 to 20 and 24: no limit is infinite, "not known" is None, the rest is seconds."""
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize("text", ["1h", "abc", "1:2:3:4", "4294967294 min", "1-2-3"])
def test_other_time_limit_is_refused(text: str) -> None:
    """A form that squeue never prints is named, not guessed at."""
    with pytest.raises(ParseError, match=r"^not a time, got"):
        parse_time_limit(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1700000000", 1_700_000_000),
        (" 1700000000\n", 1_700_000_000),
        ("999999999999", 999_999_999_999),
        ("0", None),
        ("N/A", None),
        ("None", None),
        ("Unknown", None),
        ("", None),
    ],
)
def test_timestamp_is_epoch_seconds_or_none(text: str, seconds: int | None) -> None:
    """Case 24: None, Unknown and N/A are missing values; SLURM_TIME_FORMAT=%s prints the others."""
    assert parse_timestamp(text) == seconds


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00", "-1", "1e9", "1.5", "9999999999999", "१"])
def test_other_timestamp_is_refused(text: str) -> None:
    """A calendar date means that SLURM_TIME_FORMAT did not arrive: better named than misread."""
    with pytest.raises(ParseError, match=r"^not a time, got"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("4", 4),
        ("4K", 4096),
        ("4k", 4096),
        ("844G", 844 * 2**30),
        ("1M", 2**20),
        ("1T", 2**40),
        ("2P", 2**51),
    ],
)
def test_count_knows_binary_suffixes(text: str, count: int) -> None:
    """Case 16: K, M, G, T and P are powers of 1,024, by gres.html."""
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "-1", "1.5", "4X", "4KB", "G", "1" * 19, "٤"])
def test_other_count_is_refused(text: str) -> None:
    """A count has at most 18 ASCII digits and one suffix."""
    with pytest.raises(ParseError, match=r"^not a count, got"):
        parse_count(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "N/A"),
        (math.nan, "N/A"),
        (math.inf, "UNLIMITED"),
        (0, "00:00:00"),
        (-5, "00:00:00"),
        (59.9, "00:00:59"),
        (3661, "01:01:01"),
        (86_400, "1-00:00:00"),
        (194_400, "2-06:00:00"),
    ],
)
def test_duration_is_shown_as_slurm_prints_it(seconds: float | None, text: str) -> None:
    """D-HH:MM:SS, fractions cut, never a minus sign."""
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("4000M", 4000),
        ("3G", 3072),
        ("1.5T", 1_572_864),
        ("62.50G", 64000),
        ("1500K", 2),
        ("500", 500),
        ("0", 0),
        ("16Gb", 16384),
    ],
)
def test_memory_is_read_in_mib(text: str, mib: int) -> None:
    """TRES strings and MinMemory of squeue; a bare number is MiB, and parts of one count as one."""
    assert parse_mem_mib(text) == mib


@pytest.mark.parametrize("text", ["", "lots", "-1M", "1.M", "1e3M", "1 G", "\u0661G"])
def test_text_that_is_no_memory_is_refused(text: str) -> None:
    """With the text in the message."""
    with pytest.raises(ParseError, match="not an amount of memory"):
        parse_mem_mib(text)
