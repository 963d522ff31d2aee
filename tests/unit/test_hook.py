"""job_submit/slurm_score.lua: what comes of the service's answer, and what never happens."""

import pytest

from tests.unit import hook_support
from tests.unit.hook_support import DEADLINE_S, HOOK_DIR, SILENCE, Hook, Reply, Service, http_reply

# pytest finds fixtures by their names in the module.
bare_hook, hook, service = hook_support.bare_hook, hook_support.hook, hook_support.service


# Answer


@pytest.mark.parametrize("text", ["0", "1", "1500", "2147483645", "1.5e3", "-0"])
def test_site_factor_that_slurm_can_keep_is_written(hook: Hook, service: Service, text: str) -> None:
    """A whole number from 0 to 2147483645 becomes job_desc.site_factor, however JSON spells it."""
    service.answer(b'{"site_factor": %s}' % text.encode())
    assert hook.submit() == {"site_factor": float(text)}
    assert hook.counts() == {"scored": 1}


@pytest.mark.parametrize(
    "text",
    [
        *('""', '"12abc"', '"15"', "true", "false", "[]", "{}", "1.5", "1e400", "-1e400", "-1", "-2"),
        *("2147483646", "2147483647", "3000000000", "4294967294"),
    ],
)
def test_any_other_site_factor_is_refused_and_counted(hook: Hook, service: Service, text: str) -> None:
    """3000000000 would wrap around to priority 1, -2 means unset: Slurm checks neither. Case 40."""
    service.answer(b'{"site_factor": %s}' % text.encode())
    assert hook.submit() == {}
    assert hook.counts() == {"refused": 1}
    assert len(hook.lines("error")) == 1


@pytest.mark.parametrize(
    "text", ["{}", '{"site_factor": null}', ' {"site_factor": null, "more": [{"a": -1.5e-3}]}\r\n']
)
def test_no_site_factor_is_a_neutral_score(hook: Hook, service: Service, text: str) -> None:
    """Null is an answer, not a fault: the job stays as it is and nobody is warned."""
    service.answer(text.encode())
    assert hook.submit() == {}
    assert hook.counts() == {"neutral": 1}
    assert hook.lines("error") == []


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("null", "neutral"),
        *((value, "refused") for value in ('""', '"12abc"', "1e400", "3000000000", "-2")),
        *((value, "failed") for value in ("NaN", "")),
    ],
)
def test_each_answer_that_is_no_score_has_its_counter(
    hook: Hook, service: Service, value: str, outcome: str
) -> None:
    """The table of the README: an answer without a score, one that Slurm can't keep, and no answer at all."""
    service.answer(b'{"site_factor": %s}' % value.encode())
    assert [hook.submit(), hook.submit()] == [{}, {}]
    assert hook.counts() == {outcome: 2}


@pytest.mark.parametrize("body", ["null", "", '""', "12abc", "NaN", "1e400", "3000000000", "-2"])
def test_a_reply_that_is_only_a_value_has_failed(hook: Hook, service: Service, body: str) -> None:
    """A score comes in an object; whatever else comes may be another service's answer."""
    service.answer(body.encode())
    assert hook.submit() == {}
    assert hook.counts() == {"failed": 1}


