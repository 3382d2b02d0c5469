"""What `bergline sql` is made of: Spark, or without it DuckDB or polars; a prompt with history and completion."""
