"""What sbatch's --constraint says about nodes: `a100&nvlink`, `[rack1|rack2]`, `(knl&flat)*4&haswell`. Pure.

Slurm reads `&` (or `,`) and `|` from left to right, neither before the other; parentheses group.
Square brackets around alternatives mean that all nodes must meet the same one. A number behind a `*`
says how many of the nodes must meet that part; the others need not, unless the parts stand in square
brackets: `[rack1*1&rack2*2]` takes nodes of the two racks only (observed on 22.05 to 26.05).

Source: sbatch(1), --constraint; slurm src/slurmctld/job_scheduler.c, build_feature_list.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product

from slurm_score.errors import ParseError

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z0-9_.:=+-]+)|(?P<sign>[&,|()\[\]*]))")
_COUNT = re.compile(r"[1-9]\d{0,5}", re.ASCII)
_ALLOWED = "features joined by & and |, with (), [] and *count"
MAX_TEXT, MAX_TERMS, MAX_ALTERNATIVES, MAX_DEPTH = 4096, 200, 64, 20


@dataclass(frozen=True, slots=True)
class Feature:
    """A node with this feature."""

    name: str

    def admits(self, features: Collection[str]) -> bool:
        """Return whether a node with these features meets it."""
        return self.name in features


@dataclass(frozen=True, slots=True)
class Both:
    """A node that meets both."""

    left: "Expression"
    right: "Expression"

    def admits(self, features: Collection[str]) -> bool:
        """Return whether a node with these features meets it."""
        return self.left.admits(features) and self.right.admits(features)


@dataclass(frozen=True, slots=True)
class Either:
    """A node that meets one of the two; `same`: all nodes of a job must meet the same one."""

    left: "Expression"
    right: "Expression"
    same: bool = False

    def admits(self, features: Collection[str]) -> bool:
        """Return whether a node with these features meets it."""
        return self.left.admits(features) or self.right.admits(features)


@dataclass(frozen=True, slots=True)
class Some:
    """`count` of the job's nodes must meet `part`; any node is admitted among the others."""

    part: "Expression"
    count: int

    def admits(self, features: Collection[str]) -> bool:  # noqa: ARG002 - the shape of every expression
        """Return True: a node that doesn't meet the part may be one of the others."""
        return True


Expression = Feature | Both | Either | Some


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to meet a constraint: every node meets `every`, and so many of them each part of `some`."""

    every: Expression | None = None
    some: tuple[Some, ...] = ()

    def admits(self, features: Collection[str]) -> bool:
        """Return whether a node with these features may be one of the job's."""
        return self.every is None or self.every.admits(features)


ANY_NODE = (Alternative(),)


@lru_cache(maxsize=4096)
def parse_constraint(text: str) -> tuple[Alternative, ...]:
    """Return the ways to meet a constraint; one that admits every node for an empty text.

    Raises:
        ParseError: it can't be read.
    """
    if text.strip() in {"", "(null)", "N/A"}:
        return ANY_NODE
    if len(text) > MAX_TEXT:
        raise ParseError("a constraint that is too long", text, f"at most {MAX_TEXT} characters")
    reader = _Reader(text)
    found = reader.expression(0)
    if reader.left:
        raise ParseError("not a constraint", text, _ALLOWED)
    if _ways(found) > MAX_ALTERNATIVES:
        raise ParseError("a constraint with too many alternatives", text, f"at most {MAX_ALTERNATIVES}")
    return tuple(Alternative(way, tuple(_counted(way))) for way in _alternatives(found))


class _Reader:
    """Reads a text token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left: list[tuple[str, str]] = []
        end = 0
        for token in _TOKEN.finditer(text):
            if token.start() != end:
                break
            end = token.end()
            self.left.append((token["name"] or "", token["sign"] or ""))
        if text[end:].strip():
            raise ParseError("not a constraint", text, _ALLOWED)
        if sum(bool(name) for name, _ in self.left) > MAX_TERMS:  # each may be a step deeper
            raise ParseError("a constraint with too many features", text, f"at most {MAX_TERMS}")
        self.left.reverse()

    def expression(self, depth: int) -> Expression:
        """Return what stands up to a closing bracket or the end."""
        if depth > MAX_DEPTH:
            raise ParseError("a constraint with too many brackets", self.text, _ALLOWED)
        found = self.term(depth)
        while self.left and self.left[-1][1] in {"&", ",", "|"}:
            sign = self.left.pop()[1]
            right = self.term(depth)
            found = Either(found, right) if sign == "|" else Both(found, right)
        return found

    def term(self, depth: int) -> Expression:
        """Return a feature or a group, with its count."""
        name, sign = self.left.pop() if self.left else ("", "")
        found: Expression
        if name:
            found = Feature(name)
        elif sign in {"(", "["}:
            found = self.expression(depth + 1)
            self._close({"(": ")", "[": "]"}[sign])
            found = _one_of(_same(found)) if sign == "[" else found
        else:
            raise ParseError("not a constraint", self.text, _ALLOWED)
        if self.left and self.left[-1][1] == "*":
            self.left.pop()
            found = Some(found, self._count())
        return found

    def _close(self, sign: str) -> None:
        if not self.left or self.left.pop()[1] != sign:
            raise ParseError("a constraint with unbalanced brackets", self.text, _ALLOWED)

    def _count(self) -> int:
        text = self.left.pop()[0] if self.left else ""
        if not _COUNT.fullmatch(text):
            raise ParseError("a constraint with a * and no count", self.text, _ALLOWED)
        return int(text)


def _same(found: Expression) -> Expression:
    """Mark the alternatives at the top of a bracket."""
    if isinstance(found, Either):
        return Either(_same(found.left), _same(found.right), same=True)
    return found


def _one_of(found: Expression) -> Expression:
    """Let every node meet one of the counted parts of a bracket."""
    parts = list(_counted(found))
    if len(parts) < 2 or not _only_counted(found):
        return found
    return Both(found, reduce(Either, (part.part for part in parts)))


def _only_counted(found: Expression) -> bool:
    if isinstance(found, Both):
        return _only_counted(found.left) and _only_counted(found.right)
    return isinstance(found, Some)


def _ways(found: Expression) -> int:
    """Return how many alternatives there are, without writing them out."""
    if isinstance(found, Either) and found.same:
        return _ways(found.left) + _ways(found.right)
    return _ways(found.left) * _ways(found.right) if isinstance(found, Both) else 1


def _alternatives(found: Expression) -> Iterator[Expression]:
    """Yield the expression with one choice made of every bracket."""
    if isinstance(found, Either) and found.same:
        yield from _alternatives(found.left)
        yield from _alternatives(found.right)
    elif isinstance(found, Both):
        for left, right in product(_alternatives(found.left), _alternatives(found.right)):
            yield Both(left, right)
    else:
        yield found


def _counted(found: Expression) -> Iterator[Some]:
    if isinstance(found, Some):
        yield found
    elif isinstance(found, Both):
        yield from _counted(found.left)
        yield from _counted(found.right)
