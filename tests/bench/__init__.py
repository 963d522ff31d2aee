"""Benchmarks and fuzzing: they print figures, and assert none in the test suite."""
