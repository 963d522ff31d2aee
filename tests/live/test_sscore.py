"""sscore beside sprio on real Slurm: same jobs, same filters, same sort, same fields; and PrivateData.

One queue a release, on full nodes, under weights of Slurm's own and with a second partition. What differs on
purpose stands in slurm_score/report/README.md and is tested here as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from .harness import Cluster, wait_for
from .product import Product

SLURM_CONF = "/etc/slurm/slurm.conf"
POLICY = "mode: enforce\nslurm_factors: complement\nupdates: {min_age: 0s}\n"
WEIGHTS = {"Age": 1000, "JobSize": 300, "QOS": 500, "Partition": 200, "Fairshare": 100}
SIDE = "PartitionName=side Nodes=g3 Default=NO MaxTime=7-0 State=UP PriorityJobFactor=10\n"


@dataclass(frozen=True)
class Queue:
    """The product and its queue; `jobs` are the ids by name, `leader` is that of each het component."""

    product: Product
    jobs: dict[str, int]
    leader: dict[int, int]

    def run(self, command: str, *argv: str, user: str = "alice") -> list[str]:
        """Returns the lines that sprio or sscore prints."""
        return self.product.exec([command, *argv], user=user).stdout.splitlines()

    def ids(self, command: str, *argv: str, user: str = "alice") -> list[int]:
        """Returns the ids of the listed jobs in order, each once: an array's, a het job's leader's."""
        numbers = (int(_number(line)) for line in self.run(command, "-h", *argv, user=user))
        return list(dict.fromkeys(self.leader.get(number, number) for number in numbers))


def _number(line: str) -> str:
    found = re.match(r"\s*(\d+)", line)
    assert found, line
    return found[1]


@pytest.fixture(scope="module")
def queue(cluster: Cluster) -> Iterator[Queue]:
    """A queue of every kind of job, held and dependent ones included, after a cycle; removed afterwards."""
    product, conf = Product(cluster), cluster.read_file(SLURM_CONF)
    cluster.clear_jobs()
    weights = {f"PriorityWeight{name}={value}" for name, value in WEIGHTS.items()}
    kept = [line for line in conf.splitlines() if not line.startswith("PriorityWeight")]
    _configure(cluster, "\n".join([*kept, *sorted(weights), SIDE]))
    product.set_policy(POLICY)
    product.cycle()
    try:
        yield _filled(product)
    finally:
        cluster.clear_jobs()
        _configure(cluster, conf)


def _configure(cluster: Cluster, text: str) -> None:
    cluster.write_file(SLURM_CONF, text)
    cluster.exec(["scontrol", "reconfigure"])
    cluster.clear_jobs()


def _filled(product: Product) -> Queue:
    filler = product.fill()
    submissions = {
        "short": ("alice", "--time=10"),
        "urgent": ("alice", "--time=600", "--qos=high"),
        "aside": ("alice", "--time=60", "--partition=side", "--nice=7"),
        "gpu": ("alice", "--time=30", "--gres=gpu:a100:1"),
        "low": ("bob", "--time=20", "--qos=low"),
        "array": ("bob", "--time=20", "--array=1-5"),
        "both": ("bob", "--time=40", "--partition=main,side"),
        "het": ("bob", "--time=10", "--ntasks=1", ":", "--ntasks=2"),
        "held": ("alice", "--time=10", "--hold"),
        "waits": ("alice", "--time=10", f"--dependency=afterok:{filler}"),
        "later": ("bob", "--time=10", "--begin=now+1hour"),
    }
    jobs = {
        name: product.submit(f"--job-name={name}", *options, user=user)
        for name, (user, *options) in submissions.items()
    }
    could_start = set(jobs.values()) - {jobs["held"], jobs["waits"], jobs["later"]}
    wait_for(lambda: could_start <= set(product.sites()), 60, "Slurm ranks the jobs that could start")
    product.cycle()
    queue = Queue(product, jobs, {jobs["het"] + 1: jobs["het"]})
    wait_for(lambda: set(queue.ids("sscore")) == could_start, 30, "the service has the new snapshot")
    return queue


