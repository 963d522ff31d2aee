"""The readers and every gateway against answers recorded from real Slurm."""
