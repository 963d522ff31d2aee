"""Laws of sscore's tables and formats: what is cut is marked and fits, no text breaks a reader."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_score.errors import ParseError
from slurm_score.report.fields import parse_format, parse_names, parse_sort
from slurm_score.report.table import MARK, Column, cells_of, cut, fitted, lines_of, printable

names = st.text(alphabet=st.sampled_from("abcXYZ019_-.é日本語한국Ωe\u0301 "), max_size=30).map(printable)
formats = st.one_of(st.text(max_size=60), st.text(alphabet="%.0123456789iruSskK|, +-:[]", max_size=40))


@given(names, st.integers(1, 40))
def test_a_cut_text_fits_and_says_so(text: str, width: int) -> None:
    """At most so many cells; whole, or a beginning of it with the mark."""
    found = cut(text, width)
    assert cells_of(found) <= width
    assert found == text or (found.endswith(MARK) and text.startswith(found.removesuffix(MARK)))


@given(st.lists(st.tuples(names, names, st.integers(0, 10**9)), min_size=1, max_size=6), st.integers(1, 100))
def test_a_table_fits_or_holds_only_what_must_stay(rows: list[tuple[str, str, int]], width: int) -> None:
    """Ids and numbers are never cut, and all lines end where the numbers end."""
    users, work, scores = zip(*rows, strict=True)
    columns = [
        Column(header="JOBID", cells=[str(score) for score in scores]),
        Column(header="USER", cells=users, least=6, spare=2),
        Column(header="NAME", cells=work, least=8, spare=1),
        Column(header="SCORE", cells=[str(score) for score in scores], right=True),
    ]
    found = fitted(columns, width)
    lines = list(lines_of(found.columns, gap=found.gap))
    assert len(set(map(cells_of, lines))) == 1
    assert cells_of(lines[0]) <= width or [column.header for column in found.columns] == ["JOBID", "SCORE"]
    for line, score in zip(lines[1:], scores, strict=True):
        assert line.startswith(str(score))
        assert line.endswith(str(score))


@pytest.mark.parametrize("read", [parse_format, parse_names, parse_sort])
@given(formats)
def test_no_text_breaks_the_reader_of_a_format(read: Callable[[str], object], text: str) -> None:
    """It is read, or refused in a sentence."""
    assert "\n" not in refusal(read, text)


def refusal(read: Callable[[str], object], text: str) -> str:
    """Return the sentence with which a text is refused, empty if it is read."""
    try:
        read(text)
    except ParseError as error:
        return str(error)
    return ""
