"""sscore: each of its options, before a running service."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_score import __version__
from slurm_score.cli import main
from slurm_score.cli.sscore import main as sscore
from slurm_score.contention import gpu_pressure
from slurm_score.policy import Policy
from slurm_score.service.background import running_service
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot, write_snapshot
from slurm_score.users import user_name
from tests.unit.builders import NOW, make_cluster, make_gpu_job, make_job

HASH = Policy().hash
ME = user_name(os.geteuid())
JOBS = (
    make_job(7, user=ME),
    make_job(8, qos="high", user="bob", account="chem"),
    make_job(9, priority=0, reason="JobHeldUser", site_factor=None),
    make_gpu_job(10, "gpu:a100:1", label="10_[0-4%2]", update_id="10_[0-4]", tasks="0-4"),
    make_job(20, label="20+0", update_id="20", het_job_id=20, user="bob", qos="low"),
    make_gpu_job(21, "gpu:1", label="20+1", update_id="20", het_job_id=20, user="bob", qos="low"),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a running service: policy.yaml, snapshot.jsonl and the socket score.sock."""
    folder = tmp_path_factory.mktemp("sscore")
    cluster = make_cluster()
    known = replace(cluster, config=replace(cluster.config, priority_weights={"age": 1000}))
    snapshot = Snapshot(policy=Policy(), cluster=known, pressure=gpu_pressure(JOBS, known), jobs=JOBS)
    write_snapshot(folder / "snapshot.jsonl", snapshot)
    (folder / "policy.yaml").write_text("mode: observe\n", encoding="utf-8")
    state = State(folder / "policy.yaml", folder / "snapshot.jsonl", lambda: NOW)
    with running_service(state, Addresses(hook=folder / "hook.sock", readers=folder / "score.sock")):
        yield folder


@pytest.fixture(autouse=True)
def environment(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user's shell may hold: the socket, and no format."""
    monkeypatch.setenv("SLURM_SCORE_SOCKET", str(files / "score.sock"))
    monkeypatch.delenv("SSCORE_FORMAT", raising=False)


def run(*argv: str, **env: str) -> Result:
    """Return what sscore did."""
    return CliRunner(env=env).invoke(sscore, argv)


def ids(*argv: str) -> list[str]:
    """Return the ids of the jobs that sscore lists."""
    result = run("-h", *argv)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split()[0] for line in result.stdout.splitlines()]


def test_without_options_it_prints_the_jobs_that_could_start_best_first() -> None:
    """A held job is left out, as sprio does; an array is one row, a het job as well."""
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "JOBID       PARTITION  USER   SCORE  RANK  WAIT  REMAIN  SIZE  QOS  GRESFIT",
        "8           main       bob      658     1     0     150     8  500        0",
        "20+[0-1]    main       bob      283     2     0     150     8  125        0",
        "10_[0-4%2]  gpu        alice    233     2     0     150    25    0       58",
        f"7           main       {ME:<5}    158     3     0     150     8    0        0",
    ]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["-j", "8"], ["8"]),
        (["--jobs=10_3,7"], ["10_[0-4%2]", "7"]),
        (["--jobs", "10_[0-4%2]"], ["10_[0-4%2]"]),
        (["-j", "21"], ["20+[0-1]"]),
        (["-j", "20+1"], ["20+[0-1]"]),
        (["-j", "-u", "bob"], ["8", "20+[0-1]"]),
        (["-u", "bob"], ["8", "20+[0-1]"]),
        (["--users=bob,alice"], ["8", "20+[0-1]", "10_[0-4%2]"]),
        (["--user", str(os.geteuid())], ["7"]),
        (["--me"], ["7"]),
        (["--me", "-u", "alice"], ["10_[0-4%2]", "7"]),
        (["-p", "gpu"], ["10_[0-4%2]"]),
        (["--partition=gpu,main", "-q", "normal"], ["10_[0-4%2]", "7"]),
        (["-A", "chem"], ["8"]),
        (["--account", "chem,physics", "--qos", "high,low"], ["8", "20+[0-1]"]),
        (["-S", "i"], ["7", "8", "10_[0-4%2]", "20+[0-1]"]),
        (["--sort=-u,-i"], [*(["7"] if ME > "bob" else []), "20+[0-1]", "8", "10_[0-4%2]"]),
        (["-S", "-qos,+remaining,i"], ["8", "20+[0-1]", "7", "10_[0-4%2]"]),
        (["-M", "test"], ["8", "20+[0-1]", "10_[0-4%2]", "7"]),
        (["--clusters=all"], ["8", "20+[0-1]", "10_[0-4%2]", "7"]),
    ],
)
def test_jobs_are_filtered_and_sorted(argv: list[str], expected: list[str]) -> None:
    """The service filters; -S sorts by letters or names."""
    assert ids(*argv) == expected


