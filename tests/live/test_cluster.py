"""The container cluster is what docker/topology.yaml says, on every release, and leaves nothing behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.client import DockerClient

from . import engine, images, leftovers
from .harness import LOG_ROOT, Cluster, ClusterError, ExecError, ExecTimeoutError, wait_for
from .topology import ROOT, replace_parameters

NEWEST = list(images.releases())[-1]  # for what depends on Docker rather than on Slurm


@pytest.fixture
def client() -> Iterator[DockerClient]:
    """A connection of the test's own to the engine."""
    connection = engine.connect()
    yield connection
    connection.close()


def parsable(cluster: Cluster, *command: str) -> list[list[str]]:
    """Returns the rows that sacctmgr prints, each as its fields."""
    output = cluster.exec(["sacctmgr", "--noheader", "--parsable2", *command]).stdout
    return [line.split("|") for line in output.splitlines()]


def show_node(cluster: Cluster, name: str) -> dict[str, str]:
    """Returns what scontrol shows of a node, name -> value."""
    words = cluster.exec(["scontrol", "show", "node", name, "--oneliner"]).stdout.split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def submit(cluster: Cluster, user: str, *options: str, script: str) -> str:
    """Returns the id of a batch job of the user; a controller that lost its state gives an id out again."""
    argv = ["sbatch", "--parsable", "--output=/dev/null", *options]
    return cluster.exec(argv, user=user, stdin=f"#!/bin/bash\n{script}\n").stdout.strip()


def job_field(cluster: Cluster, job_id: str, field: str) -> str:
    """Returns what squeue prints for one of its one-letter fields, finished jobs included."""
    argv = ["squeue", "--noheader", "--states=all", f"--format=%{field}", f"--jobs={job_id}"]
    return cluster.exec(argv).stdout.strip()


def job_state(cluster: Cluster, job_id: str) -> str:
    """Returns the job's state as squeue writes it in full."""
    return job_field(cluster, job_id, "T")


def wait_completed(cluster: Cluster, job_id: str) -> None:
    """Returns when the job is completed."""
    wait_for(lambda: job_state(cluster, job_id) == "COMPLETED", 60, f"job {job_id} is completed")


def names_of(client: DockerClient, cluster_id: str) -> list[str]:
    """Returns the names of the cluster's containers and networks that the engine still has."""
    label = f"{leftovers.LABEL}={cluster_id}"
    containers = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
    networks = client.networks.list(filters={"label": label})
    return [str(c.name) for c in containers] + [str(network.name) for network in networks]


class TestShape:
    """docker/topology.yaml is what Slurm reports."""

    def test_controller_runs_the_release_it_is_named_after(self, cluster: Cluster) -> None:
        """Source: docker/releases.yaml."""
        config = cluster.exec(["scontrol", "show", "config"]).stdout
        assert f"SLURM_VERSION           = {cluster.release.name}." in config

    def test_nodes_have_the_size_of_the_topology(self, cluster: Cluster) -> None:
        """A host with fewer cores may claim them: SlurmdParameters=config_overrides."""
        shown = {name: show_node(cluster, name) for name in cluster.topology.nodes}
        assert {name: (node["CPUTot"], node["RealMemory"], node["Gres"]) for name, node in shown.items()} == {
            name: (str(node.cpus), str(node.memory_mib), node.gres)
            for name, node in cluster.topology.nodes.items()
        }

    def test_nodes_count_their_gpus_by_type(self, cluster: Cluster) -> None:
        """CfgTRES has the typed entry because AccountingStorageTRES lists it."""
        for name, node in cluster.topology.nodes.items():
            assert f"gres/gpu:{node.gpu_type}={node.gpus}" in show_node(cluster, name)["CfgTRES"]

    def test_main_is_the_default_partition(self, cluster: Cluster) -> None:
        """sinfo marks the default with a star."""
        lines = cluster.exec(["sinfo", "--noheader", "--format=%P %l"]).stdout.splitlines()
        assert set(lines) == {"main* 7-00:00:00"}

    def test_qos_have_their_priorities(self, cluster: Cluster) -> None:
        """low 0, normal 100, high 1000."""
        rows = parsable(cluster, "list", "qos", "format=name,priority")
        assert {name: int(priority) for name, priority in rows} == cluster.topology.qos

    def test_users_have_their_account_and_admin_level(self, cluster: Cluster) -> None:
        """scoreop alone is an Operator, which is what changing SiteFactor takes."""
        rows = parsable(cluster, "list", "user", "format=user,defaultaccount,adminlevel")
        found = {user: (account, level) for user, account, level in rows if user != "root"}
        assert found == {name: (u.account, u.admin_level) for name, u in cluster.topology.users.items()}

    def test_every_user_may_use_every_qos(self, cluster: Cluster) -> None:
        """Each association has all QOS and the same default."""
        rows = parsable(cluster, "list", "associations", "format=user,qos,defaultqos")
        found = {user: (set(qos.split(",")), default) for user, qos, default in rows if user}
        expected = (set(cluster.topology.qos), cluster.topology.default_qos)
        assert found == dict.fromkeys(["root", *cluster.topology.users], expected)

    def test_accounting_commands_change_nothing_the_second_time(self, cluster: Cluster) -> None:
        """A container that is started again runs them again."""
        associations = ("list", "associations", "format=cluster,account,user,qos,defaultqos")
        before = parsable(cluster, *associations)
        commands = cluster.read_file("/etc/slurm-score-test/accounting")
        cluster.exec(["sacctmgr", "--immediate"], stdin=commands, check=False)
        assert parsable(cluster, *associations) == before


