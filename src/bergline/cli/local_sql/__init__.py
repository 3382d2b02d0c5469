"""SQL without Spark: statements that need no engine, and SELECT on DuckDB or polars."""
