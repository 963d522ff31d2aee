"""The service as an ASGI application: routes, status codes, metrics. It holds no scoring of its own."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from slurm_score.errors import SlurmScoreError, SnapshotError
from slurm_score.policy import Policy
from slurm_score.service import handlers
from slurm_score.service.handlers import ScoreAnswer, Scored, ScoreRequest
from slurm_score.snapshot import Snapshot, read_snapshot
from slurm_score.watch import Watched, read_policy

MAX_BODY = 64 * 1024
BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)

log = logging.getLogger(__name__)


class Metrics:
    """The numbers that /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "slurm_score_answer_seconds", "Time to answer the hook", buckets=BUCKETS, registry=self.registry
        )
        self.answers = Counter(
            "slurm_score_answers", "Answers to the hook, by outcome", ["outcome"], registry=self.registry
        )
        self.age = Gauge("slurm_score_snapshot_age_seconds", "Age of the snapshot", registry=self.registry)
        self.policy = Gauge("slurm_score_policy", "Policy in force", ["hash", "mode"], registry=self.registry)


@dataclass(slots=True)
class State:
    """What the service answers from: two files, and a clock in s since the epoch."""

    policy: Watched[Policy]
    snapshot: Watched[Snapshot]
    scored: Watched[Scored]
    clock: Callable[[], float]
    metrics: Metrics

    def age_s(self) -> float | None:
        """Return the snapshot's age in s, None where there is none."""
        try:
            return self.clock() - self.snapshot.current().cluster.time_s
        except SnapshotError:
            return None


def create_app(policy: Path, snapshot: Path, clock: Callable[[], float] = time.time) -> Starlette:
    """Return the service's application.

    Raises:
        PolicyError: the policy can't be read at the start.
    """
    state = State(
        policy=Watched(policy, read_policy),
        snapshot=Watched(snapshot, lambda path: read_snapshot(path, with_jobs=False)),
        scored=Watched(snapshot, lambda path: handlers.score_snapshot(read_snapshot(path))),
        clock=clock,
        metrics=Metrics(),
    )
    state.policy.current()
    app = Starlette(
        routes=[
            Route("/v1/score", score, methods=["POST"]),
            Route("/v1/jobs", jobs),
            Route("/v1/jobs/{job_id}", job),
            Route("/healthz", healthz),
            Route("/metrics", metrics),
        ],
        exception_handlers={HTTPException: _http_error, SlurmScoreError: _our_error},
    )
    app.state.service = state
    return app


async def score(request: Request) -> Response:
    """Answer the hook: 200 with a score or a neutral answer, 413 or 422 for a request that can't be read."""
    state = _state(request)
    with state.metrics.seconds.time():
        try:
            asked = ScoreRequest.model_validate_json(await _body(request))
        except ValidationError as error:
            state.metrics.answers.labels("invalid").inc()
            return _invalid(error)
        answer = _score(state, asked)
    state.metrics.answers.labels("neutral" if answer.reason else "scored").inc()
    return JSONResponse(asdict(answer))


def jobs(request: Request) -> Response:
    """Answer with all pending jobs, best first."""
    return JSONResponse(handlers.list_jobs(_state(request).scored.current()))


def job(request: Request) -> Response:
    """Answer with one pending job, explained; 404 where it isn't pending."""
    scored = _state(request).scored.current()
    job_id = str(request.path_params["job_id"])
    i = handlers.find_job(scored, job_id)
    if i is None:
        raise HTTPException(404, f"job {job_id[:40]}: not pending in the last snapshot")
    return JSONResponse(handlers.explain(scored, i))


async def healthz(request: Request) -> Response:
    """Answer with mode, policy and the age of the snapshot; always 200 while the service runs."""
    state = _state(request)
    policy = state.policy.current()
    return JSONResponse(
        {
            "mode": str(policy.mode),
            "policy": policy.hash,
            "policy_error": state.policy.error,
            "snapshot_age_s": state.age_s(),
        }
    )


async def metrics(request: Request) -> Response:
    """Answer in Prometheus' text format."""
    state = _state(request)
    policy, age = state.policy.current(), state.age_s()
    state.metrics.age.set(float("nan") if age is None else age)
    state.metrics.policy.clear()
    state.metrics.policy.labels(policy.hash, str(policy.mode)).set(1)
    return Response(generate_latest(state.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _score(state: State, asked: ScoreRequest) -> ScoreAnswer:
    policy = state.policy.current()
    try:
        snapshot = state.snapshot.current()
    except SnapshotError as error:
        return handlers.neutral_answer(str(error), policy, asked)
    return handlers.score_new_job(asked, snapshot, policy, state.clock())


def _state(request: Request) -> State:
    state: State = request.app.state.service
    return state


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, f"request larger than {MAX_BODY} bytes")
    return bytes(body)


def _invalid(error: ValidationError) -> Response:
    faults: list[dict[str, Any]] = [
        {"field": ".".join(map(str, fault["loc"])), "error": fault["msg"]} for fault in error.errors()
    ]
    return JSONResponse({"error": "invalid request", "faults": faults}, status_code=422)


def _http_error(_: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    return JSONResponse({"error": detail}, status_code=status)


def _our_error(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=503)
