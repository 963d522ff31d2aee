"""The one table of what is prepared on a cluster, recorded, and expected: for the recorder, the replay
and the live tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from tests.contract.situations_documented import DOCUMENTED_JOBS
from tests.contract.situations_gpus import FILLER, GPU_FORMS, GPU_RUNS, taken
from tests.contract.situations_nodes import INVENTORY_JOBS, STATE_JOBS
from tests.contract.situations_places import PLACES
from tests.contract.situations_queue import (
    ARRAYS,
    ARRAYS_SPLIT,
    BAD_CONSTRAINTS,
    HELD,
    HET_JOBS,
    QUEUE,
    RUNNING,
    WAITING,
    waits,
)
from tests.contract.table import Reading, Situation, Where


def says(name: str, comment: str, reading: Reading) -> Situation:
    """Return a situation of a pending job with a comment."""
    return waits(f"comment-{name}", reading, f"--comment={comment}")


ESTIMATE = Reading(est_s=1200)
COMMENTS = (
    says("plain", "score: est=20m", ESTIMATE),
    says("both", "score: est=1h left=10m", Reading(est_s=3600, left_s=600)),
    says("not-a-duration", "score: est=banana", Reading(problems=1)),
    says("empty", "", Reading()),
    says("newline", "a\nscore: est=20m\nz", ESTIMATE),
    says("tab", "a\tb score: est=20m", ESTIMATE),
    says("quotes", 'it\'s "said" `so`; score: est=20m', ESTIMATE),
    says("pipe", "a|b|c score: est=20m", ESTIMATE),
    says("unit-separator", "a\x1fb\x1f score: est=20m", ESTIMATE),
    says("nearly-the-end", "a\x1f0123456789abcde\n\x1f score: est=20m", ESTIMATE),
    says("another-job", "\n9999\x1f9999\x1fN/A\x1fmain\x1fbob\n", Reading()),
    says("emoji", "\N{ROCKET} caf\u00e9 score: est=20m", ESTIMATE),
    says("not-utf-8", "\udcff\udcfe score: est=20m", ESTIMATE),
    says("longest", "score: est=20m; " + "x" * 1008, ESTIMATE),
    says("longest-before", "x" * 1009 + " score: est=20m", ESTIMATE),
    replace(
        says("of-4-kB", "x" * 4096, Reading()),
        refused=dict.fromkeys(("22.05", "24.11", "26.05"), "slurmctld takes 1,024 bytes at most"),
    ),
    says("shell", "$(touch /tmp/pwned) `touch /tmp/pwned`; score: est=20m", ESTIMATE),
    says("shell-quotes", "x'; touch /tmp/pwned; echo '", Reading()),
    says("json", '{"a":"b;c"}', Reading()),
    says("format", r"100%s %n \n \x41 score: est=20m", ESTIMATE),
)


def named(name: str, words: str, comment: str = "score: est=20m") -> Situation:
    """Return a situation of a pending job with a name of the user's and a comment."""
    reading = replace(ESTIMATE if comment else Reading(), name=words)
    return waits(f"name-{name}", reading, f"--job-name={words}", f"--comment={comment}")


NAMES = (
    named("plain", "train-17"),
    named("newline", "a\nscore: est=1m\nz"),
    named("unit-separator", "a\x1fscore: est=1m\x1f"),
    named("nearly-the-end", "a\x1f0123456789abcde\n\x1f"),
    named("another-job", "\n9999\x1f9999\x1fN/A\x1fmain\x1fbob\n", ""),
    named("emoji", "\N{ROCKET} caf\u00e9 | 50%"),
    named("shell", "$(touch /tmp/pwned)`touch /tmp/pwned`'; touch /tmp/pwned; echo '"),
    named("longest", "x" * 1000),
)
"""A name may hold what a comment may: neither it nor the comment behind it is read as the other."""

REQUEUED = (
    Situation(
        name="requeued-by-user",
        options=("--nodelist=g1", "--requeue"),
        starts=True,
        reads={"": replace(WAITING, restarts=1)},
    ),
    Situation(
        name="requeued-then-failed",
        options=("--nodelist=g1", "--requeue"),
        starts=True,
        reads={"": replace(WAITING, restarts=2)},
    ),
    Situation(
        name="node-failed",
        options=("--nodelist=g3", "--requeue"),
        starts=True,
        reads={"": replace(WAITING, restarts=1)},
    ),
    Situation(
        name="preempted",
        options=("--nodelist=g2", "--requeue", "--qos=low"),
        starts=True,
        reads={"": replace(WAITING, restarts=1, qos="low")},
    ),
    Situation(
        name="requeued-and-held",
        options=("--nodelist=g4", "--requeue"),
        starts=True,
        reads={"": replace(HELD, restarts=1)},
    ),
    Situation(
        name="never-requeued",
        options=("--nodelist=c1",),
        starts=True,
        reads={"": RUNNING},
    ),
)

PREEMPTOR = Situation(
    name="preemptor", options=("--nodelist=g2", "--exclusive", "--qos=high"), user="bob", reads=None
)

