"""slurm_score/service/client.py: what becomes of answers that aren't the service's."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from slurm_score.errors import ServiceError
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient


def answering(response: Response) -> Starlette:
    """Return an application that answers /v1/jobs with one response."""

    def answer(_: Request) -> Response:
        return response

    return Starlette(routes=[Route("/v1/jobs", answer)])


@pytest.mark.parametrize(
    ("response", "message", "status"),
    [
        (JSONResponse([1]), "not an answer of the scoring service: [1]", None),
        (PlainTextResponse("hello"), "the scoring service does not answer: Expecting value", None),
        (PlainTextResponse(b"\xff"), "the scoring service does not answer: 'utf-8' codec", None),
        (JSONResponse({}, status_code=500), "HTTP 500", 500),
        (JSONResponse({"error": "too busy"}, status_code=503), "too busy", 503),
    ],
)
def test_other_answer_is_a_service_error(
    tmp_path: Path, response: Response, message: str, status: int | None
) -> None:
    """Something else listens there, or the service failed: one sentence, and the status if there was one."""
    with running_service(answering(response), tmp_path / "s"), pytest.raises(ServiceError) as caught:
        ServiceClient(tmp_path / "s").jobs()
    assert message in str(caught.value)
    assert caught.value.status == status


def test_client_says_when_nobody_answers(tmp_path: Path) -> None:
    """No socket, no service: one sentence with the path, and no status."""
    with pytest.raises(ServiceError) as caught:
        ServiceClient(tmp_path / "s").jobs()
    assert str(caught.value) == (
        f"{tmp_path / 's'}: the scoring service does not answer: No such file or directory"
    )
    assert caught.value.status is None
