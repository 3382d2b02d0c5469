"""Backups of a catalog: one file with all that its database knows."""
