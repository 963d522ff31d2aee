"""The man pages of the commands, from the same definitions as their --help. Pure."""

from collections.abc import Iterable, Iterator, Mapping

import click

from slurm_score.report import roff

DATE = "2026-12-01"
"""On every page: when their form was last changed by hand, so that a page is the same whoever makes it."""

EXIT_STATUS = {
    "0": "Done.",
    "1": "It could not be done; one line on standard error says why. For what `check`, `status` and "
    "`policy diff` found, see there.",
    "2": "Wrong usage, or a policy that can't be used; every problem stands on a line of its own.",
}
SEE_ALSO = (
    "sscore(1)",
    "slurm-score(1)",
    "slurm-score.yaml(5)",
    "slurm-scored(8)",
    "sprio(1)",
    "scontrol(1)",
)


def command_page(command: click.Command, name: str, version: str) -> str:
    """Return the page of section 1 of a command, with all its subcommands."""
    context = _context(command, name)
    lines = _head(command, context, name, version)
    lines += [roff.heading("description"), *roff.paragraphs(command.help or "")]
    lines += [roff.heading("options"), *_options(command, context)]
    found = list(subcommands(command, context))
    lines += [roff.heading("commands")] if found else []
    for below, inner in found:
        lines += [roff.subheading(inner.command_path), *_body(below, inner)]
    lines += _epilog(command)
    return finished([*lines, *_exit_status(), *see_also(f"{name}(1)")])


def daemon_page(daemons: Mapping[str, click.Command], version: str) -> str:
    """Return the page of section 8 of the programs that run all the time, by their command lines."""
    lines = [roff.title("slurm-scored", 8, DATE, f"slurm-score {version}")]
    lines += [
        roff.heading("name"),
        "slurm\\-scored \\- the daemons of slurm\\-score",
        roff.heading("synopsis"),
    ]
    contexts = [_context(command, name) for name, command in daemons.items()]
    lines += [_usage(context) for context in contexts]
    lines += [roff.heading("description"), *roff.paragraphs(DAEMONS)]
    for context in contexts:
        lines += [roff.subheading(context.command_path), *_body(context.command, context, synopsis=False)]
    lines += [roff.heading("files")]
    for path, text in _files(contexts):
        lines += roff.tagged(path, text)
    lines += [roff.heading("signals")]
    for signal, text in SIGNALS.items():
        lines += roff.tagged(signal, text)
    return finished([*lines, *_exit_status(), *see_also("slurm-scored(8)")])


DAEMONS = """\
Two programs keep a queue in its order. `slurm-score reprioritize` reads the queue, scores it and, in
enforce, tells slurmctld what changed. `slurm-score serve` answers the submit hook and the reports from the
snapshot that the other one writes; it never calls Slurm. Both read the policy again when it changes.

systemd units for both are in share/slurm-score/etc. A daemon that is down costs the order of the queue, never
a job: without the service jobs pass with Slurm's own priority, without the reprioritizer the queue keeps its
last order."""

SIGNALS = {
    "SIGTERM, SIGINT": "End: reprioritize after the update that is on its way, serve after its answers.",
}


def subcommands(
    command: click.Command, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield every command below a group with its context, groups before what is in them."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            inner = _context(below, name, context)
            yield below, inner
            yield from subcommands(below, inner)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """Return the context in which click would print the help of a command."""
    return click.Context(command, parent=parent, info_name=name, **command.context_settings)


def _head(command: click.Command, context: click.Context, name: str, version: str) -> list[str]:
    summary = (command.help or "").strip().partition("\n\n")[0].replace("\n", " ").rstrip(".")
    return [
        roff.title(name, 1, DATE, f"slurm-score {version}"),
        roff.heading("name"),
        roff.filled(f"{name} - {summary[:1].lower()}{summary[1:]}"),
        roff.heading("synopsis"),
        _usage(context),
    ]


def _usage(context: click.Context) -> str:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f".PP\n{roff.bold(context.command_path)} {roff.escaped(pieces)}"


def _body(command: click.Command, context: click.Context, *, synopsis: bool = True) -> list[str]:
    usage = [_usage(context)] if synopsis else []
    text = roff.paragraphs(command.help or "")
    return [*usage, *text, *_options(command, context), *_epilog(command)]


def _options(command: click.Command, context: click.Context) -> list[str]:
    found: list[str] = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            found += roff.tagged(record[0], " ".join(record[1].split()))
    return found


def _epilog(command: click.Command) -> list[str]:
    return roff.paragraphs(command.epilog or "")


def _files(contexts: Iterable[click.Context]) -> Iterator[tuple[str, str]]:
    """Yield the default of every path that the commands take, with what it is."""
    seen: set[str] = set()
    for context in contexts:
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and isinstance(parameter.type, click.Path):
                path = str(parameter.default or "")
                if path.startswith("/") and path not in seen:
                    seen.add(path)
                    yield path, parameter.help or ""


def _exit_status() -> list[str]:
    rows = [line for code, text in EXIT_STATUS.items() for line in roff.tagged(code, text)]
    return [roff.heading("exit status"), *rows]


def see_also(me: str) -> list[str]:
    """Return the section that names the other pages."""
    names = (name.partition("(") for name in SEE_ALSO if name != me)
    pages = ", ".join(f"{roff.bold(name)}({section}" for name, _, section in names)
    return [roff.heading("see also"), pages]


def finished(lines: list[str]) -> str:
    """Return a page; a paragraph needs no request right after a heading."""
    text = "\n".join(lines) + "\n"
    for request in (".SH ", ".SS "):
        parts = text.split(f"\n{request}")
        text = f"\n{request}".join([parts[0], *(_without_first_pp(part) for part in parts[1:])])
    return text


def _without_first_pp(part: str) -> str:
    title, _, rest = part.partition("\n")
    return f"{title}\n{rest.removeprefix('.PP' + chr(10))}"
