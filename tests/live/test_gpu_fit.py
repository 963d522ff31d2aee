"""GPU fit on real Slurm: what there is, what each request accepts, and whom the factor lets start first."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from . import gpu_fit
from .gpu_fit import Fit, Situation, Supplies, Supply
from .harness import Cluster, wait_for
from .product import Product

OBSERVE = "mode: observe\n"
ENFORCE = """\
mode: enforce
slurm_factors: replace
updates: {{min_age: 0s}}
factors:
  gres_fit: {{weight: {weight}, scarcity: {scarcity}, ready: {ready}}}
"""
WEIGHT = 1000
LATER = "--begin=now+1hour"  # such a job is scored and asks for nothing that others want
SUB_TERMS = ("scarcity", "ready", "match", "packing", "spread")


@pytest.fixture(scope="module")
def cluster(_engine: None, release: str) -> Iterator[Cluster]:
    """A cluster with three GPU types, MIG slices and shards."""
    shape, conf = gpu_fit.shape(), gpu_fit.SLURM_CONF
    with Cluster(release, every="1d", shape=shape, slurm_conf=conf) as running:
        yield running


@pytest.fixture
def product(cluster: Cluster) -> Iterator[Product]:
    """The product in observe on idle nodes."""
    cluster.clear_jobs()
    product = Product(cluster)
    product.set_policy(OBSERVE)
    yield product
    cluster.clear_jobs()


def submit(product: Product, forms: Iterable[str], *options: str, user: str = "alice") -> list[int]:
    """Return the ids of jobs, one for each form, submitted in this order."""
    argv = ("sbatch", "--parsable", "--output=/dev/null", "--time=60", *options)
    lines = [shlex.join([*argv, *shlex.split(form), "--wrap=sleep 1000"]) for form in forms]
    said = product.exec(["bash", "-e"], stdin="\n".join(lines), user=user).stdout
    return [int(line) for line in said.split()]


def wait_until_running(product: Product, job_ids: Sequence[int]) -> None:
    """Return when all of these jobs run."""
    wait_for(
        lambda: set(states(product, job_ids).values()) == {"RUNNING"},
        60,
        lambda: f"the jobs run, {states(product, job_ids)}",
    )


def states(product: Product, job_ids: Sequence[int]) -> dict[int, str]:
    """Return the state of each job."""
    argv = ["squeue", "--noheader", "--format=%A %T", f"--jobs={','.join(map(str, job_ids))}"]
    rows = (line.split() for line in product.exec(argv).stdout.splitlines())
    return {int(job_id): state for job_id, state in rows}


def cycle(product: Product) -> None:
    """Run a cycle, and return when the service has its snapshot."""
    before_s = gpus(product)["time_s"]
    product.cycle()
    wait_for(lambda: gpus(product)["time_s"] > before_s, 30, "the service has the new snapshot")


def gpus(product: Product) -> dict[str, Any]:
    """Return what `slurm-score gpus` says."""
    answer: dict[str, Any] = json.loads(product.exec(["slurm-score", "gpus", "--json"], user="alice").stdout)
    return answer


def supplies(product: Product) -> Supplies:
    """Return what there is of each type in each partition."""
    return {
        (row["partition"], row["gpu_type"]): Supply(
            **{name: row[name] for name in Supply._fields if name != "block"}, block=tuple(row["block"])
        )
        for row in gpus(product)["gpus"]
    }


def fits(product: Product, job_ids: Sequence[int]) -> list[Fit]:
    """Return how each job fits, as explain shows it."""
    return [_fit(term) for term in gres_fits(product, job_ids)]


def gres_fits(product: Product, job_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the term gres_fit of each job's explanation."""
    lines = [f"slurm-score explain --json {job_id}" for job_id in job_ids]
    said = product.exec(["bash", "-e"], stdin="\necho ,\n".join(lines), user="alice", timeout_s=120).stdout
    answers = json.loads(f"[{said}]")
    return [next(t for t in answer["terms"] if t["name"] == "gres_fit") for answer in answers]


