"""Storms of submissions: the scripts that run in the controller's container, and what the tests share."""
