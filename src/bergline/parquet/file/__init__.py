"""One Parquet file: its footer, its columns by field id, and Arrow in between."""
