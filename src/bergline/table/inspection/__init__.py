"""Metadata tables: what a table knows about itself, as Arrow."""
