"""Evolution of schemas and partition specs, and replacement of tables."""