def _fit(term: dict[str, Any]) -> Fit:
    details: list[Any] = [pytest.approx(term["details"][name]) for name in SUB_TERMS]
    said = re.match(r"accepts (\S+): (\d+) usable, ", term["words"])
    if said is None:
        assert term["words"] == "asks for no GPU"
        return Fit("", 0, *details)
    return Fit(said[1], int(said[2]), *details)


def test_idle_gpus_are_those_that_the_cluster_was_given(product: Product) -> None:
    """Whole GPUs, slices and shards by partition and type; a node of two types counts for both."""
    cycle(product)
    assert supplies(product) == gpu_fit.IDLE


def test_a_request_accepts_the_types_and_fits_as_worked_out_by_hand(product: Product, release: str) -> None:
    """Every form of request, beside jobs that run and jobs that wait; and what these leave of each type."""
    old = release == "22.05"
    wait_until_running(product, submit(product, gpu_fit.RUNNING))
    submit(product, gpu_fit.WAITING, user="bob")
    jobs = submit(product, gpu_fit.FORMS, LATER)
    cycle(product)
    assert supplies(product) == gpu_fit.OCCUPIED | (gpu_fit.OCCUPIED_22_05 if old else {})
    shown = dict(zip(gpu_fit.FORMS, fits(product, jobs), strict=True))
    assert shown == gpu_fit.FORMS | (gpu_fit.FORMS_22_05 if old else {})


def test_a_request_is_ready_when_slurm_would_start_it_now(product: Product) -> None:
    """Asked by `sbatch --test-only`, Slurm would start it at once, and else when jobs end, in an hour."""
    wait_until_running(product, submit(product, gpu_fit.RUNNING))
    assert starts_now(product, gpu_fit.FORMS) == {
        form: fit.ready == 1 or fit == gpu_fit.NO_GPU for form, fit in gpu_fit.FORMS.items()
    }


def starts_now(product: Product, forms: Iterable[str]) -> dict[str, bool]:
    """Return whether Slurm would start a job of each form within half an hour."""
    argv = ["sbatch", "--test-only", "--time=60"]
    lines = [shlex.join([*argv, *shlex.split(form), "--wrap=true"]) for form in forms]
    said = product.exec(["bash", "-e"], stdin="\n".join(lines), user="alice").stderr
    times = re.findall(r"to start at (\S+)", said)
    now = datetime.fromtimestamp(product.now_s(), UTC).replace(tzinfo=None)
    soon = now + timedelta(minutes=30)
    return {form: datetime.fromisoformat(t) < soon for form, t in zip(forms, times, strict=True)}


def test_gpus_of_reserved_drained_and_down_nodes_are_broken(product: Product) -> None:
    """Those in use on them too, and shards of a GPU in use are; the reservation's own jobs may start."""
    wait_until_running(product, submit(product, ["-w v1 --gpus=v100:1", "-w s1 --gpus=a100:1"]))
    reservation = ["ReservationName=lab", "Nodes=a1", "Users=alice", "StartTime=now", "Duration=60"]
    product.exec(["scontrol", "create", *reservation])
    try:
        for node, state in (("v1", "DRAIN"), ("x1", "DOWN")):
            product.exec(["scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=test"])
        wait_for_node(product, "a1", "IDLE+RESERVED")
        jobs = submit(product, gpu_fit.BROKEN_FORMS, LATER)
        cycle(product)
        shown = dict(zip(gpu_fit.BROKEN_FORMS, fits(product, jobs), strict=True))
        assert supplies(product) == gpu_fit.BROKEN
        assert shown == gpu_fit.BROKEN_FORMS
    finally:
        product.exec(["scancel", "--user=alice"])
        wait_for(lambda: not product.exec(["squeue", "--noheader"]).stdout, 60, "the reservation is unused")
        product.exec(["scontrol", "delete", "ReservationName=lab"])
        product.exec(["scontrol", "update", "NodeName=v1,x1", "State=RESUME"])


