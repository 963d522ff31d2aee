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
)
from slurm_score.model import EndedRun, PastRun
from slurm_score.predict.sources import SACCT_FIELDS
from slurm_score.slurm.commands import Answer, CommandGateway
from slurm_score.slurm.gateway import ControllerHost
from slurm_score.slurm.parse import ACTIVE_STATES
from tests.unit.builders import NOW
from tests.unit.commands_support import Slurm, gateway, squeue
from tests.unit.slurm_texts import CONFIG, NODE, PARTITION, RESERVATIONS, TOPOLOGY, USERS
from tests.unit.slurm_texts import squeue_line as line


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


def test_cluster_is_read_at_slurmctlds_time() -> None:
    """Configuration, partitions, nodes with their switches, QOS, reservations; trap 30: not at our time."""
    slurm = Slurm(
        scontrol_show_config=CONFIG,
        scontrol_show_partition=PARTITION,
        scontrol_show_node=NODE,
        scontrol_show_topology=TOPOLOGY,
        scontrol_show_reservation=RESERVATIONS,
        scontrol_show_assoc_mgr="QOS=normal(1)\n    Priority=0\nQOS=high(2)\n    Priority=1000",
    )
    cluster = gateway(slurm).read_cluster()
    assert (cluster.time_s, cluster.config.release) == (NOW, "22.05.8")
    assert (list(cluster.partitions), [node.name for node in cluster.nodes]) == (["main"], ["g1"])
    assert cluster.qos == {"normal": 0, "high": 1000}
    assert [(node.name, node.switch) for node in cluster.nodes] == [("g1", "s1")]
    assert {name: r.active for name, r in cluster.reservations.items()} == {"later": False, "course": True}


def test_a_field_that_sacct_does_not_know_is_not_asked_for_again() -> None:
    """22.05 has no Restarts, says so, and prints no run (observed)."""
    asked: list[str] = []

    def old(argv: Sequence[str], _stdin: str, _timeout_s: float) -> Answer:
        asked.append(argv[-1])
        if "Restarts" in argv[-1]:
            return Answer(1, "", 'sacct: error: Invalid field requested: "Restarts"\n')
        between = next(word for word in argv if word.startswith("--delimiter=")).partition("=")[2]
        row = (
            "7",
            "alice",
            "lab",
            "main",
            "normal",
            "cpu=4",
            "60",
            "1500",
            "1600",
            "20",
            "FAILED",
            "",
            "train-1",
        )
        return Answer(0, between.join(row) + "\n", "")

    door = CommandGateway(run=old)
    for _ in range(2):
        (run,) = door.read_ended_runs(1000, 2000)
        assert (run.job_id, run.state, run.name, run.restarts) == (7, "FAILED", "train-#", 0)
    assert ["Restarts" in fields for fields in asked] == [True, False, False]


def test_another_complaint_of_sacct_is_an_error() -> None:
    """Nothing is asked again and again."""
    slurm = Slurm(sacct=Answer(1, "", 'sacct: error: Invalid field requested: "JobName"\n'))
    with pytest.raises(CommandFailedError, match='Invalid field requested: "JobName"'):
        gateway(slurm).read_ended_runs(1000, 2000)
    assert len(slurm.asked) == 1


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


# what goes wrong


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
            "scontrol_show_topology": TOPOLOGY,
            "scontrol_show_reservation": "No reservations in the system\n",
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
            "scontrol show reservation",
            "scontrol show topology",
            "sprio -h -o",
            "squeue -h -t",
        ]
