"""Changes of schema, partition spec and sort order."""
