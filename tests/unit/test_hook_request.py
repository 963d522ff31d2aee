"""job_submit/slurm_score.lua: what the service is asked."""

import json

import pytest

from tests.unit import hook_support
from tests.unit.hook_support import Hook, Service, raw

# pytest finds fixtures by their names in the module.
bare_hook, hook, service = hook_support.bare_hook, hook_support.hook, hook_support.service

NO_VAL16, NO_VAL, NO_VAL64 = 0xFFFE, 0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE
INFINITE16, INFINITE = 0xFFFF, 0xFFFFFFFF

UNSET = {
    "user": None,
    "account": None,
    "default_account": None,
    "qos": None,
    "default_qos": None,
    "partition": None,
    "reservation": None,
    "name": None,
    "comment": None,
    "features": None,
    "prefer": None,
    "req_nodes": None,
    "exc_nodes": None,
    "licenses": None,
    "array": None,
    "priority": None,
    "time_limit_min": None,
    "time_min_min": None,
    "begin_time": None,
    "min_nodes": None,
    "max_nodes": None,
    "min_cpus": None,
    "num_tasks": None,
    "cpus_per_task": None,
    "ntasks_per_node": None,
    "mem_per_node_mib": None,
    "mem_per_cpu_mib": None,
    "tres_per_job": None,
    "tres_per_node": None,
    "tres_per_socket": None,
    "tres_per_task": None,
    "cpus_per_tres": None,
    "mem_per_tres": None,
    "het_job_offset": None,
    "cron_job": None,
}


def test_a_whole_job_becomes_this_request(hook: Hook, service: Service) -> None:
    """Every field that slurmctld can give arrives under its documented key, numbers whole on every Lua."""
    job = hook.job(
        user_name="ada",
        account="physics",
        default_account="root",
        qos="urgent",
        default_qos="normal",
        partition="gpu,long",
        reservation="maint",
        name="train",
        comment="est=90m",
        features="a100|h100",
        prefer="nvlink",
        req_nodes="g[1-2]",
        exc_nodes="g3",
        licenses="matlab:2",
        array_inx="0-99%4",
        priority=0,
        time_limit=120,
        time_min=60,
        begin_time=1_700_003_600,
        min_nodes=1,
        max_nodes=2,
        min_cpus=16,
        num_tasks=4,
        cpus_per_task=8,
        ntasks_per_node=2,
        min_mem_per_node=4000,
        min_mem_per_cpu=1000,
        tres_per_job="gres/gpu:4",
        tres_per_node="gres/gpu:a100:2",
        tres_per_socket="gres/gpu:1",
        tres_per_task="gres/gpu=1",
        cpus_per_tres="gres/gpu:6",
        mem_per_tres="gres/gpu:4096",
        het_job_offset=1,
        cron_job=False,
    )
    hook.submit(job, uid=65534)
    assert json.loads(service.requests[0]) == {
        "uid": 65534,
        "user": "ada",
        "account": "physics",
        "default_account": "root",
        "qos": "urgent",
        "default_qos": "normal",
        "partition": "gpu,long",
        "reservation": "maint",
        "name": "train",
        "comment": "est=90m",
        "features": "a100|h100",
        "prefer": "nvlink",
        "req_nodes": "g[1-2]",
        "exc_nodes": "g3",
        "licenses": "matlab:2",
        "array": "0-99%4",
        "priority": 0,
        "time_limit_min": 120,
        "time_min_min": 60,
        "begin_time": 1_700_003_600,
        "min_nodes": 1,
        "max_nodes": 2,
        "min_cpus": 16,
        "num_tasks": 4,
        "cpus_per_task": 8,
        "ntasks_per_node": 2,
        "mem_per_node_mib": 4000,
        "mem_per_cpu_mib": 1000,
        "tres_per_job": "gres/gpu:4",
        "tres_per_node": "gres/gpu:a100:2",
        "tres_per_socket": "gres/gpu:1",
        "tres_per_task": "gres/gpu=1",
        "cpus_per_tres": "gres/gpu:6",
        "mem_per_tres": "gres/gpu:4096",
        "het_job_offset": 1,
        "cron_job": False,
    }
    assert b"." not in service.requests[0], "Lua 5.3 and 5.4 print 120.0 where they aren't asked not to"


def test_a_job_that_says_nothing_becomes_nulls(hook: Hook, service: Service) -> None:
    """A user without association or limit is no error: every key is there, and null. Case 39."""
    hook.submit()
    assert json.loads(service.requests[0]) == {"uid": 1000, **UNSET}


