"""Scores for the pending jobs of a Slurm cluster, and the tools that keep the queue in their order."""

__version__ = "0.1.0"
