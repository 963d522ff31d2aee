"""What the storms share: a cluster of their own for each release, submissions, records, broken services."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.live.harness import Cluster, wait_for
from tests.live.product import OPERATOR, Product
from tests.live.topology import ROOT

POLICY = "mode: enforce\nslurm_factors: replace\nmax_snapshot_age: 1h\n"
EMPTY_HOOK = "function slurm_job_submit() return 0 end\nfunction slurm_job_modify() return 0 end\nreturn 0\n"
# The product's own; a job of this name logs how the submissions since its loading ended.
TALLY_NAME = "storm-tally"
TALLY = f"""
local count = require("slurm_score").counts
local submit = slurm_job_submit
function slurm_job_submit(job_desc, part_list, submit_uid)
  if job_desc.name ~= "{TALLY_NAME}" then return submit(job_desc, part_list, submit_uid) end
  for outcome, number in pairs(count) do slurm.log_info("storm: %s=%d", outcome, number) end
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""
HOOK = (ROOT / "job_submit/job_submit.lua").read_text().removesuffix("return slurm.SUCCESS\n") + TALLY
MODULE = (ROOT / "job_submit/slurm_score.lua").read_text()
HOOK_SOCKET = re.findall(r'^  socket = "(.*)",$', MODULE, re.MULTILINE)[0]
LOG = "/var/log/slurm/slurmctld.log"
SCRIPTS = ("submitter.py", "faulty_service.py", "explainer.py")
END = "/tmp/storm-ends"
STORM = 500
STORM_TIMEOUT_S = 600.0

HET = """\
#!/bin/bash
#SBATCH --ntasks=1 --gres=gpu:v100:1 --time=30
#SBATCH hetjob
#SBATCH --ntasks=2 --time=30
true
"""
HET_SCRIPT = "/tmp/storm-het.sh"
# What users ask for; each submission takes the next one.
FORMS: tuple[tuple[str, ...], ...] = (
    ("--gres=gpu:a100:1", "--wrap=true"),
    ("--gpus=2", "--comment=score: est=20m", "--wrap=true"),
    ("--ntasks=4", "--cpus-per-task=2", "--wrap=true"),
    ("--gpus-per-node=v100:1", "--nodes=1", "--qos=high", "--wrap=true"),
    ("--array=0-3%2", "--gpus=1", "--wrap=true"),
    ("--nice=20", '--comment=run 7 of "many"; don\'t stop', "--wrap=true"),
    ("--hold", "--gres=gpu:a100:2", "--wrap=true"),
    ("--begin=now+2days", "--wrap=true"),
    ("--comment=score: est=banana", "--requeue", "--wrap=true"),
    ("--gpus-per-task=1", "--ntasks=3", "--mem=100", "--wrap=true"),
    (HET_SCRIPT,),
)
ARGVS = [
    [
        "sbatch",
        "--parsable",
        "--output=/dev/null",
        f"--job-name=s{i}",
        f"--time={1 + i}",
        *FORMS[i % len(FORMS)],
    ]
    for i in range(STORM)
]

# Fields of a record that differ between two submissions of the same job: ids, times, where it was sent from,
# and what the scheduler notes when it looks at a waiting job (until then NumNodes is a range).
VARYING = re.compile(
    r"\b(?:(?:Array|Het)?JobId|HetJobIdSet|\w+Time|LastSchedEval|AllocNode:Sid|Scheduler|SchedNodeList)=\S+"
    r"|\bSubmitLine=.*|(?<=\d)-\d+(?= NumCPUs=)"
    r"|\bReason=(?:None|Priority|Resources|BeginTime|ReqNodeNotAvail\S*)(?= )"
)


def id_of(stdout: str) -> int:
    """Returns the job id that sbatch --parsable printed."""
    return int(stdout.split(";")[0])


@dataclass(frozen=True)
class Storm:
    """What a storm of submissions came to."""

    answers: Sequence[tuple[int, int, str, str]]  # index, exit code, stdout, stderr
    pings: int
    silent: Sequence[str]  # what `scontrol ping` said when slurmctld was not up
    seconds: float

    @cached_property
    def ids(self) -> dict[int, int]:
        """The job ids that sbatch returned, with their submission's index."""
        return {id_of(stdout): index for index, code, stdout, _ in self.answers if code == 0}

    @property
    def rejected(self) -> list[str]:
        """What sbatch said of the submissions that it returned no id for."""
        return [stderr for _, code, _, stderr in self.answers if code != 0]

    @property
    def told(self) -> list[str]:
        """What the users read, by index."""
        return [stderr for *_, stderr in self.answers]


@dataclass(frozen=True)
class Record:
    """One job record as scontrol shows it, without what differs between two submissions of the same job."""

    text: str
    priority: int


@dataclass
class Service:
    """What stood in the place of the scoring service; counted when it has ended."""

    counts: dict[str, int] = field(default_factory=dict)


