"""slurm_score/slurm/commands.py: what the gateway asks Slurm's commands, and what comes of their answers."""

import logging
import os
import pwd
import secrets
from collections.abc import Sequence

import pytest

from slurm_score.errors import (
    AccountingDownError,
    CommandFailedError,
    ControllerDownError,
    NotPermittedError,
    SlurmError,
    UnparseableAnswerError,
    WriteRefusedError,
)
from slurm_score.model import EndedRun, PastRun
from slurm_score.plan import SiteFactorUpdate
from slurm_score.predict.sources import SACCT_FIELDS
from slurm_score.slurm.commands import Answer, CommandGateway
from slurm_score.slurm.gateway import Access, ControllerHost, UpdateFailure, WriteGuard
from slurm_score.slurm.parse import ACTIVE_STATES
from tests.unit.builders import NOW
from tests.unit.slurm_texts import CONFIG, END, NODE, PARTITION, USERS
from tests.unit.slurm_texts import squeue_line as line


class Slurm:
    """Answers commands from a script, by their first words, and remembers what it was asked."""

    def __init__(self, **answers: str | Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[Sequence[str], str]] = []

    def __call__(self, argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        """Return the answer of the longest fitting name: scontrol_show_node before scontrol."""
        self.asked.append((argv, stdin))
        assert timeout_s >= 60
        words = "_".join(argv)
        name = max((name for name in self.answers if words.startswith(name)), key=len)
        answer = self.answers[name]
        return answer if isinstance(answer, Answer) else Answer(0, answer, "")


def gateway(slurm: Slurm, access: Access = Access.READ_ONLY) -> CommandGateway:
    """Return a gateway to the scripted Slurm."""
    return CommandGateway(WriteGuard(access), slurm, lambda: float(NOW))


def squeue(text: str) -> Slurm:
    """Return a Slurm whose squeue prints a text with the separators that it was asked for."""

    class Asked(Slurm):
        def __call__(self, argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
            answer = super().__call__(argv, stdin, timeout_s)
            if argv[0] != "squeue":
                return answer
            end = argv[-1].rpartition("Comment:")[2]
            return Answer(0, text.replace(END, end), "")

    return Asked(squeue="", sprio="812|1200|700|500|0|0|0|0|0|0|\n")


# reading


def test_jobs_are_joined_with_the_site_factors_that_sprio_shows() -> None:
    """slurm-facts 8.3 and 8.4: only sprio tells SITE, and what it leaves out is not gone."""
    jobs = gateway(squeue(line() + line(JobID="813", JobArrayID="813"))).read_jobs()
    assert [(job.job_id, job.site_factor) for job in jobs] == [(812, 700), (813, None)]


def test_squeue_is_asked_for_every_active_job_without_header() -> None:
    """Case 30: the format is explicit, whatever the environment says."""
    slurm = squeue("")
    gateway(slurm).read_jobs()
    (argv, stdin), (sprio, _) = slurm.asked
    assert (argv[:5], stdin) == (("squeue", "-h", "-t", ",".join(ACTIVE_STATES), "-O"), "")
    assert sprio == ("sprio", "-h", "-o", "%i|%Y|%S|%A|%B|%F|%J|%P|%Q|%N|%T")


def test_end_of_a_record_is_another_each_time() -> None:
    """A comment that knows an old one can't forge a record."""
    slurm = squeue("")
    for _ in range(2):
        gateway(slurm).read_jobs()
    ends = {argv[-1].rpartition("Comment:")[2] for argv, _ in slurm.asked if argv[0] == "squeue"}
    assert [len(end) for end in ends] == [17, 17]


def test_cluster_is_read_at_our_time() -> None:
    """Configuration, partitions, nodes and QOS."""
    slurm = Slurm(
        scontrol_show_config=CONFIG,
        scontrol_show_partition=PARTITION,
        scontrol_show_node=NODE,
        scontrol_show_assoc_mgr="QOS=normal(1)\n    Priority=0\nQOS=high(2)\n    Priority=1000",
    )
    cluster = gateway(slurm).read_cluster()
    assert (cluster.time_s, cluster.config.release) == (NOW, "22.05.8")
    assert (list(cluster.partitions), [node.name for node in cluster.nodes]) == (["main"], ["g1"])
    assert cluster.qos == {"normal": 0, "high": 1000}


def test_past_runs_are_asked_for_by_number() -> None:
    """One sacct for all requeued jobs, and none where there are none."""
    slurm = Slurm(sacct="7|NODE_FAIL|1000|1000|1500\n")
    assert gateway(slurm).read_past_runs([]) == {}
    assert gateway(slurm).read_past_runs([7, 8]) == {7: (PastRun("NODE_FAIL", 500.0),)}
    assert [argv for argv, _ in slurm.asked] == [
        ("sacct", "-D", "-X", "-n", "-P", "-j", "7,8", "-o", "JobIDRaw,State,Submit,Eligible,Start")
    ]


def test_ended_runs_are_asked_for_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ended at its beginning was counted before; a name with a newline forges no run."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "@@")
    rows = (
        ("7", "alice", "lab", "main", "normal", "cpu=4,gres/gpu=2,node=1", "60", "1500", "1600", "20"),
        ("8", "bob", "lab", "main", "normal", "cpu=1", "60", "990", "1000", "3"),
        ("9", "cho", "lab", "main", "normal", "cpu=1", "60", "990", "Unknown", "0"),
    )
    texts = ["@@".join((*row, "COMPLETED", "0", "score: est=1m", "train-12\nforged|x")) for row in rows]
    slurm = Slurm(sacct="\n".join((*texts, "")))
    run = EndedRun(
        user="alice", limit_s=3600.0, cpus=4, gpus=2, account="lab", name="train-#", partition="main",
        qos="normal", claim_s=60.0, submit_s=1500, end_s=1600, elapsed_s=20.0, job_id=7,
    )  # fmt: skip
    assert gateway(slurm).read_ended_runs(1000, 2000) == (run,)
    window = ("-S", "uts1000", "-E", "uts2000", "-s", "BF,CA,CD,DL,F,NF,OOM,PR,RQ,RV,TO")
    fields = ("--delimiter=@@", "-o", ",".join(SACCT_FIELDS))
    assert [argv for argv, _ in slurm.asked] == [("sacct", "-a", "-D", "-X", "-n", "-P", *window, *fields)]


def test_identity_is_ours_with_the_admin_level_that_slurmctld_knows() -> None:
    """Asked for our user alone, from slurmctld's memory."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    slurm = Slurm(scontrol=USERS.replace("ops", user))
    assert gateway(slurm).read_identity().admin_level == "Operator"
    assert slurm.asked[0][0] == ("scontrol", "show", "assoc_mgr", "flags=users", f"users={user}")


def test_controllers_come_from_ping_whatever_its_exit_code() -> None:
    """scontrol of some releases exits with 1 when one of them is down."""
    said = "Slurmctld(primary) at ctl1 is DOWN\nSlurmctld(backup) at ctl2 is UP\n"
    for code in (0, 1):
        slurm = Slurm(scontrol_ping=Answer(code, said, ""))
        assert gateway(slurm).read_controllers() == (
            ControllerHost("ctl1", False),
            ControllerHost("ctl2", True),
        )
        assert slurm.asked == [(("scontrol", "ping"), "")]


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        (
            Answer(1, "Slurmctld(primary) at ctl is DOWN\n", ""),
            ControllerDownError,
            "scontrol ping: slurmctld is down on ctl",
        ),
        (
            Answer(1, "", "scontrol: fatal: Could not establish a configuration source\n"),
            CommandFailedError,
            "scontrol ping: exit 1: scontrol: fatal: Could not establish a configuration source",
        ),
        (Answer(0, "pong\n", ""), UnparseableAnswerError, r"scontrol ping: no controller, got 'pong\n'"),
    ],
    ids=["down", "fatal", "odd"],
)
def test_no_controller_is_told_by_its_cause(answer: Answer, kind: type[SlurmError], sentence: str) -> None:
    """Down is what the loop waits for; the rest is an error."""
    with pytest.raises(kind) as caught:
        gateway(Slurm(scontrol_ping=answer)).read_controllers()
    assert str(caught.value) == sentence


def test_time_outs_follow_what_the_cycle_has_left() -> None:
    """A question to slurmdbd may take a quarter of it: the updates must not wait for accounting."""
    given: list[tuple[str, float]] = []

    def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        given.append((argv[0] + stdin[:6], timeout_s))
        return Answer(0, CONFIG if "config" in argv else "", "")

    door = CommandGateway(WriteGuard(Access.ENFORCE), run)
    door.read_config()
    door.write_site_factors(UPDATES)
    door.patience.left_s = lambda: 44.0
    door.read_config()
    door.read_past_runs([7])
    door.write_site_factors(UPDATES)
    assert given == [
        ("scontrol", 60.0),
        ("scontrolupdate", 60.15),
        ("scontrol", 44.0),
        ("sacct", 11.0),
        ("scontrolupdate", 44.0),
    ]


# what goes wrong when reading


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", ControllerDownError),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", ControllerDownError),
        ("slurm_load_jobs error: Connection refused", ControllerDownError),
        ("slurm_load_jobs error: Slurm backup controller in standby mode", ControllerDownError),
        ("slurm_load_jobs error: Access/permission denied", NotPermittedError),
        ("squeue: error: Invalid user id", NotPermittedError),
        ("squeue: unrecognized option '--frob'", CommandFailedError),
        ("", CommandFailedError),
    ],
)
def test_failed_command_is_told_by_its_cause(stderr: str, kind: type[SlurmError]) -> None:
    """Slurm's own sentence is kept word for word, and the exception holds the data."""
    slurm = Slurm(scontrol=Answer(1, "", stderr + "\n"))
    with pytest.raises(SlurmError) as caught:
        gateway(slurm).read_config()
    assert type(caught.value) is kind
    assert str(caught.value) == f"scontrol show config: exit 1: {stderr or 'no message'}"
    assert (caught.value.argv, caught.value.returncode) == (("scontrol", "show", "config"), 1)
    assert caught.value.stderr == stderr + "\n"


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("sacct: error: Problem talking to the database: Connection refused", AccountingDownError),
        ("sacct: error: Problem talking to the database: No route to host", AccountingDownError),
        ("sacct: error: Unable to connect to database", AccountingDownError),
        ("sacct: error: Access/permission denied", NotPermittedError),
        ("Slurm accounting storage is disabled", CommandFailedError),
    ],
)
def test_accounting_that_is_down_is_not_the_controller(stderr: str, kind: type[SlurmError]) -> None:
    """sacct asks slurmdbd and never slurmctld."""
    with pytest.raises(SlurmError) as caught:
        gateway(Slurm(sacct=Answer(1, "", stderr + "\n"))).read_past_runs([7])
    assert type(caught.value) is kind
    assert str(caught.value) == f"sacct -D -X: exit 1: {stderr}"


