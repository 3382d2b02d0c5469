"""Text of statements edited in place before Spark runs it."""
