"""job_submit/slurm_score.lua: the service's note in the job's admin_comment."""

import json

import pytest

from tests.unit import hook_support
from tests.unit.hook_support import Hook, Service, raw

# pytest finds fixtures by their names in the module.
bare_hook, hook, service = hook_support.bare_hook, hook_support.hook, hook_support.service

NOTE = "slurm-score:site=337,policy=0123456789ab"
OLD = "slurm-score:site=12,policy=ba9876543210"


def answer(service: Service, note: object, site_factor: object = 337) -> None:
    """The service's answer to every job from now on."""
    service.answer(json.dumps({"site_factor": site_factor, "admin_comment": note}).encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, NOTE),
        ("", NOTE),
        ("billed to X", f"billed to X;{NOTE}"),
        ("a;;b; ", f"a;;b; ;{NOTE}"),
        ("see slurm-score: the manual", f"see slurm-score: the manual;{NOTE}"),
        (OLD, NOTE),
        (f"billed to X;{OLD}", f"billed to X;{NOTE}"),
        (f"{OLD};billed to X", f"billed to X;{NOTE}"),
        (f"a; {OLD};{OLD};b", f"a;b;{NOTE}"),
        (NOTE, NOTE),
        ("\x1b[1m\n", f"\x1b[1m\n;{NOTE}"),
        (raw(b"caf\xe9"), raw(b"caf\xe9") + f";{NOTE}"),
    ],
)
def test_the_note_stands_behind_what_others_wrote(
    hook: Hook, service: Service, before: str | None, after: str
) -> None:
    """Others' text is kept to the byte; an earlier note of ours told of a score that the job lost."""
    answer(service, NOTE)
    assert hook.submit(hook.job(admin_comment=before)) == {"site_factor": 337, "admin_comment": after}


@pytest.mark.parametrize(
    ("before", "is_written"),
    [
        ("x" * (1000 - len(NOTE) - 1), True),
        ("x" * (1000 - len(NOTE)), False),
        ("x" * 5000, False),
        ("é" * 600, False),
    ],
)
def test_a_comment_that_would_get_too_long_stays_as_it_was(
    hook: Hook, service: Service, before: str, is_written: bool
) -> None:
    """1000 bytes are the most: no text of anybody is cut for the note, and the note isn't either."""
    answer(service, NOTE)
    writes = hook.submit(hook.job(admin_comment=raw(before.encode())))
    assert writes == {"site_factor": 337} | ({"admin_comment": f"{before};{NOTE}"} if is_written else {})
    assert hook.lines("error") == []


@pytest.mark.parametrize("note", [None, "", 5, True, ["x"], {"a": "x"}, "x" * 1001])
def test_what_is_no_note_is_left_out(hook: Hook, service: Service, note: object) -> None:
    """A text of at most 1000 bytes is a note; anything else leaves the field unread and unwritten."""
    answer(service, note)
    assert hook.submit() == {"site_factor": 337}


@pytest.mark.parametrize(
    ("note", "written"),
    [
        ("a\nb\x1b[31m\x00\x7f\x9bc", "a b [31m   c"),
        ("a;b;slurm-score:c", "a,b,slurm-score:c"),
        ("é€😀", "é€😀"),
        ("\udcff", "?"),
    ],
)
def test_the_note_is_clean(hook: Hook, service: Service, note: str, written: str) -> None:
    """UTF-8 without control characters, and one item of the list that admin_comment is."""
    answer(service, note)
    assert hook.submit() == {"site_factor": 337, "admin_comment": raw(written.encode())}


def test_a_neutral_answer_may_have_a_note_and_a_refused_one_may_not(hook: Hook, service: Service) -> None:
    """The note tells what became of the job; an answer that is refused says nothing that holds."""
    answer(service, NOTE, None)
    assert hook.submit() == {"admin_comment": NOTE}
    answer(service, NOTE, 3000000000)
    assert hook.submit() == {}
    assert hook.counts() == {"neutral": 1, "refused": 1}


def test_a_job_without_a_note_is_not_asked_for_its_admin_comment(hook: Hook) -> None:
    """The field is read only to be written."""
    job = hook.job(admin_comment="x")
    hook.submit(job)
    assert "admin_comment" not in job.reads


def test_a_field_that_can_not_be_read_does_not_cost_the_score(hook: Hook, service: Service) -> None:
    """The score is written first; one line says what failed, and the breaker stays shut."""
    answer(service, NOTE)
    for _ in range(4):
        assert hook.submit(hook.job("admin_comment")) == {"site_factor": 337}
    assert hook.counts() == {"scored": 4}
    (line,) = hook.lines("error")
    assert line.startswith("slurm_score: admin_comment left as it was: ")


@pytest.mark.parametrize("value", ["{}", "true", "function() end"])
def test_a_field_that_is_no_text_does_not_cost_the_score(hook: Hook, service: Service, value: str) -> None:
    """Slurm gives text or nil; another rule of the site may have put anything there."""
    answer(service, NOTE)
    job = hook.job(admin_comment=hook.lua.eval(value))
    assert hook.submit(job) == {"site_factor": 337}
    assert len(hook.lines("error")) == 1


def test_a_field_that_can_not_be_written_does_not_cost_the_score(hook: Hook, service: Service) -> None:
    """The same where the write raises."""
    answer(service, NOTE)
    job = hook.lua.execute("""
        return setmetatable({}, {__newindex = function(job, key, value)
          if key == "admin_comment" then error("read-only") end
          rawset(job, key, value)
        end})""")
    assert hook.module.submit(job, None, 1000.0) == 0
    assert (job.site_factor, job.admin_comment) == (337, None)
    assert hook.counts() == {"scored": 1}
    assert len(hook.lines("error")) == 1
