"""Commits as clients request them, one at a time for each table."""
