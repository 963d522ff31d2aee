"""The scoring service: answers the hook and the reports from the last snapshot, never asks Slurm."""
