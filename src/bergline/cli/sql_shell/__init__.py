"""The parts of `bergline sql`: Spark, or without it DuckDB or polars; a prompt with history and completion."""
