"""The demo as text: the queue before and after, a job explained, and who started earlier or later."""

from collections.abc import Iterator, Mapping

from slurm_score.demo.play import Product, first_come_first_served, under_product, without_guard
from slurm_score.demo.scenarios import FOUR_JOBS, STARVATION, Scenario
from slurm_score.policy import Mode
from slurm_score.report.explanation import format_explanation
from slurm_score.report.fields import DEFAULT, format_of
from slurm_score.report.queue import Queue, SortKeys, columns_needed
from slurm_score.report.table import format_table
from slurm_score.slurm.fake import JobRun
from slurm_score.units import format_duration

Runs = Mapping[str, JobRun]

BY_PRIORITY = (("priority", True), ("submit_s", False), ("job_id", False))
"""What slurmctld sorts its queue by."""


def show_demo() -> Iterator[str]:
    """Yield the demo's text, piece by piece as it is played."""
    yield from show_four_jobs()
    yield "\n"
    yield from show_starvation()


def show_four_jobs() -> Iterator[str]:
    """Yield the first scenario: what the order of four jobs is, was, and what it changes."""
    yield f"== {FOUR_JOBS.title}\n\n"
    with under_product(FOUR_JOBS) as product:
        product.play.play_to(FOUR_JOBS.look_s)
        yield "Before, in observe: scores are computed, and Slurm keeps its own order.\n\n"
        yield _queue(product, BY_PRIORITY)
        yield f"\nSlurm's order: {_order(product)}\n\n"
        product.set_mode(Mode.ENFORCE)
        yield f"After one cycle in enforce ({product.reprioritizer.cycle()}):\n\n"
        yield _queue(product)
        yield f"\nSlurm's order: {_order(product)}\n\n"
        yield f"slurm-score explain {_job_id(product, FOUR_JOBS.explained)} ({FOUR_JOBS.explained}):\n\n"
        yield _explanation(product, FOUR_JOBS)
        scored = product.play.play_out()
    yield "\nStart, after the partition opened:\n\n"
    yield _starts(FOUR_JOBS, first_come_first_served(FOUR_JOBS), scored)


def show_starvation() -> Iterator[str]:
    """Yield the second scenario: what the guard does for a job that every score puts last."""
    yield f"== {STARVATION.title}\n\n"
    with under_product(STARVATION) as product:
        product.set_mode(Mode.ENFORCE)
        product.play.play_to(STARVATION.look_s)
        yield f"The queue after {format_duration(STARVATION.look_s)}, in enforce from the start:\n\n"
        yield _queue(product)
        yield f"\nslurm-score explain {_job_id(product, STARVATION.explained)} ({STARVATION.explained}):\n\n"
        yield _explanation(product, STARVATION)
        scored = product.play.play_out()
    fifo, unguarded = first_come_first_served(STARVATION), without_guard(STARVATION)
    yield f"\nLongest waits, and that of {STARVATION.explained}:\n\n"
    ways = {"first come, first served": fifo, "score without guard": unguarded, "score with guard": scored}
    rows = [[name, *_waits(runs, STARVATION.explained)] for name, runs in ways.items()]
    yield format_table(["ORDER", "MEAN", "LONGEST", STARVATION.explained], rows)
    yield "\nStart, after the partition opened, of the jobs that start at another time:\n\n"
    yield _starts(STARVATION, fifo, scored, changed_only=True)


def _queue(product: Product, sort: SortKeys = ()) -> str:
    """Return what sscore prints, best first if not sorted otherwise."""
    shown = format_of(DEFAULT)
    answer = product.client.columns(columns_needed(shown, sort), [("eligible", "1")])
    return Queue(answer, shown, sort).table()[0]


def _order(product: Product) -> str:
    pending = [job for job in product.slurm.read_jobs() if job.pending]
    pending.sort(key=lambda job: (-job.priority, job.submit_s, job.job_id))
    return " ".join(product.slurm.history[job.job_id].name for job in pending)


def _job_id(product: Product, name: str) -> str:
    return next(run.label for run in product.slurm.history.values() if run.name == name)


def _explanation(product: Product, scenario: Scenario) -> str:
    return format_explanation(product.client.job(_job_id(product, scenario.explained)))


def _starts(scenario: Scenario, fifo: Runs, scored: Runs, *, changed_only: bool = False) -> str:
    rows = [
        [name, _since_opening(scenario, fifo[name], fifo), _since_opening(scenario, run, scored), change]
        for name, run in scored.items()
        if (change := _change(_start_s(fifo[name]) - _start_s(run))) != "same" or not changed_only
    ]
    return format_table(["NAME", "FIFO", "SCORED", "CHANGE"], rows)


def _since_opening(scenario: Scenario, run: JobRun, runs: Runs) -> str:
    first_s = min(r.submit_s for r in runs.values())
    return format_duration(_start_s(run) - first_s - scenario.opens_s)


def _change(earlier_s: int) -> str:
    if earlier_s == 0:
        return "same"
    return f"{format_duration(abs(earlier_s))} {'earlier' if earlier_s > 0 else 'later'}"


def _waits(runs: Runs, name: str) -> list[str]:
    waits = {n: _start_s(run) - run.submit_s for n, run in runs.items()}
    return [format_duration(s) for s in (sum(waits.values()) / len(waits), max(waits.values()), waits[name])]


def _start_s(run: JobRun) -> int:
    if run.start_s is None:
        raise AssertionError(f"{run.name} never started")
    return run.start_s
