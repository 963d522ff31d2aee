"""Configuration, identity, earlier runs and error answers, as real Slurm printed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from slurm_score.errors import (
    AccountingDownError,
    CommandFailedError,
    ControllerDownError,
    NotPermittedError,
    UnsuitableSlurmError,
)
from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.slurm.commands import Answer, Runner
from slurm_score.slurm.gateway import Identity, SiteFactorUpdate
from slurm_score.suitability import require_suitable
from tests.contract.replay import RecordedCase, Replay, become, case_id, gateway_of, recorded

DAY = 86400
WEIGHTS = ("age", "assoc", "fairshare", "job_size", "partition", "qos", "tres")


def always(answer: Answer) -> Runner:
    """Return a runner that gives the same answer to whatever is asked."""

    def run(_argv: Sequence[str], _stdin: str, _timeout_s: float) -> Answer:
        return answer

    return run


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
def test_configuration_is_read(case: RecordedCase) -> None:
    """scontrol show config: what decides whether SiteFactor works here."""
    config = gateway_of(case).read_config()
    assert config.boot_time_s is not None
    assert case.now_s - DAY < config.boot_time_s <= case.now_s
    assert replace(config, boot_time_s=None) == SlurmConfig(
        cluster="lab",
        release=case.slurm,
        slurm_user="slurm",
        priority_type="priority/multifactor",
        priority_weights=dict.fromkeys(WEIGHTS, 0),
        scheduler_parameters=("bf_interval=2", "bf_continue", "sched_interval=2", "batch_sched_delay=1"),
        select_type_parameters=("CR_CORE",),
        controllers=("ctl",),
        plugin_dirs=("/usr/lib/x86_64-linux-gnu/slurm-wlm",),
        slurm_conf="/etc/slurm/slurm.conf",
    )


@pytest.mark.parametrize("case", recorded("config-weights"), ids=case_id)
def test_weights_of_slurms_own_factors_are_read(case: RecordedCase) -> None:
    """PriorityWeightTRES is a list, and PriorityFlags, SchedulerParameters are tuples of words."""
    config = gateway_of(case).read_config()
    assert config.priority_weights == {
        "age": 1000,
        "assoc": 0,
        "fairshare": 2000,
        "job_size": 0,
        "partition": 0,
        "qos": 500,
        "tres": 6000,
    }
    assert config.priority_flags == ("SMALL_RELATIVE_TO_TIME",)
    assert config.scheduler_parameters == ("bf_interval=2", "bf_window=1440")
    assert config.rate_limited == (case.release != "22.05")  # rl_enable came with 23.02


@pytest.mark.parametrize("case", recorded("config-basic"), ids=case_id)
def test_priority_basic_is_refused(case: RecordedCase) -> None:
    """SiteFactor has no effect there, and sprio doesn't answer at all (case 35)."""
    gateway = gateway_of(case)
    with pytest.raises(UnsuitableSlurmError, match="priority/basic"):
        require_suitable(gateway.read_config(), Policy())
    with pytest.raises(CommandFailedError, match="not running a supported priority plugin"):
        gateway.read_jobs()


@pytest.mark.parametrize("case", recorded("cluster"), ids=case_id)
@pytest.mark.parametrize(
    ("user", "admin_level", "may"),
    [
        ("root", "Administrator", True),
        ("slurm", "None", True),  # SlurmUser needs no level, and accounting doesn't know it
        ("scoreop", "Operator", True),
        ("alice", "None", False),
    ],
)
def test_identity_is_read(
    monkeypatch: pytest.MonkeyPatch, case: RecordedCase, user: str, admin_level: str, may: bool
) -> None:
    """AdminLevel by scontrol show assoc_mgr flags=users."""
    become(monkeypatch, user)
    identity = gateway_of(case).read_identity()
    assert identity == Identity(user, admin_level)
    assert identity.may_set_site_factor("slurm") == may


