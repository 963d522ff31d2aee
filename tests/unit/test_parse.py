"""slurm_score/slurm/parse.py: nodes, partitions, QOS, users, configuration, scontrol's failures."""

import math
from typing import Any

import pytest

from slurm_score.errors import ParseError
from slurm_score.gres import GpuCount
from slurm_score.model import Node, Partition
from slurm_score.slurm.parse import (
    one_line,
    parse_admin_level,
    parse_config,
    parse_nodes,
    parse_partitions,
    parse_qos,
    parse_update_failures,
)
from tests.unit.slurm_texts import CONFIG, NODE, PARTITION, USERS


def node(text: str = NODE) -> Node:
    """Return the node that is read from one line."""
    reading = parse_nodes(text + "\n")
    assert reading.problems == []
    return reading.items[0]


def test_node_is_read() -> None:
    """Values hold blanks and equals signs, and a reason can't overwrite a field that came before it."""
    assert node() == Node(
        name="g1",
        states=("MIXED", "DRAIN"),
        usable=False,
        cpus=8,
        cpus_used=8,
        mem_mib=4000,
        mem_used_mib=1000,
        gpus=GpuCount(4, {"a100": 4}),
        gpus_used=GpuCount(4, {"a100": 4}),
        partitions=("main", "gpu"),
        features=("nvlink",),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("CPUEfctv=8 ", "", {"cpus": 8}, id="22.05 has CPUTot only"),
        pytest.param("CPUEfctv=8", "CPUEfctv=6", {"cpus": 6}, id="cores kept for the system"),
        pytest.param("Gres=gpu:a100:4", "Gres=(null)", {"gpus": GpuCount()}, id="case 13"),
        pytest.param(
            "Gres=gpu:a100:4", "Gres=gpu:h100:4(S:0-3)", {"gpus": GpuCount(4, {"h100": 4})}, id="case 2"
        ),
        pytest.param(
            "GresUsed=gpu:a100:4(IDX:0-3)",
            "GresUsed=gpu:a100:2(IDX:0,2),shard:a100:2(-/4,2/4,-/4,0/4)",
            {"gpus_used": GpuCount(3, {"a100": 3})},
            id="commas inside the parentheses, and a GPU of which shards are in use",
        ),
        pytest.param(
            "GresUsed=gpu:a100:4(IDX:0-3)",
            "GresUsed=gpu:a100:0(IDX:N/A)",
            {"gpus_used": GpuCount(0, {"a100": 0})},
            id="idle",
        ),
        pytest.param("Partitions=main,gpu  ", "", {"partitions": ()}, id="in no partition"),
        pytest.param(
            "State=MIXED+DRAIN",
            "State=IDLE*",
            {"states": ("IDLE", "NOT_RESPONDING"), "usable": False},
            id="silent",
        ),
    ],
)
def test_field_of_a_node_is_read(old: str, new: str, expected: dict[str, Any]) -> None:
    """What scontrol show node -o -d prints and what it means."""
    read = node(NODE.replace(old, new))
    assert {name: getattr(read, name) for name in expected} == expected


@pytest.mark.parametrize("text", ["Arch=x86_64 State=IDLE", NODE.replace("CPUAlloc=8", "CPUAlloc=x")])
def test_unreadable_node_is_left_out_and_named(text: str) -> None:
    """The other nodes count."""
    reading = parse_nodes(f"{NODE}\n{text}\n{NODE}\n")
    assert (len(reading.items), len(reading.problems)) == (2, 1)


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        (PARTITION, Partition(name="main", default=True, max_time_s=604_800.0, cpus=24)),
        (
            PARTITION.replace("Default=YES", "Default=NO").replace("DefaultTime=NONE", "DefaultTime=2:00:00"),
            Partition(name="main", default_time_s=7200.0, max_time_s=604_800.0, cpus=24),
        ),
        (
            PARTITION.replace("MaxTime=7-00:00:00", "MaxTime=UNLIMITED").replace("State=UP", "State=DOWN"),
            Partition(name="main", default=True, up=False, max_time_s=math.inf, cpus=24),
        ),
    ],
)
def test_partition_is_read(text: str, partition: Partition) -> None:
    """Times in seconds: NONE is not set, UNLIMITED is infinite (cases 17 and 18)."""
    reading = parse_partitions(text + "\n")
    assert (reading.items, reading.problems) == ([partition], [])


def test_unreadable_partition_is_named() -> None:
    """A line without its name is no partition."""
    reading = parse_partitions(f"{PARTITION}\nDefault=YES MaxTime=soon\n")
    assert (len(reading.items), len(reading.problems)) == (1, 1)


def test_values_of_one_line_may_hold_blanks_and_equals_signs() -> None:
    """A key begins with a capital after a blank; the first of two equal keys counts."""
    assert one_line("A=1 Reason=x y z CfgTRES=cpu=8,mem=1 A=2 B_c/D=") == {
        "A": "1",
        "Reason": "x y z",
        "CfgTRES": "cpu=8,mem=1",
        "B_c/D": "",
    }


@pytest.mark.parametrize(
    ("text", "qos"),
    [
        (
            "Current Association Manager state\n\nQOS Records\n\n"
            "QOS=normal(1)\n    Priority=0\nQOS=high(2)\n    Priority=1000",
            {"normal": 0, "high": 1000},
        ),
        (
            "QOS=a-b_c.d(7)\n    UsageRaw=0.000000\n    GrpJobs=N(0) GrpWall=N(0.00)\n    Priority=5\n",
            {"a-b_c.d": 5},
        ),
        ("No QOS currently cached in Slurm.\n", {}),
        ("", {}),
    ],
)
def test_qos_priorities_are_read(text: str, qos: dict[str, int]) -> None:
    """scontrol show assoc_mgr flags=qos, from slurmctld's memory."""
    assert parse_qos(text) == qos


