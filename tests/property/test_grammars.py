"""Laws of the grammars: what is written is read back, and no text breaks a reader."""

import math
import string
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurm_score.errors import ParseError, shown
from slurm_score.gres import Gres, count_gpus, format_gres, gpu_request, parse_gres
from slurm_score.hints import MAX_PROBLEMS, Hints, format_hints, parse_hints
from slurm_score.hosts import parse_hosts
from slurm_score.jobid import JobId, count_tasks, parse_job_id
from slurm_score.node_gres import gpus_in_use
from slurm_score.nodestate import NodeState, parse_node_state
from slurm_score.units import (
    MAX_DURATION_S,
    format_duration,
    parse_count,
    parse_duration,
    parse_time_limit,
    parse_timestamp,
)

LONGEST_MESSAGE = 2000

texts = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="0123456789:-.dhmsKG", max_size=40),
    st.text(alphabet="gpu:a100,=/()_[]%+-0123456789 ", max_size=60),
    st.sampled_from(
        ["9" * 5000, "gpu:" + "9" * 5000, "1_[" + "1," * 5000 + "1]", "(" * 5000, "\ud800" * 500]
    ),
)
words = st.text(alphabet=string.ascii_letters + string.digits + "_.-", min_size=1, max_size=20)
names = st.sampled_from(["gpu", "shard", "mps", "bandwidth"])
types = words.filter(lambda word: not word.rstrip("KMGTPkmgtp").isdigit() and word != "no_consume")
spans = st.one_of(
    st.integers(0, 9999).map(str),
    st.tuples(st.integers(0, 99), st.integers(100, 9999)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
    st.tuples(st.integers(0, 99), st.integers(100, 999), st.integers(1, 9)).map(
        lambda three: f"{three[0]}-{three[1]}:{three[2]}"
    ),
)
task_lists = st.lists(spans, min_size=1, max_size=5).map(",".join)
numbers = st.integers(0, 9_999_999_999)
job_ids = st.one_of(
    st.builds(JobId, numbers),
    st.builds(JobId, numbers, task=numbers),
    st.builds(JobId, numbers, tasks=task_lists, throttle=st.one_of(st.none(), numbers)),
    st.builds(JobId, numbers, het_offset=st.integers(0, 9999)),
)
steps = st.one_of(numbers.map(str), st.sampled_from(["batch", "extern", "interactive"]))
node_states = st.builds(
    lambda base, flags: parse_node_state("+".join([base, *flags])),
    st.sampled_from(["IDLE", "MIXED", "ALLOCATED", "DOWN", "UNKNOWN", "FUTURE"]),
    st.lists(
        st.sampled_from(["DRAIN", "CLOUD", "PLANNED", "POWERED_DOWN", "NOT_RESPONDING", "NEWER"]), unique=True
    ),
)
hint_seconds = st.one_of(st.none(), st.integers(1, MAX_DURATION_S).map(float))
good_hints = st.builds(
    Hints,
    est_s=hint_seconds,
    left_s=hint_seconds,
    progress=st.one_of(st.none(), st.integers(0, 100).map(lambda n: n / 100)),
    ckpt=st.one_of(st.none(), st.booleans()),
    gpu=st.lists(st.sampled_from(["a100", "h100", "v100-32gb"]), unique=True).map(tuple),
    vram_gib=st.one_of(st.none(), st.integers(1, 4096).map(float)),
    urgency=st.sampled_from([None, "low", "normal", "high"]),
    deadline=st.sampled_from(["", "2026-12-24", "2026-12-24T18:00:05"]),
)
items = st.builds(Gres, names, st.one_of(st.none(), types), st.integers(0, 10**18 - 1))


@given(st.integers(1, MAX_DURATION_S))
def test_shown_duration_is_read_back(seconds: int) -> None:
    """parse(format(x)) == x for every duration in whole seconds."""
    assert parse_duration(format_duration(seconds)) == seconds
    assert parse_time_limit(format_duration(seconds)) == seconds


@given(st.sampled_from([None, math.inf, 0]))
def test_shown_time_limit_is_read_back(limit: float | None) -> None:
    """N/A, UNLIMITED and no time at all are read as what they stand for."""
    assert parse_time_limit(format_duration(limit)) == limit


@given(job_ids)
def test_shown_job_id_is_read_back(job_id: JobId) -> None:
    """parse(format(x)) == x for plain ids, array tasks, pending arrays and het components."""
    assert parse_job_id(str(job_id)) == job_id


@given(job_ids, steps)
def test_shown_step_is_read_back(job_id: JobId, step: str) -> None:
    """parse(format(x)) == x for the steps of every kind of job, and a step is updated as its job."""
    whole = replace(job_id, step=step)
    assert parse_job_id(str(whole)) == whole
    assert whole.update_id == job_id.update_id


@given(node_states)
def test_shown_node_state_is_read_back(state: NodeState) -> None:
    """parse(format(x)) == x, whether or not a job could start there."""
    assert parse_node_state(str(state)) == state


@given(good_hints)
def test_written_hints_are_read_back(hints: Hints) -> None:
    """parse(format(x)) == x for every hint that can be given."""
    assert parse_hints(format_hints(hints)) == hints


@given(job_ids)
def test_update_id_names_the_same_array_and_no_throttle(job_id: JobId) -> None:
    """What scontrol is told is a job id itself; only a het component gives way to its leader."""
    told = parse_job_id(job_id.update_id)
    assert (told.job_id, told.task, told.tasks) == (job_id.job_id, job_id.task, job_id.tasks)
    assert (told.throttle, told.het_offset) == (None, None)


@given(task_lists, spans)
def test_task_counts_add_up(tasks: str, more: str) -> None:
    """A longer list has as many tasks as its pieces together, and each piece has at least one."""
    assert count_tasks(f"{tasks},{more}") == count_tasks(tasks) + count_tasks(more)
    assert count_tasks(more) >= 1


@given(
    st.lists(items, min_size=1, max_size=4),
    st.sampled_from(["", "gres:", "gres/"]),
    st.sampled_from(["", "(S:0-1)", "(IDX:0,2-3)", "(IDX:N/A)"]),
)
def test_written_gres_is_read_back(written: list[Gres], prefix: str, behind: str) -> None:
    """parse(format(x)) == x, with each release's prefix and whatever stands in parentheses."""
    text = ",".join(
        f"{prefix}{item.name}{f':{item.type}' if item.type else ''}:{item.count}{behind}" for item in written
    )
    assert parse_gres(text) == tuple(written)
    assert parse_gres(format_gres(written)) == tuple(written)


@given(st.lists(items, min_size=1, max_size=4))
def test_written_tres_is_read_back(written: list[Gres]) -> None:
    """The same with equals signs, between CPUs and memory, which are no GRES."""
    told = [f"gres/{item.name}{f':{item.type}' if item.type else ''}={item.count}" for item in written]
    assert parse_gres(",".join(["cpu=1", *told, "mem=4000M"])) == tuple(written)


@given(st.lists(items, max_size=6))
def test_gpu_total_covers_its_types(some: list[Gres]) -> None:
    """The total is never below the sum of the types, nor below what is asked without a type."""
    counted = count_gpus(some)
    assert counted.total >= sum(counted.types.values())
    assert counted.total >= sum(item.count for item in some if item.name == "gpu" and item.type is None)


def request_per_node(text: str) -> object:
    """Read a text as what a job asks for on each node."""
    return gpu_request(per_node=text, nodes=3)


def in_use(text: str) -> object:
    """Read a text as what is in use on a node with four GPUs."""
    return gpus_in_use("gpu:a100:4", text)


@given(
    st.lists(items, min_size=1, max_size=4),
    st.sampled_from(["", "shard:a100:3(1/4,2/4,-/4)", "shard:2(IDX:0-1)", "mps:(null):7(0/4,7/9)", "mps:3"]),
)
def test_no_more_gpus_are_in_use_than_there_are(used: list[Gres], lent: str) -> None:
    """In all and by type, whatever GresUsed says; and never fewer than whole GPUs are."""
    told = [f"{item.name}{f':{item.type}' if item.type else ''}:{item.count}" for item in used]
    node = "gpu:a100:4,gpu:v100:2"
    has, taken = count_gpus(parse_gres(node)), gpus_in_use(node, ",".join([*told, lent] if lent else told))
    assert min(has.total, count_gpus(used).total) <= taken.total <= has.total
    assert all(taken.types.get(name, 0) <= count for name, count in has.types.items())


@pytest.mark.parametrize(
    "read",
    [
        in_use,
        parse_duration,
        parse_time_limit,
        parse_timestamp,
        parse_count,
        parse_gres,
        parse_job_id,
        parse_node_state,
        parse_hosts,
        count_tasks,
        request_per_node,
    ],
)
@given(text=texts)
def test_no_text_makes_a_grammar_raise_anything_else(read: Callable[[str], object], text: str) -> None:
    """A text is read or is a ParseError, whose one line is printable and bounded."""
    message = ""
    try:
        read(text)
    except ParseError as error:
        message = str(error)
    assert message.isprintable()
    assert len(message) <= LONGEST_MESSAGE


@given(st.one_of(texts, texts.map(lambda text: f"score: {text}")))
@example("score: " + "est=1m " * 1000)
@example("score:" * 1000)
def test_hints_never_raise(comment: str) -> None:
    """Whatever stands in a comment, there are at most three problems, printable and bounded."""
    hints = parse_hints(comment)
    assert len(hints.problems) <= MAX_PROBLEMS
    assert all(problem.isprintable() and len(problem) <= LONGEST_MESSAGE for problem in hints.problems)
    for seconds in (hints.est_s, hints.left_s):
        assert seconds is None or 0 < seconds <= MAX_DURATION_S


@given(st.text(), st.integers(10, 100))
def test_shown_text_is_printable_and_bounded(text: str, limit: int) -> None:
    """Each character becomes at most the ten of an escape, and nothing steers a terminal."""
    assert shown(text, limit).isprintable()
    assert len(shown(text, limit)) <= 10 * limit + 2