def test_reason_of_a_neutral_score_is_logged_once_a_minute(hook: Hook, service: Service) -> None:
    """The admin learns why nobody gets a score, in one clean line."""
    service.answer(b'{"site_factor": null, "reason": "snapshot is 400 s old\\n100%s"}')
    for _ in range(3):
        hook.submit()
    assert hook.lines("info")[1:] == ["slurm_score: neutral score: snapshot is 400 s old 100%s"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "null",
            "5",
            "[]",
            '"x"',
            "NaN",
            "{",
            "}",
            '{"site_factor": 5',
            '{"site_factor": 5}}',
            '{"a": 1,}',
        ),
        *('{"site_factor": NaN}', '{"site_factor": 05}', '{"site_factor": +5}', '{"site_factor": .5}'),
        *(
            '{"site_factor": 5.}',
            '{"site_factor": 0x10}',
            '{"site_factor": 5e}',
            '{"site_factor" 5}',
            "{site: 5}",
        ),
        *('{"site_factor": 5, "a": [1 2]}', '{"site_factor": 5, "a": [1,]}', '{"site_factor": 5, "a": nil}'),
        *(
            '{"site_factor": 5, "a": "\nn"}',
            '{"site_factor": 5, "a": "\\x"}',
            '{"site_factor": 5, "a": "\\u12g4"}',
        ),
        *(
            '{"site_factor": 5, "a": "\0"}',
            '{"site_factor": 5, "a": "',
            '{"site_factor": 5, "a": ' + "[" * 10000,
        ),
        *('{"site_factor": 5, "a": ' + "[" * 16 + "]" * 16 + "}", '{"site_factor": 5, "a": tru}'),
    ],
)
def test_reply_that_is_no_json_object_changes_nothing(hook: Hook, service: Service, text: str) -> None:
    """The reader is strict (RFC 8259): half an answer is no answer, and nesting ends at 16."""
    service.answer(text.encode())
    assert hook.submit() == {}
    assert hook.counts() == {"failed": 1}


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        ('["ask for less time"]', ["ask for less time"]),
        ('["1", "2", "3", "4"]', ["1", "2", "3"]),
        ('["100% %s %d %n"]', ["100% %s %d %n"]),
        (r'["a\nb\tc\u0000\u001b[31m\u007f\u009b"]', ["a b c  [31m  "]),
        (r'["\"\\\/\b\f\r \u00e9\u20ac\ud83d\ude00"]', ['"\\/    é€😀']),
        (r'["\ud83d", "\ude00\ude00", "\ud83d\u0041"]', ["?", "??", "?A"]),
        ('["\udcff\udc9b"]', ["??"]),
        ('["' + "é" * 400 + '"]', ["é" * 250]),
        ('["' + "x" + "é" * 400 + '"]', ["x" + "é" * 249]),
        ('[5, null, "x"]', ["x"]),
        ('{"a": "x"}', []),
        ('"x"', []),
        ("null", []),
        ("[]", []),
    ],
)
def test_advice_reaches_the_user_clean(
    hook: Hook, service: Service, advice: str, expected: list[str]
) -> None:
    """At most 3 lines of 500 bytes, never a format, nothing that moves the cursor of a terminal."""
    service.answer(b'{"site_factor": 7, "advice": %s}' % advice.encode("utf-8", "surrogateescape"))
    assert hook.submit() == {"site_factor": 7}
    assert [line.encode("latin-1").decode() for line in hook.lines("user")] == expected


# Breaker and log


def test_breaker_opens_after_three_failures_and_closes_again(hook: Hook, service: Service) -> None:
    """A service that is down costs three deadlines, then nothing for 10 s, then one try. Case 51."""
    service.replies, service.pace_s = [SILENCE], 60.0
    started = hook.now
    for _ in range(20):
        assert hook.submit() == {}
    assert hook.counts() == {"failed": 3, "resting": 17}
    assert hook.now - started == pytest.approx(3 * DEADLINE_S)
    hook.now += 10
    for _ in range(5):
        hook.submit()
    assert hook.counts() == {"failed": 4, "resting": 21}
    hook.now += 10
    service.pace_s = 0.0
    service.answer(b'{"site_factor": 9}')
    assert [hook.submit() for _ in range(4)] == [{"site_factor": 9}] * 4
    hook.now += 120
    hook.submit()
    assert hook.counts() == {"failed": 4, "resting": 21, "scored": 5}
    assert hook.lines("info")[1:] == ["slurm_score: the service answers again"]


@pytest.mark.parametrize("status", ["503 Service Unavailable", "422 Unprocessable Content", "500 Error"])
def test_refusals_of_the_service_open_the_breaker(hook: Hook, service: Service, status: str) -> None:
    """A service that sheds load is left alone for a while."""
    service.replies = [Reply((http_reply(b'{"site_factor": 5}', status=status),))]
    for _ in range(5):
        assert hook.submit() == {}
    assert hook.counts() == {"failed": 3, "resting": 2}
    assert len(service.requests) == 3


