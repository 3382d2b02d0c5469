"""Files by other writers, added to tables in place."""
