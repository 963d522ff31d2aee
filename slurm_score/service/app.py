"""The service as two ASGI applications, for the hook and for reports: routes and status codes, no scoring."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from dataclasses import asdict
from typing import Any, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from slurm_score import __version__
from slurm_score.errors import SlurmScoreError, SnapshotError
from slurm_score.service import handlers, reports
from slurm_score.service.handlers import ScoreAnswer, ScoreRequest
from slurm_score.service.state import MAX_REPORTS, State

T = TypeVar("T")

MAX_BODY = 64 * 1024

log = logging.getLogger(__name__)


def hook_app(state: State) -> Starlette:
    """Return what listens on the hook's socket: one question, asked in slurmctld."""
    return _app(state, [Route("/v1/score", score, methods=["POST"])])


def readers_app(state: State) -> Starlette:
    """Return what listens on the readers' socket, and on TCP where that is asked for: it changes nothing."""
    return _app(
        state,
        [
            Route("/v1/jobs", jobs),
            Route("/v1/jobs/{job_id}", job),
            Route("/healthz", healthz),
            Route("/metrics", metrics),
        ],
    )


def _app(state: State, routes: list[Route]) -> Starlette:
    handled = {HTTPException: _http_error, SlurmScoreError: _our_error, Exception: _fault}
    app = Starlette(routes=routes, exception_handlers=handled)  # type: ignore[arg-type]
    app.state.service = state
    return app


async def score(request: Request) -> Response:
    """Answer the hook: 200 with a score or a neutral answer, 413 or 422 for a request that can't be read."""
    state = _state(request)
    state.saw_hook(request.headers.get("user-agent", ""))
    outcomes = state.metrics.answers
    with state.metrics.seconds.time():
        try:
            asked = ScoreRequest.model_validate_json(await _body(request))
        except ValidationError as error:
            outcomes.labels("invalid").inc()
            return _invalid(error)
        except HTTPException:
            outcomes.labels("too_large").inc()
            raise
        answer = _score(state, asked)
    outcomes.labels(_outcome(answer)).inc()
    return JSONResponse(asdict(answer))


async def jobs(request: Request) -> Response:
    """Answer with all pending jobs, best first; 503 where too many reports are being made."""
    body = await _report(_state(request), reports.dump_jobs)
    return Response(body, media_type="application/json")


async def job(request: Request) -> Response:
    """Answer with one pending job, explained; 404 where it isn't pending, 503 where too many ask."""
    job_id = str(request.path_params["job_id"])
    told = await _report(_state(request), reports.explain_job, job_id)
    if told is None:
        raise HTTPException(404, f"job {job_id[:40]}: not pending in the last snapshot")
    return JSONResponse(told)


async def healthz(request: Request) -> Response:
    """Answer with mode, policy, snapshot and hook; always 200 while the service runs."""
    state = _state(request)
    policy = state.policy.latest()
    return JSONResponse(
        {
            "version": __version__,
            "mode": str(policy.mode),
            "policy": policy.hash,
            "policy_error": state.policy.error,
            "snapshot_age_s": state.age_s(),
            "snapshot_error": state.snapshot.error,
            "hook": asdict(state.hook),
        }
    )


async def metrics(request: Request) -> Response:
    """Answer in Prometheus' text format."""
    state = _state(request)
    policy, age, numbers = state.policy.latest(), state.age_s(), state.metrics
    numbers.age.set(float("nan") if age is None else age)
    numbers.hook.set(float("nan") if state.hook.last_s is None else state.hook.last_s)
    numbers.policy.clear()
    numbers.policy.labels(policy.hash, str(policy.mode)).set(1)
    return Response(generate_latest(numbers.registry), media_type=CONTENT_TYPE_LATEST)


def _score(state: State, asked: ScoreRequest) -> ScoreAnswer:
    policy = state.policy.latest()
    try:
        snapshot = state.snapshot.latest()
    except SnapshotError as error:
        return handlers.neutral_answer(str(error), policy, asked)
    return handlers.score_new_job(asked, snapshot, policy, state.clock())


def _outcome(answer: ScoreAnswer) -> str:
    if answer.site_factor is None:
        return "none"
    return "neutral" if answer.reason else "scored"


async def _report(state: State, make: Callable[..., T], *arguments: str) -> T:
    """Let the worker make a report; shed rather than queue, and replace a worker that died."""
    if state.reports >= MAX_REPORTS:
        state.metrics.shed.inc()
        raise HTTPException(503, f"{MAX_REPORTS} reports are being made; ask again", {"Retry-After": "1"})
    state.reports += 1
    worker = state.worker
    try:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(worker, make, state.snapshot.path, *arguments)
    except BrokenExecutor as error:
        log.error("the worker that makes reports ended: %s", error)
        if state.worker is worker:
            state.worker = state.new_worker()
        raise HTTPException(503, "the report could not be made; ask again", {"Retry-After": "1"}) from error
    finally:
        state.reports -= 1


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


def _http_error(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


def _our_error(_: Request, error: SlurmScoreError) -> Response:
    return JSONResponse({"error": str(error)}, status_code=503)


def _fault(_: Request, error: Exception) -> Response:
    """A fault of ours: the traceback goes to the log (the server writes it), the client gets one line."""
    return JSONResponse({"error": f"internal error: {type(error).__name__}"}, status_code=500)