class TestJobs:
    """Jobs run as they would on hardware."""

    @pytest.mark.parametrize(("gpu_type", "nodes"), [("a100", {"g1", "g2"}), ("v100", {"g3"})])
    def test_gpu_job_runs_on_the_type_it_asks_for(
        self, cluster: Cluster, gpu_type: str, nodes: set[str]
    ) -> None:
        """The job sees as many devices as it asked for, on a node that has the type."""
        job_id = submit(
            cluster,
            "alice",
            f"--gpus={gpu_type}:2",
            "--output=/tmp/gpu-%j.out",
            script="echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES",
        )
        wait_completed(cluster, job_id)
        where = job_field(cluster, job_id, "N")
        assert where in nodes
        assert cluster.read_file(f"/tmp/gpu-{job_id}.out", node=where) == f"{where} 0,1\n"

    def test_site_factor_takes_an_operator(self, cluster: Cluster) -> None:
        """An ordinary user is refused, in Slurm's own words; scoreop is not, and sprio shows it at once."""
        all_of_g1 = ("--nodelist=g1", "--gpus=a100:4")
        first_id = submit(cluster, "bob", *all_of_g1, script="sleep 600")
        wait_for(lambda: job_state(cluster, first_id) == "RUNNING", 60, f"job {first_id} runs")
        job_id = submit(cluster, "bob", *all_of_g1, script="true")
        update = ["scontrol", "update", f"JobId={job_id}", "SiteFactor=5"]
        with pytest.raises(ExecError, match="Access/permission denied"):
            cluster.exec(update, user="bob")
        cluster.exec(update, user="scoreop")
        assert cluster.exec(["sprio", "--noheader", "--format=%i %S"]).stdout.split() == [job_id, "5"]
        cluster.clear_jobs()
        assert job_state(cluster, job_id) == "CANCELLED"


class TestExec:
    """exec keeps what goes in and what comes out apart, and ends what takes too long."""

    def test_outputs_and_exit_code_are_kept_apart(self, cluster: Cluster) -> None:
        """Slurm's commands print rows on one and complaints on the other."""
        result = cluster.exec(["sh", "-c", "echo out; echo err >&2; exit 3"], user="alice", check=False)
        assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 3)

    def test_standard_input_of_any_size_comes_back(self, cluster: Cluster) -> None:
        """Thousands of commands go to one scontrol while it prints: neither side may wait for the other."""
        text = "update JobId=1 SiteFactor=5 é\n" * 50_000
        assert cluster.exec(["cat"], stdin=text).stdout == text

    def test_command_sees_user_environment_and_folder(self, cluster: Cluster) -> None:
        """/tmp is where every user may write, on every node."""
        argv = ["sh", "-c", "id -un; echo $SLURM_TIME_FORMAT; pwd"]
        assert cluster.exec(argv, user="bob", env={"SLURM_TIME_FORMAT": "%s"}).stdout == "bob\n%s\n/tmp\n"

    def test_command_that_takes_too_long_is_ended(self, cluster: Cluster) -> None:
        """Ended in the container, where closing the connection would have left it running."""
        with pytest.raises(ExecTimeoutError, match=r"no end within 0\.5 s"):
            cluster.exec(["sleep", "1234"], timeout_s=0.5)
        assert cluster.exec(["pgrep", "--full", "^sleep 1234"], check=False).stdout == ""

    def test_written_file_has_owner_mode_and_text(self, cluster: Cluster) -> None:
        """And nothing is left beside it."""
        cluster.exec(["mkdir", "/tmp/written"])
        cluster.write_file("/tmp/written/policy.yaml", "mode: é\n", owner="scoreop", mode=0o640)
        listing = cluster.exec(["find", "/tmp/written", "-type", "f", "-printf", "%u %m %f\n"]).stdout
        assert listing == "scoreop 640 policy.yaml\n"
        assert cluster.read_file("/tmp/written/policy.yaml") == "mode: é\n"


