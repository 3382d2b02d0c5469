"""Tables of millions of files planned by this process, and by Spark's tasks."""
