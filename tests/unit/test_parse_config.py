"""slurm_score/slurm/parse_config.py: configuration, QOS, users."""

from typing import Any

import pytest

from slurm_score.errors import ParseError
from slurm_score.slurm.parse_config import parse_admin_level, parse_config, parse_qos
from tests.unit.slurm_texts import CONFIG, USERS


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


def test_a_qos_without_a_priority_takes_no_other_s() -> None:
    """Each QOS stands for itself, whatever a release leaves out."""
    assert parse_qos("QOS=a(1)\n    Flags=x\nQOS=b(2)\n    Priority=7\n") == {"b": 7}


@pytest.mark.parametrize(
    ("line", "one_gpu"),
    [
        ("SelectTypeParameters    = CR_CORE", True),
        ("SelectTypeParameters    = CR_CORE,MULTIPLE_SHARING_GRES_PJ", False),
        ("", True),
    ],
)
def test_sharing_of_several_gpus_is_read(line: str, one_gpu: bool) -> None:
    """slurm.conf(5), SelectTypeParameters: by default a job shares one GPU of a node only."""
    assert parse_config(f"PriorityType = priority/multifactor\n{line}\n").shards_of_one_gpu is one_gpu
