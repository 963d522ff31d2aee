"""The man page of the policy file, from its schema and from the commented file that we ship. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurm_score.conditions import Profile
from slurm_score.factors import registry
from slurm_score.policy import GpuType, Policy
from slurm_score.report import roff
from slurm_score.report.manpages import DATE, finished, see_also

UNSAID = {
    "gpu_types.NAME.vram_gib": "GiB of memory on each GPU of the type; above 0, 4096 at most.",
    "gpu_types.NAME.nvlink": "Whether GPUs of the type have a fast link among them: true or false.",
    "profiles.NAME.when": "When the profile holds; at least one condition, and all that are named must hold.",
    "profiles.NAME.when.hours": "Hours of the day, such as 20:00-06:00 or [08:00-12:00, 14:00-18:00].",
    "profiles.NAME.when.days": "Days of the week, such as mon-fri or [sat, sun].",
    "profiles.NAME.when.pending_jobs": "How many jobs could start, in quotes: '>500', or '>500 <300'.",
    "profiles.NAME.when.pending_per_free_gpu": "GPUs that they ask for over the free ones, in quotes: '>2'.",
    "profiles.NAME.weights": "The weight of each factor that differs; at least one.",
}
"""What the shipped file shows in examples only."""

EMPTY = {"{}": "none", "[]": "none", '""': ""}
"""How defaults are told that hold nothing."""

_KEY = re.compile(r"(?P<indent> *)(?P<key>[a-z_]+):(?P<rest>.*)")
_COMMENT = re.compile(r"(?P<indent> *)# ?(?P<text>.*)")


@dataclass
class Told:
    """What the shipped file says of a setting: its default as it is written there, and comments.

    `above` are the lines before it, `beside` the text after its value, `example` the lines below it.
    """

    default: str = ""
    above: list[str] = field(default_factory=list)
    beside: str = ""
    example: list[str] = field(default_factory=list)


def policy_page(shipped: str, version: str) -> str:
    """Return the page of section 5, of a policy file with a comment for each of its settings."""
    told = comments(shipped)
    lines = [roff.title("slurm-score.yaml", 5, DATE, f"slurm-score {version}"), roff.heading("name")]
    lines += ["slurm\\-score.yaml \\- the policy of slurm\\-score", roff.heading("description")]
    lines += [*roff.paragraphs(DESCRIPTION), roff.heading("settings")]
    for path, allowed in settings():
        lines += _setting(path, allowed, told.get(path) or Told())
    return finished([*lines, *see_also("slurm-score.yaml(5)")])


DESCRIPTION = """\
The policy is one YAML file; SLURM_SCORE_POLICY or `--policy` names another one. Both daemons read it again
when it changes; a broken edit keeps the policy in force and says so in the log.

A duration has its unit: 90m, 2h30m, 1d12h, or in quotes as for sbatch --time: '1-12:00'. A setting that is
left out has its default; a factor that is left out of `factors` has weight 0. Unknown settings are errors.

`slurm-score policy validate` names every problem of a file, `slurm-score policy show` what it comes to."""


def settings() -> Iterator[tuple[str, str]]:
    """Yield the path of every setting and in words what is allowed; NAME stands for a name of the admin's."""
    yield from _settings_of(Policy, "")


def _settings_of(model: type[BaseModel], above: str) -> Iterator[tuple[str, str]]:
    for name, one in model.model_fields.items():
        path = f"{above}{name}"
        if path == "base_weights":
            continue  # the program's own
        yield path, "" if path in UNSAID else allowed_words(one)
        for below, suffix in _below(name, one):
            if name == "factors":
                yield f"{path}.{suffix.rstrip('.')}", ""
            yield from _settings_of(below, f"{path}.{suffix}")


def _below(name: str, one: FieldInfo) -> Iterator[tuple[type[BaseModel], str]]:
    """Yield the models that a setting holds, with what stands between it and theirs."""
    named: dict[str, type[BaseModel]] = {"gpu_types": GpuType, "profiles": Profile}
    if name == "factors":
        for factor in registry().values():
            yield factor.params, f"{factor.name}."
    elif name in named:
        yield named[name], "NAME."
    elif isinstance(one.annotation, type) and issubclass(one.annotation, BaseModel):
        yield one.annotation, ""


def allowed_words(one: FieldInfo) -> str:
    """Return in words what a setting may be, empty where its description has to say it."""
    kind: Any = one.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return f"{_listed([str(value) for value in kind])}."
    if get_origin(kind) is Literal:
        return f"{_listed([str(value) for value in get_args(kind)])}."
    if kind is bool:
        return "True or false."
    if kind is int or (kind is float and one.metadata):
        return _number(kind, one.metadata)
    return ""


def _number(kind: type, metadata: list[Any]) -> str:
    limits = {
        name: getattr(limit, name)
        for limit in metadata
        if isinstance(limit, annotated_types.Ge | annotated_types.Le)
        for name in ("ge", "le")
        if hasattr(limit, name)
    }
    if not limits:
        return "A duration."
    what = "A whole number" if kind is int else "A number"
    ends = [word for word in (_end("from", limits.get("ge")), _end("to", limits.get("le"))) if word]
    return f"{what} {' '.join(ends)}."


def _end(word: str, limit: float | None) -> str:
    return "" if limit is None else f"{word} {limit:,}"


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def comments(text: str) -> dict[str, Told]:
    """Return what a commented YAML file says of each key, by its path.

    A comment above a key is about it, as far as no empty line is between; one with two spaces after its
    sign, right below a key, is an example of that key.
    """
    found: dict[str, Told] = {}
    above: list[str] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        key, comment = _KEY.fullmatch(line), _COMMENT.fullmatch(line)
        if key:
            indent = len(key["indent"])
            path = [*((i, name) for i, name in path if i < indent), (indent, key["key"])]
            told = found[".".join(name for _, name in path)] = Told(above=above)
            told.default, _, told.beside = (part.strip() for part in key["rest"].partition(" #"))
            above = []
        elif comment and comment["text"].startswith(" ") and not above and path:
            found[".".join(name for _, name in path)].example.append(comment["text"].rstrip())
        elif comment:
            above.append(comment["text"].rstrip())
        else:
            above = []
    return found


def _sentence(text: str) -> str:
    """Return a comment as a sentence; a first word that is a formula or a name stays as it is."""
    word = text.partition(" ")[0]
    return f"{text[:1].upper() if word.isalpha() else text[:1]}{text[1:]}." if text else ""


def _setting(path: str, allowed: str, told: Told) -> list[str]:
    shown = EMPTY.get(told.default, told.default)
    default = f" Default: {shown}." if shown else ""
    text = UNSAID.get(path, "")
    beside = "" if told.beside.startswith("{") else _sentence(told.beside)
    first = " ".join(part for part in (beside, text, allowed) if part) + default
    plain = " ".join(one for one in told.above if not one.startswith("  "))
    lines = roff.tagged(path, *(text for text in (first.strip(), plain) if text))
    examples = [one for one in told.above if one.startswith("  ")] + told.example
    examples += [f"{path.rpartition('.')[2]}: {told.beside}"] if told.beside.startswith("{") else []
    return [*lines, *roff.verbatim(examples, ".IP")] if examples else lines
