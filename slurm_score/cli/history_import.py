"""slurm-score history import: ended runs into the history, from slurmdbd or from files."""

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from slurm_score.cli import history_option
from slurm_score.cli.durations import DurationType
from slurm_score.errors import HistoryError
from slurm_score.model import EndedRun
from slurm_score.predict.sources import Reading, read_sacct, read_swf
from slurm_score.predict.store import KEEP_S, HistoryStore, add_in_chunks, open_history
from slurm_score.run_times import IMPORT, IMPORT_FROM, LATE_S
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.gateway import Gateway
from slurm_score.units import DAY_S

SINCE_S = 90.0 * DAY_S
SWF_ENDINGS = (".swf", ".swf.gz")


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False, exists=True))
@history_option
@click.option(
    "--since", type=DurationType(), default="90d", show_default=True, help="How far back to ask sacct."
)
@click.option(
    "--keep", type=DurationType(), default=f"{int(KEEP_S // DAY_S)}d", show_default=True,
    help="Delete what ended longer ago, after the import from sacct.",
)  # fmt: skip
@click.option(
    "--anonymise", is_flag=True, help="Replace users, accounts and job names by digests, in a new file."
)
def import_history(
    files: tuple[Path, ...], history: Path, since: float, keep: float, anonymise: bool
) -> None:
    """Read ended runs from slurmdbd, or from FILES: SWF logs (.swf, .swf.gz), or what sacct -P wrote.

    From slurmdbd it goes on where it stopped, a day at a time; a longer --since begins anew. A run that is
    there is not added again.

    \b
    Examples:
      slurm-score history import
      slurm-score history import --history anonymous.sqlite --anonymise sacct.txt
    """
    with open_history(history) as store:
        if files:
            for file in files:
                import_file(store, file, anonymise)
        else:
            import_sacct(store, CommandGateway(), time.time(), since, anonymise)
            click.echo(f"{store.forget(time.time() - keep)} runs ended too long ago and are gone")
        click.echo(f"{history}: {store.count()} runs")


def import_sacct(
    store: HistoryStore, gateway: Gateway, now_s: float, since_s: float, anonymise: bool
) -> None:
    """Ask accounting day by day; each day is stored with how far we are, or not at all.

    What the reprioritizer asked for is not counted on: it begins with the day before its first start.
    """
    known, began = store.imported_until(IMPORT), store.imported_until(IMPORT_FROM)
    at = int(now_s - since_s)
    if known is None or began is None or at < began:
        store.add((), IMPORT_FROM, at)
    else:
        at = int(known - LATE_S)
    while at < int(now_s):
        until = min(at + DAY_S, int(now_s))
        runs = gateway.read_ended_runs(at, until)
        added = store.add(runs, IMPORT, until, anonymise)
        click.echo(f"{time.strftime('%Y-%m-%d', time.localtime(at))}: {len(runs)} runs, {added} new")
        at = until


def import_file(store: HistoryStore, file: Path, anonymise: bool) -> None:
    """Read a file of either kind, in chunks."""
    reading = Reading()
    added = add_in_chunks(
        store, read_runs(file, reading), lambda n: click.echo(f"{file}: {n} read", err=True), anonymise
    )
    click.echo(f"{file}: {added} new runs{unread(reading)}")


def unread(reading: Reading) -> str:
    """Return what could not be read, in words; nothing for nothing."""
    return f"; {reading.unreadable} lines left out, the first {reading.first}" if reading.unreadable else ""


def read_runs(file: Path, reading: Reading) -> Iterator[EndedRun]:
    """Yield the runs of a file, read as its name says.

    Raises:
        HistoryError: it can't be read, or isn't what its name says.
    """
    with opened(file) as lines:
        if file.name.endswith(SWF_ENDINGS):
            yield from read_swf(lines, reading)
        else:
            yield from read_sacct(lines, reading, str(file))


@contextmanager
def opened(file: Path) -> Iterator[TextIO]:
    """Open a text, gzipped or not; only a newline ends a line."""
    try:
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
            yield lines
    except (OSError, EOFError) as error:
        raise HistoryError(f"{file}: can't be read: {error}") from error