def wait_for_node(product: Product, node: str, state: str) -> None:
    """Return when a node is in the state."""
    argv = ["scontrol", "--oneliner", "show", "node", node]
    wait_for(lambda: f" State={state} " in product.exec(argv).stdout, 60, f"{node} is {state}")


def test_gpus_of_a_planned_node_are_free(product: Product) -> None:
    """Backfill may still use a node that it keeps for a job to come. Source: sinfo(1), PLANNED."""
    wait_until_running(product, submit(product, ["-w v1 --gpus=v100:1"]))
    submit(product, ["-p pair -N2 --exclusive"])
    wait_for_node(product, "x1", "IDLE+PLANNED")
    cycle(product)
    found = supplies(product)
    assert {key: found[key] for key in gpu_fit.PLANNED} == gpu_fit.PLANNED


@pytest.fixture
def filled(cluster: Cluster) -> Iterator[Product]:
    """The product on a cluster on which fillers leave no place for any situation's jobs."""
    product = Product(cluster)
    fill(product)
    yield product
    product.exec(["scancel", "--name=first,second"])


def fill(product: Product) -> None:
    """Submit the fillers that don't run, and return when all do."""
    argv = ["squeue", "--noheader", "--format=%j", "--states=RUNNING"]
    running = product.exec(argv).stdout.split()
    submit(product, [f"{form} -J {name}" for name, form in gpu_fit.FILLERS.items() if name not in running])
    wait_for(lambda: gpu_fit.FILLERS.keys() <= set(product.exec(argv).stdout.split()), 60, "the fillers run")


@pytest.mark.parametrize("situation", gpu_fit.SITUATIONS, ids=lambda situation: situation.name)
def test_the_factor_decides_who_starts_next(filled: Product, situation: Situation) -> None:
    """The job with the higher gres_fit, though it came later; without the factor the one that came first."""
    ahead = situation.second[1] - situation.first[1]
    assert ahead > 0
    with_factor = started(filled, situation, policy(situation.sub_term, WEIGHT))
    assert with_factor.values == [situation.first[1], situation.second[1]]
    assert with_factor.site_ahead == pytest.approx(WEIGHT * ahead, abs=1)
    assert with_factor.job == "second"

    without = policy("scarcity", 0 if situation.sub_term == "scarcity" else WEIGHT)
    without_factor = started(filled, situation, without)
    assert without_factor.site_ahead == 0
    assert without_factor.job == "first"


def policy(sub_term: str, weight: int) -> str:
    """Return a policy in which nothing but one sub-term of gres_fit counts."""
    return ENFORCE.format(weight=weight, **{"scarcity": 0, "ready": 0, sub_term: 1})


class Outcome(NamedTuple):
    """Which job started; gres_fit of both, and how far the second's SiteFactor was ahead, before that."""

    job: str
    values: list[Any]
    site_ahead: int


def started(product: Product, situation: Situation, policy_text: str) -> Outcome:
    """Submit both jobs, run a cycle, end the filler, and return what comes of it; then fill again."""
    product.set_policy(policy_text)
    forms = [f"{situation.first[0]} -J first", f"{situation.second[0]} -J second"]
    jobs = submit(product, forms)
    wait_for(lambda: product.sites().keys() >= set(jobs), 60, "Slurm ranks both jobs")
    product.cycle()
    values = [pytest.approx(term["factor"]) for term in gres_fits(product, jobs)]
    sites = product.sites()
    assert set(states(product, jobs).values()) == {"PENDING"}
    product.exec(["scancel", f"--name={situation.frees}"])
    argv = ["squeue", "--noheader", "--format=%j", "--states=RUNNING", "--name=first,second"]
    running = wait_for(lambda: product.exec(argv).stdout.split(), 60, "one of the jobs starts")
    product.exec(["scancel", *map(str, jobs)])
    fill(product)
    return Outcome(",".join(running), values, sites[jobs[1]] - sites[jobs[0]])
