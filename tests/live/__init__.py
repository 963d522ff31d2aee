"""The container cluster as Python objects, and the tests that need it."""
