"""slurm_score/report/fields.py: sprio's notation of formats and sort keys, and ours beside."""

from collections import Counter

import pytest

from slurm_score.errors import ParseError
from slurm_score.factors import registry
from slurm_score.report.fields import (
    FACTOR_LETTERS,
    FIELDS,
    SLURM_FIELDS,
    Format,
    Shown,
    field_of,
    help_format,
    parse_format,
    parse_names,
    parse_sort,
)
from slurm_score.service.columns import all_columns

SPRIO = "aAbBcfFijJnNopPqQrStTuyY"
"""The letters of sprio -o. Source: sprio(1); %p and %P are the partition's factor, %r is its name."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("%i", [Shown(name="job", width=0, right=False)]),
        ("%.15i", [Shown(name="job", width=15, right=True)]),
        (
            "%.15i %9r %.6s",
            [
                Shown(name="job", width=15, right=True, after=" "),
                Shown(name="partition", width=9, right=False, after=" "),
                Shown(name="score", width=6, right=True),
            ],
        ),
        ("id=%i;", [Shown(name="job", width=0, right=False, before="id=", after=";")]),
        ("%W|%w", [Shown(name="wait", width=0, right=False, after="|"),
                   Shown(name="wait_norm", width=0, right=False)]),
        ("%A%a", [Shown(name="slurm_age", width=0, right=False),
                  Shown(name="slurm_age_norm", width=0, right=False)]),
    ],
)  # fmt: skip
def test_format_is_read_as_sprio_reads_it(text: str, shown: list[Shown]) -> None:
    """sprio(1): %[[.]size]type, `.` right justifies, without size the value is as long as it is."""
    assert parse_format(text) == Format(shown=tuple(shown), literal=True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not a format, got ''"),
        ("JOBID", "not a format, got 'JOBID'"),
        ("%", "not a format, got '%'"),
        ("%5", "not a format, got '%5'"),
        ("%i %%", "not a format, got '%i %%'"),
        ("%12345i", "not a format, got '%12345i'"),
        ("%i %C %U", "no such field, got '%C %U'"),
    ],
)
def test_wrong_format_is_refused_with_how_one_looks(text: str, sentence: str) -> None:
    """Every wrong letter at once, and where the list is."""
    with pytest.raises(ParseError) as caught:
        parse_format(text)
    form = "%[[.]width]letter, such as %.15i %9r; sscore --helpformat lists the letters"
    assert str(caught.value) == f"{sentence}; {form}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("job", [Shown(name="job")]),
        ("Job,SCORE:.8, name:20", [Shown(name="job"), Shown(name="score", width=8, right=True),
                                   Shown(name="name", width=20)]),
        ("name:.", [Shown(name="name", right=True)]),
    ],
)  # fmt: skip
def test_names_are_read_as_squeue_reads_them(text: str, shown: list[Shown]) -> None:
    """squeue(1), -O: type[:[.]size], with commas, whatever the case."""
    assert parse_names(text) == Format(shown=tuple(shown))


@pytest.mark.parametrize("text", ["", "job,", "job;score", "job:x", "3d"])
def test_wrong_names_are_refused(text: str) -> None:
    """With how a list looks; whether there is such a field the service knows."""
    with pytest.raises(ParseError, match=r"not a list of fields, .*; name\[:\[\.\]width\]"):
        parse_names(text)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("i", [("job_id", False)]),
        ("-i", [("job_id", True)]),
        ("+r,-s", [("partition", False), ("score", True)]),
        ("-type_rank, user", [("type_rank", True), ("user", False)]),
        ("-W", [("wait", True)]),
    ],
)
def test_sort_keys_are_letters_or_names(text: str, keys: list[tuple[str, bool]]) -> None:
    """sprio(1), -S: + or nothing ascends, - descends, the first key counts most; ids are numbers."""
    assert parse_sort(text) == tuple(keys)


@pytest.mark.parametrize("text", ["", "i,", "!", "-C", "parts", "a b"])
def test_wrong_sort_keys_are_refused(text: str) -> None:
    """An unknown letter, no key, a group of fields."""
    with pytest.raises(ParseError, match="not a list of sort keys, got"):
        parse_sort(text)


def test_every_letter_of_sprio_means_what_it_means_there() -> None:
    """A format of sprio's can be used as it is."""
    known = {field.letter: field for field in (*FIELDS, *SLURM_FIELDS)}
    headers = {letter: known[letter].header for letter in SPRIO}
    assert headers == {
        "a": "AGE", "A": "AGE", "b": "ASSOC", "B": "ASSOC", "c": "CLUSTER", "f": "FAIRSHARE",
        "F": "FAIRSHARE", "i": "JOBID", "j": "JOBSIZE", "J": "JOBSIZE", "n": "QOSNAME", "N": "NICE",
        "o": "ACCOUNT",
        "p": "PARTITION", "P": "PARTITION", "q": "QOS", "Q": "QOS", "r": "PARTITION", "S": "SITE",
        "t": "TRES", "T": "TRES", "u": "USER", "y": "PRIORITY", "Y": "PRIORITY",
    }  # fmt: skip


def test_no_letter_and_no_name_stands_for_two_fields() -> None:
    """Of all fields, those of the factors included."""
    listed = list(help_format())
    letters = Counter(letter for letter, _, _ in listed if letter)
    names = Counter(name for _, name, _ in listed)
    assert {one for one, count in (letters | names).items() if count > 1} == set()


def test_every_field_is_a_column_of_the_service() -> None:
    """And every factor that is shipped has its two letters."""
    assert {name for _, name, _ in help_format()} <= all_columns().keys()
    assert set(registry()) == set(FACTOR_LETTERS)


def test_a_factor_of_another_package_has_a_name_and_its_own_header() -> None:
    """It has no letter; what it tells stands in its own documentation."""
    assert field_of("licences_norm", {"licences": "LIC"}).header == "LIC"
    assert field_of("licences", {}).header == "LICENCES"
