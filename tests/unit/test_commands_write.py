"""slurm_score/slurm/commands.py: how updates are sent, what comes of them, and what time they have."""

import logging
from collections.abc import Sequence

import pytest

from slurm_score.errors import (
    CommandFailedError,
    CommandTimedOutError,
    ControllerDownError,
    NotPermittedError,
    SlurmError,
    WriteRefusedError,
)
from slurm_score.plan import SiteFactorUpdate
from slurm_score.slurm.commands import Answer, CommandGateway
from slurm_score.slurm.gateway import Access, UpdateFailure, WriteGuard
from tests.unit.commands_support import Slurm, gateway
from tests.unit.slurm_texts import CONFIG

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


def test_nothing_is_run_when_the_time_of_the_cycle_is_over() -> None:
    """A command that is killed at once would only cost slurmctld an RPC, or half a burst."""
    slurm = Slurm(scontrol=CONFIG)
    door = gateway(slurm, Access.ENFORCE)
    door.patience.left_s = lambda: 0.0
    for ask in (door.read_config, lambda: door.write_site_factors(UPDATES)):
        with pytest.raises(CommandTimedOutError, match=r"scontrol.*: not run: the cycle's time is over"):
            ask()
    assert slurm.asked == []
