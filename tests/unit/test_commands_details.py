"""slurm_score/slurm/commands.py: fields that old releases lack, and what squeue doesn't tell."""

from collections.abc import Sequence

import pytest

from slurm_score.errors import ControllerDownError, UnparseableAnswerError
from slurm_score.model import Job
from slurm_score.slurm.commands import Answer, CommandGateway
from slurm_score.slurm.gateway import WriteGuard
from slurm_score.slurm.parse import JOB_FIELDS, USER_TEXTS
from tests.unit.builders import NOW
from tests.unit.slurm_texts import CONFIG, END, NODE, PARTITION, SEP, squeue_line

DETAIL = (
    "JobId={id} JobName=train UserId=alice(2001) Partition=main AllocNode:Sid=ctl:391 ReqNodeList=(null) "
    "ExcNodeList={exc} NodeList= NumNodes={nodes} NumCPUs=1 NumTasks=1 CPUs/Task=1\n"
)
ONE_NODE = DETAIL.format(id=812, exc="(null)", nodes="1-1")
GPUS = {"tres_per_job": "gres/gpu:2", "tres_alloc": "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=2"}


class OldSlurm:
    """A Slurm whose squeue doesn't know some fields: it says so, prints the rest, and ends with 0."""

    def __init__(self, lacks: tuple[str, ...] = (), *lines: str, **answers: str | Answer) -> None:
        self.lacks, self.lines, self.answers = lacks, lines, answers
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], _stdin: str, _timeout_s: float) -> Answer:
        """Return what squeue prints of the jobs, or a scripted answer."""
        self.asked.append(" ".join(argv[:3]))
        if argv[0] != "squeue":
            answer = self.answers.get("_".join(argv[:3]), "")
            return answer if isinstance(answer, Answer) else Answer(0, answer, "")
        names = [field.partition(":")[0] for field in argv[-1].split(",")]
        unknown = [name for name in names if name in self.lacks]
        said = "".join(f"squeue: error: Invalid job format specification: {name}\n" for name in unknown)
        end = argv[-1].rpartition("Comment:")[2]
        return Answer(0, "".join(self._row(line, names).replace(END, end) for line in self.lines), said)

    @staticmethod
    def _row(line: str, names: Sequence[str]) -> str:
        values = dict(zip(JOB_FIELDS, line.replace(END, SEP).split(SEP), strict=False))
        known = (name for name in names if name in values)
        return "".join(values[name] + (END if name in USER_TEXTS else SEP) for name in known) + "\n"


def gateway(slurm: OldSlurm) -> CommandGateway:
    """Return a gateway to it."""
    return CommandGateway(WriteGuard(), slurm, lambda: float(NOW))


def read(slurm: OldSlurm) -> Job:
    """Return the only job that is read."""
    (job,) = gateway(slurm).read_jobs()
    return job


def test_a_field_that_squeue_does_not_know_is_not_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    """22.05 has no ExcNodes (observed), 20.11 no Prefer either: a cycle costs one squeue more, once."""
    slurm = OldSlurm(("Prefer", "ExcNodes"), squeue_line(Prefer="nvlink", ExcNodes="g1", Feature="a100"))
    door = gateway(slurm)
    for _ in range(2):
        (job,) = door.read_jobs()
        assert (job.job_id, job.features, job.prefer) == (812, "a100", "")
    assert slurm.asked.count("squeue -h -t") == 3
    assert caplog.messages == []


def test_excluded_nodes_come_from_scontrol_where_squeue_lacks_the_field() -> None:
    """scontrol show job has ExcNodeList on every release."""
    details = DETAIL.format(id=812, exc="c1,g[1-2]", nodes="1")
    job = read(OldSlurm(("ExcNodes",), squeue_line(), scontrol_show_job=details))
    assert (job.exc_nodes, job.max_nodes) == ("c1,g[1-2]", 0)


def test_a_field_that_every_release_knows_is_never_left_out() -> None:
    """Without the GPUs there is no queue to score."""
    with pytest.raises(UnparseableAnswerError, match="tres-per-job"):
        read(OldSlurm(("tres-per-job", "ExcNodes"), squeue_line()))


def test_gpus_that_must_stand_on_one_node_are_told_by_scontrol() -> None:
    """--nodes=1 --gpus=2 and --gpus=2 look alike in squeue; scontrol says NumNodes=1-1 and NumNodes=1."""
    bound = read(OldSlurm((), squeue_line(**GPUS), scontrol_show_job=ONE_NODE))
    free = read(OldSlurm((), squeue_line(**GPUS), scontrol_show_job=ONE_NODE.replace("1-1", "1")))
    assert (bound.max_nodes, free.max_nodes) == (1, 0)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="no GPUs"),
        pytest.param({"tres_per_job": "gres/gpu:1"}, id="one GPU is always on one node"),
        pytest.param({"tres_per_node": "gres/gpu:2"}, id="grouped by node"),
        pytest.param(GPUS | {"MaxNodes": "2"}, id="squeue tells"),
        pytest.param(GPUS | {"State": "RUNNING"}, id="it runs"),
        pytest.param(GPUS | {"PriorityLong": "0"}, id="held"),
        pytest.param(GPUS | {"EligibleTime": "N/A"}, id="it depends on another"),
    ],
)
def test_scontrol_is_not_asked_for_nothing(changes: dict[str, str]) -> None:
    """One listing of the jobs more is what it costs slurmctld."""
    slurm = OldSlurm((), squeue_line(**changes))
    read(slurm)
    assert slurm.asked == ["squeue -h -t", "sprio -h -o"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, "", "scontrol: error: Invalid entity: topology\n"),
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=g[1-\n",
    ],
)
def test_a_topology_that_cannot_be_read_is_none(
    answer: str | Answer, caplog: pytest.LogCaptureFixture
) -> None:
    """Nodes are known without it: a cycle never fails for that, and the log says so once."""
    slurm = OldSlurm(
        scontrol_show_topology=answer,
        scontrol_show_config=CONFIG,
        scontrol_show_partition=PARTITION,
        scontrol_show_node=NODE,
    )
    door = gateway(slurm)
    for _ in range(2):
        assert {node.switch for node in door.read_cluster().nodes} == {""}
    assert [message.partition(":")[0] for message in caplog.messages] == ["scontrol show topology"]


def test_a_controller_that_is_down_is_no_missing_topology() -> None:
    """The cycle ends there, as with every other question."""
    down = Answer(1, "", "slurm_load_topo: Unable to contact slurm controller (connect failure)\n")
    with pytest.raises(ControllerDownError):
        gateway(OldSlurm(scontrol_show_topology=down)).read_switches()
