"""Files that no table needs: finding and sweeping orphans, and purging a dropped table."""
