"""slurm_score/hosts.py: host lists, by ClusterShell."""

import pytest

from slurm_score.errors import ParseError
from slurm_score.hosts import fold_hosts, parse_hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "rack[0-1]_blade[0-1]",
            ("rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1"),
        ),
        ("nodeA,nodeB[001,003],nodeC", ("nodeA", "nodeB001", "nodeB003", "nodeC")),
        ("c1001a-s[11,17]", ("c1001a-s11", "c1001a-s17")),
        ("g1", ("g1",)),
        ("g[08-11]", ("g08", "g09", "g10", "g11")),
        ("(null)", ()),
        ("", ()),
    ],
)
def test_a_host_list_is_expanded(text: str, names: tuple[str, ...]) -> None:
    """Case 31: lists over two numbers, zeros in front, names without numbers."""
    assert tuple(sorted(parse_hosts(text))) == names


@pytest.mark.parametrize(
    "text",
    [
        "g[1-",
        "g[3-1]",
        "@all",
        "g1\n",
        "n[0-99999999]",
        "[",
        "a,,[",
        "8[-2]222888822",
        "n[1-2]999999999",
        "n[a]",
    ],
)
def test_what_is_no_host_list_is_refused(text: str) -> None:
    """Groups are ClusterShell's, not Slurm's; a list must not eat all memory."""
    with pytest.raises(ParseError):
        parse_hosts(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["g1"], "g1"),
        (["g2", "g1", "g10", "h7"], "g[1-2,10],h7"),
        (["gpu-a1-003", "gpu-a1-004"], "gpu-a1-[003-004]"),
        (["r0b0", "r0b1", "r1b0", "r1b1"], "r0b[0-1],r1b[0-1]"),
        (["login", "g1.example.org"], "g1.example.org,login"),
    ],
)
def test_names_are_folded_by_their_last_number(names: list[str], text: str) -> None:
    """Two ranges in one name are for a Slurm that was built for them only."""
    assert fold_hosts(names) == text
    assert sorted(parse_hosts(text)) == sorted(names)
