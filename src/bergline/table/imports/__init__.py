"""Files that others wrote, added to tables where they are."""
