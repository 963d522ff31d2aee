"""10,000 comments that try to break something: taken as by Slurm alone, stored as they are, shown safely."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterator

import pytest

from tests.live.harness import Cluster

from .storm.comments import CANARY, hostile_comments
from .storm.lab import EMPTY_HOOK, HOOK, LOG, POLICY, Lab, Storm

pytest_plugins = ["tests.live.storm.fixtures"]

COUNT, SEED = 10_000, 20_261_130
ALONE = 1_000  # so many of them are submitted without our hook as well
MAX_COMMENT = 1024  # bytes, all releases; Slurm refuses more, with or without us
TOO_LONG = (
    "sbatch: error: Batch job submission failed: Pathname of a file, directory or other parameter too long\n"
)
ADVICE = re.compile(
    "sbatch: (error: )?slurm-score: .*\n"
)  # the hook's words, also before a refusal of Slurm's
EXPLAIN_EVERY = 20
LOGS = {"slurmctld": LOG, "service": "/var/log/slurm-score/service.log"}
LOG_LINE = {
    "slurmctld": re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+\] "),
    "service": re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ "),
}
# Asks of every comment, however busy the machine is: a resting hook would let most of them pass unread.
PATIENT_HOOK = HOOK.replace(
    "module.setup({})", "module.setup({ deadline_s = 0.05, breaker_failures = 1000 })"
)
SEPARATOR, END = "\x1f", "\x1e\x1f\x1e"
COMMENTS = hostile_comments(COUNT, SEED)
TOO_LONG_ONES = {i for i, comment in enumerate(COMMENTS) if len(os.fsencode(comment)) > MAX_COMMENT}


def submissions(lab: Lab, count: int) -> Storm:
    """Returns how the first so many comments were taken."""
    argv = ["sbatch", "--parsable", "--output=/dev/null"]
    argvs = [
        [*argv, f"--time={1 + i % 900}", f"--comment={COMMENTS[i]}", "--wrap=true"] for i in range(count)
    ]
    return lab.storm(argvs, count, workers=8)


def read_bytes(cluster: Cluster, script: str, *arguments: str, user: str = "root") -> bytes:
    """Returns what a shell script prints on both outputs, byte for byte."""
    argv = ["bash", "-c", f"set -o pipefail; ({script}) 2>&1 | base64 --wrap=0", "bash", *arguments]
    return base64.b64decode(cluster.exec(argv, user=user, timeout_s=120).stdout)


def stored_comments(lab: Lab, storm: Storm) -> dict[int, bytes]:
    """Returns the comments that slurmctld holds, by the submission's index."""
    fields = f"JobID:{SEPARATOR},Comment:{END}"
    raw = read_bytes(lab.cluster, 'squeue --noheader --states=PENDING --Format="$1"', fields)
    rows = [row.split(SEPARATOR.encode(), 1) for row in raw.split(f"{END}\n".encode())[:-1]]
    return {storm.ids[int(job_id)]: comment for job_id, comment in rows if int(job_id) in storm.ids}


def unprintable(text: bytes) -> list[str]:
    """Returns the lines that could steer a terminal or aren't UTF-8."""
    return [line for line in text.decode("utf-8", "surrogateescape").split("\n") if not line.isprintable()]


@pytest.fixture(scope="module")
def sizes(lab: Lab) -> dict[str, int]:
    """The sizes of the logs before any of it."""
    return {name: int(lab.cluster.exec(["stat", "--format=%s", path]).stdout) for name, path in LOGS.items()}


@pytest.fixture(scope="module")
def storm(lab: Lab, sizes: dict[str, int]) -> Iterator[Storm]:
    """The comments submitted through our hook; cancelled afterwards."""
    assert PATIENT_HOOK != HOOK
    lab.load_hook(PATIENT_HOOK)
    yield submissions(lab, COUNT)
    lab.clear()


def test_slurm_alone_refuses_only_what_is_too_long(lab: Lab) -> None:
    """What our hook is measured by: 1,024 bytes are taken, whatever they are, and stored unchanged."""
    lab.load_hook(EMPTY_HOOK)
    storm = submissions(lab, ALONE)
    assert {index for index, code, *_ in storm.answers if code} == {i for i in TOO_LONG_ONES if i < ALONE}
    assert set(storm.rejected) == {TOO_LONG}
    assert stored_comments(lab, storm) == {
        i: os.fsencode(COMMENTS[i]) for i in range(ALONE) if i not in TOO_LONG_ONES
    }
    lab.clear()


def test_no_comment_is_refused_or_changed_because_of_us(
    lab: Lab, storm: Storm, say: Callable[[str], None]
) -> None:
    """The same with our hook, for all of them; slurmctld answers throughout."""
    tally = lab.tally()
    say(f"{COUNT} submissions in {storm.seconds:.1f} s, {storm.pings} pings, {tally}")
    assert storm.silent == []
    assert {index for index, code, *_ in storm.answers if code} == TOO_LONG_ONES
    assert {ADVICE.sub("", said) for said in storm.rejected} == {TOO_LONG}
    stored = stored_comments(lab, storm)
    assert stored.keys() == set(range(COUNT)) - TOO_LONG_ONES
    assert [i for i, comment in stored.items() if comment != os.fsencode(COMMENTS[i])] == []
    assert tally["scored"] > 0
    assert (tally["refused"], tally["resting"]) == (0, 0)


def test_no_comment_is_run(lab: Lab, storm: Storm) -> None:
    """No node has the file that most of the comments try to make."""
    assert storm.ids
    lab.cycle()
    for node in lab.cluster.nodes:
        assert lab.cluster.exec(["test", "-e", CANARY], node=node, check=False).returncode == 1


def test_users_are_told_in_printable_words(storm: Storm) -> None:
    """Advice quotes what it ignores, escaped."""
    told = "".join(storm.told)
    assert ADVICE.search(told)
    assert unprintable(told.encode("utf-8", "surrogateescape")) == []
    assert set(ADVICE.sub("", told).splitlines(keepends=True)) == {TOO_LONG}


@pytest.mark.parametrize("name", LOGS)
def test_no_comment_forges_a_line_of_a_log(lab: Lab, storm: Storm, sizes: dict[str, int], name: str) -> None:
    """Every line begins with a time, and none holds anything that steers a terminal."""
    assert storm.ids
    text = read_bytes(lab.cluster, 'tail --bytes=+$(($1 + 1)) "$2"', str(sizes[name]), LOGS[name])
    assert unprintable(text) == []
    lines = text.decode().splitlines()
    assert [line for line in lines if not LOG_LINE[name].match(line) or "forged" in line] == []


def test_reports_show_comments_escaped_or_not_at_all(lab: Lab, storm: Storm) -> None:
    """A cycle's words, sscore and explain, as text and as JSON."""
    lab.product.set_policy(POLICY.replace("enforce", "observe"))
    cycle = read_bytes(lab.cluster, "slurm-score reprioritize --once", user="scoreop")
    lab.product.set_policy(POLICY)
    assert unprintable(cycle) == []
    pending = re.findall(r"observe: (\d+) pending", cycle.decode())[0]
    assert int(pending) >= len(storm.ids)
    jobs = " ".join(str(job_id) for job_id in list(storm.ids)[::EXPLAIN_EVERY])
    explain = '/opt/slurm-score/bin/python /tmp/explainer.py "${@:2}" <<<"$1"'
    for script in ("sscore", "sscore --json", explain, f"{explain} --json"):
        shown = read_bytes(lab.cluster, script, jobs, user="alice")
        assert len(shown.splitlines()) > COUNT / EXPLAIN_EVERY
        assert unprintable(shown) == []
