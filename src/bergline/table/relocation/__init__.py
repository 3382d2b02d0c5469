"""Rewriting a table's metadata for another location, to which its files will be copied."""
