"""etc/man and etc/completion: what --help and the policy's schema say; a linter finds no fault in it."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from slurm_score.factors import registry
from slurm_score.policy import Policy
from slurm_score.report import roff
from slurm_score.report.manpages import subcommands
from slurm_score.report.policy_page import UNSAID, comments, settings
from tests import docs
from tests.tools import tool

MAN, COMPLETION = docs.ETC / "man", docs.ETC / "completion"
SHIPPED = (docs.ETC / "slurm-score.yaml").read_text(encoding="utf-8")
PAGES = ("slurm-score.1", "slurm-score.yaml.5", "slurm-scored.8", "sscore.1")


def plain(name: str) -> str:
    """Return a page as text without fonts and escapes, on one line."""
    text = (MAN / name).read_text(encoding="utf-8")
    for request in ("\\fB", "\\fR", "\\&"):
        text = text.replace(request, "")
    return " ".join(text.replace("\\-", "-").replace("\\(rs", "\\").split())


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every command with the page that it belongs to."""
    for name, program in docs.PROGRAMS.items():
        context = click.Context(program, info_name=name, **program.context_settings)
        yield f"{name}.1", program, context
        for command, inner in subcommands(program, context):
            yield f"{name}.1", command, inner


def test_generated_files_are_up_to_date() -> None:
    """They are in the repository, so that building needs no program: `make docs` writes them anew."""
    stale = [
        path.name
        for path, text in docs.generated().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"
    assert {path.name for folder in (MAN, COMPLETION) for path in folder.iterdir()} == {
        path.name for path in docs.generated()
    }


def test_generated_files_are_installed_where_they_are_looked_for() -> None:
    """man, bash, zsh and fish have folders of their own under share/."""
    with (docs.ETC.parent / "pyproject.toml").open("rb") as file:
        told = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    placed = {docs.ETC.parent / source for source in told if (docs.ETC.parent / source).is_file()}
    assert placed == set(docs.generated())
    assert told["etc/man/slurm-score.yaml.5"] == "share/man/man5/slurm-score.yaml.5"


@pytest.mark.parametrize("name", PAGES)
def test_linter_has_nothing_to_say(name: str) -> None:
    """mandoc looks at syntax, structure and style."""
    done = subprocess.run(
        [tool("mandoc"), "-T", "lint", "-W", "all", str(MAN / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_linter_finds_a_fault(tmp_path: Path) -> None:
    """The check can fail."""
    path = tmp_path / "x.1"
    path.write_text('.TH X 1 "2026-12-01"\n.SH NAME\n\nx \\- y\n.XX\n', encoding="utf-8")
    done = subprocess.run([tool("mandoc"), "-T", "lint", str(path)], capture_output=True, check=False)
    assert done.returncode != 0


def test_pages_name_every_option_of_every_command() -> None:
    """Hidden ones excepted; by the words that --help has for them."""
    missing = [
        f"{context.command_path} {record[0]}"
        for page, command, context in commands()
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None and record[1]
        if " ".join(f"{record[0]} {record[1]}".split()) not in plain(page)
    ]
    assert missing == []


def test_page_of_a_group_has_its_subcommands() -> None:
    """Those of groups in the group too."""
    paths = {context.command_path for _, _, context in commands()}
    assert {"slurm-score policy show", "slurm-score history import", "slurm-score reprioritize"} <= paths
    assert [path for path in sorted(paths) if path not in plain(f"{path.partition(' ')[0]}.1")] == []


def test_page_of_the_daemons_has_their_options() -> None:
    """`reprioritize` and `serve`, with the files that they use."""
    text = plain("slurm-scored.8")
    for option in ("--every DURATION", "--deadline", "--kill-switch", "--tcp [HOST:]PORT", "--hook-socket"):
        assert option in text
    assert "/var/lib/slurm-score/snapshot.jsonl The file through which" in text


def test_page_of_the_policy_names_every_setting() -> None:
    """Each under its own tag, with words about it."""
    text = (MAN / "slurm-score.yaml.5").read_text(encoding="utf-8")
    for path, _ in settings():
        tag = f".TP\n{roff.bold(path)}\n"
        assert tag in text, path
        assert not text.partition(tag)[2].startswith(("\\&\n", ".")), f"{path}: no words"


def test_settings_are_those_of_the_schema() -> None:
    """Every field of the policy and of each factor's parameters; the program's own are none."""
    paths = {path for path, _ in settings()}
    assert {path.partition(".")[0] for path in paths} == set(Policy.model_fields) - {"base_weights"}
    assert {
        f"factors.{name}.{field}" for name, one in registry().items() for field in one.params.model_fields
    } < paths


def test_shipped_file_has_every_setting_but_those_in_its_examples() -> None:
    """A setting that nobody can find in the file isn't there for an admin."""
    written = set(keys(yaml.safe_load(SHIPPED), ""))
    assert {path for path, _ in settings()} == written | set(UNSAID)


def keys(tree: object, above: str) -> Iterator[str]:
    """Yield the path of every key."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        yield f"{above}{key}"
        yield from keys(value, f"{above}{key}.")


def test_comments_belong_to_the_next_key() -> None:
    """Above it, beside it, or as an example below it; an empty line ends a comment that is about no key."""
    told = comments(
        "# the file\n\n# about a\n# and more\na: 1  # beside a\n#  b: {c: 2}\nd:\n  # about e\n  e: 'x'\n"
    )
    assert {path: (one.above, one.default, one.beside, one.example) for path, one in told.items()} == {
        "a": (["about a", "and more"], "1", "beside a", [" b: {c: 2}"]),
        "d": ([], "", "", []),
        "d.e": (["about e"], "'x'", "", []),
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a-b", "a\\-b"),
        ("C:\\x", "C:\\(rsx"),
        (".so /etc/passwd", "\\&.so /etc/passwd"),
        ("'quoted'", "\\&'quoted'"),
        ("say `--json` twice", "say \\fB\\-\\-json\\fR twice"),
        (f"{'a' * 70} bcdefg .PP", f"{'a' * 70}\nbcdefg .PP"),
        (f"{'a' * 74} .PP", f"{'a' * 74}\n\\&.PP"),
    ],
)
def test_text_is_never_a_request(text: str, shown: str) -> None:
    """groff_man(7): a dot or an apostrophe begins one, a backslash an escape."""
    assert roff.filled(text) == shown


def test_lines_are_kept_where_click_keeps_them() -> None:
    """A paragraph that begins with \\b, also right behind another one."""
    assert roff.paragraphs("One\n  two.\n\b\nA:\n    x\n\b\nB:\n    y") == [
        ".PP",
        "One two.",
        *(".PP", ".nf", ".RS 4", "A:", "    x", ".RE", ".fi"),
        *(".PP", ".nf", ".RS 4", "B:", "    y", ".RE", ".fi"),
    ]


@pytest.mark.parametrize("name", ["slurm-score.bash", "sscore.bash"])
def test_bash_takes_the_completion(name: str) -> None:
    """Its syntax, and that it registers a function for the program."""
    path = COMPLETION / name
    script = f'. "$1" && complete -p {path.stem}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[-1] == path.stem


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sscore --part", "--partition"),
        ("slurm-score pol", "policy"),
        ("slurm-score policy val", "validate"),
        ("slurm-score reprioritize --gateway py", "pyslurm"),
    ],
)
def test_bash_completes_options_commands_and_choices(line: str, offered: str) -> None:
    """The function that Tab calls, with the programs that are installed beside this Python."""
    name, *_ = words = line.split()
    path = COMPLETION / f"{name}.bash"
    function = f"_{name.replace('-', '_')}_completion"
    script = (
        f'. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function} "$1"; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(path), *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert done.stderr == ""
    assert offered in done.stdout.split()