@pytest.mark.parametrize(
    ("field", "value", "key", "expected"),
    [
        ("time_limit", NO_VAL, "time_limit_min", None),
        ("time_limit", INFINITE, "time_limit_min", "UNLIMITED"),
        ("time_limit", 0, "time_limit_min", 0),
        ("time_limit", NO_VAL16, "time_limit_min", 65534),
        ("time_limit", NO_VAL64, "time_limit_min", None),
        ("time_min", NO_VAL, "time_min_min", None),
        ("priority", NO_VAL, "priority", None),
        ("priority", 0, "priority", 0),
        ("priority", NO_VAL - 1, "priority", 4294967293),
        ("max_nodes", INFINITE, "max_nodes", None),
        ("max_nodes", NO_VAL, "max_nodes", None),
        ("min_nodes", 0, "min_nodes", 0),
        ("num_tasks", NO_VAL16, "num_tasks", 65534),
        ("num_tasks", INFINITE16, "num_tasks", 65535),
        ("cpus_per_task", NO_VAL16, "cpus_per_task", None),
        ("cpus_per_task", INFINITE16, "cpus_per_task", None),
        ("ntasks_per_node", NO_VAL16, "ntasks_per_node", None),
        ("ntasks_per_node", 0, "ntasks_per_node", 0),
        ("begin_time", 0, "begin_time", None),
        ("min_mem_per_node", 0, "mem_per_node_mib", 0),
        ("min_mem_per_node", NO_VAL64, "mem_per_node_mib", None),
        ("min_mem_per_cpu", NO_VAL64 - 2**63, "mem_per_cpu_mib", None),
        ("cron_job", True, "cron_job", True),
        ("cron_job", 1, "cron_job", None),
        ("begin_time", 4294967296, "begin_time", 4294967296),
        ("min_cpus", -2, "min_cpus", None),
        ("min_cpus", 1.5, "min_cpus", None),
        ("min_cpus", float("nan"), "min_cpus", None),
        ("min_cpus", float("inf"), "min_cpus", None),
        ("min_cpus", "16", "min_cpus", None),
        ("comment", 5, "comment", None),
        ("comment", "", "comment", ""),
    ],
)
def test_unset_unlimited_and_zero_are_told_apart(
    hook: Hook, service: Service, field: str, value: object, key: str, expected: object
) -> None:
    """NO_VAL and INFINITE are as wide as the field's C type, and 0 is a value (slurm/slurm.h; case 22)."""
    hook.submit(hook.job(**{field: value}))
    assert json.loads(service.requests[0])[key] == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        (b'say "hi"\\', 'say "hi"\\'),
        (b"a\nb\r\tc\x1b[31m\x7f", "a\nb\r\tc\x1b[31m\x7f"),
        (b"nul\0nul", "nul\0nul"),
        (b'"},"priority":1,"x":{"', '"},"priority":1,"x":{"'),
        (b"\r\n\r\nPOST / HTTP/1.1\r\n", "\r\n\r\nPOST / HTTP/1.1\r\n"),
        ("é€😀\U0010ffff".encode(), "é€😀\U0010ffff"),
        (b"\xff\xfe caf\xe9", "?? caf?"),
        (b"\xc0\xaf \xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf5\x80", "?? ??? ??? ???? ??"),
        (b"\xe2\x82", "??"),
        (b"\xc3\xa9\x80\xc3\xa9", "é?é"),
        (b"x" * 65536, "x" * 4096),
        (b"x" * 4095 + "é".encode(), "x" * 4095),
        (b"x" * 4092 + "😀😀".encode(), "x" * 4092 + "😀"),
        (b"\x80" * 65536, "?" * 4093),
        (b"\0" * 65536, "\0" * 4096),
    ],
)
def test_any_comment_gives_valid_json(hook: Hook, service: Service, comment: bytes, expected: str) -> None:
    """No quote, control character or stray byte breaks the request; 4096 bytes, whole characters."""
    hook.submit(hook.job(comment=raw(comment)))
    assert json.loads(service.requests[0]) == {"uid": 1000, **UNSET, "comment": expected}


@pytest.mark.parametrize("field", ["tres_per_job", "req_nodes", "array_inx", "features"])
def test_a_list_too_long_is_left_out_and_not_cut(hook: Hook, service: Service, field: str) -> None:
    """Half of a list of nodes is another list: 4096 bytes are sent, one more is null."""
    key = {"array_inx": "array"}.get(field, field)
    for size in (4096, 4097):
        hook.submit(hook.job(**{field: "x" * size}))
    assert [json.loads(request)[key] for request in service.requests] == ["x" * 4096, None]


def test_script_and_environment_are_never_read(hook: Hook) -> None:
    """They hold what users keep secret, and can be megabytes. What is read is this and no more."""
    job = hook.job(script="#!/bin/sh\nexport TOKEN=abc", environment="TOKEN=abc", argv="x")
    hook.submit(job)
    assert not set(job.reads) & {"script", "environment", "argv", "spank_job_env", "work_dir", "std_out"}
    assert sorted(job.reads) == [
        "account",
        "array_inx",
        "begin_time",
        "comment",
        "cpus_per_task",
        "cpus_per_tres",
        "cron_job",
        "default_account",
        "default_qos",
        "exc_nodes",
        "features",
        "gres",
        "het_job_offset",
        "licenses",
        "max_nodes",
        "mem_per_tres",
        "min_cpus",
        "min_mem_per_cpu",
        "min_mem_per_node",
        "min_nodes",
        "name",
        "ntasks_per_node",
        "num_tasks",
        "partition",
        "prefer",
        "priority",
        "qos",
        "req_nodes",
        "reservation",
        "time_limit",
        "time_min",
        "tres_per_job",
        "tres_per_node",
        "tres_per_socket",
        "tres_per_task",
        "user_name",
    ]


def test_field_that_a_release_does_not_know_is_null(hook: Hook, service: Service) -> None:
    """Fields come and go between Slurm 20.11 and 26.05; the others are sent all the same."""
    job = hook.job("cpus_per_tres", "tres_per_node", "gres", "het_job_offset", user_name="ada")
    assert hook.submit(job) == {"site_factor": 1500}
    assert json.loads(service.requests[0]) == {"uid": 1000, **UNSET, "user": "ada"}


def test_gres_stands_in_for_tres_per_node(hook: Hook, service: Service) -> None:
    """`gres` is the field's older name; tres_per_node wins where both are there (job_submit_lua.c)."""
    hook.submit(hook.job(gres="gpu:2"))
    hook.submit(hook.job(gres="gpu:2", tres_per_node="gres/gpu:4"))
    assert [json.loads(r)["tres_per_node"] for r in service.requests] == ["gpu:2", "gres/gpu:4"]
