"""The simulator: what a policy would have done to a queue (README.md)."""
