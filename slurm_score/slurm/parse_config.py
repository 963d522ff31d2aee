"""What `scontrol show config` and `show assoc_mgr` print, read. Pure."""

import re

from slurm_score.errors import ParseError
from slurm_score.model import SlurmConfig
from slurm_score.slurm.reading import lines, names, text_of, whole

PRIORITY_WEIGHTS = {
    "age": "PriorityWeightAge",
    "assoc": "PriorityWeightAssoc",
    "fairshare": "PriorityWeightFairShare",
    "job_size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition",
    "qos": "PriorityWeightQOS",
}

ADMIN_LEVELS = frozenset({"Operator", "Administrator"})
"""AdminLevels that make an operator. Source: slurm src/slurmctld/slurmctld.h, validate_operator."""


def parse_qos(text: str) -> dict[str, int]:
    """Return QOS priorities by name from `scontrol show assoc_mgr flags=qos`."""
    priorities: dict[str, int] = {}
    name = ""
    for line in lines(text):
        if match := re.match(r"QOS=(.+)\(\d+\)", line):
            name = match[1]
        if name and (match := re.search(r"(?:^|\s)Priority=(\d+)", line)):
            priorities.setdefault(name, int(match[1]))
    return priorities


def parse_admin_level(text: str, user: str) -> str:
    """Return the AdminLevel of a user from `scontrol show assoc_mgr flags=users`, None where unknown."""
    match = re.search(rf"^\s*UserName={re.escape(user)}\(\d+\).*?AdminLevel=(\w+)", text, re.MULTILINE)
    return match[1] if match else "None"


def parse_operators(text: str) -> tuple[str, ...]:
    """Return the users above AdminLevel None from `scontrol show assoc_mgr flags=users`."""
    found = re.findall(r"^\s*UserName=(.+?)\(\d+\).*?AdminLevel=(\w+)", text, re.MULTILINE)
    return tuple(sorted(user for user, level in found if level in ADMIN_LEVELS))


def parse_config(text: str) -> SlurmConfig:
    """Return what matters here of `scontrol show config`.

    Raises:
        ParseError: the text isn't such a listing.
    """
    pairs = (line.partition("=") for line in lines(text))
    values = {key.strip(): value.strip() for key, equals, value in pairs if equals}
    if "PriorityType" not in values:
        raise ParseError("no PriorityType in scontrol show config", text)
    weights = {name: whole(values.get(setting, ""), 0) for name, setting in PRIORITY_WEIGHTS.items()}
    return SlurmConfig(
        cluster=values.get("ClusterName", ""),
        release=values.get("SLURM_VERSION", ""),
        slurm_user=values.get("SlurmUser", "").partition("(")[0],
        priority_type=values["PriorityType"],
        priority_flags=names(values.get("PriorityFlags", "")),
        priority_weights=weights | {"tres": _tres_weight(values.get("PriorityWeightTRES", ""))},
        site_factor_plugin=text_of(
            values.get("PrioritySiteFactorPlugin", "").removeprefix("site_factor/none")
        ),
        scheduler_parameters=names(values.get("SchedulerParameters", "")),
        select_type_parameters=names(values.get("SelectTypeParameters", "")),
        slurmctld_parameters=names(values.get("SlurmctldParameters", "")),
        controllers=tuple(host for key, host in values.items() if key.startswith("SlurmctldHost[")),
        job_submit_plugins=_plugins(values.get("JobSubmitPlugins", "")),
        plugin_dirs=tuple(filter(None, text_of(values.get("PluginDir", "")).split(":"))),
        slurm_conf=text_of(values.get("SLURM_CONF", "")),
        boot_time_s=int(boot) if (boot := values.get("BOOT_TIME", "")).isdecimal() else None,
        private_data=names(text_of(values.get("PrivateData", "")).lower()),
    )


def _tres_weight(text: str) -> int:
    return int(sum(float(item.partition("=")[2]) for item in names(text)))


def _plugins(text: str) -> tuple[str, ...]:
    return tuple(name.strip().removeprefix("job_submit/") for name in names(text_of(text)))
