"""The product on a fake Slurm: real service, real reprioritizer, real reports."""
