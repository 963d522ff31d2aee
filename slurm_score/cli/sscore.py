"""sscore: the queue by score, with sprio's habits."""

import contextlib
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from slurm_score import __version__
from slurm_score.cli import reported_errors, socket_option
from slurm_score.cli.sscore_options import FORMAT_VARIABLE, Options, asked_format, check, name_list, query_of
from slurm_score.errors import ParseError, ServiceError
from slurm_score.report.fields import Format, help_format, parse_sort
from slurm_score.report.queue import Queue, SortKeys, columns_needed, weights_row
from slurm_score.report.table import format_table, printable
from slurm_score.service.client import ServiceClient

INTERRUPTED = 130
NOT_FOUND = 404
UNPROCESSABLE = 422
NONE_MATCHES = "no pending job that could start is among those that were asked for"

EPILOG = f"""\b
Fields of -o are written %[[.]width]letter, as sprio's: `.` puts them on the right.
{FORMAT_VARIABLE} in the environment is taken for -o where no format is asked for.

\b
A score with * was made by an older policy than the policy file's, one with ! has
waited for longer than its guard.

\b
Examples:
  sscore -l
  sscore -S -K,i -p gpu
  sscore -o "%.12i %9r %8u %.6s %.4k"
  sscore -h -u alice,bob --parsable2"""


@click.command("sscore", context_settings={"help_option_names": ["--help"]}, epilog=EPILOG)
@click.version_option(__version__, "-V", "--version", prog_name="sscore")
@socket_option
@click.option("-h", "--noheader", is_flag=True, help="Print no header.")
@click.option(
    "-j",
    "--jobs",
    is_flag=False,
    flag_value="",
    callback=name_list,
    metavar="[IDS]",
    help="Only these jobs, with commas: 12, an array 12 or 12_3, a het job 12 or 12+1.",
)
@click.option("-l", "--long", is_flag=True, help="Print all there is to say of a job.")
@click.option("-n", "--norm", is_flag=True, help="Print score and factors from 0 to 1 instead of in points.")
@click.option("-o", "--format", "literal", metavar="FORMAT", help="Print these fields, in sprio's notation.")
@click.option("-O", "--Format", "names", metavar="NAMES", help="Print these fields: name[:[.]width],…")
@click.option("-p", "--partition", callback=name_list, metavar="NAMES", help="Only jobs of these partitions.")
@click.option(
    "-S",
    "--sort",
    metavar="KEYS",
    help="Sort by fields, with commas, each after + or - (descending); best first if not given.",
)
@click.option(
    "-u", "--user", "--users", callback=name_list, metavar="NAMES", help="Only jobs of these users."
)
@click.option("--me", is_flag=True, help="Only my jobs.")
@click.option("-A", "--account", callback=name_list, metavar="NAMES", help="Only jobs of these accounts.")
@click.option("-q", "--qos", callback=name_list, metavar="NAMES", help="Only jobs of these QOS.")
@click.option("-w", "--weights", is_flag=True, help="Print the weights of the factors instead of jobs.")
@click.option(
    "-M",
    "--cluster",
    "--clusters",
    "clusters",
    callback=name_list,
    metavar="NAME",
    help="The cluster, which must be the one that the service scores.",
)
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="With -j: explain these jobs. Else say on standard error what is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, jobs that can't start yet included.")
@click.option("-P", "--parsable2", "parsable", is_flag=True, help="Print | between the fields.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "-i",
    "--iterate",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Print it again and again, so many seconds apart, until interrupted.",
)
@click.option("--helpformat", is_flag=True, help="List the fields of -o, -O and -S.")
@click.option("--usage", is_flag=True, help="Print the options in short.")
@click.pass_context
def main(ctx: click.Context, /, helpformat: bool, usage: bool, **given: object) -> None:
    """Print the pending jobs that could start, highest score first, with the parts of each score."""
    options = Options(**given)  # type: ignore[arg-type]
    _never_fail_to_write()
    if helpformat:
        click.echo(format_table(["LETTER", "NAME", "TELLS"], help_format()), nl=False)
    elif usage:
        click.echo(_usage(ctx))
    else:
        with reported_errors(), _wrong_usage():
            _run(options, ServiceClient(options.socket_path))


def _never_fail_to_write() -> None:
    """Write question marks for letters that the terminal's encoding lacks: names come from others."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _usage(ctx: click.Context) -> str:
    """Return every option in its shortest form."""
    options = (one for one in ctx.command.get_params(ctx) if isinstance(one, click.Option))
    short = (f"{min(one.opts, key=len)} {_value(one)}".strip() for one in options)
    return click.wrap_text(
        " ".join(f"[{one}]".replace(" ", "\xa0") for one in short), 80, "Usage: sscore ", " " * 14
    ).replace("\xa0", " ")


def _value(option: click.Option) -> str:
    """Return what stands for an option's value, empty where it takes none."""
    return "" if option.is_flag or option.count else option.metavar or option.type.name.upper()


