"""slurm_score/service/app.py: what a query of /v1/jobs asks for, over a real unix socket."""

import json

import pytest

from slurm_score.errors import ServiceError
from slurm_score.policy_yaml import parse_policy
from slurm_score.service.reports import process_worker
from tests.unit import service_support
from tests.unit.service_support import ENFORCE, Service

# pytest finds fixtures by their names in the module.
service = service_support.service


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ([], ["10", "26+0", "9_[3-9%3]"]),
        ([("job", "9_4"), ("job", "10")], ["10", "9_[3-9%3]"]),
        ([("job", "9_[3-9%3]")], ["9_[3-9%3]"]),
        ([("job", "26+0")], ["26+0"]),
        ([("partition", "gpu")], ["26+0"]),
        ([("qos", "high")], ["10"]),
        ([("user", "alice"), ("account", "physics"), ("limit", "1")], ["10"]),
        ([("user", "bob")], []),
        ([("eligible", "1")], ["10", "26+0", "9_[3-9%3]"]),
    ],
)
def test_query_names_the_jobs(service: Service, query: list[tuple[str, str]], ids: list[str]) -> None:
    """Brackets, plus and percent signs survive the way; as rows and as columns alike."""
    assert [row["job"] for row in service.client.jobs(query)["jobs"]] == ids
    assert service.client.columns(["job"], query)["columns"] == {"job": ids}


def test_answer_names_the_policy_file_s_policy_beside_the_snapshot_s(service: Service) -> None:
    """They differ from a change of the file to the next cycle."""
    before = parse_policy(ENFORCE).hash
    service.policy.write_text("mode: advise\n", encoding="utf-8")
    service.state.refresh()
    answer = service.client.jobs()
    assert (answer["policy"], answer["policy_in_force"]) == (before, parse_policy("mode: advise").hash)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            [("colour", "red"), ("users", "bob")],
            "no such key of a query, got 'colour,users'; "
            "there are job, user, partition, account, qos, eligible, limit, field",
        ),
        ([("limit", "all")], "not a limit, got 'all'; a number of jobs such as 100"),
        ([("limit", "-1")], "not a limit, got '-1'; a number of jobs such as 100"),
    ],
)
def test_wrong_query_is_422_with_one_sentence(
    service: Service, query: list[tuple[str, str]], sentence: str
) -> None:
    """What is wrong, and what is allowed."""
    with pytest.raises(ServiceError) as caught:
        service.client.jobs(query)
    assert (caught.value.status, str(caught.value)) == (422, sentence)


def test_a_field_that_there_is_not_is_422(service: Service) -> None:
    """The worker, in a process of its own as in the product, finds it out; the sentence comes back."""
    service.state.worker.shutdown()
    service.state.worker = process_worker()
    status, _, text = service.ask("GET", "/v1/jobs?field=job&field=colour")
    assert status == 422
    assert json.loads(text)["error"].startswith("no such field, got 'colour'; there are parts, factors, job,")
