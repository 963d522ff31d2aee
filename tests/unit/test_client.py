"""slurm_score/service/client.py: what becomes of answers that aren't the service's."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_score.errors import ServiceError
from slurm_score.service.client import ServiceClient


@contextmanager
def answering(path: Path, status: str, body: bytes) -> Iterator[None]:
    """Answer the first request on a unix socket with these words."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=_answer, args=(listening, status, body))
        thread.start()
        yield
        thread.join()


def _answer(listening: socket.socket, status: str, body: bytes) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(65536)
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)


@pytest.mark.parametrize(
    ("answered", "body", "message", "status"),
    [
        ("200 OK", b"[1]", "not an answer of the scoring service: [1]", None),
        ("200 OK", b"hello", "the scoring service does not answer: Expecting value", None),
        ("200 OK", b"\xff", "the scoring service does not answer: 'utf-8' codec", None),
        ("500 No", b"{}", "HTTP 500", 500),
        ("503 No", b'{"error": "too busy"}', "too busy", 503),
        ("503 No", b"Service Unavailable", "the scoring service is busy; ask again", 503),
    ],
)
def test_other_answer_is_a_service_error(
    tmp_path: Path, answered: str, body: bytes, message: str, status: int | None
) -> None:
    """Something else listens there, or the service failed: one sentence, and the status if there was one."""
    with answering(tmp_path / "s", answered, body), pytest.raises(ServiceError) as caught:
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
