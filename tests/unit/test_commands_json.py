"""slurm_score/slurm/commands.py: when JSON is asked for instead of text."""

import logging

import pytest

from slurm_score.errors import CommandFailedError, UnparseableAnswerError
from slurm_score.slurm.commands import Answer
from slurm_score.slurm.parse_nodes import parse_nodes
from tests.unit.commands_support import Slurm, gateway
from tests.unit.json_texts import JSON_NODE, PLAIN, answer
from tests.unit.slurm_texts import CONFIG, NODE, PARTITION

REJECTED = Answer(0, "812\n", "squeue: error: Invalid job format specification: tres-per-job\n")


def slurm(**answers: str | Answer) -> Slurm:
    """Return a Slurm whose squeue rejects a field; names are first words, joined by underscores."""
    known: dict[str, str | Answer] = {
        "squeue_-h_-t_PENDING": REJECTED,
        "squeue_-h_-t_all": "811\n812\n",
        "squeue_--json": answer(PLAIN, PLAIN | {"job_id": 811, "job_state": "COMPLETED"}),
        "sprio": "812|1200|700|500|0|0|0|0|0|0|\n",
        "scontrol_show_config": CONFIG,
        "scontrol_show_partition": PARTITION,
        "scontrol_show_assoc_mgr": "",
        "scontrol_show_topology": "",
        "scontrol_show_reservation": "No reservations in the system\n",
    }
    return Slurm(**known | answers)


def test_json_is_read_where_squeue_rejects_a_field_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """DESIGN, decision 5: squeue prints a field that it doesn't know empty, and exits with 0."""
    door = gateway(slurm())
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [(job.job_id, job.site_factor) for job in door.read_jobs()] == [(812, 700)]
    assert [record.getMessage() for record in caplog.records] == [
        "squeue -h -t: squeue: error: Invalid job format specification: tres-per-job; "
        "squeue --json is read instead"
    ]


def test_json_is_read_where_no_record_can_be() -> None:
    """A format that changed."""
    door = gateway(slurm(**{"squeue_-h_-t_PENDING": "812 main bob"}))
    assert [job.job_id for job in door.read_jobs()] == [812]


def test_json_is_not_read_where_text_can_be() -> None:
    """slurm-facts 4.5: it costs forty times as much."""
    asked = slurm(**{"squeue_-h_-t_PENDING": ""})
    assert gateway(asked).read_jobs() == ()
    assert [argv[0] for argv, _ in asked.asked] == ["squeue", "sprio"]


def test_json_of_a_long_queue_is_never_asked_for() -> None:
    """Trap 23: squeue takes 150 kB of memory a job, and up to 24.05.0 prints the ended ones too."""
    asked = slurm(**{"squeue_-h_-t_all": "812\n" * 5001})
    with pytest.raises(UnparseableAnswerError, match=r"tres-per-job; 5001 jobs are too many for --json"):
        gateway(asked).read_jobs()
    assert all("--json" not in argv for argv, _ in asked.asked)


@pytest.mark.parametrize("second", [Answer(1, "", "squeue: unrecognized option '--json'\n"), "no JSON"])
def test_both_ways_that_failed_are_told(second: str | Answer) -> None:
    """A Slurm built without JSON, or whose JSON is no better."""
    with pytest.raises(UnparseableAnswerError, match=r"tres-per-job; squeue --json -t: .*(JSON|option)"):
        gateway(slurm(**{"squeue_--json": second})).read_jobs()


def test_json_is_not_tried_where_the_command_failed() -> None:
    """What keeps squeue from answering keeps its JSON as well."""
    asked = slurm(**{"squeue_-h_-t_PENDING": Answer(1, "", "squeue: error: Zero Bytes\n")})
    with pytest.raises(CommandFailedError, match="Zero Bytes"):
        gateway(asked).read_jobs()
    assert len(asked.asked) == 1


def test_nodes_are_read_from_json_where_their_text_cannot_be() -> None:
    """scontrol has --json from 23.02 on."""
    nodes = {"scontrol_show_node_-o": "Node: g1", "scontrol_show_node_--json": answer(JSON_NODE, key="nodes")}
    assert gateway(slurm(**nodes)).read_cluster().nodes == tuple(parse_nodes(NODE).items)