@pytest.mark.parametrize(
    ("user", "level"),
    [("bob", "None"), ("bobby", "Administrator"), ("ops", "Operator"), ("eve", "None"), ("b.b", "None")],
)
def test_admin_level_is_that_of_the_whole_name(user: str, level: str) -> None:
    """A name that begins another, or that reads as a pattern, is not the other."""
    assert parse_admin_level(USERS, user) == level


def test_configuration_is_read() -> None:
    """What decides whether SiteFactor works, and how much Slurm's own factors can add up to."""
    config = parse_config(CONFIG)
    assert (config.cluster, config.release, config.slurm_user) == ("test", "22.05.8", "slurm")
    assert (config.priority_type, config.site_factor_plugin) == ("priority/multifactor", "")
    assert config.priority_flags == ("SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE")
    assert config.priority_weights == {
        "age": 1000,
        "assoc": 0,
        "fairshare": 2000,
        "job_size": 0,
        "partition": 0,
        "qos": 500,
        "tres": 6000,
    }
    assert config.priority_range == 9500
    assert config.scheduler_parameters == ("bf_continue", "bf_window=1440")
    assert config.slurmctld_parameters == ("rl_enable",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("JobSubmitPlugins        = lua", {"job_submit_plugins": ("lua",), "submits_to_lua": True}),
        (
            "JobSubmitPlugins        = job_submit/throttle, job_submit/lua",
            {"job_submit_plugins": ("throttle", "lua"), "submits_to_lua": True},
        ),
        ("JobSubmitPlugins        = (null)", {"job_submit_plugins": (), "submits_to_lua": False}),
        ("JobSubmitPlugins        = none", {"job_submit_plugins": ()}),
        ("PluginDir               = /a/slurm:/b/slurm", {"plugin_dirs": ("/a/slurm", "/b/slurm")}),
        ("PluginDir               = (null)", {"plugin_dirs": ()}),
        ("SLURM_CONF              = /etc/slurm/slurm.conf", {"slurm_conf": "/etc/slurm/slurm.conf"}),
        ("BOOT_TIME               = 1700000000", {"boot_time_s": 1_700_000_000}),
        ("BOOT_TIME               = 2026-11-30T18:34:57", {"boot_time_s": None}),
        ("", {"boot_time_s": None, "slurm_conf": "", "plugin_dirs": ()}),
    ],
)
def test_what_the_hook_depends_on_is_read(line: str, expected: dict[str, Any]) -> None:
    """Plugins by either name; a time in another form than asked for stops no cycle."""
    config = parse_config(f"{line}\n{CONFIG}")
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("value", "plugin"),
    [("(null)", ""), ("none", ""), ("site_factor/none", ""), ("", ""), ("site_factor/x", "site_factor/x")],
)
def test_site_factor_plugin_is_none_or_its_name(value: str, plugin: str) -> None:
    """Up to 23.02 Slurm ships site_factor/none, which does nothing."""
    text = CONFIG.replace("PrioritySiteFactorPlugin = (null)", f"PrioritySiteFactorPlugin = {value}")
    assert parse_config(text).site_factor_plugin == plugin


def test_configuration_with_empty_values_is_read() -> None:
    """priority/basic prints no weights (case 35)."""
    config = parse_config("PriorityType            = priority/basic\nPriorityFlags           =\n")
    assert (config.priority_type, config.priority_range, config.priority_flags) == ("priority/basic", 0, ())


@pytest.mark.parametrize("text", ["", "no configuration", "Slurmctld(primary) at ctl is DOWN"])
def test_text_that_is_no_configuration_is_refused(text: str) -> None:
    """Without PriorityType nothing can be decided."""
    with pytest.raises(ParseError, match="no PriorityType in scontrol show config"):
        parse_config(text)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Invalid job id specified for job 98765", ("98765", "Invalid job id specified")),
        ("1_3: Invalid job id specified", ("1_3", "Invalid job id specified")),
        ("9_3-9: Invalid user id", ("9_3-9", "Invalid user id")),
        ("9_3-5,7: Invalid user id", ("9_3-5,7", "Invalid user id")),
        ("9_[3-9]: Job has already finished", ("9_[3-9]", "Job has already finished")),
        ("Access/permission denied for job 4", ("4", "Access/permission denied")),
        ("Job is in held state for job 9_[3-9]", ("9_[3-9]", "Job is in held state")),
        (
            "Unable to contact slurm controller (connect failure)",
            ("", "Unable to contact slurm controller (connect failure)"),
        ),
    ],
)
def test_failed_update_names_its_job(text: str, failure: tuple[str, str]) -> None:
    """scontrol goes on after a failure and exits with 1: each line of stderr tells of one job."""
    assert list(parse_update_failures(text + "\n")) == [failure]


def test_every_failed_update_is_told() -> None:
    """Blank lines between them are no failures."""
    text = "\nA for job 1\n\nB for job 2\n1_3: C\n"
    assert list(parse_update_failures(text)) == [("1", "A"), ("2", "B"), ("1_3", "C")]


def test_a_qos_without_a_priority_takes_no_other_s() -> None:
    """Each QOS stands for itself, whatever a release leaves out."""
    assert parse_qos("QOS=a(1)\n    Flags=x\nQOS=b(2)\n    Priority=7\n") == {"b": 7}