class TestFaults:
    """What a test breaks, it can mend."""

    @pytest.mark.parametrize(
        ("break_it", "mend_it"), [("kill", "start"), ("pause", "unpause"), ("disconnect", "connect")]
    )
    def test_node_works_again_after_a_fault(self, cluster: Cluster, break_it: str, mend_it: str) -> None:
        """A job for that very node is completed."""
        getattr(cluster, break_it)("g3")
        getattr(cluster, mend_it)("g3")
        wait_completed(cluster, submit(cluster, "alice", "--nodelist=g3", script="true"))

    def test_controller_keeps_its_queue_when_it_is_restarted(self, cluster: Cluster) -> None:
        """slurmctld saves its state when it ends; a kill can cost it the last 5 s (SAVE_MAX_WAIT)."""
        job_id = submit(cluster, "alice", "--hold", script="true")
        cluster.stop_daemon("slurmctld")
        cluster.start_daemon("slurmctld")
        assert job_state(cluster, job_id) == "PENDING"
        cluster.clear_jobs()

    def test_accounting_can_be_away(self, cluster: Cluster) -> None:
        """slurmctld goes on without slurmdbd."""
        cluster.stop_daemon("slurmdbd")
        job_id = submit(cluster, "alice", script="true")
        wait_completed(cluster, job_id)
        cluster.start_daemon("slurmdbd")

    def test_whole_controller_can_be_killed(self, cluster: Cluster) -> None:
        """Accounts and addresses outlive its container's death, and the nodes find it again."""
        cluster.kill("ctl")
        cluster.start("ctl")
        wait_completed(cluster, submit(cluster, "bob", "--nodes=3", script="true"))
        assert parsable(cluster, "list", "user", "format=user", "where", "name=bob") == [["bob"]]

    def test_logs_of_all_daemons_are_saved(self, cluster: Cluster, tmp_path: Path) -> None:
        """One folder per container."""
        cluster.save_logs(tmp_path)
        wanted = [f"{name}/slurm/slurmd.log" for name in cluster.topology.nodes]
        wanted += ["ctl/slurm/slurmctld.log", "ctl/slurm/slurmdbd.log", "ctl/slurm-score-test/mariadb.log"]
        assert [name for name in wanted if not (tmp_path / name).stat().st_size] == []


class TestLife:
    """Clusters do not get into each other's way, and none outlives the tests."""

    def test_two_clusters_stand_side_by_side(self, cluster: Cluster, release: str) -> None:
        """Own names, network, configuration and queue; nothing is left of the second one afterwards."""
        job_id = submit(cluster, "alice", "--hold", script="true")
        with Cluster(release, daemons=(), slurm_conf={"PriorityWeightQOS": "7", "MailProg": None}) as second:
            assert not set(names_of(second.client, second.id)) & set(names_of(cluster.client, cluster.id))
            assert second.exec(["squeue", "--noheader"]).stdout == ""
            assert "PriorityWeightQOS       = 7" in second.exec(["scontrol", "show", "config"]).stdout
        assert names_of(cluster.client, second.id) == []
        assert job_state(cluster, job_id) == "PENDING"
        cluster.clear_jobs()

    def test_cluster_that_does_not_come_up_says_why_and_leaves_nothing(self, client: DockerClient) -> None:
        """A hook script that does not load is fatal to slurmctld; the message has the end of its log."""
        broken = Cluster(NEWEST, daemons=(), files={"/etc/slurm/job_submit.lua": "this is not Lua"})
        with pytest.raises(ClusterError, match=r"(?s)fatal: .*slurmctld ended at once"):
            broken.up()
        assert names_of(client, broken.id) == []
        shutil.rmtree(LOG_ROOT / broken.name)

    def test_cluster_of_a_killed_process_is_removed(self, client: DockerClient) -> None:
        """Not even SIGKILL leaves containers behind."""
        program = (
            "import signal; from tests.live.harness import Cluster; "
            f"print(Cluster({NEWEST!r}, daemons=()).up().id, flush=True); signal.pause()"
        )
        argv = [sys.executable, "-c", program]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            cluster_id = process.stdout.readline().strip()
            assert len(names_of(client, cluster_id)) == len(Cluster(NEWEST).nodes) + 1
            process.send_signal(signal.SIGKILL)
        wait_for(lambda: not names_of(client, cluster_id), 30, f"{cluster_id} is removed")


def test_owner_is_dead_when_its_process_number_belongs_to_another() -> None:
    """The start time tells two processes of the same number apart."""
    alive = leftovers.owner()
    boot, namespace, pid, start = alive.split("/")
    assert not leftovers.is_dead(alive)
    assert leftovers.is_dead("/".join([boot, namespace, pid, f"{start}1"]))
    assert leftovers.is_dead("/".join(["another boot", namespace, pid, start]))
    assert not leftovers.is_dead("/".join([boot, "another container", pid, start]))
    assert not leftovers.is_dead(leftovers.KEEP)


def test_without_an_engine_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live tests fail there, they are not skipped."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(engine.EngineMissingError, match=r"apt-get install docker\.io"):
        engine.connect()


def test_parameter_is_replaced_whatever_its_case() -> None:
    """slurm.conf(5): parameter names are case insensitive."""
    text = "SlurmUser=slurm\nMinJobAge = 300\nNodeName=g1 CPUs=8\n"
    replaced = replace_parameters(text, {"minjobage": "5", "SlurmUser": None})
    assert replaced == "minjobage=5\nNodeName=g1 CPUs=8\n"
