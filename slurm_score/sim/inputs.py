"""Reads what a simulation is given: workloads of every form, clusters, and what happens to nodes."""

from collections.abc import Iterator
from pathlib import Path

from slurm_score.errors import ParseError, Problem, SimulationError, WorkloadError
from slurm_score.hosts import parse_hosts
from slurm_score.settings import meant
from slurm_score.sim.cluster import Site, parse_site
from slurm_score.sim.node_events import HAPPENS, NodeEvent
from slurm_score.sim.swf import read_swf
from slurm_score.sim.table import Line, read_lines
from slurm_score.sim.traces import read_openb_nodes, read_table
from slurm_score.sim.workload import Workload

TABLES = (".csv", ".csv.gz", ".psv", ".psv.gz", ".txt", ".txt.gz")
"""How the name of a table ends; anything else is in the Standard Workload Format."""

EVENT_COLUMNS = ("time", "node", "what")


def read_workload(path: Path, procs: int | None = None) -> Workload:
    """Return the workload of a file: a table by its name, else the Standard Workload Format.

    Raises:
        WorkloadError: the file or lines of it can't be read.
    """
    return read_table(path) if path.name.endswith(TABLES) else read_swf(path, procs)


def read_cluster(path: Path) -> Site:
    """Return the cluster of a file: openb's list of nodes if it is a table, else a site's YAML.

    Raises:
        SimulationError: the file can't be read, or is no cluster; with every problem and its line.
        WorkloadError: the list of nodes can't be read.
    """
    if path.name.endswith(TABLES):
        return read_openb_nodes(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SimulationError([Problem(str(path), f"can't be read: {error}")]) from None
    return parse_site(text, str(path))


def read_events(path: Path) -> list[NodeEvent]:
    """Return what happens to nodes, from a table with the columns time, node and what.

    A time is a number or a date, as in the workload; a node may be a list, `g[1-3]`.

    Raises:
        WorkloadError: the file or lines of it can't be read; with every line.
    """
    problems: list[Problem] = []
    names, lines = read_lines(path, problems)
    missing = [name for name in EVENT_COLUMNS if name not in names]
    if missing:
        what = "not a list of node events, lacks columns"
        raise WorkloadError(
            [Problem(f"{path}:1", what, ", ".join(missing), f"columns {', '.join(EVENT_COLUMNS)}")]
        )
    events = [event for line in lines for event in _events(line)]
    if problems:
        raise WorkloadError(problems)
    return events


def _events(line: Line) -> Iterator[NodeEvent]:
    what, time_s = line.text("what"), line.time_s("time")
    if what not in HAPPENS:
        line.wrong("what", f"unknown event{meant(what, HAPPENS)}", what, f"one of {', '.join(HAPPENS)}")
    try:
        hosts = parse_hosts(line.text("node"))
    except ParseError as error:
        line.wrong("node", error.problem.what, line.text("node"), error.problem.allowed)
        return
    for host in hosts:
        yield NodeEvent(time_s, host, what)