def test_answer_that_nobody_understands_is_shown() -> None:
    """The text itself is in the message, cut and escaped."""
    with pytest.raises(UnparseableAnswerError, match=r"scontrol show config: .*got 'what\?\\x1b'"):
        gateway(Slurm(scontrol="what?\x1b")).read_config()


def test_accounting_that_prints_something_else_is_unparseable() -> None:
    """Not a ValueError out of the depth."""
    with pytest.raises(UnparseableAnswerError, match="sacct -D -X: "):
        gateway(Slurm(sacct="7|NODE_FAIL|yesterday|x|y\n")).read_past_runs([7])


def test_unreadable_record_is_left_out_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """Counted in one line, the first cycle only: a broken record comes back every minute."""
    slurm = squeue(line() + line(JobID="813", TimeLimit="soon") + line(JobID="814", TimeLimit="later"))
    door = gateway(slurm)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [job.job_id for job in door.read_jobs()] == [812]
    assert [record.getMessage()[:57] for record in caplog.records] == [
        "squeue -h -t: 2 records left out: not a time, got 'soon';"
    ]


def test_answer_without_any_readable_record_is_unparseable() -> None:
    """A format that changed is not an empty queue."""
    with pytest.raises(UnparseableAnswerError, match="squeue -h -t: not a time, got 'soon'"):
        gateway(squeue(line(TimeLimit="soon"))).read_jobs()


