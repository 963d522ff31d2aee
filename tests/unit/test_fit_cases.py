"""How GPUs and requests fit: cases worked out by hand, one sentence each, and which of two jobs is first."""

import pytest

from slurm_score.contention import gpu_pressure
from slurm_score.factors.gres_fit import TERMS, GresFitParams, compute, detail
from slurm_score.model import Queue
from slurm_score.never import why_never
from slurm_score.request import ask_of
from tests.unit.builders import NOW
from tests.unit.fit_cases import Case, Pair, make_cluster, make_job
from tests.unit.fit_cases_nodes import KINDS, STATES, USE
from tests.unit.fit_cases_pairs import PAIRS
from tests.unit.fit_cases_requests import CONSTRAINTS, COUNTS, WISHES
from tests.unit.fit_cases_rest import BESIDE, NEVER, RESERVATIONS

CASES = (*COUNTS, *CONSTRAINTS, *WISHES, *STATES, *USE, *KINDS, *RESERVATIONS, *BESIDE, *NEVER)


def queue_of(case: Case | Pair) -> Queue:
    """Return the jobs of a case, those that it is about first, on its cluster."""
    about = (case.job,) if isinstance(case, Case) else (case.first, case.second)
    jobs = tuple(make_job(i + 1, spec) for i, spec in enumerate((*about, *case.others)))
    cluster = make_cluster(case.cluster)
    return Queue(jobs=jobs, cluster=cluster, now_s=NOW, pressure=gpu_pressure(jobs, cluster))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sub_terms_are_as_worked_out_by_hand(case: Case) -> None:
    """Demand over supply, and the best fit over what is free; score-research 4."""
    queue = queue_of(case)
    terms = detail(queue, GresFitParams(), 0)
    assert tuple(terms[name] for name in TERMS) == pytest.approx(case.terms, abs=1e-12)
    ask = ask_of(queue.jobs[0])
    assert (why_never(ask, queue.cluster) if ask else "") == case.never


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_first_of_two_is_as_worked_out_by_hand(pair: Pair) -> None:
    """The factor orders jobs by the weighted mean of its sub-terms."""
    weights = {**dict.fromkeys(TERMS, 0.0), **pair.weights}
    first, second, *_ = compute(queue_of(pair), GresFitParams(**weights)).values.tolist()
    assert first > second


def test_cases_differ() -> None:
    """A case that stands twice proves nothing twice."""
    names = [str(case) for case in (*CASES, *PAIRS)]
    assert len(set(names)) == len(names)
