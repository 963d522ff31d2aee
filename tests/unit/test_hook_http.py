"""job_submit/slurm_score_http.lua: one deadline over the whole exchange, whatever the service does."""

import pytest

from tests.unit import hook_support
from tests.unit.hook_support import DEADLINE_S, OK, SAFETY_S, SILENCE, Hook, Reply, Service, http_reply

# pytest finds fixtures by their names in the module.
bare_hook, hook, service = hook_support.bare_hook, hook_support.hook, hook_support.service

GOOD = http_reply(b'{"site_factor": 1500}')


def assert_within_deadline(hook: Hook, started: float) -> None:
    """Every wait that was allowed ends before the deadline; LuaSocket never waits longer than allowed."""
    assert hook.budgets
    assert max(when + seconds for when, seconds in hook.budgets) <= started + DEADLINE_S + 1e-6
    assert hook.now <= started + DEADLINE_S + 1e-6


def test_connection_is_kept_between_jobs(hook: Hook, service: Service) -> None:
    """Lua's state lives between submissions, and so does the connection (measured: 46-180 us an answer)."""
    assert [hook.submit() for _ in range(5)] == [{"site_factor": 1500}] * 5
    assert (service.accepted, len(service.requests)) == (1, 5)


def test_restarted_service_is_found_again(hook: Hook, service: Service) -> None:
    """The kept connection has ended; the next job gets its score over a new one."""
    hook.submit()
    service.stop()
    service.start()
    assert hook.submit() == {"site_factor": 1500}
    assert (service.accepted, hook.counts()) == (2, {"scored": 2})


def test_connection_that_ends_under_the_request_is_tried_once_more(hook: Hook, service: Service) -> None:
    """A keep-alive time-out may run out just as a job comes: one more try, within the same deadline."""
    service.replies = [OK, Reply((), closes=True), OK]
    started = hook.now
    assert [hook.submit(), hook.submit()] == [{"site_factor": 1500}] * 2
    assert (service.accepted, len(service.requests)) == (2, 3)
    assert_within_deadline(hook, started)


def test_new_connection_that_ends_is_not_tried_again(hook: Hook, service: Service) -> None:
    """A service that closes without an answer has none; only a kept connection may be worth a second try."""
    service.replies = [Reply((), closes=True)]
    assert hook.submit() == {}
    assert (service.accepted, len(service.requests)) == (1, 1)
    assert hook.lines("error") == ["slurm_score: no score: receive: closed"]


def test_service_that_closes_after_each_answer_is_asked_anew(hook: Hook, service: Service) -> None:
    """`Connection: close` (RFC 9112, 9.6) costs a connection for each job and no score."""
    service.replies = [Reply((http_reply(b'{"site_factor": 3}', "Connection: close"),), closes=True)]
    assert [hook.submit() for _ in range(3)] == [{"site_factor": 3}] * 3
    assert service.accepted == 3


def test_missing_socket_is_a_failure_at_once(hook: Hook, service: Service) -> None:
    """No service: no wait, no score, one line."""
    service.stop()
    started = hook.now
    assert hook.submit() == {}
    assert hook.now == started
    assert hook.lines("error") == ["slurm_score: no score: connect: No such file or directory"]


def test_silent_service_costs_one_deadline(hook: Hook, service: Service) -> None:
    """A service that accepts and never answers holds slurmctld for 20 ms and no more. Case 51, trap 6."""
    service.replies, service.pace_s = [SILENCE], float("inf")
    started = hook.now
    assert hook.submit() == {}
    assert hook.now - started == pytest.approx(DEADLINE_S)
    assert_within_deadline(hook, started)
    assert hook.lines("error") == ["slurm_score: no score: receive: timeout"]


def test_answer_that_comes_late_is_never_taken_for_the_next_jobs(hook: Hook, service: Service) -> None:
    """After a time-out the connection is closed, and the late answer goes with it."""
    service.replies, service.pace_s = [Reply((http_reply(b'{"site_factor": 1}'),)), OK], 1.0
    assert hook.submit() == {}
    assert service.heard.acquire(timeout=SAFETY_S)
    service.turns.release()
    service.pace_s = 0.0
    assert hook.submit() == {"site_factor": 1500}
    assert service.accepted == 2


def test_answer_in_single_bytes_is_put_together(hook: Hook, service: Service) -> None:
    """receive() returns what came so far; that isn't the end of the answer. Case 50."""
    service.replies, service.pace_s = [Reply(tuple(bytes([b]) for b in GOOD))], 0.0001
    started = hook.now
    assert hook.submit() == {"site_factor": 1500}
    assert hook.now - started == pytest.approx(len(GOOD) * 0.0001, abs=1e-4)
    assert_within_deadline(hook, started)


