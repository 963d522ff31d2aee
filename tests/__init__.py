"""The tests of slurm-score."""