FILTERS = {
    "none": "",
    "header": "-h",
    "users": "-u alice",
    "two users": "--user=alice,bob",
    "uid": "-u 2002",
    "partition": "-p side",
    "two partitions": "--partition=main,side",
    "both filters": "-p side -u bob",
    "long": "-l",
    "norm": "-n",
    "long norm": "-l -n",
    "one": "-j {urgent}",
    "attached": "-j{urgent}",
    "array": "--jobs={array}",
    "het": "-j {het}",
    "partitions": "-j {both}",
    "job and user": "-j {low} -u bob",
    "all": "-j -u alice",
}


@pytest.mark.parametrize("name", FILTERS)
def test_the_same_jobs_are_listed(queue: Queue, name: str) -> None:
    """sprio's job set is sscore's: pending, not held, eligible; and each filter leaves the same."""
    argv = FILTERS[name].format(**queue.jobs).split()
    expected = queue.ids("sprio", *argv)
    assert expected
    assert sorted(queue.ids("sscore", *argv)) == sorted(expected)


@pytest.mark.parametrize(
    "keys", ["i", "-i", "+i", "u,i", "-u,i", "r,-i", "-r,i", "-Y,i", "Y,i", "N,i", "-Q,-i"]
)
def test_jobs_are_sorted_alike(queue: Queue, keys: str) -> None:
    """+ or nothing ascends, - descends, the first key counts most; but for the jobs with several rows."""
    several = {queue.jobs["both"], queue.jobs["het"]}
    order = {
        command: [job for job in queue.ids(command, "-S", keys) if job not in several]
        for command in ("sprio", "sscore")
    }
    assert len(order["sprio"]) == 6
    assert order["sscore"] == order["sprio"]


LETTERS = "ruNpPqQjJfFbBSyYaA"
ROUNDED = dict.fromkeys("pqjfba", 0.006) | {"y": 1e-9, "A": 1, "Y": 1}
"""Fields that needn't be equal: shares are known by their whole points, an age grows meanwhile."""


@pytest.mark.parametrize("letter", LETTERS)
def test_a_letter_shows_what_it_shows_in_sprio(queue: Queue, letter: str) -> None:
    """Header and value, job by job; of SITE too, as Slurm holds it after the cycle."""
    argv = ["-u", "alice", "-S", "i", "-o", f"%i|%{letter}"]
    shown = {name: [line.split("|") for line in queue.run(name, *argv)] for name in ("sprio", "sscore")}
    (theirs, *expected), (ours, *rows) = shown["sprio"], shown["sscore"]
    assert ours == theirs
    if letter in ROUNDED:
        near = [[job, pytest.approx(float(value), abs=ROUNDED[letter])] for job, value in expected]
        assert [[job, float(value)] for job, value in rows] == near
    else:
        assert rows == expected


def test_account_and_qos_are_shown_as_in_sprio(queue: Queue, release: str) -> None:
    """%o and %n, which sprio has since 23.02."""
    for name, expected in {"urgent": "research high", "low": "teaching low"}.items():
        argv = ["-h", "-j", str(queue.jobs[name]), "-o", "%o %n"]
        assert queue.run("sscore", *argv) == [expected]
        if release != "22.05":
            assert queue.run("sprio", *argv) == [expected]


@pytest.mark.parametrize(
    "shown", ["<%.12i>", "<%12i>", "<%.9r>", "<%9r>x", "%.5u:%8u|", "%.9Y|%10N|", "a%ib%uc"]
)
def test_widths_are_those_of_sprio(queue: Queue, shown: str) -> None:
    """`.` puts a field on the right, a width fills it up, text between the fields stays."""
    argv = ["-h", "-j", str(queue.jobs["aside"]), "-o", shown]
    assert queue.run("sscore", *argv) == [line.rstrip() for line in queue.run("sprio", *argv)]


def test_what_is_too_narrow_is_marked(queue: Queue) -> None:
    """On purpose: sprio cuts names without a mark, and even numbers."""
    argv = ["-h", "-j", str(queue.jobs["aside"]), "-o", "%.4u|%.3Y|%.2c"]
    (ours,), (theirs,) = (queue.run(name, *argv) for name in ("sscore", "sprio"))
    user, priority, cluster = ours.split("|")
    assert (user, cluster) == ("ali+", "l+")
    assert theirs.startswith(f"alic|{priority[:3]}|")


def test_slurms_weights_are_shown_as_in_sprio(queue: Queue) -> None:
    """-w with sprio's letters; without, those of the policy."""
    argv = ["-h", "-w", "-o", "%i %A %B %F %J %P %Q %S"]
    assert queue.run("sscore", *argv) == [line.rstrip() for line in queue.run("sprio", *argv)]
    assert queue.run("sscore", "-w", "-P") == [
        "JOBID|PARTITION|USER|SCORE|RANK|WAIT|REMAIN|SIZE|QOS|GRESFIT",
        "Weights|||1600||350|450|200|500|100",
    ]


