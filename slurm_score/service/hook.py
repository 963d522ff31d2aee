"""What listens on the hook's socket: `POST /v1/score` as a bare ASGI application.

slurmctld waits for it under its locks, and between two submissions a processor forgets what it ran: the
less there is to run, the sooner the answer. A framework's router, request and response cost as much as
the scoring itself.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from slurm_score.errors import SnapshotError
from slurm_score.service import handlers
from slurm_score.service.handlers import ScoreAnswer, ScoreRequest
from slurm_score.service.state import State

MAX_BODY = 64 * 1024
PATH = "/v1/score"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class HookApp:
    """Answers the hook: 200 with a score or a neutral answer, 413 or 422 for a request that can't be read.

    A fault of ours is raised: the server logs it and answers 500.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request.

        Source: the ASGI specification 3.0, HTTP connection scope.
        """
        body = await _body(receive)
        if body is None:
            return  # nobody waits any more
        if scope["path"] != PATH:
            status, told = HTTPStatus.NOT_FOUND, {"error": "Not Found"}
        elif scope["method"] != "POST":
            status, told = HTTPStatus.METHOD_NOT_ALLOWED, {"error": "Method Not Allowed"}
        else:
            self._see(scope["headers"])
            with self._state.metrics.seconds.time():
                status, told = self._answer(body)
        answer = json.dumps(told, allow_nan=False).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        outcomes = self._state.metrics.answers
        if len(body) > MAX_BODY:
            outcomes.labels("too_large").inc()
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"request larger than {MAX_BODY} bytes"}
        try:
            asked = ScoreRequest.model_validate_json(body)
        except ValidationError as error:
            outcomes.labels("invalid").inc()
            return HTTPStatus.UNPROCESSABLE_ENTITY, _faults(error)
        answer = self._score(asked)
        outcomes.labels(_outcome(answer)).inc()
        return HTTPStatus.OK, {name: getattr(answer, name) for name in ScoreAnswer.__slots__}

    def _score(self, asked: ScoreRequest) -> ScoreAnswer:
        policy = self._state.policy.latest()
        if self._state.killed:
            return ScoreAnswer(site_factor=None, reason=self._state.killed, policy=policy.hash)
        try:
            snapshot = self._state.snapshot.latest()
        except SnapshotError as error:
            return handlers.neutral_answer(str(error), policy, asked)
        return handlers.score_new_job(asked, snapshot, policy, self._state.clock())

    def _see(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Remember who asks, if it is the hook."""
        agent = next((value for name, value in headers if name == b"user-agent"), b"")
        self._state.saw_hook(agent.decode("latin-1"))


async def _body(receive: Receive) -> bytes | None:
    """The request's body, no more than a little above MAX_BODY of it; None where the client has gone."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        if len(body) <= MAX_BODY:
            body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def _outcome(answer: ScoreAnswer) -> str:
    if answer.site_factor is None:
        return "none"
    return "neutral" if answer.reason else "scored"


def _faults(error: ValidationError) -> dict[str, Any]:
    faults = [{"field": ".".join(map(str, fault["loc"])), "error": fault["msg"]} for fault in error.errors()]
    return {"error": "invalid request", "faults": faults}
