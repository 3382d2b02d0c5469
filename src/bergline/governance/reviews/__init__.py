"""Checks and approvals, each of one snapshot of a table."""
