"""Branches and tags: creating, moving, merging and comparing them."""
