"""Host lists as Slurm writes them: `g[1-3]`, `rack[0-1]_blade[0-1]`. Pure; ClusterShell does the work."""

import math
import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from slurm_score.errors import ParseError

MAX_HOSTS = 100_000
_NOTHING = frozenset({"", "(null)", "n/a", "none"})
_LIST = re.compile(r"[A-Za-z0-9._,\[\]-]+", re.ASCII)
_LONG_NUMBER = re.compile(r"\d{10}", re.ASCII)
_WRONG_BRACKET = re.compile(r"\[(?!\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\])", re.ASCII)
_COMMA = re.compile(r",(?![^\[]*\])")
_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)


def parse_hosts(text: str) -> tuple[str, ...]:
    """Return the names of a host list in ClusterShell's order, none for `(null)`.

    Raises:
        ParseError: not a host list, or one that could name more than 100,000 hosts.
    """
    if text.strip().lower() in _NOTHING:
        return ()
    if not _LIST.fullmatch(text) or _LONG_NUMBER.search(text) or _WRONG_BRACKET.search(text):
        raise ParseError("not a host list", text, "such as g[1-3],h7")
    if sum(map(_most, _COMMA.split(text))) > MAX_HOSTS:  # ClusterShell would write them all out
        raise ParseError("a list of too many hosts", text, f"at most {MAX_HOSTS}")
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, AssertionError) as error:  # it asserts that no range is too large
        raise ParseError(f"not a host list ({str(error)[:80]})", text, "such as g[1-3],h7") from None


def _most(part: str) -> int:
    """How many hosts one item of a list could name at most."""
    spans = (int(last) - int(first) + 1 for first, last in _RANGE.findall(part))
    return math.prod(max(1, span) for span in spans)


def fold_hosts(names: Iterable[str]) -> str:
    """Return names as one host list, `g[1-3],h7`; only the last number of a name becomes a range."""
    nodes = NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP)
    nodes.fold_axis = (-1,)  # Slurm reads rack[0-1]_blade[0-1] where it was built for two dimensions
    return str(nodes)