FLAGGED = (
    Situation(name="completing", options=("--nodelist=g1",), starts=True, reads={}),
    Situation(
        name="requeued-and-completing",
        options=("--nodelist=g1", "--requeue"),
        starts=True,
        reads={"": Reading(state="COMPLETING", eligible=False, restarts=1)},
    ),
    Situation(
        name="special-exit",
        options=("--nodelist=g2", "--requeue"),
        starts=True,
        reads={"": replace(HELD, state="SPECIAL_EXIT", restarts=1)},
    ),
    Situation(
        name="stopped",
        options=("--nodelist=g3", "--gres=gpu:1"),
        starts=True,
        reads={"": replace(taken(1, {"v100": 1}, per_node=1), state="STOPPED")},
    ),
    Situation(
        name="suspended",
        options=("--nodelist=g3",),
        starts=True,
        reads={"": replace(HELD, state="SUSPENDED")},  # Slurm keeps it at priority 0
    ),
    Situation(name="finished", options=("--nodelist=g4",), command="true", reads={}),
    Situation(name="cancelled", options=("--hold",), then=("scancel {id}",), reads={}),
    Situation(name="runs", options=("--nodelist=c1",), starts=True, reads={"": RUNNING}),
)

JSON = (
    Situation(
        name="runs",
        options=("--nodelist=g4", "--gres=gpu:v100:1"),
        starts=True,
        reads={"": replace(RUNNING, gpus=1, types={"v100": 1}, per_node=1)},
    ),
    Situation(
        name="array",
        options=("--array=0-3%2", "--begin=now+1hour"),
        reads={"_[0-3%2]": replace(WAITING, update="_[0-3]", tasks=4)},
    ),
    waits("pending", replace(WAITING, gpus=2, types={"a100": 2}), "--begin=now+1hour", "--gpus=a100:2"),
    waits(
        "placed",
        replace(
            WAITING,
            gpus=2,
            where=Where(
                max_nodes=1,
                mem_mib=500,
                features="a100",
                prefer="nvlink",
                req_nodes="g1",
                exc_nodes="g3",
                reservation="later",
            ),
        ),
        "--begin=now+1hour",
        "--gpus=2",
        "--nodes=1",
        "--mem=500M",
        "--constraint=a100",
        "--prefer=nvlink",
        "--nodelist=g1",
        "--exclude=g3",
        "--reservation=later",
    ),
    waits(
        "held",
        replace(HELD, limit_s=inf, est_s=1200),
        "--hold",
        "--comment=score: est=20m",
        time="UNLIMITED",
    ),
)

CONTRACT = (
    Situation(name="finished", options=("--nodelist=c1",), command="true", reads={}),
    replace(FILLER, name="running"),
    waits("plain", Reading(gpus=1, types={"a100": 1}, per_node=1), "--gres=gpu:a100:1"),
    waits("held", HELD, "--hold"),
    Situation(
        name="array",
        options=("--array=0-5%2", "--gpus=1"),
        reads={"_[0-5%2]": Reading(update="_[0-5]", tasks=6, gpus=1)},
    ),
    Situation(
        name="het",
        options=("--ntasks=1", ":", "--ntasks=2"),
        reads={"+0": Reading(), "+1": Reading(cpus=2, follows_leader=True)},
    ),
    waits("pinned", Reading(pinned=True), then=("scontrol update JobId={id} Priority=5000",)),
    Situation(name="of-bob", user="bob", reads={"": Reading()}),
)

ERRORS = (
    waits("plain", Reading()),
    Situation(name="of-bob", user="bob", reads={"": Reading()}),
    Situation(name="array", options=("--array=0-3",), reads={"_[0-3]": Reading(update="_[0-3]", tasks=4)}),
)

WEIGHTED = (
    replace(FILLER, name="running"),
    waits("plain", Reading(qos="high"), "--qos=high"),
    waits("pinned", Reading(pinned=True), then=("scontrol update JobId={id} Priority=5000",)),
    waits("scored", Reading(site=1234), then=("scontrol update JobId={id} SiteFactor=1234",)),
)

SITUATIONS: Mapping[str, tuple[Situation, ...]] = {
    "arrays": ARRAYS,
    "arrays-split": (FILLER, *ARRAYS_SPLIT),
    "cluster": (),
    "comments": (FILLER, *COMMENTS, *NAMES),
    "config-basic": WEIGHTED,
    "config-weights": WEIGHTED,
    "contract": CONTRACT,
    "documented": DOCUMENTED_JOBS,
    "errors": (FILLER, *ERRORS),
    "flagged": FLAGGED,
    "gpus": (FILLER, *GPU_FORMS),
    "gpus-running": GPU_RUNS,
    "het": HET_JOBS,
    "inventory": INVENTORY_JOBS,
    "json": JSON,
    "node-states": STATE_JOBS,
    "places": PLACES,
    "queue": (BAD_CONSTRAINTS, FILLER, *QUEUE),
    "requeued": REQUEUED,
}
"""What is prepared for each case, by its name, in the order of submission."""
