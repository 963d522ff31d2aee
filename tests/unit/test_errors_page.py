"""etc/errors.md has every message of the program with its remedy, and no message that there isn't."""

import ast
import re

import pytest

from tests.tools import ROOT
from tests.unit.error_messages import Message, messages, names_of_checks, of_lua, of_module, tidy

PAGE = (ROOT / "etc" / "errors.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- ((?:`[^`\n]+`\\\n  )+)(.+(?:\n  .+)*)", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`\\\n")

WORDED_ELSEWHERE = {
    "slurm_score/audit/store.py:_explained": "what its callers say, with SQLite's sentence and a remedy",
    "slurm_score/audit/trail.py:_insert_cycle": "a column of the audit: the error of the cycle",
    "slurm_score/brakes.py:note_chunk": "set two lines above",
    "slurm_score/brakes.py:slow_down": "its callers'",
    "slurm_score/cli/__init__.py:reported_errors": "prints any error",
    "slurm_score/cli/durations.py:convert": "a grammar's",
    "slurm_score/cli/history.py:convert": "a grammar's",
    "slurm_score/cli/history_import.py:import_file": "progress, no error",
    "slurm_score/cli/install_hook.py:refuse_what_fails": "Lua's",
    "slurm_score/cli/parse.py:command": "a grammar's",
    "slurm_score/cli/policy.py:show": "zone.py's",
    "slurm_score/cli/policy.py:validate": "the policy's",
    "slurm_score/cli/predict.py:replay_log": "how many lines were left out",
    "slurm_score/cli/sscore.py:_explain": "the service's",
    "slurm_score/cli/sscore.py:_print": "what is printed, with -v",
    "slurm_score/cli/sscore.py:_repeat": "prints any error",
    "slurm_score/cli/sscore.py:_wrong_usage": "a grammar's",
    "slurm_score/errors.py:__init__": "a grammar's",
    "slurm_score/factors/registry.py:_duration": "a grammar's",
    "slurm_score/pace.py:slow_down": "the brakes'",
    "slurm_score/policy.py:load_policy": "pydantic's, of a stored policy",
    "slurm_score/policy_yaml.py:parse_policy": "the problems that were found",
    "slurm_score/reprioritizer.py:_remark": "suitability.py's",
    "slurm_score/run_times.py:_say_once": "its callers'",
    "slurm_score/service/app.py:_bad_request": "a grammar's",
    "slurm_score/service/app.py:_http_error": "Starlette's",
    "slurm_score/service/app.py:_our_error": "any error's",
    "slurm_score/service/client.py:_ask": "the service's",
    "slurm_score/service/handlers.py:_left_alone": "none: the job is left alone on purpose",
    "slurm_score/service/hook.py:_answer": "the snapshot's",
    "slurm_score/service/hook.py:_faults": "pydantic's, of a request",
    "slurm_score/service/hook_server.py:_error": "that of HTTP's status",
    "slurm_score/settings.py:_explain": "pydantic's and those of conditions.py",
    "slurm_score/settings.py:problem_at": "its callers'",
    "slurm_score/sim/cluster.py:_gpus": "a grammar's",
    "slurm_score/sim/cluster.py:_hosts": "a grammar's",
    "slurm_score/sim/cluster.py:_partition": "a grammar's",
    "slurm_score/sim/cluster.py:_site": "the problems that were found",
    "slurm_score/sim/cluster.py:parse_site": "the problems that were found",
    "slurm_score/sim/inputs.py:read_events": "the problems that were found",
    "slurm_score/sim/multifactor.py:_read": "the problems that were found",
    "slurm_score/sim/multifactor.py:parse_multifactor": "the problems that were found",
    "slurm_score/sim/multifactor.py:parse_multifactor_settings": "the problems that were found",
    "slurm_score/sim/scheduler.py:parse_scheduler": "the problems that were found",
    "slurm_score/sim/swf.py:_row": "the problems that were found",
    "slurm_score/sim/swf.py:parse_swf": "the problems that were found",
    "slurm_score/sim/table.py:wrong": "a grammar's",
    "slurm_score/sim/traces.py:read_openb_nodes": "the problems that were found",
    "slurm_score/sim/traces.py:read_table": "the problems that were found",
    "slurm_score/slurm/commands.py:_instead": "two others, one after the other",
    "slurm_score/slurm/commands.py:_parsed": "Slurm's, or a grammar's",
    "slurm_score/slurm/commands.py:_reading": "a grammar's",
    "slurm_score/slurm/commands.py:_tell_once": "its callers'",
    "slurm_score/slurm/commands.py:run_command": "the operating system's",
    "slurm_score/slurm/lua.py:run": "Lua's",
    "slurm_score/slurm/pyslurm_gateway.py:read_cluster": "pyslurm's",
    "slurm_score/slurm/pyslurm_gateway.py:read_jobs": "pyslurm's",
    "slurm_score/snapshot.py:read_snapshot": "the stored policy's",
    "slurm_score/suitability.py:require_suitable": "that of obstacles",
}
"""Functions that pass on what another one worded, and whose words they are."""


def written() -> list[str]:
    """Return the messages of the page."""
    return [tidy(span) for entry, _ in ENTRY.findall(PAGE) for span in SPAN.findall(entry)]


def test_every_message_has_its_remedy() -> None:
    """Who meets one can search for it; a new one needs a line in etc/errors.md."""
    missing = sorted(one for one in messages() if one.text and one.text not in written())
    assert missing == []


def test_every_remedy_has_its_message() -> None:
    """None is told for what no release says, and none twice in one section."""
    assert sorted(set(written()) - {one.text for one in messages()}) == []
    for section in PAGE.split("\n## "):
        spans = [tidy(span) for entry, _ in ENTRY.findall(section) for span in SPAN.findall(entry)]
        assert len(spans) == len(set(spans)), section.partition("\n")[0]


def test_every_line_of_a_message_belongs_to_an_entry() -> None:
    """What ends in a backslash was written as a message; each entry says in words what to do."""
    assert len(written()) == sum(line.endswith("`\\") for line in PAGE.splitlines())
    assert [text for _, text in ENTRY.findall(PAGE) if not text.rstrip().endswith(".")] == []


def test_who_words_nothing_is_known() -> None:
    """A message that the search can't read in the source is one that another function worded."""
    assert {one.where for one in messages() if not one.text} == set(WORDED_ELSEWHERE)


def test_every_check_is_named() -> None:
    """The table at the end of the page; what is found and the remedy are in the check's own line."""
    table = re.findall(r"^\| ([a-z ]+) \| ", PAGE.partition("## What check names")[2], re.MULTILINE)
    assert names_of_checks() == set(table) - {"name"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise LockedError(f'{path}: held by {who}; wait')", "…: held by …; wait"),
        ("raise ParseError('not a count', text, 'a number')", "not a count"),
        ("Problem(where, f'stands {n} times', got)", "stands … times"),
        ("log.warning('%s: %d records left out', a, b)", "…: … records left out"),
        ("fail('a' + 'b is not ' + name)", "ab is not …"),
        ("def f():\n    said = 'is gone for ever'\n    raise SlurmError(said)", "is gone for ever"),
        ("click.echo(f'warning: {x} is rather odd', err=True)", "… is rather odd"),
        ("raise SlurmError(str(error))", ""),
    ],
)
def test_messages_are_found_in_the_source(source: str, found: str) -> None:
    """The forms in which the program says something."""
    assert [one.text for one in of_module(ast.parse(source), "x.py")] == [found]


def test_messages_are_found_in_the_hook() -> None:
    """What is logged as an error, and the reasons that functions return."""
    lines = (
        'log("error", "setup of " .. x .. " failed")',
        'return nil, "a long reply"',
        'log("info", "all well")',
    )
    text = "\n".join(lines)
    assert list(of_lua(text, "x.lua")) == [
        Message("setup of … failed", "x.lua"),
        Message("a long reply", "x.lua"),
    ]
