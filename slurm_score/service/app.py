"""What listens on the readers' socket, as an ASGI application: routes and status codes, no scoring."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, replace
from typing import TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from slurm_score import __version__
from slurm_score.errors import ParseError, SlurmScoreError, SnapshotError
from slurm_score.service import reports
from slurm_score.service.handlers import list_gpus
from slurm_score.service.listing import MAX_DIGITS, Selection
from slurm_score.service.state import MAX_REPORTS, Metrics, State
from slurm_score.service.viewers import PEER_UID

T = TypeVar("T")

QUERY = {"job": "jobs", "user": "users", "partition": "partitions", "account": "accounts", "qos": "qos"}
"""Keys of a query, with the parts of a selection that they fill."""

HOOK_WAITS_S = 0.02
"""How long the hook waits for an answer by default; one of the histogram's buckets."""

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
    handled = {
        HTTPException: _http_error,
        ParseError: _bad_request,
        SlurmScoreError: _our_error,
        Exception: _fault,
    }
    app = Starlette(routes=routes, exception_handlers=handled)  # type: ignore[arg-type]
    app.state.service = state
    return app


async def jobs(request: Request) -> Response:
    """Answer with pending jobs, best first; 422 for a wrong question, 503 where too many ask.

    `job`, `user`, `partition`, `account` and `qos` name which, each as often as needed; `eligible=1`
    leaves out those that can't start yet, `limit` tells of so many at most. With `field`, as often as
    needed, there is a column for each; else a row for each job.
    """
    state = _state(request)
    asked = replace(
        asked_for(request.query_params.multi_items()),
        uid=request.scope.get(PEER_UID),
        in_force=state.policy.latest().hash,
    )
    body = await _report(state, reports.dump_jobs, asked)
    return Response(body, media_type="application/json")


def asked_for(query: Sequence[tuple[str, str]]) -> reports.Asked:
    """Return which jobs, and which columns of them, a query asks for.

    Raises:
        ParseError: it has another key, or a limit that isn't a number.
    """
    given: dict[str, list[str]] = {}
    for key, value in query:
        given.setdefault(key, []).append(value)
    if unknown := sorted(given.keys() - QUERY.keys() - {"field", "eligible", "limit"}):
        allowed = ", ".join((*QUERY, "eligible", "limit", "field"))
        raise ParseError("no such key of a query", ",".join(unknown), f"there are {allowed}")
    wanted = {name: tuple(given.get(key, ())) for key, name in QUERY.items()}
    selection = Selection(
        **wanted,  # type: ignore[arg-type]
        eligible=given.get("eligible", ["0"])[-1] == "1",
        limit=_limit(given["limit"][-1]) if "limit" in given else None,
    )
    return reports.Asked(wanted=selection, columns=tuple(given.get("field", ())))


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ParseError("not a limit", text, "a number of jobs such as 100")
    return int(text)


async def job(request: Request) -> Response:
    """Answer with one pending job, explained; 404 where it isn't pending, 503 where too many ask.

    A job that the caller must not be told of is a job that isn't pending.
    """
    job_id = str(request.path_params["job_id"])
    state = _state(request)
    told = await _report(state, reports.explain_job, request.scope.get(PEER_UID), job_id)
    if told is None:
        raise HTTPException(404, f"job {job_id[:40]}: not pending in the last snapshot")
    return JSONResponse(told | {"age_s": state.age_s()})


async def gpus(request: Request) -> Response:
    """Answer with what there is of each GPU type in each partition, and who wants it."""
    return JSONResponse(list_gpus(_state(request).snapshot.latest()))


async def healthz(request: Request) -> Response:
    """Answer with mode, policy, snapshot, hook and its answers; always 200 while the service runs."""
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
            "answers": _answers(state.metrics),
        }
    )


def _answers(numbers: Metrics) -> dict[str, float]:
    """Return how many questions of the hook were answered, in s on average, and how many took above 20 ms."""
    numbers.count()
    (family,) = numbers.seconds.collect()
    told = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    count, seconds = (told[f"{family.name}_{what}", None] for what in ("count", "sum"))
    slow = count - told[f"{family.name}_bucket", str(HOOK_WAITS_S)]
    return {"count": count, "mean_s": seconds / count if count else 0.0, "slow": slow}


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


async def _report(state: State, make: Callable[..., T], *arguments: object) -> T:
    """Let the worker make a report; shed rather than queue, and replace a worker that died."""
    if state.reports >= MAX_REPORTS:
        state.metrics.shed.inc()
        raise HTTPException(503, f"{MAX_REPORTS} reports are being made; ask again", {"Retry-After": "1"})
    state.reports += 1
    state.wants_reports = True
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


def _bad_request(_: Request, error: ParseError) -> Response:
    return JSONResponse({"error": str(error)}, status_code=422)


def _our_error(_: Request, error: SlurmScoreError) -> Response:
    return JSONResponse({"error": str(error)}, status_code=503)


def _fault(_: Request, error: Exception) -> Response:
    """A fault of ours: the traceback goes to the log (the server writes it), the client gets one line."""
    return JSONResponse({"error": f"internal error: {type(error).__name__}"}, status_code=500)
