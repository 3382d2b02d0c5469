"""Branches of the lake: their names, owners and limits. Tables join one by their first commit to it."""
