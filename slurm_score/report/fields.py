"""The fields of sscore: sprio's letters where sprio has them, ours beside, and a long name for each. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from slurm_score.errors import ParseError

PARTS, FACTORS = "parts", "factors"
"""Stand for a column of each factor, weighted and from 0 to 1; only the service knows which there are."""

NORM = "_norm"


class Kind(Enum):
    """How the values of a field are written."""

    TEXT = "text"
    NUMBER = "whole number"
    POINTS = "points, rounded"
    SHARE = "from 0 to 1, 4 digits"
    SPRIO_SHARE = "from 0 to 1, 7 digits"
    PRIORITY_SHARE = "from 0 to 1, 14 digits"
    TIME = "time as Slurm writes it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: its name for -O (the service's column), its letter for -o, its header, what it tells.

    `least` and `spare` are those of its column in a narrow terminal. A field with `whole` is never cut,
    and one that isn't text neither: a cut id is another job's.
    """

    name: str
    letter: str = ""
    header: str
    summary: str
    kind: Kind = Kind.NUMBER
    whole: bool = False
    least: int = 0
    spare: int = 0

    @property
    def right(self) -> bool:
        """Whether a table has it on the right."""
        return self.kind is not Kind.TEXT


_T, _P, _S = Kind.TEXT, Kind.POINTS, Kind.SHARE

FIELDS = (
    Field(name="job", letter="i", header="JOBID", summary="job, array or het job", kind=_T, whole=True),
    Field(name="partition", letter="r", header="PARTITION", summary="partitions", kind=_T, least=8, spare=2),
    Field(name="user", letter="u", header="USER", summary="user", kind=_T, least=6, spare=1),
    Field(name="account", letter="o", header="ACCOUNT", summary="account", kind=_T, least=8, spare=15),
    Field(name="qos_name", letter="n", header="QOSNAME", summary="QOS", kind=_T, least=7, spare=14),
    Field(name="name", letter="m", header="NAME", summary="name of the job", kind=_T, least=8, spare=18),
    Field(name="cluster", letter="c", header="CLUSTER", summary="cluster", kind=_T, least=8, spare=4),
    Field(name="score", letter="s", header="SCORE", summary="sum of the parts", kind=_P),
    Field(name="score_norm", letter="x", header="SCORE", summary="score / sum of the weights", kind=_S),
    Field(name="rank", letter="k", header="RANK", summary="place among those that share a partition"),
    Field(name="of", letter="O", header="OF", summary="how many share a partition", spare=13),
    Field(name="gpu_type", letter="v", header="GPUTYPE", summary="GPU types that could serve it",
          kind=_T, least=7, spare=10),
    Field(name="type_rank", letter="K", header="GPURANK", spare=11,
          summary="place among those that accept a type of its"),
    Field(name="type_of", letter="M", header="GPUOF", summary="how many accept a type of its", spare=12),
    Field(name="site_held", letter="S", header="SITE", summary="SiteFactor that Slurm holds", spare=6),
    Field(name="site", letter="X", header="WANTED", summary="SiteFactor that the policy wants", spare=7),
    Field(name="priority", letter="Y", header="PRIORITY", summary="Slurm's own priority", spare=8),
    Field(name="priority_norm", letter="y", header="PRIORITY", summary="the same, from 0 to 1",
          kind=Kind.PRIORITY_SHARE, spare=8),
    Field(name="predicted_s", letter="d", header="PREDICTED", summary="run time that is expected",
          kind=Kind.TIME, spare=16),
    Field(name="predicted_from", letter="D", header="SOURCE", summary="where that comes from", kind=_T,
          least=10, spare=19),
    Field(name="policy", letter="H", header="POLICY", summary="hash of the policy that made the score",
          kind=_T, whole=True, spare=17),
    Field(name="blocker", letter="R", header="WHY", summary="what it waits for that isn't the score",
          kind=_T, least=8, spare=20),
)  # fmt: skip
"""The fields that there are with every policy."""

_SLURM = (
    ("age", "A", "AGE"),
    ("assoc", "B", "ASSOC"),
    ("fairshare", "F", "FAIRSHARE"),
    ("job_size", "J", "JOBSIZE"),
    ("partition", "P", "PARTITION"),
    ("qos", "Q", "QOS"),
    ("tres", "T", "TRES"),
)
SLURM_FIELDS = (
    *(
        Field(name=f"slurm_{part}", letter=letter, header=header, spare=9,
              summary=f"Slurm's own {part}, weighted")
        for part, letter, header in _SLURM
    ),
    *(
        Field(name=f"slurm_{part}{NORM}", letter=letter.lower(), header=header, spare=9,
              kind=Kind.SPRIO_SHARE, summary=f"Slurm's own {part}, from 0 to 1")
        for part, letter, header in _SLURM
    ),
    Field(name="slurm_nice", letter="N", header="NICE", spare=9, summary="nice, which Slurm takes off"),
)  # fmt: skip
"""Slurm's own parts of its priority, under sprio's letters."""

FACTOR_LETTERS = {"wait": "w", "remaining": "e", "size": "z", "qos": "l", "gres_fit": "g"}
"""Letters of the factors that are shipped: small from 0 to 1, capital weighted. Others have a name only."""

_FACTORS = {letter: name + NORM for name, letter in FACTOR_LETTERS.items()} | {
    letter.upper(): name for name, letter in FACTOR_LETTERS.items()
}
_KNOWN = {field.name: field for field in (*FIELDS, *SLURM_FIELDS)}
_BY_LETTER = {field.letter: field.name for field in _KNOWN.values()} | _FACTORS