@pytest.mark.parametrize(
    ("job", "note"),
    [
        ("99", "sscore: job 99: not pending in the last snapshot\n"),
        ("9", "sscore: job 9: its user holds it: JobHeldUser\n"),
    ],
)
def test_why_a_job_is_not_listed_is_told_beside_the_table(job: str, note: str) -> None:
    """On standard error; the table holds the others."""
    result = run("-h", "-j", f"{job},8")
    assert (result.exit_code, result.stderr) == (0, note)
    assert result.stdout.split()[0] == "8"


def test_it_is_told_where_no_job_is_among_those_asked_for() -> None:
    """A name that was mistyped looks like an idle queue else; sprio says so as well."""
    result = run("-h", "-u", "nobody")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "sscore: no pending job that could start is among those that were asked for\n"


@pytest.mark.parametrize("flag", ["-h", "--noheader"])
@pytest.mark.parametrize("also", [[], ["-l"], ["-P"], ["--csv"], ["-w"], ["-o", "%i"]])
def test_header_can_be_left_out(flag: str, also: list[str]) -> None:
    """Of every kind of output."""
    header = run(*also).stdout.splitlines()[0]
    assert header.startswith("JOBID")
    assert header not in run(flag, *also).stdout


@pytest.mark.parametrize(
    ("argv", "first"),
    [
        (["-n"], "8 main bob 0.4115 1 0.0000 0.3333 0.0417 1.0000 0.0000"),
        (["--norm", "-w"], "Weights 1600 350 450 200 500 100"),
        (["-w"], "Weights 1600 350 450 200 500 100"),
        (["--weights", "-o", "%i %A %S"], "Weights 1000 1"),
        (["-o", "%i %.6s %k/%O"], "8    658 1/3"),
        (["--format=%.8i|%9r|%W"], "         8|main     |0"),
        (["-O", "job,qos_name:6,site"], "8 high 658"),
        (["--Format", "job,score:.8"], "8 658"),
        (["-P"], "8|main|bob|658|1|0|150|8|500|0"),
        (["--parsable2", "-O", "job,cluster"], "8|test"),
        (["--csv", "-l"], f"8,main,bob,chem,high,,658,1,3,,,0,658,1,0,150,8,500,0,,,{HASH}"),
        (["-lnP"], "8|main|bob|chem|high||0.4115|1|3|||0|658|1|0.0000|0.3333|0.0417|1.0000|0.0000|||" + HASH),
    ],
)  # fmt: skip
def test_columns_are_those_that_were_asked_for(argv: list[str], first: str) -> None:
    """The first row of each format; blanks of a table are taken together, those of -o count."""
    line = run("-h", *argv).stdout.splitlines()[0]
    assert (line if "%" in first or "|" in line or argv[0] == "-o" else " ".join(line.split())) == first


def test_format_of_the_environment_holds_where_none_is_asked_for() -> None:
    """As SPRIO_FORMAT does; -l, -n, -o and -O overrule it, an empty one is none."""
    assert run(SSCORE_FORMAT="%i:%s").stdout.splitlines()[:2] == ["JOBID:SCORE", "8:658"]
    assert run("-o", "%i", SSCORE_FORMAT="%i:%s").stdout.splitlines()[0] == "JOBID"
    assert run("-l", SSCORE_FORMAT="%Z%").exit_code == 0
    assert run(SSCORE_FORMAT="").stdout == run().stdout
    assert run(SSCORE_FORMAT="%C").exit_code == 2


