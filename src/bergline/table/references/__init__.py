"""Branches and tags: made, moved, merged, compared."""
