"""What was asked for on sscore's command line, and what that asks of the service."""

import os
from dataclasses import dataclass
from pathlib import Path

import click

from slurm_score.report.fields import (
    DEFAULT,
    FACTORS,
    LONG,
    NORMALISED,
    PARTS,
    Format,
    format_of,
    parse_format,
    parse_names,
)
from slurm_score.service.client import Query

FORMAT_VARIABLE = "SSCORE_FORMAT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line; lists are empty where an option wasn't given."""

    socket_path: Path
    noheader: bool
    jobs: tuple[str, ...]
    long: bool
    norm: bool
    literal: str | None
    names: str | None
    partition: tuple[str, ...]
    sort: str | None
    user: tuple[str, ...]
    me: bool
    account: tuple[str, ...]
    qos: tuple[str, ...]
    weights: bool
    clusters: tuple[str, ...]
    verbose: int
    as_json: bool
    parsable: bool
    as_csv: bool
    iterate: float | None

    @property
    def explains(self) -> bool:
        """Whether jobs are to be explained instead of listed."""
        return bool(self.verbose and self.jobs)


def name_list(_: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the names of a list with commas; job ids keep those in their brackets.

    Raises:
        click.BadParameter: there are none, where -j alone may do without: it would ask for everything.
    """
    depth, found = 0, [""]
    for character in value or "":
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    names = tuple(filter(None, map(str.strip, found)))
    if value is not None and not names and parameter.name != "jobs":
        raise click.BadParameter(f"no name in {value!r}; names with commas are allowed")
    return names


def check(options: Options) -> None:
    """Refuse what can't go together.

    Raises:
        click.UsageError: it can't; the sentence says what.
    """
    outputs = {"--json": options.as_json, "-P": options.parsable, "--csv": options.as_csv}
    columns = {"-o": options.literal is not None, "-O": options.names is not None, "-l": options.long}
    _one_at_most(outputs)
    _one_at_most(columns | {"-n": options.norm and not options.long})
    if options.as_json:
        _one_at_most({"--json": True, "-S": options.sort is not None})
        _one_at_most({"--json": True, "-o": columns["-o"], "-O": columns["-O"]})
        _one_at_most({"--json": True, "-w": options.weights})
    if options.explains:
        explained = {
            "-v with -j": True,
            "-w": options.weights,
            "-P": options.parsable,
            "--csv": options.as_csv,
        }
        _one_at_most(explained)


def _one_at_most(given: dict[str, bool]) -> None:
    if len(asked := [name for name, is_given in given.items() if is_given]) > 1:
        raise click.UsageError(f"{' and '.join(asked)} exclude each other")


def asked_format(options: Options) -> Format:
    """Return the format that was asked for, that of SSCORE_FORMAT where none was, else the default.

    Raises:
        ParseError: it can't be read.
    """
    if options.literal is not None:
        return parse_format(options.literal)
    if options.names is not None:
        return parse_names(options.names)
    if options.long:
        return format_of(_normalised(LONG) if options.norm else LONG, every=True)
    if options.norm:
        return format_of(NORMALISED)
    variable = os.environ.get(FORMAT_VARIABLE)
    return parse_format(variable) if variable else format_of(DEFAULT)


def _normalised(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple({"score": "score_norm", PARTS: FACTORS}.get(name, name) for name in names)


def query_of(options: Options) -> Query:
    """Return the keys of the service's query for the jobs that were asked for."""
    keys = {
        "job": options.jobs,
        "user": _users(options),
        "partition": options.partition,
        "account": options.account,
        "qos": options.qos,
    }
    return [(key, name) for key, names in keys.items() for name in names]


def _users(options: Options) -> tuple[str, ...]:
    """Return the names of the users; a number is a uid, as in sprio."""
    if not options.me and not any(map(_is_uid, options.user)):
        return options.user
    from slurm_score.users import user_name

    mine = (user_name(os.geteuid()),) if options.me else ()
    return (*(user_name(int(user)) if _is_uid(user) else user for user in options.user), *mine)


def _is_uid(name: str) -> bool:
    return name.isascii() and name.isdigit()