def test_json_holds_every_pending_job_that_was_asked_for() -> None:
    """Jobs that can't start yet as well, with the reason why they are left alone."""
    told = json.loads(run("--json").stdout)
    jobs = {job["job"]: job for job in told["jobs"]}
    assert set(jobs) == {"7", "8", "9", "10_[0-4%2]", "20+[0-1]"}
    assert (jobs["9"]["eligible"], jobs["9"]["untouched"]) == (False, "held")
    assert (told["cluster"], told["policy"]) == ("test", Policy().hash)
    asked = json.loads(run("--json", "-j", "9,99").stdout)
    assert [job["job"] for job in asked["jobs"]] == ["9"]
    assert asked["left_out"] == {"99": "not pending in the last snapshot"}


@pytest.mark.parametrize("options", [["-u"], ["-j"], ["-vj"]])
def test_bytes_that_are_no_text_are_no_traceback(options: list[str]) -> None:
    """What the shell passes on needn't be UTF-8."""
    result = run(*options, "\udcff\n")
    assert result.stdout in ("", run("-u", "nobody").stdout)
    assert result.stderr.count("\n") == 1


def test_verbose_says_what_is_printed() -> None:
    """On standard error, so that the table stays what it was."""
    result = run("-v", "-u", "bob")
    assert result.stderr == f"sscore: 2 jobs; cluster test, mode observe, policy {Policy().hash}\n"
    assert result.stdout == run("-u", "bob").stdout


def test_verbose_with_a_job_prints_its_explanation(files: Path) -> None:
    """Word for word that of `slurm-score explain`, of one job or of several."""
    explained = [
        CliRunner().invoke(main, ["explain", "--socket", str(files / "score.sock"), job]).stdout
        for job in ("8", "10_3")
    ]
    assert explained[0].startswith("Job 8 of bob, ")
    assert run("-j", "8", "-v").stdout == explained[0]
    assert run("-vj", "8,10_3", "-M", "test").stdout == "\n".join(explained)
    told = json.loads(run("-j", "8,10_3", "-v", "--json").stdout)
    assert [answer["job"] for answer in told] == ["8", "10_[0-4%2]"]


def test_verbose_with_jobs_that_are_not_pending_explains_the_others() -> None:
    """A sentence for each, and exit 1, as explain's."""
    result = run("-v", "-j", "99,8,98")
    assert (result.exit_code, result.stdout) == (1, run("-v", "-j", "8").stdout)
    assert result.stderr == (
        "slurm-score: job 99: not pending in the last snapshot\n"
        "slurm-score: job 98: not pending in the last snapshot\n"
    )