@pytest.mark.parametrize("case", recorded("requeued"), ids=case_id)
@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("requeued-by-user", ["REQUEUED"]),
        ("requeued-then-failed", ["REQUEUED", "NODE_FAIL"]),
        ("node-failed", ["NODE_FAIL"]),
        ("preempted", ["PREEMPTED"]),
        ("requeued-and-held", ["REQUEUED"]),
    ],
)
def test_earlier_runs_are_read(case: RecordedCase, name: str, states: list[str]) -> None:
    """sacct -D tells how each earlier run ended, oldest first (case 44)."""
    asked = [job_id for job, job_id in case.jobs.items() if job != "preemptor"]
    runs = gateway_of(case).read_past_runs(asked)[case.jobs[name]]
    assert [run.state for run in runs] == states
    assert all(0 <= run.wait_s <= 2 for run in runs)


@pytest.mark.parametrize("case", recorded("errors"), ids=case_id)
def test_user_without_the_right_is_refused(case: RecordedCase) -> None:
    """Even for a job of their own: SiteFactor takes an Operator (job_mgr.c, validate_operator)."""
    plain = update(case, "plain", 5)
    with pytest.raises(NotPermittedError, match="refused all 1 updates: Access/permission denied"):
        gateway_of(case).write_site_factors([plain])


@pytest.mark.parametrize("case", recorded("errors"), ids=case_id)
def test_user_is_refused_the_jobs_of_others(case: RecordedCase) -> None:
    """Slurm has another sentence for a job of somebody else's."""
    replay = Replay(case)
    replay.writes = 1
    with pytest.raises(NotPermittedError, match="refused all 2 updates: Invalid user id"):
        gateway_of(case, replay).write_site_factors([update(case, "of-bob", 5), update(case, "plain", 5)])


@pytest.mark.parametrize("case", recorded("errors"), ids=case_id)
def test_wrong_ids_fail_and_the_rest_goes_on(case: RecordedCase) -> None:
    """An unknown job and an unknown task of an array, which 26.05 shows in brackets."""
    replay = Replay(case)
    replay.writes = 2
    unknown = SiteFactorUpdate(999_999, "999999", 5)
    task = SiteFactorUpdate(case.jobs["array"], f"{case.jobs['array']}_7", 5)
    failures = gateway_of(case, replay).write_site_factors([unknown, task, update(case, "plain", 5)])
    assert {failure.update: failure.message for failure in failures} == {
        unknown: "Invalid job id specified",
        task: "Invalid job id specified",
    }


@pytest.mark.parametrize("case", recorded("errors"), ids=case_id)
def test_value_out_of_range_is_an_error(case: RecordedCase) -> None:
    """scontrol names no job when it ignores a value (case 41)."""
    replay = Replay(case)
    replay.writes = 3
    with pytest.raises(CommandFailedError, match=r"SiteFactor value out of range .* Value ignored"):
        gateway_of(case, replay).write_site_factors([update(case, "plain", 2**31)])


@pytest.mark.parametrize("case", recorded("errors"), ids=case_id)
@pytest.mark.parametrize("command", ["squeue", "sprio", "config", "partition"])
def test_slurmctld_that_is_down_is_named(case: RecordedCase, command: str) -> None:
    """Each command has its own words for it, and one sentence in common."""
    answer = next(c.answer for c in reversed(case.commands) if command in c.argv)
    with pytest.raises(ControllerDownError, match="Unable to contact slurm controller"):
        gateway_of(case, always(answer)).read_config()


@pytest.mark.parametrize("case", recorded("errors"), ids=case_id)
def test_slurmdbd_that_is_down_is_named(case: RecordedCase) -> None:
    """The reader of earlier runs fails with sacct's own sentence; slurmctld may be well."""
    with pytest.raises(AccountingDownError, match="Problem talking to the database: Connection refused"):
        gateway_of(case, always(case.answer_to("sacct"))).read_past_runs([1])


def update(case: RecordedCase, name: str, value: int) -> SiteFactorUpdate:
    """Return the update of a prepared job."""
    return SiteFactorUpdate(case.jobs[name], str(case.jobs[name]), value)
