"""Schemas, and which columns of a file they mean."""