# writing

UPDATES = (SiteFactorUpdate(4, "4", 700), SiteFactorUpdate(9, "9_[3-9]", 650), SiteFactorUpdate(26, "26", 0))


@pytest.mark.parametrize("access", [Access.READ_ONLY, Access.RESET])
def test_nothing_is_run_outside_enforce(access: Access) -> None:
    """The one guard of the program: updates other than zeros go out in enforce only."""
    slurm = Slurm(scontrol="")
    with pytest.raises(WriteRefusedError, match=f"3 updates refused: access is {access}, not enforce"):
        gateway(slurm, access).write_site_factors(UPDATES)
    assert slurm.asked == []


def test_gateway_is_read_only_unless_told() -> None:
    """The default access is the harmless one."""
    slurm = Slurm(scontrol="")
    with pytest.raises(WriteRefusedError):
        CommandGateway(run=slurm).write_site_factors(UPDATES)
    assert slurm.asked == []


def test_updates_go_through_one_scontrol() -> None:
    """slurm-facts 5: commands on stdin, one after the other; case 29: never through a shell."""
    slurm = Slurm(scontrol="")
    assert gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES) == ()
    assert slurm.asked == [
        (
            ("scontrol",),
            "update JobId=4 SiteFactor=700\n"
            "update JobId=9_[3-9] SiteFactor=650\n"
            "update JobId=26 SiteFactor=0\n",
        )
    ]


