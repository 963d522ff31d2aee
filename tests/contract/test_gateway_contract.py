"""Laws that every gateway keeps: the shipped fake, the commands on what each release answered, and
pyslurm's gateway on a stub, of which worlds.py says what it doesn't prove.

A further gateway is a further entry of WORLDS: it has to offer the jobs of CONTRACT in situations.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_score.errors import CommandFailedError, NotPermittedError, WriteRefusedError
from slurm_score.gres import GpuRequest
from slurm_score.model import Job
from slurm_score.slurm.gateway import Access
from tests.contract.lab_cases import UNKNOWN_ID
from tests.contract.worlds import AS_ALICE, AS_OPERATOR, WORLDS, World


def without_rank(job: Job) -> Job:
    """Return the job without what follows from its place in the queue."""
    return replace(job, site_factor=None, priority=min(job.priority, 1), reason="", start_s=None)


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """One gateway after the other, each in its first state."""
    return WORLDS[str(request.param)](monkeypatch)


# Reading


def test_only_pending_and_running_jobs_are_read(world: World) -> None:
    """Gateway.read_jobs."""
    assert {job.state for job in world.jobs().values()} == {"PENDING", "RUNNING"}


def test_finished_job_is_not_read(world: World) -> None:
    """slurmctld keeps it for MinJobAge, and it is no part of the queue."""
    assert str(world.ids["finished"]) not in world.jobs()


def test_every_other_job_is_read_once(world: World) -> None:
    """One record for each job, for an array that hasn't started and for each het component."""
    wanted = [str(world.ids[name]) for name in ("running", "plain", "held", "pinned", "of-bob")]
    wanted += [f"{world.ids['array']}_[0-5%2]", f"{world.ids['het']}+0", f"{world.ids['het']}+1"]
    jobs = world.gateway.read_jobs()
    assert sorted(job.label for job in jobs) == sorted(wanted)
    assert len({job.job_id for job in jobs}) == len(jobs)


def test_reading_changes_nothing(world: World) -> None:
    """Two readings in a row are equal, and nothing is sent."""
    first = world.jobs()
    world.gateway.read_cluster()
    assert world.jobs() == first
    assert world.sent() == 0


def test_running_job_has_a_start_and_no_site_factor(world: World) -> None:
    """sprio lists pending jobs only (priority_p_get_priority_factors_list)."""
    job = world.job("running")
    assert (job.state, job.site_factor, job.pinned) == ("RUNNING", None, False)
    assert job.start_s is not None


def test_held_job_has_priority_zero_and_no_site_factor(world: World) -> None:
    """sprio leaves out held jobs."""
    job = world.job("held")
    assert (job.held, job.priority, job.site_factor, job.reason) == (True, 0, None, "JobHeldUser")


def test_pinned_job_is_known_as_pinned(world: World) -> None:
    """sprio shows a priority without any part (case 36)."""
    job = world.job("pinned")
    assert (job.pinned, job.priority, job.held) == (True, 5000, False)


def test_job_waits_with_a_site_factor_of_zero(world: World) -> None:
    """Nobody has scored it; it is eligible, and so are the tasks of the array."""
    now_s = world.gateway.read_cluster().time_s
    for job in (world.job("plain"), world.job("of-bob"), world.job("array", "_[0-5%2]")):
        assert (job.site_factor, job.held, job.pinned, job.eligible(now_s)) == (0, False, False, True)


def test_users_are_told_apart(world: World) -> None:
    """The name of who submitted it."""
    assert (world.job("plain").user, world.job("of-bob").user) == ("alice", "bob")


def test_whole_array_is_updated_by_its_tasks_without_the_throttle(world: World) -> None:
    """A list that covers the pending tasks doesn't split the record; %N is no part of an id (case 25)."""
    array = world.job("array", "_[0-5%2]")
    assert array.update_id == f"{world.ids['array']}_[0-5]"
    assert (array.job_id, array.task_count) == (world.ids["array"], 6)


def test_gpus_are_those_of_one_task(world: World) -> None:
    """--gres counts on each node, --gpus in all (cases 8 and 15)."""
    assert world.job("plain").gpus == GpuRequest(1, (("a100", 1),), 1)
    assert world.job("array", "_[0-5%2]").gpus == GpuRequest(1, (), 0)


def test_het_components_are_updated_through_their_leader(world: World) -> None:
    """The leader's id stands for all of them (case 26)."""
    leader, follower = world.job("het", "+0"), world.job("het", "+1")
    assert {leader.update_id, follower.update_id} == {str(world.ids["het"])}
    assert (leader.follows_leader, follower.follows_leader) == (False, True)
    assert (leader.het_job_id, follower.het_job_id) == (world.ids["het"], world.ids["het"])


def test_jobs_and_nodes_name_what_the_cluster_has(world: World) -> None:
    """Partitions and QOS of jobs and partitions of nodes are known; one partition is the default."""
    cluster, jobs = world.gateway.read_cluster(), world.jobs().values()
    assert {name for job in jobs for name in job.partitions} <= cluster.partitions.keys()
    assert {name for node in cluster.nodes for name in node.partitions} == cluster.partitions.keys()
    assert {job.qos for job in jobs} <= cluster.qos.keys()
    assert cluster.default_partition == "main"


def test_nothing_is_used_that_is_not_there(world: World) -> None:
    """CPUs and GPUs in use, in all and by type."""
    nodes = world.gateway.read_cluster().nodes
    assert all(node.cpus_used == node.cpus for node in nodes)
    for node in nodes:
        assert node.gpus_used.total <= node.gpus.total
        assert all(n <= node.gpus.types[gpu_type] for gpu_type, n in node.gpus_used.types.items() if n)


