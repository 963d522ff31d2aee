"""Settings as an admin writes them: where each stands in the YAML, and a sentence for each problem. Pure."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from slurm_score.errors import Problem, shown

Path = tuple[str | int, ...]


class Section(BaseModel):
    """A part of the policy: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class InconsistentError(ValueError):
    """Settings that are each right but don't go together.

    `found` holds a sentence for each problem, with the settings that it is about: the first of them
    that stands in the file tells the line.
    """

    def __init__(self, found: Iterable[tuple[tuple[Path, ...], str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(sentence for _, sentence in self.found))


class Lines:
    """Where in the YAML text each setting stands."""

    def __init__(self, node: yaml.Node | None, where: str) -> None:
        self._where = where
        self._lines: dict[Path, int] = {}
        self._twice: list[Path] = []
        self._seen: set[int] = set()
        self._walk(node, ())

    def at(self, path: Path) -> str:
        """Return `file:line` of a setting, or of the nearest one above it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self._lines:
                return f"{self._where}:{self._lines[path[:end]]}"
        return self._where

    def at_first(self, paths: Iterable[Path]) -> str:
        """Return `file:line` of the first of these settings that the file has, else the file."""
        return next((self.at(path) for path in paths if path in self._lines), self._where)

    def order(self, problem: Problem) -> int:
        """Return the line of a problem, 0 where it has none."""
        line = problem.where.removeprefix(self._where).removeprefix(":")
        return int(line) if line else 0

    def duplicates(self) -> Iterator[Problem]:
        """Yield a problem for each key that stands twice in one mapping."""
        for path in self._twice:
            yield Problem(self.at(path), f"{dotted(path)}: stands twice", "", "remove one of them")

    def _walk(self, node: yaml.Node | None, path: Path) -> None:
        if not isinstance(node, yaml.CollectionNode) or id(node) in self._seen:
            return
        self._seen.add(id(node))  # an alias stands for what was walked before
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self._lines[(*path, i)] = item.start_mark.line + 1
                self._walk(item, (*path, i))
            return
        for key, value in node.value:
            below = (*path, str(key.value))
            if below in self._lines:
                self._twice.append(below)
            self._lines[below] = key.start_mark.line + 1
            self._walk(value, below)


def validated(model: type[Any], data: object, lines: Lines, path: Path) -> tuple[Any, list[Problem]]:
    """Return what `data` says as a model and no problem, or None and every problem."""
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        return None, [
            problem for detail in error.errors() for problem in _explain(model, detail, lines, path)
        ]


def problem_at(path: Path, what: str, got: str, allowed: str, lines: Lines) -> Problem:
    """Return a problem with one setting, named with its line."""
    name = f"{dotted(path)}: " if path else ""
    return Problem(lines.at(path), name + what, got, allowed)


def meant(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean '…'?` where a name is almost a known one."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean '{near[0]}'?" if near else ""


def dotted(path: Path) -> str:
    """Return a setting's path as people write it: `guard.after`."""
    return ".".join(map(str, path))


def settings_of(section: type[BaseModel]) -> Mapping[str, Any]:
    """Return the settings that an admin can write in a section: those with a name in the YAML."""
    return {name: field for name, field in section.model_fields.items() if field.repr}


def _explain(model: type[BaseModel], detail: ErrorDetails, lines: Lines, path: Path) -> list[Problem]:
    place = (*path, *(key for key in detail["loc"] if key != "[key]"))
    if detail["type"] == "extra_forbidden":
        known = settings_of(_section(model, detail["loc"][:-1]))
        what = "unknown setting" + meant(str(place[-1]), known)
        return [problem_at(place, what, "", f"(known: {', '.join(known)})", lines)]
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, InconsistentError):
        return [Problem(lines.at_first(paths), sentence) for paths, sentence in error.found]
    what = detail["msg"].removeprefix("Value error, ")
    got = shown(str(detail["input"])) if detail["loc"] else ""
    return [problem_at(place, what[:1].lower() + what[1:], got, "", lines)]


def _section(model: type[BaseModel], loc: Path) -> type[BaseModel]:
    """The section in which a setting stands; of sections in a list or mapping, the one that all share."""
    for key in loc:
        field = model.model_fields.get(str(key))
        if field is None:
            continue  # a place in a list, or a key of a mapping
        inner = (*get_args(field.annotation), field.annotation)
        model = next((i for i in inner if isinstance(i, type) and issubclass(i, BaseModel)), model)
    return model
