"""What the hook is answered: the body of a request in, status and body of the reply out.

slurmctld waits for it under its locks, and between two submissions a processor forgets what it ran: the less
there is to run, the sooner the answer. So what was asked and answered before is looked up, by the very bytes
of the question, for as long as snapshot and policy stay the same; and when they change, what was asked
lately is answered anew between two questions, before somebody asks it again.
"""

import json
import logging
import time
from http import HTTPStatus
from typing import Any, NamedTuple

from pydantic import ValidationError

from slurm_score.errors import SnapshotError
from slurm_score.policy import Policy
from slurm_score.service.handlers import NewJob, ScoreAnswer, ScoreRequest, neutral_answer
from slurm_score.service.state import State
from slurm_score.snapshot import Snapshot

MAX_BODY = 64 * 1024
MAX_KNOWN, MAX_KNOWN_BODY = 4096, 2048
"""So many questions are remembered, and none that is longer: the memory has a bound whatever users write."""

MAX_RENEWED, RENEWED_AT_ONCE = 500, 5
"""So many questions are answered anew, and so many in one go: a question may come in between."""

log = logging.getLogger(__name__)


class Reply(NamedTuple):
    """A status and the whole HTTP message, as it goes over a connection that is kept."""

    status: int
    message: bytes


class Known:
    """A question that was asked before: its job, the last answer, and that one encoded."""

    __slots__ = ("answer", "job", "outcome", "reply")

    def __init__(self, job: NewJob) -> None:
        self.job = job
        self.answer: ScoreAnswer | None = None
        self.reply, self.outcome = Reply(0, b""), ""

    def tell(self, now_s: float) -> tuple[Reply, str]:
        """Return reply and outcome."""
        answer = self.job.answer_at(now_s)
        if answer is not self.answer:
            self.reply, self.outcome = _told(answer)
            self.answer = answer
        return self.reply, self.outcome


class Hook:
    """Answers the hook: 200 with a score or a neutral answer, 413 or 422 for a request that can't be read."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._note = state.metrics.note
        self._policy: Policy | None = None
        self._snapshot: Snapshot | None = None
        self.known: dict[bytes, Known] = {}  # by the bytes that were asked
        self._by_request: dict[ScoreRequest, Known] = {}
        self._asked: list[bytes] = []  # since the last time that nobody waited
        self._lately: dict[bytes, None] = {}  # the last questions before, the latest at the end
        self._later: list[bytes] = []  # those that are to be answered anew, the next at the end

    def see(self, user_agent: bytes) -> None:
        """Remember who asks, if it is the hook."""
        self._state.saw_hook(user_agent)

    def settle(self) -> None:
        """Do what nobody waits for: count the answers given since the last time, renew some that are old."""
        self._state.metrics.count()
        try:
            self._renew()
        except SnapshotError:
            return  # who asks will be told
        except Exception:
            self._later.clear()
            log.exception("a fault of ours: questions are not answered beforehand")

    def answer(self, body: bytes) -> Reply:
        """Return status and body of the reply to a request's body; a fault of ours is raised."""
        began = time.perf_counter()
        try:
            reply, outcome = self._answer(body)
        except ValidationError as error:
            reply, outcome = make_reply(422, _faults(error)), "invalid"
        self._note(outcome, time.perf_counter() - began)
        return reply

    def _answer(self, body: bytes) -> tuple[Reply, str]:
        state = self._state
        if len(body) > MAX_BODY:
            return make_reply(413, {"error": f"request larger than {MAX_BODY} bytes"}), "too_large"
        policy = state.policy.latest()
        try:
            snapshot = state.snapshot.latest()
        except SnapshotError as error:
            asked = ScoreRequest.model_validate_json(body)
            return _told(neutral_answer(str(error), policy, asked))
        if snapshot is not self._snapshot or policy is not self._policy:
            self._forget(snapshot, policy)
        known = self.known.get(body) or self._read(body, snapshot, policy)
        self._asked.append(body)
        if state.killed:
            return _told(ScoreAnswer(site_factor=None, reason=state.killed, policy=policy.hash))
        return known.tell(state.clock())

    def _read(self, body: bytes, snapshot: Snapshot, policy: Policy) -> Known:
        """Read a question; those that differ in what no score depends on share what is known."""
        asked = ScoreRequest.model_validate_json(body)
        known = self._by_request.get(asked) or Known(NewJob(asked, snapshot, policy))
        if len(body) <= MAX_KNOWN_BODY:
            if len(self.known) >= MAX_KNOWN:
                self._clear()
            self.known[body] = self._by_request[asked] = known
        return known

    def _forget(self, snapshot: Snapshot, policy: Policy) -> None:
        """Begin anew, by this snapshot and this policy; what was asked lately comes next."""
        self._snapshot, self._policy = snapshot, policy
        self._later = list(self._lately)
        self._clear()

    def _renew(self) -> None:
        """Answer some questions, the latest first, by a new snapshot or policy."""
        self._order()
        snapshot, policy = self._state.snapshot.latest(), self._state.policy.latest()
        if snapshot is not self._snapshot or policy is not self._policy:
            self._forget(snapshot, policy)
        for body in self._later[: -RENEWED_AT_ONCE - 1 : -1]:
            if body not in self.known:
                self._read(body, snapshot, policy).tell(self._state.clock())
        del self._later[-RENEWED_AT_ONCE:]

    def _order(self) -> None:
        """Put what was asked since at the end of what was asked lately."""
        asked, self._asked = self._asked, []
        for body in asked:
            if len(body) <= MAX_KNOWN_BODY:
                self._lately.pop(body, None)
                self._lately[body] = None
        for body in list(self._lately)[: max(0, len(self._lately) - MAX_RENEWED)]:
            del self._lately[body]

    def _clear(self) -> None:
        self.known.clear()
        self._by_request.clear()


def make_reply(status: int, told: dict[str, Any], *headers: str) -> Reply:
    """Return the reply with this status that tells an object as JSON."""
    body = json.dumps(told, allow_nan=False)
    phrase = HTTPStatus(status).phrase
    head = (f"HTTP/1.1 {status:d} {phrase}", "content-type: application/json", *headers)
    return Reply(status, "\r\n".join((*head, f"content-length: {len(body)}", "", body)).encode("ascii"))


def _told(answer: ScoreAnswer) -> tuple[Reply, str]:
    reply = make_reply(200, {name: getattr(answer, name) for name in ScoreAnswer.__slots__})
    return reply, _outcome(answer)


def _outcome(answer: ScoreAnswer) -> str:
    if answer.site_factor is None:
        return "none"
    return "neutral" if answer.reason else "scored"


def _faults(error: ValidationError) -> dict[str, Any]:
    faults = [{"field": ".".join(map(str, fault["loc"])), "error": fault["msg"]} for fault in error.errors()]
    return {"error": "invalid request", "faults": faults}
