"""slurm_score/report/table.py: tables like sprio's, as text."""

import pytest

from slurm_score.report.table import Column, cut, fitted, format_table, lines_of


def test_wide_characters_keep_the_columns() -> None:
    """A Chinese or Korean character is two columns wide."""
    assert format_table(["USER", "SCORE"], [["日本語", 1], ["bob", 22]]).splitlines() == [
        "USER    SCORE",
        "日本語      1",
        "bob        22",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mb", "a?[31mb"),
        ("a\nb", "a?b"),
        ("a\tb\r", "a?b?"),
        ("a\x9bb\x07", "a?b?"),
        ("a\u202eb\u200b", "a?b?"),
        ("a\ud800b", "a?b"),
        ("[red]a[/red]", "[red]a[/red]"),
        (":smile:", ":smile:"),
        ("a\\b", "a\\b"),
    ],
)
def test_no_name_can_steer_the_terminal(name: str, shown: str) -> None:
    """Control characters become question marks, markup is text."""
    assert format_table(["NAME", "N"], [[name, 1]]).splitlines()[1].split("  ")[0].rstrip() == shown


def test_long_value_is_not_cut() -> None:
    """A table is as wide as it needs to be: a cut job id is another job's."""
    name = "x" * 200
    assert format_table(["JOBID", "USER"], [[name, "bob"]]).splitlines()[1] == f"{name}  bob"


def test_a_table_has_no_colour_even_where_it_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE_COLOR is for terminals; the table is text."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert format_table(["JOBID"], [["1"]]) == "JOBID\n1\n"


def test_a_wide_row_is_not_cut() -> None:
    """Nothing is lost where a name is long."""
    assert "x" * 2000 in format_table(["USER"], [["x" * 2000]])


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("gpu", 3, "gpu"),
        ("gpus", 3, "gp+"),
        ("gpus", 1, "+"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本+"),
        ("日本語", 4, "日+"),
        ("e\u0301te\u0301", 3, "e\u0301te\u0301"),
    ],
)
def test_cut_text_ends_with_a_mark(text: str, width: int, shown: str) -> None:
    """As Slurm's own tables cut; a wide character that has no room for both its cells goes as a whole."""
    assert cut(text, width) == shown


COLUMNS = [
    Column(header="JOBID", cells=["123456789"]),
    Column(header="USER", cells=["alexandria"], least=6, spare=1),
    Column(header="NAME", cells=["x" * 30], least=8, spare=3),
    Column(header="SCORE", cells=["775"], right=True),
    Column(header="WAIT", cells=["10"], right=True, spare=2),
]


@pytest.mark.parametrize(
    ("width", "line", "left_out"),
    [
        (70, "123456789  alexandria  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx    775    10", []),
        (60, "123456789  alexandria  xxxxxxxxxxxxxxxxxxxxxxx+    775    10", []),
        (41, "123456789  alexan+  xxxxxxx+    775    10", []),
        (39, "123456789 alexand+ xxxxxxxx+   775   10", []),
        (36, "123456789 alexa+ xxxxxxx+   775   10", []),
        (35, "123456789  alexandria    775    10", ["NAME"]),
        (20, "123456789    775", ["USER", "WAIT", "NAME"]),
        (5, "123456789   775", ["USER", "WAIT", "NAME"]),
    ],
)
def test_a_table_is_cut_then_moved_together_then_robbed_of_columns(
    width: int, line: str, left_out: list[str]
) -> None:
    """The widest column gives way first; ids, numbers and what has no `spare` stay whatever the width."""
    found = fitted(COLUMNS, width)
    assert list(lines_of(found.columns, gap=found.gap))[1] == line
    assert [column.header for column in found.left_out] == left_out
