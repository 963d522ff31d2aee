"""The product on a container cluster, as its users and its admin handle it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slurm_score.errors import PolicyError
from slurm_score.policy_yaml import parse_policy

from .harness import Cluster, ExecError, Result, wait_for

POLICY_PATH = "/etc/slurm/slurm-score.yaml"
HOOK_PATH = "/etc/slurm/job_submit.lua"
SLURMCTLD_LOG = "/var/log/slurm/slurmctld.log"
OPERATOR = "scoreop"
ASK_HEALTH = """
import http.client, socket
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect("/run/slurm-score/slurm-score.sock")
connection.request("GET", "/healthz")
print(connection.getresponse().read().decode())
"""


@dataclass(frozen=True)
class Product:
    """A cluster that runs the service; cycles are run one by one by the tests.

    host is the controller on which everything is asked and done.
    """

    cluster: Cluster
    host: str = "ctl"

    def exec(self, argv: Sequence[str], **options: Any) -> Result:
        """Returns what a command on the host returned; the options are those of Cluster.exec."""
        return self.cluster.exec(argv, node=self.host, **options)

    def set_policy(self, text: str) -> None:
        """Replaces the policy file, as an admin's editor does, and returns when the service has seen it."""
        self.cluster.write_file(POLICY_PATH, text, node=self.host)
        try:
            wanted = {"policy": parse_policy(text, POLICY_PATH).hash, "policy_error": ""}
        except PolicyError as error:
            wanted = {"policy_error": str(error)}
        if self.health():
            wait_for(lambda: wanted.items() <= self.health().items(), 30, f"the service has seen {wanted}")

    def health(self) -> dict[str, Any]:
        """Returns what the service says of itself; nothing where none runs."""
        result = self.exec(["python3", "-c", ASK_HEALTH], check=False)
        if "Refused" in result.stderr or "FileNotFound" in result.stderr:
            return {}
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    def replace_hook(self, text: str) -> None:
        """Replaces job_submit.lua so that the next submission runs it.

        slurmctld loads a script again only if its time stamp, in whole seconds, is later than that of
        the script that it loaded last.
        """
        loaded_s = self.now_s()
        wait_for(lambda: self.now_s() > loaded_s, 10, "the clock's next second")
        self.cluster.write_file(HOOK_PATH, text, node=self.host)

    def stop_slurmctld(self) -> None:
        """Returns when slurmctld is gone; 22.05's now and then stays after it has saved everything."""
        try:
            self.cluster.stop_daemon("slurmctld", node=self.host)
        except ExecError:
            self.cluster.stop_daemon("slurmctld", "KILL", node=self.host)

    def hook_failures(self) -> int:
        """Returns how many lines of slurmctld's log say that the hook got no score."""
        return self.cluster.read_file(SLURMCTLD_LOG, node=self.host).count("slurm_score: no score:")

    def submit(self, *options: str, user: str = "alice", command: str = "sleep 1000") -> int:
        """Returns the id of a job that the user submits."""
        result = self.sbatch(*options, user=user, command=command)
        return int(result.stdout.split(";")[0])

    def sbatch(self, *options: str, user: str = "alice", command: str = "sleep 1000") -> Result:
        """Returns what sbatch said."""
        argv = ["sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={command}"]
        return self.exec(argv, user=user)

    def cycle(self, user: str = OPERATOR, *, check: bool = True) -> Result:
        """Runs one cycle of the reprioritizer and returns what it said."""
        return self.exec(["slurm-score", "reprioritize", "--once"], user=user, check=check)

    def sites(self) -> dict[int, int]:
        """Returns SiteFactor by job id, for the jobs that sprio lists."""
        rows = self.exec(["sprio", "--noheader", "--format=%i %S"]).stdout.splitlines()
        return {int(row.split()[0]): int(row.split()[1]) for row in rows}

    def order(self) -> list[str]:
        """Returns the names of the jobs that Slurm ranks, in the order of Slurm's own priority."""
        rows = self.exec(["sprio", "--noheader", "--format=%i %Y"]).stdout.splitlines()
        priorities = {int(row.split()[0]): int(row.split()[1]) for row in rows}
        names = self.names()
        return [names[job_id] for job_id in sorted(priorities, key=lambda i: -priorities[i])]

    def names(self) -> dict[int, str]:
        """Returns the names of the pending jobs by id."""
        argv = ["squeue", "--noheader", "--states=PENDING", "--Format=JobID:|,Name:"]
        rows = self.exec(argv).stdout.splitlines()
        return {int(row.split("|")[0]): row.split("|")[1].strip() for row in rows}

    def show_job(self, job_id: int) -> dict[str, str]:
        """Returns the fields that scontrol shows of a job."""
        text = self.exec(["scontrol", "--oneliner", "show", "job", str(job_id)]).stdout
        return _fields(text)

    def show_jobs(self) -> dict[int, dict[str, str]]:
        """Returns the fields that scontrol shows of all jobs, by job id."""
        lines = self.exec(["scontrol", "--oneliner", "show", "job"]).stdout.splitlines()
        return {int(fields["JobId"]): fields for fields in map(_fields, lines)}

    def record_count(self) -> int:
        """Returns how many job records slurmctld has, finished ones included."""
        return len(self.exec(["scontrol", "--oneliner", "show", "job"]).stdout.splitlines())

    def update_rpcs(self) -> int:
        """Returns how many REQUEST_UPDATE_JOB slurmctld has answered."""
        text = self.exec(["sdiag"]).stdout
        match = re.search(r"REQUEST_UPDATE_JOB\s+\(\s*\d+\)\s+count:(\d+)", text)
        return int(match[1]) if match else 0

    def explain(self, job_id: int, user: str = "alice") -> dict[str, Any]:
        """Returns a job's explanation, its terms by name under `terms`."""
        argv = ["slurm-score", "explain", "--json", str(job_id)]
        answer: dict[str, Any] = json.loads(self.exec(argv, user=user).stdout)
        answer["terms"] = {term["name"]: term for term in answer["terms"]}
        return answer

    def fill(self, time: str = "60") -> int:
        """Returns a job that holds every node and GPU, once it runs."""
        options = ("--nodes=3", "--gres=gpu:4", "--exclusive", f"--time={time}", "--job-name=filler")
        job_id = self.submit(*options)
        self.wait_for_state(job_id, "RUNNING")
        return job_id

    def wait_for_state(self, job_id: int, state: str) -> None:
        """Returns when the job is in the state."""
        wait_for(
            lambda: self.show_job(job_id)["JobState"] == state,
            60,
            lambda: f"job {job_id} is {state}, {self.show_job(job_id)['JobState']}",
        )

    def now_s(self) -> int:
        """Returns the controller's clock in s since the epoch."""
        return int(self.exec(["date", "+%s"]).stdout)


def _fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S*)", line))
