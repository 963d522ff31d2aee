"""What slurmctld tells of itself through scontrol: where it runs and what its clock says. Pure."""

import re

from slurm_score.slurm.gateway import ControllerHost

_PING = re.compile(r"^Slurmctld\([^)\n]*\) at (?P<host>\S+) is (?P<state>UP|DOWN)\s*$", re.MULTILINE)
_TIME = re.compile(r"^Configuration data as of (?P<time>\d{1,12})$", re.MULTILINE)


def parse_ping(text: str) -> tuple[ControllerHost, ...]:
    """Return the controllers in the order of their turn: the primary, then the backups.

    A backup that stands by answers as well: the one that acts is the first that is up.

    Source: slurm src/scontrol/scontrol.c, _print_ping: `Slurmctld(backup1) at <host> is UP`.
    """
    return tuple(ControllerHost(match["host"], match["state"] == "UP") for match in _PING.finditer(text))


def parse_time(text: str) -> int | None:
    """Return slurmctld's clock from `scontrol show config`, in s since the epoch, None where it isn't told.

    Source: slurm src/slurmctld/proc_req.c, fill_ctld_conf: last_update = time(NULL).
    """
    match = _TIME.search(text)
    return int(match["time"]) if match else None