def test_answer_that_drips_is_cut_off_at_the_deadline(hook: Hook, service: Service) -> None:
    """A byte each 3 ms keeps every single wait short; the deadline is over all of them."""
    service.replies, service.pace_s = [Reply(tuple(bytes([b]) for b in GOOD))], 0.003
    started = hook.now
    assert hook.submit() == {}
    assert hook.now - started == pytest.approx(DEADLINE_S)
    assert_within_deadline(hook, started)


def test_deadline_covers_both_tries(hook: Hook, service: Service) -> None:
    """The second connection gets what the first has left."""
    hook.submit()
    service.replies, service.pace_s = [Reply((), closes=True), SILENCE], 0.015
    started, hook.budgets[:] = hook.now, []
    assert hook.submit() == {}
    assert len(hook.streams) == 2
    assert_within_deadline(hook, started)


@pytest.mark.parametrize("step_s", [-3600.0, -0.005, 3600.0])
def test_clock_that_jumps_ends_the_exchange(hook: Hook, service: Service, step_s: float) -> None:
    """The deadline can't be known any more, so the job goes without a score."""
    service.replies = [Reply((GOOD[:20], GOOD[20:]))]
    service.pace_s = 0.001
    hook.clock_steps = [step_s]
    assert hook.submit() == {}
    assert hook.lines("error") == ["slurm_score: no score: receive: timeout"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"\r\n\r\n", "HTTP status missing"),
        (b"garbage\r\n\r\n", "HTTP status missing"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP status missing"),
        (b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP status missing"),
        (http_reply(b'{"site_factor": 5}', status="503 Service Unavailable"), "HTTP status 503"),
        (http_reply(b'{"site_factor": 5}', status="404 Not Found"), "HTTP status 404"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}", "no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\n{}", "no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nX-Content-Length: 2\r\n\r\n{}", "no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}", "reply too long"),
        (http_reply(b'{"site_factor": 5}' + b" " * 16384), "reply too long"),
        (http_reply(b'{"site_factor": 5}' + b" " * 10_000_000), "reply too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10_000, "head too long"),
        (b"x" * 10_000_000, "head too long"),
        (GOOD + b"HTTP", "more than one reply"),
        (GOOD + GOOD, "more than one reply"),
    ],
)
def test_reply_that_is_not_plain_http_changes_nothing(
    hook: Hook, service: Service, reply: bytes, why: str
) -> None:
    """Only status 200 with a Content-Length within bounds counts, and no more than that is read."""
    service.replies = [Reply((reply,), closes=True)]
    assert hook.submit() == {}
    assert hook.lines("error") == [f"slurm_score: no score: receive: {why}"]
    assert hook.bytes_read <= 3 * 8192


@pytest.mark.parametrize("size", [0, 1, 20, len(GOOD) - 1])
def test_reply_that_ends_midway_changes_nothing(hook: Hook, service: Service, size: int) -> None:
    """Every prefix of a good answer is no answer."""
    service.replies = [Reply((GOOD[:size],), closes=True)]
    assert hook.submit() == {}
    assert hook.lines("error") == ["slurm_score: no score: receive: closed"]


def test_reply_as_long_as_allowed_is_read_whole(hook: Hook, service: Service) -> None:
    """16384 bytes of body are the limit, and within it."""
    body = b'{"site_factor": 5, "advice": ["' + b"x" * 16000 + b'"]'
    service.answer(body + b" " * (16383 - len(body)) + b"}")
    assert hook.submit() == {"site_factor": 5}
    assert hook.lines("user") == ["x" * 500]


def test_words_that_come_unasked_end_the_kept_connection(hook: Hook, service: Service) -> None:
    """What follows an answer unasked is not the answer to the next job."""
    service.replies = [Reply((GOOD,)), OK]
    hook.submit()
    hook.streams[0].buffer += http_reply(b'{"site_factor": 666}')
    assert hook.submit() == {"site_factor": 1500}
    assert service.accepted == 2


def test_connection_that_raises_is_given_up(hook: Hook) -> None:
    """After an error nobody knows what is on its way; the next job gets a new connection."""
    hook.submit()
    hook.streams[0].broken = True
    assert hook.submit() == {}
    assert hook.submit() == {"site_factor": 1500}
    assert len(hook.streams) == 2


def test_stream_that_can_not_be_made_is_a_failure(hook: Hook) -> None:
    """slurmctld may be out of file descriptors."""
    hook.lua.execute('package.loaded["socket.unix"].stream = nil')
    hook.lua.execute('package.loaded["socket.unix"] = function() return nil, "too many open files" end')
    hook.module.setup(hook.lua.table())
    assert hook.submit() == {}
    assert hook.lines("error") == ["slurm_score: no score: connect: too many open files"]
