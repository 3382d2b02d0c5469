"""Reading and writing data files as Arrow: one reader for all formats, one writer for Parquet."""
