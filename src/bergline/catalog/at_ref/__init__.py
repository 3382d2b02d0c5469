"""A ref of the whole lake as a catalog of its own: every table is seen at it, and commits to `main` land on it."""
