"""Unit tests: one file per module, no I/O but a temporary folder, no patching."""
