"""What explain says is true on real Slurm: its sums, and what it promises to those who change their jobs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from . import topology
from .harness import Cluster, wait_for
from .product import OPERATOR, Product

RELEASE = "24.11"
POLICY = "mode: enforce\nslurm_factors: complement\nupdates: {min_age: 0s}\n"
SMALL = topology.Partition(nodes=("g3",), max_time="7-0")
SLURM_CONF = {
    "PriorityWeightAge": "1000",
    "PriorityWeightJobSize": "300",
    "PriorityWeightPartition": "200",
    "PriorityWeightQOS": "400",
    "PriorityWeightFairshare": "500",
}
FORMS = (
    "--gres=gpu:a100:1 --time=60",
    "--gres=gpu:v100:2 --nodes=1 --time=30",
    "--gpus=3 --time=120",
    "--gpus=a100:2 --qos=high",
    "--ntasks=4 --time=10",
    "--gpus-per-task=1 --ntasks=2 --time=1-0",
    "--nodes=2 --gres=gpu:1 --qos=low",
    "--array=0-3 --gpus=1 --time=45",
    "--comment='score: est=20m' --gpus=1 --time=600",
    "--nice=50 --ntasks=1 --time=5",
    "--qos=high --ntasks=2 --time=90",
    "--hold --gres=gpu:a100:1",
    "--dependency=afterany:{filler} --gpus=1",
    "--begin=now+1day --ntasks=1",
    "--ntasks=1",
    "--ntasks=1 --time=60 : --ntasks=1 --gres=gpu:1",
    "--partition=main,small --ntasks=2 --time=15",
    "--partition=small --gres=gpu:v100:1 --time=20",
    "--nodes=3 --exclusive --time=7-0",
    "--mem=500 --cpus-per-task=2 --time=3:00:00",
)
ROUNDS = 10
LIMIT = ("sacctmgr", "--immediate", "modify", "user", "alice", "set")
EXPLAIN_ALL = """
import json, sys; from pathlib import Path; from slurm_score.service.client import ServiceClient
client = ServiceClient(Path("/run/slurm-score/slurm-score.sock"))
print(json.dumps([client.job(job) for job in sys.argv[1:]]))
"""
ROUNDING = 0.5 + 1e-6
WAITED = 0.2
"""Points that two minutes give."""


@pytest.fixture(scope="module")
def cluster(_engine: None) -> Iterator[Cluster]:
    """A cluster with a second partition, on which Slurm's own factors count as well."""
    lab = topology.load()
    shape = lab.model_copy(update={"partitions": {**lab.partitions, "small": SMALL}})
    with Cluster(RELEASE, daemons=("service",), shape=shape, slurm_conf=SLURM_CONF) as running:
        yield running


@pytest.fixture(scope="module")
def product(cluster: Cluster) -> Product:
    """The product in enforce, and no reprioritizer but the tests' own cycles."""
    product = Product(cluster)
    product.set_policy(POLICY)
    return product


def see(product: Product) -> None:
    """Runs a cycle and returns when the service answers by it."""
    began_s = product.now_s()
    product.cycle()
    wait_for(
        lambda: (product.health()["snapshot_age_s"] or 1e9) <= product.now_s() - began_s + 1,
        30,
        "the service has the new snapshot",
    )


def submit_all(product: Product, forms: Sequence[str], user: str) -> list[int]:
    """Returns the ids of jobs, one for each form; one shell submits them."""
    lines = []
    for form in forms:
        words = ["sbatch", "--parsable", "--output=/dev/null", *shlex.split(form), "--wrap=sleep 1000"]
        lines.append(shlex.join(words))
    said = product.exec(["bash", "-e"], stdin="\n".join(lines), user=user, timeout_s=120).stdout
    return [int(line) for line in said.split()]


def priorities(product: Product) -> dict[int, int]:
    """Returns what squeue shows as priority of the pending jobs; a het job counts by its leader."""
    rows = product.exec(["squeue", "-h", "-t", "PD", "-o", "%i %A %Q"]).stdout.splitlines()
    found = [row.split() for row in rows]
    return {int(job_id): int(priority) for label, job_id, priority in found if label.partition("+")[2] in "0"}


# the promises


# kind: what is submitted, and the words of the change that is looked at
KINDS = {
    "GPU type": (["--gres=gpu:a100:2", "--nodes=1", "--time=600"], "v100 instead of a100"),
    "fewer GPUs": (["--gpus=v100:4", "--time=600"], "2 GPUs instead of 4"),
    "fewer nodes": (
        ["--nodes=2", "--gres=gpu:2", "--time=600"],
        "1 node instead of 2, as many GPUs and tasks on each",
    ),
    "time limit": (["--gpus=1", "--time=600"], "limit 05:00:00 instead of 10:00:00"),
    "partition": (["--gres=gpu:v100:2", "--nodes=1", "--time=600"], "partition small instead of main"),
    "QOS": (["--gpus=1", "--time=600"], "QOS high instead of normal"),
}


@pytest.fixture(scope="module")
def half_full(product: Product) -> Product:
    """bob runs on all a100 and on two v100; alice may start nothing, and has a job with QOS high.

    Nothing ends meanwhile, from which run times would be learned: a limit is all that is known of a job.
    """
    product.exec([*LIMIT, "MaxJobs=0"])
    show = ["scontrol", "show", "assoc_mgr", "flags=assoc", "users=alice"]
    wait_for(lambda: "MaxJobs=0(" in product.exec(show).stdout, 30, "slurmctld knows alice's limit")
    for options in (["--nodes=2", "--gres=gpu:a100:4"], ["--nodes=1", "--gres=gpu:v100:2"]):
        product.wait_for_state(product.submit(*options, "--time=600", user="bob"), "RUNNING")
    product.submit("--qos=high", "--ntasks=1", "--time=600")
    product.submit("--gres=gpu:a100:1", "--time=600", user="bob")
    return product