def test_reset_may_write_zeros() -> None:
    """The way back is open in every mode."""
    slurm = Slurm(scontrol="")
    gateway(slurm, Access.RESET).write_site_factors([SiteFactorUpdate(4, "4", 0)])
    assert slurm.asked == [(("scontrol",), "update JobId=4 SiteFactor=0\n")]


def test_no_update_starts_no_process() -> None:
    """A cycle without changes costs nothing."""
    slurm = Slurm(scontrol="")
    assert gateway(slurm, Access.ENFORCE).write_site_factors([]) == ()
    assert slurm.asked == []


@pytest.mark.parametrize(
    ("stderr", "failures"),
    [
        (
            "Job has already finished for job 4\n",
            (UpdateFailure(UPDATES[0], "Job has already finished"),),
        ),
        ("9_3-9: Invalid user id\n", (UpdateFailure(UPDATES[1], "Invalid user id"),)),
        ("9_[3-9]: Invalid user id\n", (UpdateFailure(UPDATES[1], "Invalid user id"),)),
        (
            "Invalid job id specified for job 4\nJob is in held state for job 26\n",
            (
                UpdateFailure(UPDATES[0], "Invalid job id specified"),
                UpdateFailure(UPDATES[2], "Job is in held state"),
            ),
        ),
        (
            "Cannot modify scrontab jobs through scontrol for job 26\n",  # trap 28, observed on 24.11
            (UpdateFailure(UPDATES[2], "Cannot modify scrontab jobs through scontrol"),),
        ),
        (
            "Access/permission denied for job 4\nJob has finished for job 4\n",
            (UpdateFailure(UPDATES[0], "Access/permission denied"),),
        ),
    ],
)
def test_failure_is_mapped_back_to_its_update(stderr: str, failures: tuple[UpdateFailure, ...]) -> None:
    """slurm-facts 8.16 and 8.17: exit 1 means that some failed; the others went through."""
    slurm = Slurm(scontrol=Answer(1, "scontrol: update JobId=4 …\n", stderr))
    assert gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES) == failures


def test_failures_of_a_shared_line_are_told_apart() -> None:
    """scontrol names each job of a list, as in the recorded answers of tests/contract."""
    updates = [SiteFactorUpdate(i, str(i), 7) for i in (4, 5, 6)]
    slurm = Slurm(scontrol=Answer(1, "", "Invalid job id specified for job 5\n"))
    failures = gateway(slurm, Access.ENFORCE).write_site_factors(updates)
    assert slurm.asked == [(("scontrol",), "update JobId=4,5,6 SiteFactor=7\n")]
    assert failures == (UpdateFailure(updates[1], "Invalid job id specified"),)


def test_line_about_another_job_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    """slurm-facts 8.12: a task of the list that is gone is benign; nothing in it steers the terminal."""
    slurm = Slurm(scontrol=Answer(1, "", "9_3: Invalid job id specified\nodd \x1b[31m line for job 4\n"))
    with caplog.at_level(logging.WARNING):
        failures = gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES)
    assert [failure.update.job_id for failure in failures] == [4]
    assert [record.getMessage() for record in caplog.records] == [
        "scontrol update: 'Invalid job id specified 9_3'"
    ]


def test_right_refused_for_all_updates_is_an_error() -> None:
    """Not twenty thousand warnings but one sentence with the remedy further up."""
    stderr = "Access/permission denied for job 4\n9_3-9: Invalid user id\nInvalid user id for job 26\n"
    slurm = Slurm(scontrol=Answer(1, "", stderr))
    with pytest.raises(NotPermittedError) as caught:
        gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES)
    assert str(caught.value) == "slurmctld refused all 3 updates: Access/permission denied"
    assert (caught.value.returncode, caught.value.stderr) == (1, stderr)