DEFAULT = ("job", "partition", "user", "score", "rank", PARTS)
NORMALISED = ("job", "partition", "user", "score_norm", "rank", FACTORS)
LONG = (
    *("job", "partition", "user", "account", "qos_name", "name", "score", "rank", "of"),
    *("gpu_type", "type_rank", "site_held", "site", "priority", PARTS),
    *("predicted_s", "predicted_from", "policy"),
)


def field_of(name: str, headers: Mapping[str, str]) -> Field:
    """Return a field by its name; one that isn't known here is a factor's, with its header where known."""
    if known := _KNOWN.get(name):
        return known
    factor = name.removesuffix(NORM)
    header = headers.get(factor, factor.upper())
    kind = Kind.SHARE if name != factor else Kind.POINTS
    return Field(name=name, header=header, summary=f"factor {factor}", kind=kind, spare=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A field as a format asks for it.

    `width` is in cells: None for as wide as the longest, 0 for each value as long as it is. `right`
    None is as the field has it. `before` and `after` is text around it.
    """

    name: str
    width: int | None = None
    right: bool | None = None
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What a table shows: a table of columns, or `literal` line by line as sprio's -o has it.

    Of the factors those without a weight are left out, except with `every`. A table that `fits` leaves
    out columns where a terminal is too narrow; what was asked for by name is shown.
    """

    shown: tuple[Shown, ...]
    literal: bool = False
    every: bool = False
    fits: bool = False


def format_of(names: Iterable[str], *, every: bool = False) -> Format:
    """Return the format of a table with these fields, as far as the terminal has room."""
    return Format(shown=tuple(Shown(name=name) for name in names), every=every, fits=True)


_PIECE = re.compile(r"%(?P<right>\.?)(?P<width>\d{0,4})(?P<letter>[A-Za-z])(?P<after>[^%]*)")
_NAMED = re.compile(r"(?P<name>[A-Za-z]\w*)(?::(?P<right>\.?)(?P<width>\d{0,4}))?")
_FORM = "%[[.]width]letter, such as %.15i %9r; sscore --helpformat lists the letters"


def parse_format(text: str) -> Format:
    """Return what `-o` asks for, in sprio's notation: text and `%[[.]width]letter`.

    Raises:
        ParseError: an unknown letter, or a % that begins no field.
    """
    before, percent, rest = text.partition("%")
    pieces = list(_PIECE.finditer(percent + rest))
    if not pieces or "".join(piece[0] for piece in pieces) != percent + rest:
        raise ParseError("not a format", text, _FORM)
    wrong = [piece["letter"] for piece in pieces if piece["letter"] not in _BY_LETTER]
    if wrong:
        raise ParseError("no such field", " ".join(f"%{letter}" for letter in wrong), _FORM)
    shown = [
        Shown(
            name=_BY_LETTER[piece["letter"]],
            width=int(piece["width"] or 0),
            right=bool(piece["right"]),
            after=piece["after"],
        )
        for piece in pieces
    ]
    return Format(shown=(replace(shown[0], before=before), *shown[1:]), literal=True)


def parse_names(text: str) -> Format:
    """Return what `-O` asks for, in squeue's notation: `name[:[.]width]`, with commas.

    Raises:
        ParseError: not such a list.
    """
    found = [(item.strip(), _NAMED.fullmatch(item.strip())) for item in text.split(",")]
    if wrong := [item for item, match in found if match is None]:
        raise ParseError(
            "not a list of fields", ",".join(wrong), "name[:[.]width],…; sscore --helpformat lists the names"
        )
    return Format(
        shown=tuple(
            Shown(
                name=match["name"].lower(),
                width=int(match["width"]) if match["width"] else None,
                right=True if match["right"] else None,
            )
            for _, match in found
            if match is not None
        )
    )


def parse_sort(text: str) -> tuple[tuple[str, bool], ...]:
    """Return what `-S` sorts by, the first key first: (name, whether descending).

    An item is a letter of `-o` or a name of `-O`, after `+` for ascending, the default, or `-`. Jobs are
    sorted by the number of their id.

    Raises:
        ParseError: an item is neither.
    """
    items = [item.strip() for item in text.split(",")]
    keys = [(item.lstrip("+-"), item.startswith("-")) for item in items]
    wrong = [
        item
        for item, (key, _) in zip(items, keys, strict=True)
        if (len(key) == 1 and key not in _BY_LETTER) or key in (PARTS, FACTORS) or not key.isidentifier()
    ]
    if wrong:
        raise ParseError(
            "not a list of sort keys", ",".join(wrong), "[+|-]letter,… such as r,-s; --helpformat lists them"
        )
    named = ((_BY_LETTER[key] if len(key) == 1 else key.lower(), down) for key, down in keys)
    return tuple(("job_id" if name == "job" else name, down) for name, down in named)


def help_format() -> Iterator[tuple[str, str, str]]:
    """Yield letter, name and meaning of every field."""
    for field in _KNOWN.values():
        yield f"%{field.letter}" if field.letter else "", field.name, field.summary
    for name, letter in FACTOR_LETTERS.items():
        yield f"%{letter.upper()}", name, f"our factor {name}, weighted"
        yield f"%{letter}", name + NORM, f"our factor {name}, from 0 to 1"
