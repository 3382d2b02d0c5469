"""Partition specs, sort orders, and their transforms."""
