"""slurm_score/constraint.py: which nodes a --constraint admits, and texts that are none."""

import pytest

from slurm_score.constraint import ANY_NODE, parse_constraint
from slurm_score.errors import ParseError


def admitted(text: str, *nodes: str) -> list[str]:
    """Return for each alternative the nodes that it admits; a node is its features, `a+b`."""
    ways = parse_constraint(text)
    return [" ".join(node for node in nodes if way.admits(frozenset(node.split("+")))) for way in ways]


@pytest.mark.parametrize("text", ["", " ", "(null)", "N/A"])
def test_no_constraint_admits_every_node(text: str) -> None:
    """As squeue and scontrol write it."""
    assert parse_constraint(text) == ANY_NODE
    assert admitted(text, "a", "b") == ["a b"]


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        pytest.param("a", ["a a+b a+b+c a+c"], id="one feature"),
        pytest.param("a&b", ["a+b a+b+c"], id="and"),
        pytest.param("a,b", ["a+b a+b+c"], id="a comma is and"),
        pytest.param(" a & b ", ["a+b a+b+c"], id="blanks"),
        pytest.param("a|b", ["a b a+b a+b+c a+c"], id="or"),
        pytest.param("b&c|a", ["a a+b a+b+c a+c"], id="from left to right: (b&c)|a"),
        pytest.param("a|b&c", ["a+b+c a+c"], id="from left to right: (a|b)&c"),
        pytest.param("a|(b&c)", ["a a+b a+b+c a+c"], id="parentheses group"),
        pytest.param("[a|b]", ["a a+b a+b+c a+c", "b a+b a+b+c"], id="all nodes the same one"),
        pytest.param("[a|b|c]", ["a a+b a+b+c a+c", "b a+b a+b+c", "a+b+c a+c"], id="of three"),
        pytest.param("c&[a|b]", ["a+b+c a+c", "a+b+c"], id="and the same one"),
        pytest.param("[a|b]&[b|c]", ["a+b a+b+c", "a+b+c a+c", "b a+b a+b+c", "a+b+c"], id="two choices"),
        pytest.param("[(a&b)|c]", ["a+b a+b+c", "a+b+c a+c"], id="a group in brackets"),
        pytest.param("a*2", ["a b a+b a+b+c a+c"], id="a count leaves the other nodes free"),
        pytest.param("a*2&b", ["b a+b a+b+c"], id="a count and a feature of all"),
        pytest.param("[a*1&c*1]", ["a a+b a+b+c a+c"], id="counts in brackets: every node one of them"),
        pytest.param("[a*1&b*1]", ["a b a+b a+b+c a+c"], id="of two"),
        pytest.param("[(a&b)*1&c*1]", ["a+b a+b+c a+c"], id="of a group and a feature"),
    ],
)
def test_constraint_admits_nodes_by_their_features(text: str, ways: list[str]) -> None:
    """sbatch(1), --constraint; one line for each way in which all nodes of a job can meet it."""
    assert admitted(text, "a", "b", "a+b", "a+b+c", "a+c") == ways


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("a*2", [2]),
        ("a*2&b*3", [2, 3]),
        ("[(a&b&c)*4&d*1]", [4, 1]),
        ("a|b", []),
    ],
)
def test_counts_say_how_many_nodes_must_meet_a_part(text: str, counts: list[int]) -> None:
    """`[(knl&snc4&flat)*4&haswell*1]` is sbatch(1)'s example."""
    (way,) = parse_constraint(text)
    assert [some.count for some in way.some] == counts


def test_counted_part_is_met_by_nodes_with_its_features() -> None:
    """Four nodes with a and b, one with c."""
    (way,) = parse_constraint("(a&b)*4&c*1")
    a_and_b, c = (some.part for some in way.some)
    assert [a_and_b.admits(f) for f in ({"a"}, {"a", "b"}, {"c"})] == [False, True, False]
    assert [c.admits(f) for f in ({"a"}, {"a", "b"}, {"c"})] == [False, False, True]


def test_features_are_told_apart_by_case() -> None:
    """Slurm compares them as they are written."""
    assert admitted("A100", "a100", "A100") == ["A100"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a&", id="nothing behind &"),
        pytest.param("|a", id="nothing before |"),
        pytest.param("a b", id="two features and nothing between"),
        pytest.param("(a", id="never closed"),
        pytest.param("a)", id="never opened"),
        pytest.param("(a]", id="closed by another"),
        pytest.param("()", id="empty"),
        pytest.param("a*", id="no count"),
        pytest.param("a*0", id="no node"),
        pytest.param("a*b", id="a count that is none"),
        pytest.param("a*1234567", id="more nodes than there are anywhere"),
        pytest.param("a;rm", id="a sign that means nothing"),
        pytest.param("knl\u00e9", id="a letter that Slurm wouldn't take"),
        pytest.param("[" * 680 + "a" + "]" * 680, id="680 brackets"),
        pytest.param("(" * 2000 + "a", id="2,000 brackets that are never closed"),
        pytest.param("&".join("a" * 1500), id="1,500 features: each would be a step deeper"),
        pytest.param("&".join(["[a|b]"] * 90), id="2 to the 90th alternatives"),
        pytest.param("a" * 5000, id="5,000 characters"),
    ],
)
def test_text_that_is_no_constraint_is_refused(text: str) -> None:
    """Users write it: whatever it is, one sentence and no stack overflow."""
    with pytest.raises(ParseError, match="constraint"):
        parse_constraint(text)


def test_constraint_at_the_limits_is_read() -> None:
    """200 features in a row, 20 brackets, 64 alternatives."""
    assert admitted("|".join(["a"] * 200), "a", "b") == ["a"]
    assert admitted("(" * 20 + "a" + ")" * 20, "a", "b") == ["a"]
    assert len(parse_constraint("&".join(["[a|b]"] * 6))) == 64
