"""What listens on the readers' socket, as an ASGI application: routes and status codes, no scoring."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from dataclasses import asdict
from typing import TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from slurm_score import __version__
from slurm_score.errors import SlurmScoreError, SnapshotError
from slurm_score.service import reports
from slurm_score.service.handlers import list_gpus
from slurm_score.service.state import MAX_REPORTS, State

T = TypeVar("T")

log = logging.getLogger(__name__)


def readers_app(state: State) -> Starlette:
    """Return the application, for the socket and for TCP where that is asked for: it changes nothing."""
    routes = [
        Route("/v1/jobs", jobs),
        Route("/v1/jobs/{job_id}", job),
        Route("/v1/gpus", gpus),
        Route("/healthz", healthz),
        Route("/metrics", metrics),
    ]
    handled = {HTTPException: _http_error, SlurmScoreError: _our_error, Exception: _fault}
    app = Starlette(routes=routes, exception_handlers=handled)  # type: ignore[arg-type]
    app.state.service = state
    return app


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


async def gpus(request: Request) -> Response:
    """Answer with what there is of each GPU type in each partition, and who wants it."""
    return JSONResponse(list_gpus(_state(request).snapshot.latest()))


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
            "kill_switch": state.killed,
            "hook": asdict(state.hook),
        }
    )


async def metrics(request: Request) -> Response:
    """Answer in Prometheus' text format."""
    state = _state(request)
    policy, age, numbers = state.policy.latest(), state.age_s(), state.metrics
    numbers.count()
    numbers.age.set(float("nan") if age is None else age)
    numbers.hook.set(float("nan") if state.hook.last_s is None else state.hook.last_s)
    _show_gpus(state)
    numbers.policy.clear()
    numbers.policy.labels(policy.hash, str(policy.mode)).set(1)
    return Response(generate_latest(numbers.registry), media_type=CONTENT_TYPE_LATEST)


def _show_gpus(state: State) -> None:
    """Set the gauges of GPUs to what the last snapshot tells; none without one."""
    gauge = state.metrics.gpus
    gauge.clear()
    try:
        told = list_gpus(state.snapshot.latest())["gpus"]
    except SnapshotError:
        return
    for row in told:
        nodes, each = row["block"]
        for what in ("total", "used", "free", "broken", "largest", "asked", "flexible"):
            gauge.labels(row["partition"], row["gpu_type"], what).set(row[what])
        gauge.labels(row["partition"], row["gpu_type"], "block").set(nodes * each)


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


def _http_error(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


def _our_error(_: Request, error: SlurmScoreError) -> Response:
    return JSONResponse({"error": str(error)}, status_code=503)


def _fault(_: Request, error: Exception) -> Response:
    """A fault of ours: the traceback goes to the log (the server writes it), the client gets one line."""
    return JSONResponse({"error": f"internal error: {type(error).__name__}"}, status_code=500)
