"""What the kernels of a cluster read and change beside those of a flat pool (state.py). Pure.

Nodes stand in order of Slurm's Weight. GPUs are a matrix node by type, written as one list. Lists in
lists are chains: a head, and for each entry the place of the next, -1 for none.
"""

from typing import Any, NamedTuple

import numpy as np

ENTRIES, LOGGED, SPANS, EVENTS = range(4)
"""Places in `Site.n`: the first free entry; lines in the log; the first free span; node events so far."""

FAIL, DRAIN, RESUME = range(3)
"""What happens to a node: it fails, takes no new jobs, or takes jobs again."""

UP, DRAINED, DOWN = range(3)


class Needs(NamedTuple):
    """What each job needs, by row. `place` is a row of `Site.allowed`, `gpu_set` one of `Site.accepted`,
    `qos` one of `Site.below`; `fit` is a class of jobs that ask for the same GPUs, -1 for none."""

    nodes: list[int]
    cores: list[int]
    mem: list[int]
    gpus: list[int]
    exclusive: list[int]
    place: list[int]
    partition: list[int]
    gpu_set: list[int]
    qos: list[int]
    fit: list[int]


class Site(NamedTuple):
    """The nodes: what they have, what is free, who runs on them, and what is planned."""

    n: list[int]
    cores: list[int]
    mem: list[int]
    weight: list[int]
    gpus: list[int]
    allowed: list[int]
    accepted: list[int]
    below: list[int]
    members: list[int]
    event_s: list[int]
    event_kind: list[int]
    event_node: list[int]
    free_cores: list[int]
    free_mem: list[int]
    free_gpus: list[int]
    state: list[int]
    occupants: list[int]
    node_head: list[int]
    job_head: list[int]
    entry_row: list[int]
    entry_node: list[int]
    entry_type: list[int]
    entry_cores: list[int]
    entry_mem: list[int]
    entry_on_node: list[int]
    entry_of_job: list[int]
    span_begin: list[int]
    span_end: list[int]
    span_next: list[int]
    node_span: list[int]
    ready: list[int]
    opens: list[int]
    picked: list[int]
    spare: list[int]
    blocked: list[int]
    shut: list[int]
    reserved: list[int]
    ended_s: list[int]
    restarts: list[int]
    log_row: list[int]
    log_node: list[int]
    log_type: list[int]
    log_cores: list[int]
    log_mem: list[int]
    log_begin: list[int]
    log_end: list[int]
    fit_place: list[int]
    fit_accepts: list[int]
    fit_usable: list[float]
    fit_asked: list[float]
    fit_points: list[float]
    pressure: list[float]


class Shape(NamedTuple):
    """How many of everything; `width` is the most nodes that the reservations of one pass may take."""

    jobs: int
    nodes: int
    types: int
    partitions: int
    entries: int
    log: int
    width: int


class Limits(NamedTuple):
    """Numbers that are read, not changed, beside those of state.Setup.

    Whether a requeued job keeps its wait, and its progress; whether anybody may preempt; whether the
    fixed rank is the time of submission; `fits` classes of jobs by the GPUs that they ask for.
    """

    nodes: int
    types: int
    partitions: int
    qos: int
    log: int
    events: int
    keeps_wait: bool
    checkpoints: bool
    preempts: bool
    fcfs: bool
    fits: int
    fit_weight: float


CHANGING = {
    "nodes": {"occupants": 0, "node_head": -1, "node_span": -1, "ready": 0, "opens": 0, "picked": 0,
              "spare": 0, "state": UP, "shut": 0},
    "jobs": {"job_head": -1, "ended_s": 0, "restarts": 0},
    "entries": dict.fromkeys(("entry_row", "entry_node", "entry_type", "entry_cores", "entry_mem",
                              "entry_of_job"), 0),
    "width": dict.fromkeys(("span_begin", "span_end", "span_next"), 0),
    "partitions": dict.fromkeys(("blocked", "reserved"), 0),
    "log": dict.fromkeys(("log_row", "log_node", "log_type", "log_cores", "log_mem", "log_begin", "log_end"),
                         0),
}  # fmt: skip
"""Arrays of an empty cluster by their length: with what they are filled."""


def new_arrays(shape: Shape) -> dict[str, Any]:
    """Return the arrays that change, of an empty cluster; every entry is in the chain of free ones."""
    sizes = shape._asdict()
    arrays: dict[str, Any] = {
        name: np.full(sizes[length], value, np.int64)
        for length, filled in CHANGING.items()
        for name, value in filled.items()
    }
    arrays["entry_on_node"] = np.arange(1, shape.entries + 1)
    arrays["n"] = np.zeros(4, np.int64)
    return arrays
