"""Run times learned from a real slurmdbd, and what they change for the next submission."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from .faulty import PATH, WRAPPERS
from .harness import Cluster, wait_for
from .product import OPERATOR, Product

POLICY = "mode: enforce\nslurm_factors: replace\nupdates: {min_age: 0s}\n"
RUN_S = 6
HOSTILE = "train-9\nforged|alice\x1fx"
IMPORT = ("slurm-score", "history", "import")
ROWS = (
    "import sys; from pathlib import Path; from slurm_score.predict.store import open_history\n"
    "with open_history(Path(sys.argv[1])) as store:\n"
    "    for r in store.each():\n"
    "        print(r.job_id, r.user, r.name, r.limit_s, r.cpus, r.gpus, r.elapsed_s, r.state)"
)
HISTORY = "/var/lib/slurm-score/history.sqlite"
ONCE = """#!/bin/bash
# sacct as it is for its first answer; after that slurmdbd is down.
if [ -e /tmp/answered ]; then
  echo 'sacct: error: Problem talking to the database: Connection refused' >&2
  exit 1
fi
/usr/bin/sacct "$@" && touch /tmp/answered
"""


@pytest.fixture(scope="module")
def product(_engine: None, release: str) -> Iterator[Product]:
    """The product on a cluster where nothing has run yet, and no reprioritizer but the tests' own cycles."""
    with Cluster(release, daemons=("service",)) as running:
        product = Product(running)
        product.set_policy(POLICY)
        yield product


def submit(product: Product, name: str = "train-1", run_s: int = RUN_S) -> int:
    """Returns the id of a run of alice's script; the number in its name is another each time."""
    return product.submit(f"--job-name={name}", "--time=60", command=f"sleep {run_s}")


def see(product: Product) -> None:
    """Runs a cycle and returns when the service answers by it."""
    began_s = product.now_s()
    product.cycle()
    wait_for(
        lambda: (product.health()["snapshot_age_s"] or 1e9) <= product.now_s() - began_s + 1,
        30,
        "the service has the new snapshot",
    )


def first_site(product: Product) -> tuple[int, str]:
    """Returns SITE of a submission as the hook set it, and what explain says of its remaining time."""
    filler = product.submit("--nodes=3", "--exclusive", "--time=60", user="bob")
    product.wait_for_state(filler, "RUNNING")
    see(product)
    job_id = submit(product, "train-17")
    site = product.sites()[job_id]
    product.cycle()
    words = product.explain(job_id)["terms"]["remaining"]["words"]
    assert product.sites()[job_id] == site  # the cycle says the same as the hook
    product.cluster.clear_jobs()
    return site, words


def rows(product: Product) -> list[list[str]]:
    """Returns the runs of the history."""
    argv = ["/opt/slurm-score/bin/python", "-c", ROWS, HISTORY]
    return [line.split() for line in product.exec(argv, user=OPERATOR).stdout.splitlines()]


def imported(product: Product, *options: str) -> list[str]:
    """Returns the lines of an import."""
    return product.exec([*IMPORT, *options], user=OPERATOR).stdout.splitlines()


def test_the_next_submission_of_a_script_is_scored_by_its_earlier_runs(product: Product) -> None:
    """Import finds the runs in slurmdbd, and SITE and explain of the next one go by them."""
    site, words = first_site(product)
    assert words.startswith("01:00:00 to run by its time limit")
    ids = [submit(product, name) for name in ("train-1", "train-2", "train-3", HOSTILE)]
    for job_id in ids:
        product.wait_for_state(job_id, "COMPLETED")
    wait_for(lambda: in_accounting(product) >= set(ids), 30, "the runs are in slurmdbd")

    lines = imported(product, "--since=1d")
    found = {int(row[0]): row[1:] for row in rows(product)}
    assert [found[i][:5] for i in ids[:3]] == [["alice", "train-#", "3600.0", "1", "0"]] * 3
    assert {found[i][6] for i in ids} == {"COMPLETED"}
    assert all(RUN_S <= float(found[i][5]) <= RUN_S + 5 for i in ids)
    assert lines[-1] == f"{HISTORY}: {len(found)} runs"
    assert imported(product)[-1] == lines[-1]  # nothing is new

    after, words = first_site(product)
    told = re.fullmatch(
        r"(\S+) to run, predicted: last [34] of alice's 1-CPU jobs named train-# of 01:00:00; .*", words
    )
    assert told, words
    assert RUN_S <= seconds(told[1]) <= RUN_S + 8
    # 450 × (1800 / (1800 + 8) - 1800 / (1800 + 3600)), less what waiting for a moment gives
    assert after - site == pytest.approx(298, abs=5)


def test_an_import_goes_on_where_it_was_interrupted(product: Product) -> None:
    """slurmdbd goes away after the first day of three; the second import begins with the second day."""
    product.exec(["mkdir", "--parents", WRAPPERS])
    product.exec(["rm", "--force", "/tmp/answered"])
    product.cluster.write_file(f"{WRAPPERS}/sacct", ONCE, mode=0o755)
    options = ["--since=3d", "--history=/tmp/other.sqlite"]
    broken = product.exec([*IMPORT, *options], user=OPERATOR, env={"PATH": f"{WRAPPERS}:{PATH}"}, check=False)
    assert broken.returncode == 1
    assert len(broken.stdout.splitlines()) == 1
    assert "slurmdbd" in broken.stderr or "database" in broken.stderr
    *days, forgotten, total = imported(product, "--since=2d", "--history=/tmp/other.sqlite")
    assert len(days) == 3  # the rest of three days, and not the first again
    assert "0 runs ended too long ago" in forgotten
    imported(product)
    assert total == f"/tmp/other.sqlite: {len(rows(product))} runs"


def in_accounting(product: Product) -> set[int]:
    """Returns the jobs that slurmdbd knows as completed."""
    argv = ["sacct", "-a", "-X", "-n", "-P", "-s", "CD", "-S", "now-1hour", "-E", "now", "-o", "JobIDRaw"]
    return {int(word) for word in product.exec(argv).stdout.split()}


def seconds(text: str) -> float:
    """Returns the seconds of HH:MM:SS."""
    hours, minutes, rest = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)