def test_the_clock_is_not_behind_the_jobs(world: World) -> None:
    """`time_s` is now, by the clock that the times of jobs are told in."""
    now_s = world.gateway.read_cluster().time_s
    assert all(job.submit_s <= now_s for job in world.jobs().values())


def test_cluster_has_the_configuration_that_is_read_alone(world: World) -> None:
    """SiteFactor works there: priority/multifactor and no site_factor plugin."""
    config = world.gateway.read_config()
    assert world.gateway.read_cluster().config == config
    assert (config.priority_type, config.site_factor_plugin) == ("priority/multifactor", "")


def test_operator_may_set_site_factors(world: World) -> None:
    """AdminLevel=Operator is enough (job_mgr.c, validate_operator)."""
    identity = world.gateway.read_identity()
    assert (identity.user, identity.admin_level) == ("scoreop", "Operator")
    assert identity.may_set_site_factor(world.gateway.read_config().slurm_user)


def test_job_that_waits_for_the_first_time_has_no_earlier_runs(world: World) -> None:
    """Accounting has a record of it, but none of a run."""
    asked = [world.ids["plain"], world.ids["running"]]
    assert world.gateway.read_past_runs(asked).get(world.ids["plain"], ()) == ()


def test_nobody_asked_for_has_earlier_runs(world: World) -> None:
    """Nothing is asked of accounting, which would tell of every job it knows."""
    assert world.gateway.read_past_runs([]) == {}


# Writing


def test_updates_are_read_back(world: World) -> None:
    """SiteFactor shows at once: on a job, on an array as a whole, on every component of a het job."""
    world.gateway.write_site_factors(world.updates())
    sites = {job.label: job.site_factor for job in world.jobs().values() if job.site_factor is not None}
    assert sites == {
        f"{world.ids['plain']}": 7,
        f"{world.ids['array']}_[0-5%2]": 9,
        f"{world.ids['het']}+0": 11,
        f"{world.ids['het']}+1": 11,
        f"{world.ids['pinned']}": 0,
        f"{world.ids['of-bob']}": 0,
    }


def test_wrong_updates_fail_and_the_rest_goes_on(world: World) -> None:
    """The second and third of five: an id that nobody has, and a job that has ended meanwhile."""
    failures = world.gateway.write_site_factors(world.updates())
    said = {failure.update.job_id: failure.message for failure in failures}
    assert said.keys() == {UNKNOWN_ID, world.ids["finished"]}
    assert said[UNKNOWN_ID] == "Invalid job id specified"
    assert said[world.ids["finished"]] == "Job has already finished"
    assert world.job("het", "+0").site_factor == 11


def test_updates_change_nothing_but_priorities(world: World) -> None:
    """No array is split, no hold released, no pin taken off; when a job may start is Slurm's to say."""
    before = {label: without_rank(job) for label, job in world.jobs().items()}
    world.gateway.write_site_factors(world.updates())
    assert {label: without_rank(job) for label, job in world.jobs().items()} == before


def test_priority_follows_the_site_factor(world: World) -> None:
    """Every weight is 0 here, so that the priority is the SiteFactor, 1 at least."""
    world.gateway.write_site_factors(world.updates())
    priorities = [world.job("plain").priority, world.job("array", "_[0-5%2]").priority]
    assert priorities == [7, 9]
    assert (world.job("of-bob").priority, world.job("held").priority) == (1, 0)
    assert world.job("pinned").priority == 5000


def test_nothing_is_sent_outside_enforce(world: World) -> None:
    """The guard decides before anything goes out."""
    before = world.jobs()
    for access in (Access.READ_ONLY, Access.RESET):
        world.gateway.guard.access = access
        with pytest.raises(WriteRefusedError):
            world.gateway.write_site_factors(world.updates())
    assert world.sent() == 0
    assert world.jobs() == before


def test_reset_lets_zeros_pass(world: World) -> None:
    """The way back needs no enforce."""
    world.gateway.write_site_factors(world.updates())
    world.gateway.guard.access = Access.RESET
    assert world.gateway.write_site_factors(world.resets()) == ()
    sites = [world.job("array", "_[0-5%2]").site_factor, world.job("het", "+1").site_factor]
    assert (sites, world.job("plain").site_factor) == ([0, 0], 7)


def test_no_updates_are_no_failure(world: World) -> None:
    """Nothing is sent for an empty plan."""
    assert world.gateway.write_site_factors([]) == ()
    assert world.sent() == 0


@pytest.mark.parametrize("name", AS_ALICE)
def test_right_refused_for_every_update_is_one_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SiteFactor takes an Operator, for one's own jobs too; Slurm has other words for those of others."""
    alice = AS_ALICE[name](monkeypatch)
    with pytest.raises(
        NotPermittedError, match=r"^slurmctld refused all 1 updates: Access/permission denied$"
    ):
        alice.gateway.write_site_factors([alice.update("plain", 5)])
    with pytest.raises(NotPermittedError, match=r"^slurmctld refused all 2 updates: Invalid user id$"):
        alice.gateway.write_site_factors([alice.update("of-bob", 5), alice.update("plain", 5)])


@pytest.mark.parametrize("name", AS_OPERATOR)
def test_value_out_of_range_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """scontrol ignores the value and names no job: it can't be a failure of one update (case 41)."""
    operator = AS_OPERATOR[name](monkeypatch)
    with pytest.raises(CommandFailedError, match=r"SiteFactor value out of range .* Value ignored"):
        operator.gateway.write_site_factors([operator.update("plain", 2**31)])
