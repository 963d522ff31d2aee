"""The few requests of man(7) that our pages need: text in, roff out."""

import re
import textwrap
from collections.abc import Iterable

WIDTH = 76
"""Characters of a line; some take two bytes."""

_KEPT = re.compile("\n[ \t]*\b[ \t]*\n")
_CODE = re.compile(r"`([^`\n]+)`")


def escaped(text: str) -> str:
    """Return a text as it stands inside a line of roff; a minus stays one when it is copied."""
    return text.replace("\\", "\\(rs").replace("-", "\\-")


def filled(text: str) -> str:
    """Return a text in lines of 80 bytes or a little more, none a request; what is in backquotes is bold."""
    parts = _CODE.split(text)
    shown = "".join(bold(part) if i % 2 else escaped(part) for i, part in enumerate(parts))
    lines = textwrap.wrap(shown, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(safe, lines))


def bold(text: str) -> str:
    """Return a text in bold."""
    return f"\\fB{escaped(text)}\\fR"


def title(name: str, section: int, date: str, source: str) -> str:
    """Return the head of a page."""
    return f'.TH "{escaped(name.upper())}" "{section}" "{date}" "{source}" "slurm-score manual"'


def heading(text: str) -> str:
    """Return the head of a section."""
    return f".SH {text.upper()}"


def subheading(text: str) -> str:
    """Return the head of a subsection."""
    return f'.SS "{escaped(text)}"'


def verbatim(lines: Iterable[str], request: str = ".PP") -> list[str]:
    """Return lines that stay as they are, in a paragraph of their own; .IP stays under a tag."""
    return [request, ".nf", ".RS 4", *(safe(escaped(one)) for one in lines), ".RE", ".fi"]


def safe(text: str) -> str:
    """Return a line that begins no request."""
    return f"\\&{text}" if not text or text.startswith((".", "'")) else text


def tagged(tag: str, *paragraphs: str) -> list[str]:
    """Return a paragraph under a tag in bold, further ones below it."""
    first, *rest = paragraphs or ("",)
    below = [text for one in rest for text in (".IP", filled(one))]
    return [".TP", bold(tag), filled(first) if first else "\\&", *below]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text as click reads it: one that begins with \\b keeps its lines."""
    found: list[str] = []
    text = _KEPT.sub("\n\n\b\n", text.partition("\f")[0])
    for block in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n").rstrip()):
        lines = [one.rstrip() for one in block.splitlines()]
        if lines and lines[0].strip() == "\b":
            found += verbatim(_dedented(lines[1:]))
        elif any(lines):
            found += [".PP", filled(" ".join(one.strip() for one in lines))]
    return found


def _dedented(lines: list[str]) -> list[str]:
    margin = min((len(one) - len(one.lstrip()) for one in lines if one.strip()), default=0)
    return [one[margin:] for one in lines]
