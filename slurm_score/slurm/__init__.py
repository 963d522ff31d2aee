"""The one door to Slurm."""