def test_an_array_and_a_het_job_are_one_row_with_squeues_id(queue: Queue) -> None:
    """On purpose: sprio prints an array's bare number, and each component and each partition."""
    jobs = queue.jobs
    argv = ["-h", "-j", f"{jobs['array']},{jobs['het']},{jobs['both']}", "-S", "i", "-o", "%i %r"]
    assert queue.run("sscore", *argv) == [
        f"{jobs['array']}_[1-5] main",
        f"{jobs['both']} main,side",
        f"{jobs['het']}+[0-1] main",
    ]
    for task in (f"{jobs['array']}_3", f"{jobs['array']}_[1-5]"):
        assert queue.ids("sscore", "-j", task) == [jobs["array"]]
    assert queue.ids("sscore", "-j", f"{jobs['het']}+1") == [jobs["het"]]


def test_why_a_job_is_not_listed_is_told(queue: Queue) -> None:
    """On purpose: sprio is silent."""
    told = queue.product.exec(["sscore", "-j", f"{queue.jobs['held']},99999"], user="alice")
    assert told.stderr.splitlines() == [
        f"sscore: job {queue.jobs['held']}: its user holds it: JobHeldUser",
        "sscore: job 99999: not pending in the last snapshot",
    ]


@pytest.mark.parametrize("argv", [["-l", "-o", "%i"], ["-o", "%i %C"], ["--nonsense"]])
def test_what_sprio_refuses_is_refused(queue: Queue, argv: list[str]) -> None:
    """Not with the same words or exit codes, but not in silence; of %C sprio only complains."""
    told = {
        name: queue.product.exec([name, *argv], user="alice", check=False) for name in ("sprio", "sscore")
    }
    assert told["sscore"].returncode == 2
    assert told["sscore"].stdout == ""
    assert told["sprio"].returncode != 0 or told["sprio"].stderr


def test_verbose_explains_in_explains_words(queue: Queue) -> None:
    """-j ID -v is `slurm-score explain ID`, but for the second in which it was asked."""
    job = str(queue.jobs["gpu"])
    *told, age = queue.run("sscore", "-j", job, "-v")
    *explained, _ = queue.run("slurm-score", "explain", job)
    assert told == explained
    assert age.endswith(" ago.")


def test_private_jobs_are_hidden_from_others_and_not_from_operators(queue: Queue) -> None:
    """PrivateData=jobs: alice sees her jobs, with ranks among all; the service keeps it, not the command."""
    cluster, product = queue.product.cluster, queue.product
    conf = cluster.read_file(SLURM_CONF)
    mine = {queue.jobs[name] for name in ("short", "urgent", "aside", "gpu")}
    everyone = set(queue.ids("sscore"))
    cluster.write_file(SLURM_CONF, f"{conf}PrivateData=jobs\n")
    try:
        cluster.exec(["scontrol", "reconfigure"])
        wait_for(lambda: set(queue.ids("sprio")) == mine, 60, "sprio hides the others' jobs")
        product.cycle()
        wait_for(lambda: set(queue.ids("sscore")) == mine, 30, "sscore hides the others' jobs")
        for user in ("root", "scoreop"):
            assert set(queue.ids("sprio", user=user)) == set(queue.ids("sscore", user=user)) == everyone
        told = json.loads("\n".join(queue.run("sscore", "--json")))
        assert {job["user"] for job in told["jobs"]} == {"alice"}
        assert max(job["of"] for job in told["jobs"]) > len(told["jobs"])
        hidden = product.exec(["slurm-score", "explain", str(queue.jobs["low"])], user="alice", check=False)
        assert (hidden.returncode, hidden.stdout) == (1, "")
        assert hidden.stderr == f"slurm-score: job {queue.jobs['low']}: not pending in the last snapshot\n"
        assert queue.run("sscore", "-h", "-u", "bob", "-A", "teaching") == []
    finally:
        cluster.write_file(SLURM_CONF, conf)
        cluster.exec(["scontrol", "reconfigure"])
        product.cycle()
        wait_for(lambda: set(queue.ids("sscore")) == everyone, 30, "sscore shows everybody's jobs again")