class Lab:
    """A cluster whose nodes one job fills, so that all others stay pending."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.product = Product(cluster)
        self._log_start = 0

    def prepare(self) -> None:
        """Puts the policy, the scripts and the job that fills the nodes in place."""
        self.product.set_policy(POLICY)
        self.cycle()
        self.write_scripts()
        self.product.fill()

    def write_scripts(self) -> None:
        """Puts what runs in the controller's container there."""
        for name in SCRIPTS:
            self.cluster.write_file(f"/tmp/{name}", (Path(__file__).parent / name).read_text())
        self.cluster.write_file(HET_SCRIPT, HET)

    def cycle(self) -> str:
        """Returns what one cycle said, however long its queue."""
        argv = ["slurm-score", "reprioritize", "--once"]
        return self.cluster.exec(argv, user=OPERATOR, timeout_s=STORM_TIMEOUT_S).stdout.strip()

    def load_hook(self, text: str = HOOK) -> None:
        """Has the next submission load the hook anew: with a closed breaker, and nothing logged so far."""
        self.product.replace_hook(text)
        self._log_start = self.log_size()

    def storm(
        self,
        argvs: Sequence[Sequence[str]] = ARGVS,
        count: int = STORM,
        *,
        workers: int = 1,
        until: bool = False,
    ) -> Storm:
        """Returns how so many submissions went; with `until` they go on until `end_storm`."""
        asked = {"argvs": argvs, "count": count, "workers": workers, "until": END if until else None}
        self.cluster.exec(["rm", "-f", END])
        argv = ["python3", "/tmp/submitter.py"]
        done = self.cluster.exec(argv, user="alice", stdin=json.dumps(asked), timeout_s=STORM_TIMEOUT_S)
        told: dict[str, Any] = json.loads(done.stdout)
        return Storm(
            [tuple(answer) for answer in told["answers"]], told["pings"], told["silent"], told["seconds"]
        )

    def end_storm(self) -> None:
        """Lets the storm end that runs beside."""
        self.cluster.exec(["touch", END])

    def submitted(self) -> int:
        """Returns how many jobs slurmctld has taken since it started."""
        return int(re.findall(r"Jobs submitted:\s*(\d+)", self.cluster.exec(["sdiag"]).stdout)[0])

    def wait_for_submissions(self, count: int) -> None:
        """Returns when slurmctld has taken so many jobs since it started."""
        wait_for(lambda: self.submitted() >= count, 60, f"slurmctld has taken {count} jobs since it started")

    def fill_queue(self, count: int) -> None:
        """Returns when so many jobs can start but for the job that fills the nodes."""
        missing = count - len(self.product.sites())
        if missing > 0:
            argvs = [["sbatch", "--output=/dev/null", f"--time={1 + i}", "--wrap=true"] for i in range(STORM)]
            assert self.storm(argvs, missing, workers=8).rejected == []
        wait_for(lambda: len(self.product.sites()) >= count, 60, f"Slurm ranks {count} jobs")

    def clear(self) -> None:
        """Cancels all jobs but the one that fills the nodes."""
        self.cluster.exec(["scancel", "--user=alice", "--state=PENDING"], timeout_s=120)
        wait_for(lambda: not self.product.sites(), 60, "no job is pending")

    def records(self, storm: Storm) -> dict[int, list[Record]]:
        """Returns the records of a storm's jobs by index, those of a het job together."""
        found: dict[int, list[Record]] = {}
        for text in self.cluster.exec(["scontrol", "show", "job"]).stdout.split("\n\n"):
            ids = re.search(r"JobId=(\d+)(?: HetJobId=(\d+))?", text)
            index = storm.ids.get(int(ids[2] or ids[1])) if ids else None
            if index is not None:
                found.setdefault(index, []).append(read_record(text))
        return found

    @cached_property
    def expected(self) -> dict[int, list[Record]]:
        """The records of the same submissions under a hook that does nothing."""
        self.load_hook(EMPTY_HOOK)
        try:
            storm = self.storm(workers=8)
            assert (len(storm.ids), storm.rejected, set(storm.told)) == (STORM, [], {""})
            return self.records(storm)
        finally:
            self.load_hook()

    def tally(self) -> dict[str, int]:
        """Returns how many submissions ended in which way since the hook was loaded, as it counts."""
        self.product.submit(f"--job-name={TALLY_NAME}", "--time=1")
        found = re.findall(r"storm: (\w+)=(\d+)\n", self.log())
        return {outcome: int(number) for outcome, number in found}

    @property
    def calls(self) -> int:
        """How often a storm calls the hook: once for each record."""
        return sum(len(records) for records in self.expected.values())

    def log(self) -> str:
        """Returns what slurmctld has logged since the hook was loaded last."""
        return self.cluster.exec(["tail", f"--bytes=+{self._log_start + 1}", LOG]).stdout

    def log_size(self) -> int:
        """Returns the size of slurmctld's log in bytes."""
        return int(self.cluster.exec(["stat", "--format=%s", LOG]).stdout)

    @contextmanager
    def service(self, fault: str) -> Iterator[Service]:
        """Puts a service with this fault in the place of the real one, for as long as the context lasts."""
        standing_in = Service()
        self.cluster.stop_daemon("service")
        try:
            if fault == "stopped":
                yield standing_in
            else:
                with self.faulty_service(fault) as standing_in:
                    yield standing_in
        finally:
            self.cluster.start_daemon("service")

    @contextmanager
    def faulty_service(self, fault: str, socket: str = HOOK_SOCKET) -> Iterator[Service]:
        """Has a service with this fault listen on a socket, for as long as the context lasts."""
        counts, standing_in = f"/tmp/storm-{fault}.json", Service()
        argv = ["python3", "/tmp/faulty_service.py", fault, socket, counts]
        pid = self.cluster.exec(argv, user="root" if fault == "foreign" else "slurm").stdout.strip()
        try:
            yield standing_in
        finally:
            self.cluster.exec(["kill", pid])
            wait_for(
                lambda: self.cluster.exec(["test", "-s", counts], check=False).returncode == 0, 30, counts
            )
            standing_in.counts.update(json.loads(self.cluster.read_file(counts)))
            self.cluster.exec(["rm", counts])


def read_record(text: str) -> Record:
    """Returns what a record says of the job itself."""
    kept = VARYING.sub("", text)
    priority = re.findall(r"\bPriority=(\d+)", kept)[0]
    return Record("\n".join(re.sub(r"\bPriority=\d+", "", kept).split()), int(priority))
