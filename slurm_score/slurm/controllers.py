"""What `scontrol ping` prints, read. Pure."""

import re

from slurm_score.slurm.gateway import ControllerHost

_PING = re.compile(r"^Slurmctld\([^)\n]*\) at (?P<host>\S+) is (?P<state>UP|DOWN)\s*$", re.MULTILINE)


def parse_ping(text: str) -> tuple[ControllerHost, ...]:
    """Return the controllers in the order of their turn: the primary, then the backups.

    A backup that stands by answers as well: the one that acts is the first that is up.

    Source: slurm src/scontrol/scontrol.c, _print_ping: `Slurmctld(backup1) at <host> is UP`.
    """
    return tuple(ControllerHost(match["host"], match["state"] == "UP") for match in _PING.finditer(text))
