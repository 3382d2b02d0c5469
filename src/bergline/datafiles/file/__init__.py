"""Parquet files: footers, columns by field id, and conversion to Arrow."""