def test_a_job_that_can_not_be_written_opens_the_breaker(hook: Hook, service: Service) -> None:
    """An answer that can't be used is none, even where the service is well."""
    job = hook.lua.execute("return setmetatable({}, {__newindex = error})")
    for _ in range(5):
        assert hook.module.submit(job, None, 0.0) == 0
    assert hook.counts() == {"failed": 3, "resting": 2}


def test_an_open_breaker_neither_reads_the_job_nor_asks(hook: Hook, service: Service) -> None:
    """Jobs that come while the service is down cost a look at the clock."""
    service.stop()
    for _ in range(3):
        hook.submit()
    job, streams, log = hook.job(), len(hook.streams), len(hook.log)
    assert hook.submit(job) == {}
    assert (job.reads, len(hook.streams), len(hook.log)) == ([], streams, log)


def test_failures_that_are_not_in_a_row_leave_the_breaker_shut(hook: Hook, service: Service) -> None:
    """One good answer starts the count again."""
    bad, good = Reply((http_reply(b"?"),)), Reply((http_reply(b'{"site_factor": 1}'),))
    service.replies = [bad, bad, good, bad, bad, good]
    for _ in range(6):
        hook.submit()
    assert hook.counts() == {"failed": 4, "scored": 2}


def test_clock_set_back_neither_holds_the_breaker_open_nor_silences_the_log(
    hook: Hook, service: Service
) -> None:
    """LuaSocket has the wall's clock only, and an admin may set it."""
    service.answer(b"?")
    for _ in range(4):
        hook.submit()
    assert hook.counts() == {"failed": 3, "resting": 1}
    hook.now -= 86400
    hook.submit()
    assert hook.counts() == {"failed": 4, "resting": 1}
    assert hook.lines("error") == [
        "slurm_score: no score: not JSON at byte 1",
        "slurm_score: no score: not JSON at byte 1; nobody is asked for 10 s",
    ]


def test_the_log_gets_one_line_a_minute_with_the_tally(hook: Hook, service: Service) -> None:
    """A broken service must not fill slurmctld's log, and nothing that it does is lost from the count."""
    service.answer(b"?")
    for _ in range(100):
        hook.submit()
        hook.now += 1
    assert [text for kind, text in hook.log if kind == "error"] == [
        "slurm_score: no score: not JSON at byte 1 [scored=0 neutral=0 refused=0 failed=1 resting=0]",
        "slurm_score: no score: not JSON at byte 1; nobody is asked for 10 s"
        " [scored=0 neutral=0 refused=0 failed=9 resting=54]",
    ]


def test_the_minute_is_one_for_all_kinds_of_lines(hook: Hook, service: Service) -> None:
    """Refusal, failure, recovery and reason together are no more than one line; recovery is made up for."""
    bad = [Reply((http_reply(body),)) for body in (b'{"site_factor": -2}', b"?", b"?", b"?")]
    good = Reply((http_reply(b'{"site_factor": null, "reason": "why"}'),))
    service.replies = [*bad, good]
    for _ in range(4):
        hook.submit()
    hook.now += 11
    hook.submit()
    assert hook.counts() == {"refused": 1, "failed": 3, "neutral": 1}
    assert [text for _, text in hook.log[1:]] == [
        "slurm_score: site_factor refused: -2 [scored=0 neutral=0 refused=1 failed=0 resting=0]"
    ]
    service.answer(b'{"site_factor": 1}')
    hook.now += 60
    assert hook.submit() == {"site_factor": 1}
    assert hook.lines("info")[1:] == ["slurm_score: the service answers again"]


# What never happens


def test_modify_touches_nothing(hook: Hook) -> None:
    """slurm-score's own updates re-enter the hook under write locks: no I/O. Case 46, trap 5."""
    job = hook.job(comment="x")
    hook.now = float("nan")
    assert hook.module.modify(job.proxy, job.proxy, hook.lua.table(), 0.0) == 0
    assert (job.reads, job.writes, hook.streams, hook.log[1:]) == ([], {}, [], [])


