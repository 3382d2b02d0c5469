"""SQL expressions over rows, with Spark's ANSI semantics, evaluated on Arrow columns in this process."""
