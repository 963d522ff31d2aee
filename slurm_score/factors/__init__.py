"""The factors of the score, one file each; adding a file adds a factor everywhere."""

from slurm_score.factors.registry import (
    STORED,
    AnyFactor,
    Duration,
    Factor,
    FactorParams,
    Term,
    Weight,
    registry,
)

__all__ = ["STORED", "AnyFactor", "Duration", "Factor", "FactorParams", "Term", "Weight", "registry"]
