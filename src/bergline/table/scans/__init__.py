"""Reads of one state of a table."""