def test_modify_does_not_even_load_luasocket(bare_hook: Hook) -> None:
    """The same where nothing was set up before."""
    bare_hook.lua.execute('package.preload["socket"] = function() error("I/O in modify") end')
    module = bare_hook.lua.execute(f'package.path = "{HOOK_DIR}/?.lua" return (require("slurm_score"))')
    assert module.modify(None, None, None, 0.0) == 0
    assert bare_hook.log == []


@pytest.mark.parametrize("name", ["socket", "socket.unix"])
def test_without_luasocket_every_job_passes_and_the_log_says_so_once(bare_hook: Hook, name: str) -> None:
    """LuaSocket is often missing or built for another Lua; that must not stop slurmctld. Case 49."""
    bare_hook.lua.execute(f'package.preload["{name}"] = nil package.cpath = ""')
    bare_hook.load()
    assert [bare_hook.submit() for _ in range(5)] == [{}] * 5
    (line,) = bare_hook.lines("error")
    assert line.startswith("slurm_score: no LuaSocket for Lua 5.")
    assert f"module '{name}' not found" in line


@pytest.mark.parametrize(
    "lua_code",
    [
        'package.loaded["slurm_score_http"].post = function() error("boom") end',
        'package.loaded["slurm_score_http"].post = function() error({}) end',
        'package.loaded["slurm_score_http"].post = function() return 5 end',
        'package.loaded["slurm_score_http"].gettime = function() error("boom") end',
        'package.loaded["slurm_score_http"].gettime = function() return "noon" end',
        'package.loaded["slurm_score_http"].hang_up = nil package.loaded["slurm_score_http"].post = nil',
        'package.loaded["slurm_score_json"].quote = function() error("boom") end',
        'package.loaded["slurm_score_json"].decode_object = nil',
        'package.loaded["slurm_score_request"].build = nil',
    ],
)
def test_error_inside_lets_the_job_pass_unchanged(hook: Hook, service: Service, lua_code: str) -> None:
    """From Slurm 26.05 on an error that leaves the hook rejects the job. Case 38, trap 7."""
    service.answer(b'{"site_factor": 5, "advice": ["x"]}')
    hook.lua.execute(lua_code)
    assert hook.submit(hook.job(name="x")) == {}
    assert hook.counts() == {"failed": 1}


def test_advice_that_can_not_be_shown_does_not_cost_the_score(hook: Hook, service: Service) -> None:
    """The score is written first, and what comes after it may fail."""
    service.answer(b'{"site_factor": 5, "advice": ["x"]}')
    hook.lua.execute("slurm.log_user = nil")
    assert hook.submit() == {"site_factor": 5}
    assert hook.counts() == {"scored": 1}
    (line,) = hook.lines("error")
    assert line.startswith("slurm_score: advice not shown: ")


def test_job_that_takes_no_site_factor_passes(hook: Hook) -> None:
    """slurmctld raises where a field can't be written; the log has it."""
    assert (
        hook.module.submit(hook.lua.execute("return setmetatable({}, {__newindex = error})"), None, 0.0) == 0
    )
    assert hook.module.submit(None, None, None) == 0
    assert hook.counts()["failed"] == 2


def test_host_is_left_as_it_was(bare_hook: Hook, service: Service) -> None:
    """No global, no change to Lua's own libraries or paths: other rules run in the same state."""
    bare_hook.lua.globals().package.path = f"{HOOK_DIR}/?.lua"
    before = bare_hook.snapshot()
    bare_hook.load(luasocket_path="/opt/lua/?.lua", luasocket_cpath="/opt/lua/?.so")
    bare_hook.submit()
    bare_hook.submit(bare_hook.job("qos", comment="\xff"))
    service.answer(b"?")
    bare_hook.submit()
    assert bare_hook.counts() == {"scored": 2, "failed": 1}
    assert bare_hook.snapshot() == before
