"""Statistics files: distinct values of columns in Puffin files, and counts of partitions in Parquet files."""
