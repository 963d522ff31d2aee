"""Jobs that wait, and why: holds, pins, limits, partitions, dependencies, arrays, het jobs, requeues."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tests.contract.table import Reading, Records, Situation

HOUR, DAY = 3600.0, 86400.0
PLAIN = Reading()
HELD = Reading(held=True, eligible=False, site=None)
WAITING = Reading(eligible=False, site=None)
RUNNING = Reading(state="RUNNING", eligible=False, site=None)
FOLLOWER = Reading(follows_leader=True)


def waits(
    name: str,
    reading: Reading,
    *options: str,
    time: str | None = "60",
    then: tuple[str, ...] = (),
    on: Mapping[str, Records] | None = None,
) -> Situation:
    """Return a situation of one pending job record."""
    return Situation(name=name, options=options, reads={"": reading}, time=time, then=then, on=on or {})


def limit(seconds: float) -> Reading:
    """Return what must be read of a plain job with this time limit."""
    return Reading(limit_s=seconds)


BAD_CONSTRAINTS = waits(
    "held-by-constraints",
    HELD,
    "--constraint=nvlink",
    "--hold",
    then=(
        "scontrol update NodeName=g1 AvailableFeatures=a100 ActiveFeatures=a100",
        "scontrol release {id}",
    ),
)
"""The scheduler holds it by itself, if it looks at it before a job in front of it is blocked."""

HOLDS_AND_PINS = (
    waits("plain", PLAIN),
    Situation(name="of-bob", user="bob", reads={"": PLAIN}),
    waits("held-by-user", HELD, "--hold"),
    waits("held-by-admin", HELD, then=("scontrol hold {id}",)),
    waits("pinned", Reading(pinned=True), then=("scontrol update JobId={id} Priority=5000",)),
    waits(
        "pinned-in-two-partitions",
        Reading(pinned=True, partitions=("main", "short"), limit_s=1800),
        "--partition=main,short",
        time="30",
        then=("scontrol update JobId={id} Priority=4000",),
    ),
    waits("released", PLAIN, "--hold", then=("scontrol release {id}",)),
    waits("scored", Reading(site=1234), then=("scontrol update JobId={id} SiteFactor=1234",)),
    waits(
        "scored-most", Reading(site=2147483645), then=("scontrol update JobId={id} SiteFactor=2147483645",)
    ),
    waits("scored-below-zero", Reading(site=-7), then=("scontrol update JobId={id} SiteFactor=-7",)),
    waits("scored-held", HELD, "--hold", then=("scontrol update JobId={id} SiteFactor=8",)),
    waits(
        "scored-in-two-partitions",
        Reading(site=9, partitions=("short", "main"), limit_s=1800),
        "--partition=short,main",
        time="30",
        then=("scontrol update JobId={id} SiteFactor=9",),
    ),
    waits("nice", PLAIN, "--nice=500"),
    waits("qos-high", Reading(qos="high"), "--qos=high"),
    waits("qos-low", Reading(qos="low"), "--qos=low"),
)

LIMITS = (
    waits("limit-of-the-partition", limit(7 * DAY), time=None),
    waits("limit-of-another-partition", Reading(partitions=("short",), limit_s=HOUR), "-pshort", time=None),
    waits("limit-unlimited", limit(math.inf), time="UNLIMITED"),
    waits("limit-zero", limit(math.inf), time="0"),
    waits("limit-minute", limit(60), time="1"),
    waits("limit-seconds", limit(60), time="0:30"),
    waits("limit-half-hour", limit(1800), time="30:00"),
    waits("limit-odd", limit(2 * DAY + 12 * HOUR + 31 * 60), time="2-12:30:45"),
    waits("limit-days-hours", limit(3 * DAY + 2 * HOUR), time="3-2"),
    waits("limit-beyond-the-partition", limit(30 * DAY), time="30-0"),
    waits("limit-minimum", limit(HOUR), "--time-min=10"),
)

REASONS = (
    waits("two-partitions", Reading(partitions=("main", "short"), limit_s=1800), "-pmain,short", time="30"),
    waits("begins-later", WAITING, "--begin=now+1hour"),
    waits("began-long-ago", PLAIN, "--begin=2020-01-01"),
    waits("depends", WAITING, "--dependency=afterok:{filler}"),
    waits("depends-on-either", WAITING, "--dependency=afternotok:{filler}?afterok:{filler}"),
    waits("singleton", WAITING, "--dependency=singleton", "--job-name=filler"),
    waits("license", PLAIN, "--licenses=matlab:2"),
    waits("reservation", WAITING, "--reservation=later"),
    waits("deadline", PLAIN, "--deadline=now+2hours"),
)

QUEUE = (*HOLDS_AND_PINS, *LIMITS, *REASONS)

ARRAYS = (
    Situation(
        name="array-running-partly",
        options=("--array=0-5", "--nodelist=g1", "--cpus-per-task=4"),
        reads={
            "_0": replace(RUNNING, update="_0", cpus=4),
            "_1": replace(RUNNING, update="_1", cpus=4),
            "_[2-5]": Reading(update="_[2-5]", tasks=4, cpus=4),
        },
        starts=True,
    ),
    Situation(
        name="array-throttled",
        options=("--array=1-20:3%2", "--nodelist=g2"),
        reads={
            "_1": replace(RUNNING, update="_1"),
            "_4": replace(RUNNING, update="_4"),
            "_[7,10,13,16,19%2]": replace(WAITING, update="_[7,10,13,16,19]", tasks=5),
        },
        starts=True,
    ),
    Situation(
        name="array-whole",
        options=("--array=0-9", "--nodelist=g1", "--exclusive"),
        reads={"_[0-9]": Reading(update="_[0-9]", tasks=10)},
    ),
    Situation(
        name="array-stepped",
        options=("--array=1-20:3%1", "--nodelist=g1", "--exclusive"),
        reads={"_[1-19:3%1]": Reading(update="_[1-19:3]", tasks=7)},
    ),
    Situation(
        name="array-long-list",
        options=(
            "--array=1,3,5-7,100,200,300,400,500,600,700,800,900,1000,1100,1200,1300,1400",
            "--nodelist=g1",
            "--exclusive",
        ),
        reads={
            "_[1,3,5-7,100,200,300,400,500,600,700,800,900,1000,1100,1200,1300,1400]": Reading(
                update="_[1,3,5-7,100,200,300,400,500,600,700,800,900,1000,1100,1200,1300,1400]", tasks=19
            )
        },
    ),
    Situation(
        name="array-of-one",
        options=("--array=7", "--nodelist=g1", "--exclusive"),
        reads={"_[7]": Reading(update="_[7]")},
    ),
    Situation(
        name="array-held",
        options=("--array=0-3", "--hold"),
        reads={"_[0-3]": replace(HELD, update="_[0-3]", tasks=4)},
    ),
    Situation(
        name="array-scored",
        options=("--array=0-3", "--nodelist=g1", "--exclusive"),
        reads={"_[0-3]": Reading(update="_[0-3]", tasks=4, site=77)},
        then=("scontrol update JobId={id}_[0-3] SiteFactor=77",),
    ),
)

ARRAYS_SPLIT = (
    Situation(
        name="array-with-a-short-task",
        options=("--array=0-9%3",),
        then=("scontrol update JobId={id}_7 TimeLimit=30",),
    ),
    Situation(
        name="array-with-a-pinned-task",
        options=("--array=0-9",),
        then=("scontrol update JobId={id}_5 Priority=77",),
    ),
    Situation(
        name="array-with-a-held-task",
        options=("--array=0-5",),
        then=("scontrol hold {id}_3",),
    ),
)
"""squeue merges the pending tasks of an array on one line, whatever they differ in, see README.md."""

HET_JOBS = (
    Situation(
        name="het-running",
        options=("--nodelist=c1", ":", "--nodelist=g4", "--gres=gpu:v100:1"),
        reads={
            "+0": RUNNING,
            "+1": replace(RUNNING, gpus=1, types={"v100": 1}, per_node=1, follows_leader=True),
        },
    ),
    Situation(
        name="het-pending",
        options=("--nodes=5", "--exclusive", ":", "--time=30", "--ntasks=2", ":", "-N2", "--gres=gpu:a100:2"),
        reads={
            "+0": Reading(nodes=5, cpus=5),
            "+1": replace(FOLLOWER, limit_s=1800, cpus=2),
            "+2": replace(FOLLOWER, limit_s=1800, nodes=2, cpus=2, gpus=4, types={"a100": 4}, per_node=2),
        },
    ),
    Situation(
        name="het-held",
        options=("--hold", ":", "--ntasks=2"),
        reads={"+0": HELD, "+1": replace(HELD, cpus=2, follows_leader=True)},
    ),
)
