"""Catalogs over a pointer store: one string per table, moved only by compare-and-swap."""
