"""A lake: a catalog and its files joined, as a user opens it."""

from bergline.lake.lake import Lake, connect

__all__ = ["Lake", "connect"]
