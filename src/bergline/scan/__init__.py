"""Scan planning: from a snapshot to the files that a read must open."""
