"""Files that no table needs: found, swept, and purged with a dropped table."""
