"""Finds the messages of the program in its source: what an error, a warning or a refusal says.

A value in a message is written …, and only the first line of a message counts.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tools import ROOT

Function = ast.FunctionDef

PACKAGE, HOOK = ROOT / "slurm_score", ROOT / "job_submit"
ELSEWHERE = ("slurm_score/slurm/fake", "slurm_score/demo/")
"""What stands for Slurm in demo and tests: its sentences are Slurm's."""

SENTENCE_AT = {
    "Problem": 1,
    "problem_at": 1,
    "HTTPException": 1,
    "_explained": 1,
    "_tell_once": 1,
    "BadParameter": 0,
    "fail": 0,
    "slow_down": 0,
    "_say_once": 0,
    "neutral_answer": 0,
}
"""Calls, and which of their arguments is a sentence for somebody; errors have it first."""

UNSEEN = {"AssertionError", "InconsistentError"}
"""Never shown, or not as they are."""

RETURNED = {
    "slurm_score/brakes.py": ("killed", "note_chunk"),
    "slurm_score/duty.py": ("standby", "_locked_out"),
    "slurm_score/policy.py": ("_late_guards", "_too_heavy"),
    "slurm_score/slurm/answers.py": ("failed",),
    "slurm_score/suitability.py": ("obstacles", "remarks_by_matter"),
}
"""Functions that return or yield sentences, which others raise or log."""

_PROGRAM = re.compile(r"^(?:slurm-score|sscore|warning): ")
_VALUE = re.compile(r"…(?: ?…)*|%(?:[srdg]|\.\d+f)")
_LUA_LOG = re.compile(
    r'\blog\w*\("error",\s*(.+)\)|\blog_error\((.+), \w+\)|return nil, (.+)$|\berror\((.+), 0\)'
)
_LUA_TEXT = re.compile(r'"([^"]*)"')
_LUA_OR = re.compile(r'\((\w+) or "[^"]*"\)')


@dataclass(frozen=True, order=True)
class Message:
    """What is said, empty where another function worded it, and the file and function that say it."""

    text: str
    where: str


def messages() -> set[Message]:
    """Return the messages of the package and of the hook."""
    found: set[Message] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(ELSEWHERE):
            found |= set(of_module(ast.parse(path.read_text(encoding="utf-8")), name))
    for path in sorted(set(HOOK.glob("*.lua")) - {HOOK / "example_site.lua"}):
        found |= set(of_lua(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()))
    return found


def names_of_checks() -> set[str]:
    """Return the names under which `slurm-score check` reports, as far as its source spells them."""
    found: set[str] = set()
    for path in (PACKAGE / "checks").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = {**_constants(tree)}
        for function in [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]:
            known |= _constants(function)
        for call in [one for one in ast.walk(tree) if isinstance(one, ast.Call)]:
            if _called(call) == "Check" and call.args:
                name = call.args[0]
                found.add(known.get(ast.unparse(name), "") if isinstance(name, ast.Name) else template(name))
    return found - {""}


def of_module(tree: ast.Module, name: str) -> Iterator[Message]:
    """Yield the messages of a module."""
    for function, node in _inside(tree, None):
        where = f"{name}:{function.name if function else 'module'}"
        for argument in _sentences_of(node):
            texts = {template(one) for one in _choices(argument, function)}
            yield from (Message(text if _says_something(text) else "", where) for text in texts)
    for function in [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]:
        if function.name in RETURNED.get(name, ()):
            yield from (Message(text, f"{name}:{function.name}") for text in _texts_of(function))


def of_lua(text: str, name: str) -> Iterator[Message]:
    """Yield what a Lua file writes into slurmctld's log as an error, or returns as a reason."""
    for line in text.splitlines():
        match = _LUA_LOG.search(line)
        if match:
            pieces = _LUA_TEXT.split(_LUA_OR.sub(r"\1", next(part for part in match.groups() if part)))
            said = "".join(piece if i % 2 else "…" * bool(piece.strip()) for i, piece in enumerate(pieces))
            if _says_something(said):
                yield Message(tidy(said), name)


def template(node: ast.expr) -> str:
    """Return a text as it is written, with … for each value in it."""
    return tidy(_raw(node))


def _raw(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _raw(node.left) + _raw(node.right)
    return "…"


def tidy(text: str) -> str:
    """Return the first line of a message, without its program and backquotes, neighbouring values as one."""
    line = _PROGRAM.sub("", text.partition("\n")[0]).replace("`", "")
    return _VALUE.sub("…", _VALUE.sub("…", line)).strip()


def _inside(tree: ast.AST, function: Function | None) -> Iterator[tuple[Function | None, ast.AST]]:
    """Yield every node with the innermost function around it."""
    for child in ast.iter_child_nodes(tree):
        yield function, child
        yield from _inside(child, child if isinstance(child, Function) else function)


def _sentences_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node says to somebody: the sentence of an error, of a log line, of an answer."""
    if isinstance(node, ast.Dict):
        named = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in named if isinstance(key, ast.Constant) and key.value == "error")
    if not isinstance(node, ast.Call):
        return
    values = [*node.args, *(one.value for one in node.keywords if one.arg)]
    at = SENTENCE_AT.get(_called(node), 0 if _is_error(node) else None)
    if at is not None and len(values) > at:
        yield values[at]


def _is_error(call: ast.Call) -> bool:
    name = _called(call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    logged = isinstance(owner, ast.Name) and owner.id == "log" and name in {"warning", "error", "exception"}
    on_stderr = name == "echo" and any(one.arg == "err" for one in call.keywords)
    return logged or on_stderr or (name.endswith("Error") and name not in UNSEEN)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _choices(node: ast.expr, function: Function | None) -> Iterator[ast.expr]:
    """Yield the texts that an expression may be: of a choice both, of a name what it was set to.

    A list holds problems, which say for themselves what they are.
    """
    if isinstance(node, ast.IfExp):
        yield from (*_choices(node.body, function), *_choices(node.orelse, function))
    elif isinstance(node, ast.Name) and function is not None:
        values = [value for name, value in _set_in(function) if name == node.id]
        yield from (one for value in values for one in _choices(value, None)) if values else (node,)
    elif not isinstance(node, ast.List | ast.ListComp):
        yield node


def _set_in(function: Function | ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that are set, with their values; of `a, b = 1, 2` both."""
    for one in [node for node in ast.walk(function) if isinstance(node, ast.Assign)]:
        for target in one.targets:
            if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                pairs = list(zip(target.elts, one.value.elts, strict=True))
            else:
                pairs = [(target, one.value)]
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _constants(tree: ast.FunctionDef | ast.Module) -> dict[str, str]:
    values = ((name, value) for name, value in _set_in(tree) if isinstance(value, ast.Constant))
    return {name: value.value for name, value in values if isinstance(value.value, str)}


def _texts_of(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the sentences in a function, not its docstring nor the keys of what it returns."""
    unsaid = {id(function.body[0].value)} if isinstance(function.body[0], ast.Expr) else set()
    for one in ast.walk(function):
        if isinstance(one, ast.JoinedStr):
            unsaid |= {id(part) for value in one.values for part in ast.walk(value)}
        if isinstance(one, ast.Dict):
            unsaid |= {id(key) for key in one.keys}
        if isinstance(one, ast.Subscript):
            unsaid.add(id(one.slice))
    for one in ast.walk(function):
        if isinstance(one, ast.Constant | ast.JoinedStr) and id(one) not in unsaid:
            text = template(one)
            if _says_something(text) or text.startswith("…: exit"):
                yield text


def _says_something(text: str) -> bool:
    return " " in text and len(re.findall("[a-zA-Z]", text)) > 5