def promised(product: Product, job_id: int, words: str) -> dict[str, Any]:
    """Returns what is promised to a job for the change that begins with these words."""
    found: list[dict[str, Any]] = product.explain(job_id)["changes"]
    (promise,) = (change for change in found if change["words"].startswith(words))
    assert promise["exact"]
    return promise


def test_who_submits_anew_as_advised_gets_the_promised_score(half_full: Product) -> None:
    """Every kind of change; the first job is cancelled, as it makes room for the second."""
    product = half_full
    jobs = {kind: product.submit(*options) for kind, (options, _) in KINDS.items()}
    see(product)
    for kind, (options, words) in KINDS.items():
        promise = promised(product, jobs[kind], words)
        (advised,) = shlex.split(promise["options"])
        product.exec(["scancel", str(jobs[kind])])
        new = product.submit(*replaced(options, advised))
        see(product)
        assert product.explain(new)["score"] == pytest.approx(promise["resubmitted"], abs=WAITED), kind


def replaced(options: Sequence[str], advised: str) -> list[str]:
    """Returns sbatch's options with the advised one in the place of what says the same."""
    same = {"--gpus": ("--gpus", "--gres"), "--gres": ("--gpus", "--gres")}
    names = same.get(advised.partition("=")[0], (advised.partition("=")[0],))
    return [option for option in options if option.partition("=")[0] not in names] + [advised]


def test_who_changes_a_waiting_job_as_advised_gets_the_promised_score(half_full: Product) -> None:
    """By the command that explain prints, as the job's user: it keeps its wait.

    Slurm makes something else of a waiting job with fewer GPUs or nodes: there is no command for those.
    """
    product = half_full
    jobs = {kind: product.submit(*options) for kind, (options, _) in KINDS.items()}
    see(product)
    for kind, (_, words) in KINDS.items():
        promise = promised(product, jobs[kind], words)
        assert bool(promise["update"]) is (kind not in ("fewer GPUs", "fewer nodes"))
        if not promise["update"]:
            continue
        product.exec(shlex.split(promise["update"]), user="alice")
        see(product)
        assert product.explain(jobs[kind])["score"] == pytest.approx(promise["score"], abs=WAITED), kind


# the sums


def test_explains_sums_are_slurms_for_every_job_of_a_mixed_queue(product: Product) -> None:
    """The parts make the score; score, offset and Slurm's own factors make squeue's priority.

    SiteFactor = score + offset, rounded: one offset for all jobs, which explain names, so that waits that
    grow alike cost no updates. Slurm doesn't rank the held, the dependent and those whose time has not
    come: of them it tells no factors, and explain makes none up.
    """
    product.exec([*LIMIT, "MaxJobs=-1"])
    product.cluster.clear_jobs()
    filler = product.fill()
    forms = [form.format(filler=filler) for form in FORMS] * ROUNDS
    ids = [*submit_all(product, forms[::2], "alice"), *submit_all(product, forms[1::2], "bob")]
    pinned = ids[0]
    product.exec(["scontrol", "update", f"JobId={pinned}", "Priority=5000"])
    wait_for(lambda: len(product.sites()) >= len(ids) * 3 // 4, 30, "Slurm ranks the jobs")
    shown = settled(product)
    python = ["/opt/slurm-score/bin/python", "-c", EXPLAIN_ALL, *map(str, shown)]
    answers = json.loads(product.exec(python, user=OPERATOR).stdout)
    told = {answer["job_id"]: answer for answer in answers}

    assert list(told) == list(shown)
    assert len(told) == len(ids) == 200
    ranked = {job_id for job_id, answer in told.items() if answer["site_held"] is not None}
    assert ranked == product.sites().keys() & told.keys()
    assert len(ranked) >= 150
    for job_id, answer in told.items():
        require_parts(answer)
        if job_id not in ranked:
            assert answer["slurm_parts"] == {}
            continue
        own = slurms_own(answer)
        assert answer["priority"] == shown[job_id]
        if job_id == pinned:
            assert answer["untouched"] == "pinned"
            continue
        assert answer["untouched"] == ""
        assert abs(shown[job_id] - own - answer["site_held"]) <= slurms_rounding(answer)
        assert abs(answer["site_held"] - answer["offset"] - answer["score"]) <= ROUNDING


def settled(product: Product) -> dict[int, int]:
    """Returns what squeue shows, the same before and after the cycle that the service answers by.

    Slurm works its own factors out anew once a minute, which can be in between.
    """
    for _ in range(5):
        before = priorities(product)
        see(product)
        if priorities(product) == before:
            return before
    raise AssertionError("squeue's priorities don't settle")


def require_parts(answer: dict[str, Any]) -> None:
    """Passes where weights, factors, parts and shares add up to the score."""
    terms = answer["terms"]
    assert [term["part"] for term in terms] == pytest.approx([t["weight"] * t["factor"] for t in terms])
    assert sum(term["part"] for term in terms) == pytest.approx(answer["score"])
    assert answer["score"] == 0 or sum(term["share"] for term in terms) == pytest.approx(1)


def slurms_rounding(answer: dict[str, Any]) -> float:
    """Returns by how much they may miss the priority: sprio rounds each, slurmctld cuts their sum."""
    return 1.0 + 0.5 * sum(bool(part) for part in answer["slurm_parts"].values())


def slurms_own(answer: dict[str, Any]) -> int:
    """Returns what Slurm's own factors add up to; nice is taken off."""
    parts: dict[str, int] = answer["slurm_parts"]
    return sum(parts.values()) - 2 * parts["nice"]