def test_it_can_be_printed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """squeue -i: the time before each table, and an end by the keyboard with exit code 130."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.strftime", lambda _: "Tue Dec 01 00:00:00 2026")
    result = run("-i", "5", "-j", "8", "-O", "job,score")
    assert (result.exit_code, waits) == (130, [5.0, 5.0])
    assert result.stdout == "Tue Dec 01 00:00:00 2026\nJOBID  SCORE\n8        658\n\n" * 2
    waits.clear()
    assert run("-h", "-i", "0.5", "-j", "8", "-O", "job,score").stdout == "8  658\n\n" * 2


def test_a_service_that_comes_back_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With -i a failure is told and the next try made; without it ends the command."""
    tries: list[float] = []

    def sleep(seconds: float) -> None:
        tries.append(seconds)
        if len(tries) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    sentence = f"slurm-score: {tmp_path}/none: the scoring service does not answer: No such file or directory"
    result = run("-h", "-i", "1", "--socket", f"{tmp_path}/none")
    assert (result.exit_code, result.stderr.splitlines()) == (130, [sentence] * 3)
    once = run("--socket", f"{tmp_path}/none")
    assert (once.exit_code, once.stderr) == (1, f"{sentence}\n")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-o", "%C"], "no such field, got '%C'; %[[.]width]letter, such as %.15i %9r;"),
        (["-O", "job,colour"], "no such field, got 'colour'; there are parts, factors, job,"),
        (["-S", "colour"], "no such field, got 'colour'; there are parts, factors, job,"),
        (["-S", "!"], "not a list of sort keys, got '!';"),
        (["-o", "%i", "-O", "job"], "-o and -O exclude each other"),
        (["-l", "-o", "%i"], "-o and -l exclude each other"),
        (["-n", "-O", "job"], "-O and -n exclude each other"),
        (["--json", "-P", "--csv"], "--json and -P and --csv exclude each other"),
        (["--json", "-S", "i"], "--json and -S exclude each other"),
        (["--json", "-o", "%i"], "--json and -o exclude each other"),
        (["--json", "-w"], "--json and -w exclude each other"),
        (["-v", "-j", "8", "-w"], "-v with -j and -w exclude each other"),
        (["-u", ""], "Invalid value for '-u' / '--user' / '--users': no name in ''; "),
        (["-p", ","], "Invalid value for '-p' / '--partition': no name in ','; "),
        (["-i", "0"], "Invalid value for '-i' / '--iterate': 0.0 is not in the range x>=0.1."),
        (["-M", "other"], "-M other: the service at this socket scores test; --socket names another's"),
        (["-M", "other", "--json"], "-M other: the service at this socket scores test;"),
        (["-M", "other", "-vj", "8"], "-M other: the service at this socket scores test;"),
        (["--nonsense"], "No such option"),
        (["8"], "Got unexpected extra argument (8)"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(argv: list[str], sentence: str) -> None:
    """What is wrong, what was got, what is allowed."""
    result = run(*argv)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_a_list_that_is_too_long_is_one_sentence() -> None:
    """A few thousand ids are no trouble; more than an address can hold are told to be so."""
    long = run("-h", "-j", ",".join(map(str, range(1, 5001))))
    assert [line.split()[0] for line in long.stdout.splitlines()] == ["8", "20+[0-1]", "10_[0-4%2]", "7"]
    result = run("-j", ",".join(map(str, range(1, 20001))))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "slurm-score: too many ids and names in one question, got 188,999 bytes; 60,000 are allowed\n"
    )


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version_is_told(flag: str) -> None:
    """Capital V, as sprio."""
    assert run(flag).stdout == f"sscore, version {__version__}\n"


def test_help_lists_every_option_with_an_example() -> None:
    """--help only: -h is sprio's --noheader."""
    text = run("--help").stdout
    assert "sscore -S -K,i -p gpu" in text
    for option in ("-h, --noheader", "-i, --iterate SECONDS", "-P, --parsable2", "--helpformat", "--usage"):
        assert option in text


def test_usage_is_every_option_in_short() -> None:
    """sprio --usage."""
    lines = run("--usage").stdout.splitlines()
    assert lines[0].startswith("Usage: sscore [")
    assert max(map(len, lines)) <= 80
    told = " ".join(line.strip() for line in lines)
    for option in (
        "[--socket FILE]",
        "[-j [IDS]]",
        "[-o FORMAT]",
        "[-i SECONDS]",
        "[--json]",
        "[-P]",
        "[-M NAME]",
    ):
        assert option in told


def test_helpformat_lists_letters_names_and_meanings() -> None:
    """sprio --helpformat lists the letters; each of ours has a name for -O and -S as well."""
    rows = [line.split(maxsplit=2) for line in run("--helpformat").stdout.splitlines()]
    assert rows[0] == ["LETTER", "NAME", "TELLS"]
    assert ["%S", "site_held", "SiteFactor that Slurm holds"] in rows
    assert ["%w", "wait_norm", "our factor wait, from 0 to 1"] in rows
