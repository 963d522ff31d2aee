"""The cases for which slurmctld is started again with other settings; see lab_cases.py."""

from __future__ import annotations

from collections.abc import Mapping

from tests.contract.lab_cases import CaseFunction
from tests.contract.recording import Recording
from tests.contract.situations import SITUATIONS
from tests.live.topology import replace_parameters

SLURM_CONF = "/etc/slurm/slurm.conf"
WEIGHTS = {
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "2000",
    "PriorityWeightQOS": "500",
    "PriorityWeightTRES": "CPU=1000,Mem=2000,GRES/gpu=3000",
    "PriorityFlags": "SMALL_RELATIVE_TO_TIME",
    "SchedulerParameters": "bf_interval=2,bf_window=1440",
}
NEW_PARAMETERS = {"SlurmctldParameters": "rl_enable,rl_bucket_size=100"}  # from 23.02


def weights(case: Recording) -> None:
    """Slurm's own factors with weights, and jobs with a priority of many parts."""
    more = {} if case.stage.release == "22.05" else NEW_PARAMETERS
    _with_settings(case, WEIGHTS | more)


def basic(case: Recording) -> None:
    """PriorityType=priority/basic, where SiteFactor has no effect and sprio refuses to answer."""
    _with_settings(case, {"PriorityType": "priority/basic"})


def _with_settings(case: Recording, settings: Mapping[str, str]) -> None:
    """Record configuration and jobs under other settings, to be undone afterwards."""
    cluster = case.stage.cluster
    former = cluster.read_file(SLURM_CONF)
    _restart(case, replace_parameters(former, settings))
    case.stage.afterwards.append(lambda: _restart(case, former))
    case.stage.submit(SITUATIONS[case.name])
    case.ask(["config"], ["jobs"])


def _restart(case: Recording, conf: str) -> None:
    cluster = case.stage.cluster
    cluster.stop_daemon("slurmctld")
    cluster.write_file(SLURM_CONF, conf)
    cluster.start_daemon("slurmctld")


CONFIG_CASES: dict[str, CaseFunction] = {"config-weights": weights, "config-basic": basic}