def test_right_refused_for_some_updates_is_a_failure_of_those() -> None:
    """The rest was done."""
    slurm = Slurm(scontrol=Answer(1, "", "Access/permission denied for job 4\n"))
    assert len(gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES)) == 1


def test_controller_that_is_down_when_writing_is_an_error() -> None:
    """It can't be told what was sent."""
    slurm = Slurm(scontrol=Answer(1, "", "Unable to contact slurm controller (connect failure)\n"))
    with pytest.raises(ControllerDownError, match="scontrol update: Unable to contact slurm controller"):
        gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES)


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (
            Answer(1, "", "scontrol: fatal: Could not establish a configuration source\n"),
            CommandFailedError,
            "scontrol update: exit 1: scontrol: fatal: Could not establish a configuration source",
        ),
        (
            Answer(1, "", "Unable to contact slurm controller (connect failure) for job 1\n"),
            ControllerDownError,
            "scontrol update: Unable to contact slurm controller (connect failure)",
        ),
    ],
    ids=["fatal", "down"],
)
def test_updates_that_reached_nobody_are_an_error(
    answer: Answer, error: type[SlurmError], sentence: str
) -> None:
    """An exit code that no line explains means that nothing can be said to have been sent."""
    door = gateway(Slurm(scontrol=answer), Access.ENFORCE)
    with pytest.raises(error) as caught:
        door.write_site_factors([SiteFactorUpdate(1, "1", 5), SiteFactorUpdate(2, "2", 5)])
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "sentence", ["Unexpected message received", "Unable to contact slurm controller (connect failure)"]
)
def test_controller_that_dies_between_updates_claims_no_success(sentence: str) -> None:
    """Some were sent, one failed by itself, and of the rest nothing can be said: no update counts as done."""
    stderr = f"Invalid job id specified for job 4\n{sentence} for job 26\n"
    door = gateway(Slurm(scontrol=Answer(1, "", stderr)), Access.ENFORCE)
    with pytest.raises(ControllerDownError) as caught:
        door.write_site_factors(UPDATES)
    assert str(caught.value) == f"scontrol update: {sentence}"
    assert caught.value.stderr == stderr


def test_value_that_scontrol_ignores_is_an_error_beside_other_failures() -> None:
    """It names no job, so that no update can be said to have gone through."""
    ignored = "scontrol: error: SiteFactor value out of range (+/- 2147483645). Value ignored"
    slurm = Slurm(scontrol=Answer(1, "", f"Invalid job id specified for job 4\n{ignored}\n"))
    with pytest.raises(CommandFailedError, match="Value ignored"):
        gateway(slurm, Access.ENFORCE).write_site_factors(UPDATES)


def test_a_task_that_is_gone_is_no_failure_of_the_array(caplog: pytest.LogCaptureFixture) -> None:
    """Trap 12: a list that names more than is pending updates what there is, and exits 1."""
    door = gateway(Slurm(scontrol=Answer(1, "", "9_3: Invalid job id specified\n")), Access.ENFORCE)
    assert door.write_site_factors([SiteFactorUpdate(9, "9_[3-9]", 5)]) == ()
    assert "Invalid job id specified 9_3" in caplog.text


def test_a_user_without_a_name_is_known_by_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run under a uid that no user has."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert gateway(Slurm(scontrol=USERS)).read_identity().user == str(os.geteuid())


def test_a_cycle_asks_each_question_once_whatever_the_queue_holds() -> None:
    """One squeue, one sprio and one listing of the nodes, for one job as for three."""
    for jobs in (line(), line() + line(JobID="813") + line(JobID="814")):
        slurm = squeue(jobs)
        slurm.answers |= {
            "scontrol_show_config": CONFIG,
            "scontrol_show_partition": PARTITION,
            "scontrol_show_node": NODE,
            "scontrol_show_assoc_mgr": USERS,
        }
        door = gateway(slurm)
        door.read_cluster()
        door.read_jobs()
        door.read_past_runs(())
        door.read_identity()
        assert sorted(" ".join(argv[:3]) for argv, _ in slurm.asked) == [
            "scontrol show assoc_mgr",  # QOS
            "scontrol show assoc_mgr",  # who we are
            "scontrol show config",
            "scontrol show node",
            "scontrol show partition",
            "sprio -h -o",
            "squeue -h -t",
        ]
