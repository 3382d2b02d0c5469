"""Reading and writing Parquet files as Arrow: one writer, one reader."""
