"""What `slurm-score check` judges: facts in, one list of results out. Pure."""

from slurm_score.checks.facts import Check, Facts, Level
from slurm_score.checks.fit import check_fit
from slurm_score.checks.hook import check_hook
from slurm_score.checks.service import check_files, check_service
from slurm_score.checks.slurm import check_slurm

__all__ = ["Check", "Facts", "Level", "checks"]


def checks(facts: Facts) -> tuple[Check, ...]:
    """Return every result, in the order in which an admin would look: Slurm, our files, service, hook."""
    ours = (*check_files(facts), *check_fit(facts))
    return (*check_slurm(facts), *ours, *check_service(facts), *check_hook(facts))