@contextlib.contextmanager
def _wrong_usage() -> Iterator[None]:
    """Turn what can't be read of the command line into click's message and exit code 2."""
    try:
        yield
    except ParseError as error:
        raise click.UsageError(str(error)) from None
    except ServiceError as error:
        if error.status == UNPROCESSABLE:
            raise click.UsageError(str(error)) from None
        raise


def _run(options: Options, client: ServiceClient) -> None:
    check(options)
    format_, sort = asked_format(options), parse_sort(options.sort) if options.sort else ()

    def once() -> None:
        if options.explains:
            _explain(options, client)
        elif options.as_json:
            answer = client.jobs(query_of(options))
            _require_cluster(options.clusters, answer)
            click.echo(json.dumps(answer, indent=2))
        else:
            _print(options, client, format_, sort)

    if options.iterate is None:
        once()
    else:
        _repeat(once, options)


def _repeat(once: Callable[[], None], options: Options) -> None:
    """Go on through failures of the service: who watches a queue wants to see it come back."""
    try:
        while True:
            if not options.noheader:
                click.echo(time.strftime("%a %b %d %H:%M:%S %Y"))
            try:
                once()
            except ServiceError as error:
                click.echo(f"slurm-score: {error}", err=True)
            click.echo()
            sys.stdout.flush()
            time.sleep(options.iterate or 0)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _explain(options: Options, client: ServiceClient) -> None:
    """Print what `slurm-score explain` prints, of each job that was asked for."""
    from slurm_score.report.explanation import format_explanation  # only here: it takes its time

    if options.clusters:
        _require_cluster(options.clusters, client.columns(["job"], [("limit", "0")]))
    answers, missing = _explanations(options.jobs, client)
    if options.as_json:
        click.echo(json.dumps(answers, indent=2))
    else:
        click.echo("\n".join(map(format_explanation, answers)), nl=False)
    for error in missing[:-1]:
        click.echo(f"slurm-score: {error}", err=True)
    if missing:
        raise missing[-1]


def _explanations(
    job_ids: Sequence[str], client: ServiceClient
) -> tuple[list[dict[str, Any]], list[ServiceError]]:
    """Return the explanations of the jobs that are pending, and the error of each other one."""
    answers, missing = [], []
    for job_id in job_ids:
        try:
            answers.append(client.job(job_id))
        except ServiceError as error:
            if error.status != NOT_FOUND:
                raise
            missing.append(error)
    return answers, missing


def _print(options: Options, client: ServiceClient, format_: Format, sort: SortKeys) -> None:
    wanted = [("limit", "0")] if options.weights else [*query_of(options), ("eligible", "1")]
    answer = client.columns(columns_needed(format_, sort), wanted)
    _require_cluster(options.clusters, answer)
    queue = weights_row(answer, format_) if options.weights else Queue(answer, format_, sort)
    text, notes = _written(queue, options)
    click.echo(text, nl=False)
    if not queue and len(wanted) > 1 and not options.jobs:
        notes.append(NONE_MATCHES)
    if options.verbose:
        notes.append(queue.summary())
    for note in (*queue.left_out(), *notes):
        click.echo(f"sscore: {printable(note)}", err=True)


def _written(queue: Queue, options: Options) -> tuple[str, list[str]]:
    """Return the queue as text, and what is to be told beside it."""
    header = not options.noheader
    if options.parsable:
        return queue.parsable(header=header), []
    if options.as_csv:
        return queue.csv(header=header), []
    text, no_room = queue.table(_terminal_width(), header=header)
    return _bold_header(text) if header and _has_colour() else text, [*queue.legend(), *no_room]


def _terminal_width() -> int | None:
    """Return how wide the terminal is, None where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _has_colour() -> bool:
    """Source: no-color.org: any text in NO_COLOR means none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _bold_header(text: str) -> str:
    header, end, rows = text.partition("\n")
    return click.style(header, bold=True) + end + rows


def _require_cluster(clusters: Sequence[str], answer: Mapping[str, Any]) -> None:
    """Raise a usage error if other clusters were asked for than the one that the service scores."""
    other = [name for name in clusters if name not in ("all", answer["cluster"])]
    if other:
        scored = answer["cluster"] or "no cluster yet"
        raise click.UsageError(
            f"-M {','.join(other)}: the service at this socket scores {scored}; --socket names another's"
        )
