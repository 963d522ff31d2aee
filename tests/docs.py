"""The generated files of etc/: man pages and completions. `make docs` writes them; a test compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from slurm_score import __version__
from slurm_score.cli import main
from slurm_score.cli.reprioritize import command as reprioritize
from slurm_score.cli.serve import command as serve
from slurm_score.cli.sscore import main as sscore
from slurm_score.report.manpages import command_page, daemon_page
from slurm_score.report.policy_page import policy_page

ETC = Path(__file__).parents[1] / "etc"
PROGRAMS: dict[str, click.Command] = {"slurm-score": main, "sscore": sscore}
COMPLETIONS = {"bash": "{}.bash", "zsh": "_{}", "fish": "{}.fish"}
"""Shell -> how it wants the file of a program to be named."""


def pages() -> Iterator[tuple[str, str]]:
    """Yields the file name and the text of each man page."""
    for name, command in PROGRAMS.items():
        yield f"{name}.1", command_page(command, name, __version__)
    shipped = (ETC / "slurm-score.yaml").read_text(encoding="utf-8")
    yield "slurm-score.yaml.5", policy_page(shipped, __version__)
    daemons = {"slurm-score reprioritize": reprioritize, "slurm-score serve": serve}
    yield "slurm-scored.8", daemon_page(daemons, __version__)


def completions() -> Iterator[tuple[str, str]]:
    """Yields the file name and the text of each completion, as click itself writes it."""
    for shell, form in COMPLETIONS.items():
        found = get_completion_class(shell)
        assert found is not None
        for name, command in PROGRAMS.items():
            variable = f"_{name.upper().replace('-', '_')}_COMPLETE"
            yield form.format(name), found(command, {}, name, variable).source().strip() + "\n"


def generated() -> dict[Path, str]:
    """Returns every generated file with what it must hold."""
    return {ETC / "man" / name: text for name, text in pages()} | {
        ETC / "completion" / name: text for name, text in completions()
    }


def write() -> None:
    """Writes what changed."""
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ETC.parent)}\n")


if __name__ == "__main__":
    write()
